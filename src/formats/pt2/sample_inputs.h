// The inputs that an archive carries for those who trace or compile it: what torch.save writes of
// ((), kwargs). Nothing of Python is needed to write a pickle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pt2/python_value.h"

namespace tranship::pt2 {

/// A tensor of one number.
struct SampleTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes;
  bool of_ones = false;  // else of zeros
};

/// The bytes of a torch.save file of a value, its tensors as `tensor_of` says by their ports.
/// Each tensor has a storage of its own; storages of zeros are compressed.
std::string pickle(const PythonValue& value,
                   const std::function<SampleTensor(const std::string& port)>& tensor_of);

}  // namespace tranship::pt2
