// Weights on their way into a file: read, converted and written in small blocks, by all cores.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "ir/tensor_source.h"
#include "tranship/sink.h"

namespace tranship {

/// A tensor and its place in a file.
struct PlacedSource {
  TensorSourcePtr source;
  uint64_t offset = 0;
};

enum class Checksums { kNone, kCrc32 };

/// Writes tensors at their offsets, within the length that the file has reserved. Each block has
/// its place, so the bytes do not depend on who is faster. `what` is what the progress says.
/// -> for Checksums::kCrc32 the CRC-32 of each tensor, else nothing.
/// Errors: io; what reading a source says (a cast that overflows).
std::vector<uint32_t> write_sources(AtomicFile& file, std::span<const PlacedSource> sources,
                                    Checksums checksums, std::string_view what, const Sink& sink);

}  // namespace tranship
