#include "base/crc32.h"

#include <zlib.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tranship {
namespace {

/// The remainder so far, without the inversion at both ends, which zlib makes.
uint32_t by_zlib(uint32_t state, Bytes bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  if (bytes.empty()) return state;  // null means something else to zlib
  return ~static_cast<uint32_t>(crc32_z(~state, data, bytes.size()));
}

#if defined(__x86_64__)

// By carry-less products: four blocks of 16 bytes a step, folded into one. Measured: 7 GB/s a core
// in blocks of 128 KiB, where zlib 1.2 has 2 GB/s.
// Source: Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Intel).

constexpr size_t kBlock = 16;

/// Moves a block forward by the distance that the constants stand for, onto `next`.
__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i block, __m128i constants,
                                                             __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(block, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(block, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// bytes: at least four blocks.
__attribute__((target("pclmul,sse4.1"))) uint32_t by_products(uint32_t state, Bytes bytes) {
  // x^(n + 32) and x^(n - 32), reflected, for a distance of n = 512 and n = 128 bits.
  const __m128i over_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i over_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const std::byte* at = bytes.data();
  __m128i a = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = load(at + kBlock), c = load(at + 2 * kBlock), d = load(at + 3 * kBlock);
  size_t done = 4 * kBlock;
  for (; bytes.size() - done >= 4 * kBlock; done += 4 * kBlock) {
    a = fold(a, over_four, load(at + done));
    b = fold(b, over_four, load(at + done + kBlock));
    c = fold(c, over_four, load(at + done + 2 * kBlock));
    d = fold(d, over_four, load(at + done + 3 * kBlock));
  }
  a = fold(fold(fold(a, over_one, b), over_one, c), over_one, d);
  for (; bytes.size() - done >= kBlock; done += kBlock) a = fold(a, over_one, load(at + done));
  std::array<std::byte, kBlock> folded;  // has the remainder of all that it was folded from
  std::memcpy(folded.data(), &a, kBlock);
  return by_zlib(by_zlib(0, folded), bytes.subspan(done));
}

bool has_products() {
  static const bool has =
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  return has;
}

#endif

uint32_t advance(uint32_t state, Bytes bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= 4 * kBlock && has_products()) return by_products(state, bytes);
#endif
  return by_zlib(state, bytes);
}

}  // namespace

uint32_t crc32(Bytes bytes, uint32_t before) { return ~advance(~before, bytes); }

uint32_t combine_crc32(uint32_t first, uint32_t second, uint64_t second_size_bytes) {
  return static_cast<uint32_t>(
      crc32_combine(first, second, static_cast<z_off_t>(second_size_bytes)));
}

}  // namespace tranship
