#include "checkpoint/gguf_file.h"

#include <gmock/gmock.h>

#include <limits>

#include "checkpoint/gguf_testing.h"

namespace tranship {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

using GgufFileTest = GgufTest;

/// One of each kind of thing; the last tensor ends with the file.
GgufBuilder small() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .f32("a.number", 0.5f)
      .boolean("a.flag", true);
  builder.texts("a.texts", {"", "two"}).i32s("a.integers", {-1, 7}).f32s("a.numbers", {1.5f});
  builder.pair("a.wide", GgufType::kUInt64, little_endian<uint64_t>(1u << 20));
  builder.pair("a.double", GgufType::kFloat64, little_endian(0.25));
  builder.pair("a.byte", GgufType::kInt8, little_endian<int8_t>(-5));
  builder.zeros("norm", {3}).tensor("weight", {32, 2}, GgmlType::kQ8_0, std::string(68, '\x01'));
  return builder;
}

/// Where tests overwrite a field: after these bytes.
size_t offset_after(const std::string& file, std::string_view text) {
  const size_t found = file.find(text);
  EXPECT_NE(found, std::string::npos);
  return found + text.size();
}

template <class T>
std::string with(std::string file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
  return file;
}

TEST_F(GgufFileTest, reads_metadata_and_tensors) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder = small();
    builder.version = version;
    const GgufFile gguf = open(builder);
    EXPECT_EQ(gguf.version(), version);
    EXPECT_EQ(gguf.find_text("general.architecture"), "llama");
    EXPECT_EQ(gguf.find_integer("llama.block_count"), 1);
    EXPECT_EQ(gguf.find_integer("a.wide"), 1 << 20);
    EXPECT_EQ(gguf.find_integer("a.byte"), -5);
    EXPECT_EQ(gguf.find_number("a.number"), 0.5);
    EXPECT_EQ(gguf.find_number("a.double"), 0.25);
    EXPECT_EQ(gguf.find_number("llama.block_count"), 1.0);
    EXPECT_EQ(gguf.find_boolean("a.flag"), true);
    EXPECT_THAT(gguf.texts("a.texts"), ElementsAre("", "two"));
    EXPECT_THAT(gguf.integers("a.integers"), ElementsAre(-1, 7));
    EXPECT_THAT(gguf.numbers("a.numbers"), ElementsAre(1.5));
    EXPECT_EQ(gguf.find_count("a.texts"), 2u);
    EXPECT_EQ(gguf.find_integer("absent"), std::nullopt);
    EXPECT_TRUE(gguf.texts("absent").empty());
    ASSERT_EQ(gguf.tensors().size(), 2u);
    const GgufTensor* weight = gguf.find_tensor("weight");
    ASSERT_NE(weight, nullptr);
    EXPECT_THAT(weight->shape, ElementsAre(2, 32));
    EXPECT_EQ(weight->type, GgmlType::kQ8_0);
    EXPECT_EQ(as_text(weight->range.bytes()), std::string(68, '\x01'));
    EXPECT_EQ(gguf.find_tensor("absent"), nullptr);
  }
}

TEST_F(GgufFileTest, value_of_another_type_is_corrupt_with_its_key) {
  const GgufFile gguf = open(small());
  for (const auto& [action, key] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { (void)gguf.find_integer("a.number"); }, "a.number"},
           {[&] { (void)gguf.find_number("a.flag"); }, "a.flag"},
           {[&] { (void)gguf.find_boolean("a.byte"); }, "a.byte"},
           {[&] { (void)gguf.find_text("a.texts"); }, "a.texts"},
           {[&] { (void)gguf.texts("a.integers"); }, "a.integers"},
           {[&] { (void)gguf.integers("a.numbers"); }, "a.numbers"},
           {[&] { (void)gguf.numbers("a.texts"); }, "a.texts"},
           {[&] { (void)gguf.numbers("general.architecture"); }, "general.architecture"},
       }) {
    const Error error = error_of(action);
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("'" + key + "'"));
  }
}

