// Every product and sum is rounded to f32 on its own, in the package's order: this file is built
// without contraction into fused multiply-adds (CMakeLists.txt), which would change the last bit.
#include "checkpoint/gguf_dequantize.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace tranship {
namespace {

constexpr int64_t kChunkElements = 256;  // a multiple of every block

float half_at(const uint8_t* bytes) {
  return f16_to_f32(static_cast<uint16_t>(bytes[0] | (static_cast<unsigned>(bytes[1]) << 8)));
}

// The loops below have constant lengths and write to an array of their own, so that g++ -O2 turns
// them into vectors.

// Q4_0: f16 scale, 16 bytes of nibbles (element i low, i + 16 high), minus 8.
void decode_q4_0(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) out[i] = scale * static_cast<float>((block[2 + i] & 0x0f) - 8);
  for (int i = 0; i < 16; ++i) out[16 + i] = scale * static_cast<float>((block[2 + i] >> 4) - 8);
}

// Q4_1: f16 scale, f16 minimum, nibbles.
void decode_q4_1(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int i = 0; i < 16; ++i) out[i] = scale * static_cast<float>(block[4 + i] & 0x0f) + minimum;
  for (int i = 0; i < 16; ++i)
    out[16 + i] = scale * static_cast<float>(block[4 + i] >> 4) + minimum;
}

// A byte's bits as eight bytes of 0 or 16, the lowest bit first.
constexpr std::array<std::array<uint8_t, 8>, 256> kSpreadBits = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (size_t byte = 0; byte < 256; ++byte) {
    for (size_t bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit & 1) != 0 ? 16 : 0;
  }
  return table;
}();

// The fifth bits of 32 elements lie in four bytes, element i in bit i.
std::array<uint8_t, 32> fifth_bits(const uint8_t* bytes) {
  std::array<uint8_t, 32> bits;
  for (size_t i = 0; i < 4; ++i) std::memcpy(bits.data() + 8 * i, kSpreadBits[bytes[i]].data(), 8);
  return bits;
}

// Q5_0: f16 scale, fifth bits, nibbles, minus 16.
void decode_q5_0(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block);
  const std::array<uint8_t, 32> bits = fifth_bits(block + 2);
  const uint8_t* bit = bits.data();
  for (int i = 0; i < 16; ++i)
    out[i] = scale * static_cast<float>(((block[6 + i] & 0x0f) | bit[i]) - 16);
  for (int i = 0; i < 16; ++i)
    out[16 + i] = scale * static_cast<float>(((block[6 + i] >> 4) | bit[16 + i]) - 16);
}

// Q5_1: f16 scale, f16 minimum, fifth bits, nibbles.
void decode_q5_1(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  const std::array<uint8_t, 32> bits = fifth_bits(block + 4);
  const uint8_t* bit = bits.data();
  for (int i = 0; i < 16; ++i)
    out[i] = scale * static_cast<float>((block[8 + i] & 0x0f) | bit[i]) + minimum;
  for (int i = 0; i < 16; ++i) {
    out[16 + i] = scale * static_cast<float>((block[8 + i] >> 4) | bit[16 + i]) + minimum;
  }
}

// Q8_0: f16 scale, 32 signed bytes.
void decode_q8_0(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
}

// Scales and minimums of the eight groups of 32 in Q4_K and Q5_K: six bits each in twelve bytes.
// The first four of each have bytes of their own; the others take nibbles of the last four bytes
// and the top bits of the first eight.
struct GroupScales {
  std::array<float, 8> scale;
  std::array<float, 8> minimum;
};

GroupScales group_scales(const uint8_t* block) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  const uint8_t* s = block + 4;
  GroupScales groups;
  for (size_t i = 0; i < 4; ++i) {
    groups.scale[i] = scale * static_cast<float>(s[i] & 0x3f);
    groups.minimum[i] = minimum * static_cast<float>(s[4 + i] & 0x3f);
    groups.scale[4 + i] = scale * static_cast<float>((s[8 + i] & 0x0f) | ((s[i] >> 2) & 0x30));
    groups.minimum[4 + i] =
        minimum * static_cast<float>((s[8 + i] >> 4) | ((s[4 + i] >> 2) & 0x30));
  }
  return groups;
}

// Q4_K: f16 scale, f16 minimum, group scales, 128 bytes of nibbles: 32 bytes hold two groups.
void decode_q4_k(const uint8_t* __restrict block, float* __restrict out) {
  const GroupScales groups = group_scales(block);
  const uint8_t* nibbles = block + 16;
  for (size_t pair = 0; pair < 4; ++pair, nibbles += 32, out += 64) {
    const float low_scale = groups.scale[2 * pair];
    const float low_minimum = groups.minimum[2 * pair];
    const float high_scale = groups.scale[2 * pair + 1];
    const float high_minimum = groups.minimum[2 * pair + 1];
    for (int i = 0; i < 32; ++i)
      out[i] = low_scale * static_cast<float>(nibbles[i] & 0x0f) - low_minimum;
    for (int i = 0; i < 32; ++i)
      out[32 + i] = high_scale * static_cast<float>(nibbles[i] >> 4) - high_minimum;
  }
}

