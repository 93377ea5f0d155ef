// The JSON at the head of a .safetensors file, and the index of a sharded checkpoint, as plain
// structs. Read event by event: a header of 50 000 tensors takes milliseconds, and what does not
// belong there is refused at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tranship {

/// One entry of the header, with the right types and nothing else checked.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> data_offsets;  // two of them: begin and end, from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the file
  std::map<std::string, std::string> metadata;
};

/// Parses a header. `file` is for messages.
/// Errors: corrupt, with the tensor's name or the byte's offset, for bad JSON, a name that stands
/// twice, a missing or unknown field, a number that is negative, not whole or over 64 bits, or
/// metadata that are not strings.
SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view text);

/// Parses model.safetensors.index.json. -> tensor's name -> shard's file name, as written there.
/// Errors: corrupt for bad JSON, an absent weight_map, a tensor that stands twice, a value that is
/// not a string.
std::map<std::string, std::string> parse_safetensors_index(std::string_view file,
                                                           std::string_view text);

}  // namespace tranship