TEST_F(GgufFileTest, truncation_at_every_byte_is_corrupt) {
  const std::string file = small().build();
  for (size_t size = 0; size < file.size(); ++size) {
    const Error error = error_of([&] { open(file.substr(0, size)); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << size << ": " << error.what();
  }
}

TEST_F(GgufFileTest, every_byte_changed_is_read_or_refused_by_name) {
  const std::string file = small().build();
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int flipped : {0x01, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ flipped);
      try {
        const GgufFile gguf = open(changed);
        for (const GgufTensor& tensor : gguf.tensors())
          EXPECT_EQ(tensor.range.bytes().size(), tensor.range.size);
      } catch (const Error& error) {
        EXPECT_THAT(error.kind(), AnyOf(Eq(ErrorKind::kCorrupt), Eq(ErrorKind::kUnsupported)))
            << error.what();
      }
    }
  }
}

TEST_F(GgufFileTest, other_magic_versions_and_byte_order_are_refused_by_name) {
  const std::string file = small().build();
  EXPECT_THAT(error_of([&] { open(with(file, 0, 'g')); }).what(), HasSubstr("is not a GGUF file"));
  for (const auto& [version, words] :
       std::vector<std::pair<uint32_t, std::string>>{{0, "version 0"},
                                                     {1, "version 1"},
                                                     {4, "version 4"},
                                                     {0xffffffffu, "version 4294967295"},
                                                     {0x02000000u, "big-endian"},
                                                     {0x03000000u, "big-endian"}}) {
    const Error error = error_of([&, v = version] { open(with(file, 4, v)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST_F(GgufFileTest, counts_beyond_the_file_are_corrupt_at_once) {
  const std::string file = small().build();
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const size_t offset : {size_t{8}, size_t{16}}) {
    for (const uint64_t count : {kMax, kMax / 2, kMax / 2 + 1, uint64_t{1} << 32, uint64_t{11}}) {
      EXPECT_EQ(error_of([&] { open(with(file, offset, count)); }).kind(), ErrorKind::kCorrupt)
          << count;
    }
  }
  for (const std::string_view key : {"a.texts", "a.integers", "a.numbers"}) {
    const size_t count_offset = offset_after(file, key) + 8;
    for (const uint64_t count : {kMax, kMax / 4, kMax / 4 + 1, kMax / 2 + 1}) {
      EXPECT_EQ(error_of([&] { open(with(file, count_offset, count)); }).kind(),
                ErrorKind::kCorrupt)
          << key << count;
    }
  }
}

TEST_F(GgufFileTest, lengths_of_names_and_strings_are_checked) {
  const std::string file = small().build();
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const std::vector<size_t> offsets = {
      offset_after(file, "general.architecture") - 28,  // the first key
      offset_after(file, "general.architecture") + 4,   // its value
      offset_after(file, "norm") - 12,                  // a tensor's name
  };
  for (const size_t offset : offsets) {
    for (const uint64_t length : {kMax, kMax - 7, kMax / 2, uint64_t{1} << 32}) {
      EXPECT_EQ(error_of([&] { open(with(file, offset, length)); }).kind(), ErrorKind::kCorrupt)
          << offset;
    }
  }
  EXPECT_THAT(error_of([&] { open(with(file, offsets[0], uint64_t{0})); }).what(),
              HasSubstr("expected 1 to 65535"));
}

TEST_F(GgufFileTest, ranks_dimensions_and_types_are_checked) {
  const std::string file = small().build();
  const size_t rank = offset_after(file, "weight");
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const uint32_t value : {0u, 5u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_THAT(error_of([&] { open(with(file, rank, value)); }).what(),
                HasSubstr("axes, expected 1 to 4"));
  }
  for (const uint64_t value : {uint64_t{0}, kMax, kMax / 2 + 1}) {
    EXPECT_THAT(error_of([&] { open(with(file, rank + 4, value)); }).what(),
                HasSubstr("has an axis of"));
  }
  for (const uint64_t value :
       {kMax / 2, kMax / 4, uint64_t{1} << 58}) {  // 32 times it, or its bytes, pass 63 bits
    EXPECT_EQ(error_of([&] { open(with(file, rank + 12, value)); }).kind(), ErrorKind::kCorrupt)
        << value;
  }
  EXPECT_THAT(error_of([&] { open(with(file, rank + 4, uint64_t{31})); }).what(),
              HasSubstr("not a multiple of Q8_0's"));
  for (const uint32_t type : {4u, 31u, 38u, 42u, 0xffffffffu}) {
    const Error error = error_of([&] { open(with(file, rank + 20, type)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("unknown ggml type " + std::to_string(type)));
  }
}

TEST_F(GgufFileTest, offsets_are_aligned_inside_the_file_and_apart) {
  const std::string file = small().build();
  const size_t offset = offset_after(file, "weight") + 24;
  EXPECT_THAT(error_of([&] { open(with(file, offset, uint64_t{33})); }).what(),
              HasSubstr("multiple of the alignment 32"));
  EXPECT_THAT(error_of([&] { open(with(file, offset, uint64_t{0})); }).what(),
              HasSubstr("overlap"));
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const uint64_t value : {uint64_t{64}, uint64_t{1} << 40, kMax - 31, kMax / 2 + 1}) {
    EXPECT_THAT(error_of([&] { open(with(file, offset, value)); }).what(),
                HasSubstr("incomplete download?"))
        << value;
  }
}

TEST_F(GgufFileTest, bytes_between_tensors_that_belong_to_none_are_corrupt) {
  std::string file = small().build();
  const size_t norm = offset_after(file, "norm") + 16, weight = offset_after(file, "weight") + 24;
  file += std::string(64, '\0');
  EXPECT_THAT(error_of([&] { open(with(file, weight, uint64_t{64})); }).what(),
              HasSubstr("belong to none"));
  EXPECT_THAT(
      error_of([&] { open(with(with(file, weight, uint64_t{64}), norm, uint64_t{32})); }).what(),
      HasSubstr("tensor 'norm' starts"));
}

TEST_F(GgufFileTest, alignment_is_a_power_of_two) {
  for (const uint32_t alignment : {0u, 3u, 48u, 0x7fffffffu, 0xffffffffu}) {
    const Error error = error_of([&] { open(small().u32("general.alignment", alignment)); });
    EXPECT_THAT(error.what(), HasSubstr("expected a power of two"));
  }
  EXPECT_EQ(open(small().u32("general.alignment", 32)).tensors().size(), 2u);
  EXPECT_EQ(error_of([&] { open(small().text("general.alignment", "32")); }).kind(),
            ErrorKind::kCorrupt);
}

TEST_F(GgufFileTest, names_that_are_there_twice_are_corrupt) {
  EXPECT_THAT(error_of([&] { open(small().u32("a.number", 1)); }).what(),
              HasSubstr("'a.number' is there twice"));
  EXPECT_THAT(error_of([&] { open(small().zeros("norm", {1})); }).what(),
              HasSubstr("'norm' is there twice"));
}

TEST_F(GgufFileTest, types_and_bools_of_metadata_are_checked) {
  const std::string file = small().build();
  EXPECT_THAT(error_of([&] { open(with(file, offset_after(file, "a.number"), 13u)); }).what(),
              HasSubstr("unknown type 13"));
  EXPECT_THAT(error_of([&] { open(with(file, offset_after(file, "a.flag") + 4, '\x02')); }).what(),
              HasSubstr("expected 0 or 1"));
}

TEST_F(GgufFileTest, lists_of_lists_are_read_to_a_depth_of_four) {
  const auto nested = [](int depth) {
    std::string bytes =
        little_endian(static_cast<uint32_t>(GgufType::kUInt8)) + little_endian<uint64_t>(1) + "x";
    for (int i = 1; i < depth; ++i) {
      bytes = little_endian(static_cast<uint32_t>(GgufType::kArray)) + little_endian<uint64_t>(1) +
              bytes;
    }
    return small().pair("a.nested", GgufType::kArray, bytes);
  };
  EXPECT_EQ(open(nested(4)).find_count("a.nested"), 1u);
  EXPECT_THAT(error_of([&] { open(nested(5)); }).what(), HasSubstr("nested more than 4 deep"));
  EXPECT_THAT(error_of([&] { open(nested(1000)); }).what(), HasSubstr("nested more than 4 deep"));
}

TEST_F(GgufFileTest, a_missing_file_is_io) {
  EXPECT_EQ(error_of([&] { GgufFile::open(folder_.path() / "absent.gguf"); }).kind(),
            ErrorKind::kIo);
}

}  // namespace
}  // namespace tranship