// Q5_K: as Q4_K with 32 bytes of fifth bits before the nibbles: bit g of byte i belongs to element
// i of group g.
void decode_q5_k(const uint8_t* __restrict block, float* __restrict out) {
  const GroupScales groups = group_scales(block);
  const uint8_t* high = block + 16;
  const uint8_t* nibbles = block + 48;
  for (unsigned group = 0; group < 8; ++group, out += 32) {
    const float scale = groups.scale[group];
    const float minimum = groups.minimum[group];
    const unsigned shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      const unsigned code = ((nibbles[i] >> shift) & 0x0fu) | (((high[i] >> group) & 1u) << 4);
      out[i] = scale * static_cast<float>(static_cast<int>(code)) - minimum;
    }
    nibbles += 32 * (group % 2);
  }
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 signed scales for 16 elements each,
// f16 scale; minus 32. Half a block is four runs of 32: low nibbles of bytes 0 and 32, then high
// nibbles; pairs from bits 0, 2, 4, 6.
void decode_q6_k(const uint8_t* __restrict block, float* __restrict out) {
  const float scale = half_at(block + 208);
  for (unsigned run = 0; run < 8; ++run, out += 32) {
    const uint8_t* low = block + 64 * (run / 4) + 32 * (run % 2);
    const uint8_t* high = block + 128 + 32 * (run / 4);
    const uint8_t* scales = block + 192 + 2 * run;
    const float first = scale * static_cast<float>(static_cast<int8_t>(scales[0]));
    const float second = scale * static_cast<float>(static_cast<int8_t>(scales[1]));
    const unsigned low_shift = 4 * (run % 4 / 2);
    const unsigned high_shift = 2 * (run % 4);
    std::array<float, 32> codes;
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned code = ((low[i] >> low_shift) & 0x0fu) | (((high[i] >> high_shift) & 3u) << 4);
      codes[i] = static_cast<float>(static_cast<int>(code) - 32);
    }
    for (unsigned i = 0; i < 16; ++i) out[i] = first * codes[i];
    for (unsigned i = 16; i < 32; ++i) out[i] = second * codes[i];
  }
}

using Decode = void (*)(const uint8_t*, float*);

Decode find_decode(GgmlType type) {
  switch (type) {
    case GgmlType::kQ4_0:
      return decode_q4_0;
    case GgmlType::kQ4_1:
      return decode_q4_1;
    case GgmlType::kQ5_0:
      return decode_q5_0;
    case GgmlType::kQ5_1:
      return decode_q5_1;
    case GgmlType::kQ8_0:
      return decode_q8_0;
    case GgmlType::kQ4_K:
      return decode_q4_k;
    case GgmlType::kQ5_K:
      return decode_q5_k;
    case GgmlType::kQ6_K:
      return decode_q6_k;
    default:
      return nullptr;
  }
}

class DequantizeSource final : public TensorSource {
 public:
  DequantizeSource(std::string name, GgmlType type, std::vector<int64_t> shape, FileRange range)
      : TensorSource(std::move(name), DType::kF32, std::move(shape)),
        layout_(layout(type)),
        decode_(find_decode(type)),
        range_(std::move(range)) {
    check(decode_ != nullptr, "a ggml type without a decoder");
    check(num_elements() % layout_.block_elements == 0 &&
              range_.size == static_cast<size_t>(num_elements() / layout_.block_elements) *
                                 layout_.block_bytes,
          "a range of a GGUF file and its tensor have different sizes");
  }

  void read(int64_t first, int64_t count, std::span<std::byte> out) const override {
    check(first >= 0 && count >= 0 && first <= num_elements() && count <= num_elements() - first,
          "a tensor is read past its end");
    check(out.size() == static_cast<size_t>(count) * sizeof(float),
          "a tensor's buffer has another size");
    const uint8_t* blocks = reinterpret_cast<const uint8_t*>(range_.bytes().data());
    std::array<float, kChunkElements> chunk;
    for (std::byte* target = out.data(); count > 0;) {
      // From the block that holds `first`, as many whole blocks as fit into the chunk and are
      // needed.
      const int64_t skipped = first % layout_.block_elements;
      const int64_t wanted = std::min(kChunkElements - skipped, count);
      int64_t decoded = 0;
      for (int64_t block = first / layout_.block_elements; decoded < skipped + wanted; ++block) {
        decode_(blocks + static_cast<size_t>(block) * layout_.block_bytes, chunk.data() + decoded);
        decoded += layout_.block_elements;
      }
      const size_t bytes = static_cast<size_t>(wanted) * sizeof(float);
      std::memcpy(target, chunk.data() + skipped, bytes);
      target += bytes;
      first += wanted;
      count -= wanted;
    }
  }

 private:
  GgmlLayout layout_;
  Decode decode_;
  FileRange range_;
};

}  // namespace

bool can_read(GgmlType type) {
  return find_plain_dtype(type).has_value() || find_decode(type) != nullptr;
}

TensorSourcePtr ggml_source(std::string name, GgmlType type, std::vector<int64_t> shape,
                            FileRange range) {
  if (const auto dtype = find_plain_dtype(type)) {
    return range_source(std::move(name), *dtype, std::move(shape), std::move(range));
  }
  return std::make_shared<DequantizeSource>(std::move(name), type, std::move(shape),
                                            std::move(range));
}

}  // namespace tranship
