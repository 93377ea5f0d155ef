// CRC-32 as zip files have it (polynomial 0x04c11db7, reflected), at the speed of memory.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tranship {

/// The checksum of `bytes`, or of what `before` is the checksum of with `bytes` behind it.
uint32_t crc32(Bytes bytes, uint32_t before = 0);

/// The checksum of two pieces in a row, from that of each: pieces can be read in any order.
uint32_t combine_crc32(uint32_t first, uint32_t second, uint64_t second_size_bytes);

}  // namespace tranship
