#include "base/crc32.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tranship {
namespace {

// A remainder is a polynomial over GF(2) with its bits reflected: the highest bit stands for x^0.
constexpr uint32_t kPolynomial = 0xedb88320;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t a) { return (a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1; }

/// a * b modulo the polynomial.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

// ---- by tables: eight bytes a step. kTables[k][b] is what byte b becomes k bytes later.

using Table = std::array<uint32_t, 256>;
constexpr size_t kStep = 8;

constexpr std::array<Table, kStep> make_tables() {
  std::array<Table, kStep> tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = times_x(rest);
    tables[0][byte] = rest;
  }
  for (size_t k = 1; k < kStep; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr std::array<Table, kStep> kTables = make_tables();

/// state: the remainder so far, without the inversion at both ends.
uint32_t by_tables(uint32_t state, Bytes bytes) {
  while (bytes.size() >= kStep) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kStep);
    word ^= state;
    state = 0;
    for (size_t k = 0; k < kStep; ++k) state ^= kTables[kStep - 1 - k][(word >> (8 * k)) & 0xff];
    bytes = bytes.subspan(kStep);
  }
  for (const std::byte byte : bytes)
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<uint32_t>(byte)) & 0xff];
  return state;
}

#if defined(__x86_64__)

// ---- by carry-less products: four blocks of 16 bytes a step, folded into one.
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
  return by_tables(by_tables(0, folded), bytes.subspan(done));
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
  return by_tables(state, bytes);
}

}  // namespace

uint32_t crc32(Bytes bytes, uint32_t before) { return ~advance(~before, bytes); }

uint32_t combine_crc32(uint32_t first, uint32_t second, uint64_t second_size_bytes) {
  uint32_t power = kOne;  // x^(bits of the second)
  uint32_t square = times_x(kOne);
  for (int i = 0; i < 3; ++i) square = multiply(square, square);  // x^8: a byte
  for (uint64_t rest = second_size_bytes; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  return multiply(power, first) ^ second;
}

}  // namespace tranship
