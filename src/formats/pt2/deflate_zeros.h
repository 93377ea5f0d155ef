// Zeros, compressed as zip files have it: a template of a cache is megabytes of nothing.
#pragma once

#include <cstdint>
#include <string>

namespace tranship::pt2 {

/// A DEFLATE stream (RFC 1951) of `count` zeros; count > 0.
std::string deflate_zeros(uint64_t count);
/// Their CRC-32.
uint32_t crc32_of_zeros(uint64_t count);

}  // namespace tranship::pt2
