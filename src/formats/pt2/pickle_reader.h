// The tensors of a torch.save file: a pickle, read without running it. Archives of torch 2.8 hold
// their weights so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "formats/pt2/schema.h"

namespace tranship::pt2 {

struct PickledTensor {
  std::string storage;  // the name of its record below "data/"
  TensorMeta meta;      // sizes, strides and offset in elements of the storage
};

/// Reads a dict of tensors by name. Only the opcodes and the few functions of PyTorch that such a
/// dict needs are known; nothing is called.
/// Errors: corrupt for what is cut short or not a pickle; unsupported, with its name, for anything
/// but tensors.
std::map<std::string, PickledTensor> read_pickled_tensors(std::string_view where, Bytes pickle);

}  // namespace tranship::pt2
