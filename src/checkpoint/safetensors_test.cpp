#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "base/atomic_file.h"
#include "base/testing.h"

namespace tranship {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_length(uint64_t length, std::string_view rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + std::string(rest);
}

/// A file of this header and so many bytes of data.
std::string file_of(std::string_view header, size_t data_bytes) {
  return with_length(header.size(), std::string(header) + std::string(data_bytes, '\1'));
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, dtype,
                     shape, offsets);
}

class SafetensorsTest : public testing::Test {
 protected:
  Error error_for(std::string_view bytes) {
    const auto path = folder_.write("x.safetensors", bytes);
    return error_of([&] { open_safetensors(path); });
  }
  /// The file is refused as corrupt, by its name, with this in the message.
  void expect_corrupt(std::string_view bytes, std::string_view message) {
    const Error error = error_for(bytes);
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("x.safetensors'"));
    EXPECT_THAT(error.what(), HasSubstr(std::string(message)));
  }
  void expect_corrupt_entry(std::string_view text, size_t data_bytes, std::string_view message) {
    expect_corrupt(file_of("{" + std::string(text) + "}", data_bytes), message);
  }

  TestFolder folder_;
};

const std::filesystem::path kCase =
    std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/safetensors/every_dtype.safetensors";

// Written by the Python package: see tools/make_safetensors_case.py.
TEST_F(SafetensorsTest, file_of_the_python_package_is_read_right_in_every_dtype) {
  const NamedTensors tensors = read_safetensors(kCase);
  EXPECT_EQ(tensors.size(), 18u);
  const auto expect_counting = [&](const std::string& name, DType dtype, std::vector<int64_t> shape,
                                   double first) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    const Tensor& tensor = tensors.at(name);
    EXPECT_EQ(tensor.dtype(), dtype) << name;
    EXPECT_EQ(tensor.shape(), shape) << name;
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.at(i), first + static_cast<double>(i)) << name;
  };
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                            DType::kF8E5M2, DType::kI64, DType::kI32, DType::kI16, DType::kI8}) {
    expect_counting("signed." + std::string(torch_name(dtype)), dtype, {2, 3}, -2);
  }
  for (const DType dtype : {DType::kU64, DType::kU32, DType::kU16, DType::kU8}) {
    expect_counting("unsigned." + std::string(torch_name(dtype)), dtype, {3, 2}, 0);
  }
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensors.at("bool").at(i), i % 2);
  EXPECT_EQ(tensors.at("bool").dtype(), DType::kBool);
  EXPECT_EQ(tensors.at("scalar").shape(), std::vector<int64_t>{});
  EXPECT_EQ(tensors.at("scalar").at(0), 2.5);
  EXPECT_EQ(tensors.at("empty").shape(), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(tensors.at("quoted \"name\" \xc3\xa9").at(0), 7);
}

TEST_F(SafetensorsTest, writer_makes_the_bytes_that_the_python_package_makes) {
  write_safetensors(folder_ / "y.safetensors", read_safetensors(kCase));
  EXPECT_EQ(read_text(folder_ / "y.safetensors"), read_text(kCase));
}

TEST_F(SafetensorsTest, what_is_written_is_read_again_in_every_dtype) {
  NamedTensors tensors;
  for (const char* name : {"f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i64", "i32", "i16",
                           "i8", "u64", "u32", "u16", "u8", "bool"}) {
    Tensor tensor(*find_dtype(name), {3, 1, 5});
    for (size_t i = 0; i < tensor.bytes().size(); ++i)
      tensor.bytes()[i] = static_cast<std::byte>(i * 7);
    tensors.emplace(name, std::move(tensor));
  }
  write_safetensors(folder_ / "y.safetensors", tensors);
  const NamedTensors again = read_safetensors(folder_ / "y.safetensors");
  ASSERT_EQ(again.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(again.at(name).dtype(), tensor.dtype());
    EXPECT_EQ(again.at(name).shape(), tensor.shape());
    EXPECT_TRUE(std::ranges::equal(again.at(name).bytes(), tensor.bytes())) << name;
  }
}

TEST_F(SafetensorsTest, no_tensors_at_all_are_a_file_too) {
  write_safetensors(folder_ / "y.safetensors", {});
  EXPECT_TRUE(read_safetensors(folder_ / "y.safetensors").empty());
}

TEST_F(SafetensorsTest, tensor_named_like_the_metadata_cannot_be_written) {
  const Error error =
      error_of([&] { write_safetensors(folder_ / "y.safetensors", {{"__metadata__", Tensor()}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y.safetensors"));
}

TEST_F(SafetensorsTest, tensors_are_ranges_of_the_mapped_file) {
  const auto path =
      folder_.write("x.safetensors", file_of("{" + entry("a", "U8", "2", "0,2") + "}", 2));
  const SafetensorsFile file = open_safetensors(path);
  const auto range = file.tensors.at("a")->file_range();
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->file->path(), path);
  EXPECT_EQ(range->offset + 2, std::filesystem::file_size(path));
}

TEST_F(SafetensorsTest, metadata_are_strings) {
  const auto path =
      folder_.write("x.safetensors", file_of(R"({"__metadata__":{"format":"pt","a":"b"}}   )", 0));
  EXPECT_THAT(open_safetensors(path).metadata,
              ElementsAre(std::pair("a", "b"), std::pair("format", "pt")));
  expect_corrupt(file_of(R"({"__metadata__":{"n":1}})", 0), "__metadata__: 'n' is a number");
  expect_corrupt(file_of(R"({"__metadata__":{"n":{}}})", 0), "__metadata__: 'n' is an object");
  expect_corrupt(file_of(R"({"__metadata__":{"n":null}})", 0), "__metadata__: 'n' is null");
  expect_corrupt(file_of(R"({"__metadata__":["n"]})", 0), "__metadata__ is a list");
  expect_corrupt(file_of(R"({"__metadata__":{"n":"a","n":"b"}})", 0),
                 "__metadata__: 'n' is there twice");
}

TEST_F(SafetensorsTest, tensors_may_stand_in_any_order_in_the_header) {
  const auto path = folder_.write(
      "x.safetensors",
      file_of("{" + entry("b", "U8", "2", "1,3") + "," + entry("a", "U8", "", "0,1") + "}", 3));
  EXPECT_EQ(open_safetensors(path).tensors.size(), 2u);
}

TEST_F(SafetensorsTest, file_cut_anywhere_is_corrupt) {
  const auto path = folder_.write("x.safetensors", read_text(kCase));
  for (size_t size = std::filesystem::file_size(path); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const Error error = error_of([&] { open_safetensors(path); });
    ASSERT_EQ(error.kind(), ErrorKind::kCorrupt) << "cut at " << size << ": " << error.what();
    ASSERT_THAT(error.what(), HasSubstr("incomplete download?")) << "cut at " << size;
  }
}

TEST_F(SafetensorsTest, file_with_any_byte_of_its_head_changed_is_read_or_refused) {
  std::string bytes = read_text(kCase);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  for (size_t i = 0; i < 8 + header_bytes; ++i) {
    const char original = bytes[i];
    for (const char changed : {'9', '\xff'}) {
      bytes[i] = changed;
      const auto path = folder_.write("x.safetensors", bytes);
      try {
        read_safetensors(path);  // the address sanitizer watches
      } catch (const Error& error) {
        ASSERT_NE(error.kind(), ErrorKind::kInternal) << "byte " << i << ": " << error.what();
        ASSERT_NE(error.kind(), ErrorKind::kInvalidArgument)
            << "byte " << i << ": " << error.what();
      }
    }
    bytes[i] = original;
  }
}

// The six malformed files of the field (shared/spec/cases.md).

TEST_F(SafetensorsTest, shape_that_contradicts_its_offsets_is_corrupt) {
  expect_corrupt_entry(entry("w", "F32", "2,3", "0,20"), 20,
                       "tensor 'w': F32 [2, 3] takes 24 bytes, but data offsets 0 to 20 are 20");
}

TEST_F(SafetensorsTest, offsets_past_the_end_of_the_file_are_corrupt) {
  expect_corrupt_entry(entry("w", "F32", "2,3", "0,24"), 20, "tensor 'w' ends at data offset 24");
}

TEST_F(SafetensorsTest, shape_whose_product_wraps_to_zero_is_corrupt) {
  expect_corrupt_entry(entry("w", "F32", "4294967296,4294967296", "0,0"), 0,
                       "tensor 'w': the size of its shape");
  expect_corrupt_entry(entry("w", "U8", "4611686018427387904,4,0", "0,0"), 0, "overflows");
  expect_corrupt_entry(entry("w", "U8", "0,9223372036854775808", "0,0"), 0, "overflows");
}

TEST_F(SafetensorsTest, header_length_near_two_to_the_64_is_corrupt) {
  expect_corrupt(with_length(~uint64_t{0}, "{}"), "the header claims 18446744073709551615 bytes");
  expect_corrupt(with_length(~uint64_t{7}, "{}"), "the header claims");
  expect_corrupt(with_length(100'000'001, "{}"), "the format allows 100000000");
  expect_corrupt(with_length(100'000'000, "{}"),
                 "the header at byte 8 needs 100000000 bytes, but only 2 are left");
}

TEST_F(SafetensorsTest, end_before_begin_is_corrupt) {
  expect_corrupt_entry(entry("w", "F32", "1", "8,4"), 8,
                       "tensor 'w' ends at data offset 4, before its begin at 8");
}

TEST_F(SafetensorsTest, unknown_dtype_is_corrupt) {
  expect_corrupt_entry(entry("w", "F31", "1", "0,4"), 4, "tensor 'w' has the dtype 'F31'");
  expect_corrupt_entry(entry("w", "f32", "1", "0,4"), 4, "tensor 'w' has the dtype 'f32'");
  expect_corrupt_entry(entry("w", "", "1", "0,4"), 4, "tensor 'w' has the dtype ''");
}

TEST_F(SafetensorsTest, negative_numbers_are_corrupt) {
  expect_corrupt_entry(entry("w", "U8", "1", "-1,0"), 1,
                       "tensor 'w': 'data_offsets' is a negative number");
  expect_corrupt_entry(entry("w", "U8", "-1,-1", "0,1"), 1,
                       "tensor 'w': 'shape' is a negative number");
}

// What else can be wrong.

TEST_F(SafetensorsTest, dtypes_that_tranship_lacks_are_unsupported_and_all_named) {
  const Error error = error_for(
      file_of("{" + entry("a", "C64", "1", "0,8") + "," + entry("b", "U8", "1", "8,9") + "," +
                  entry("c", "F8_E8M0", "1", "9,10") + "," + entry("d", "F4", "2", "10,11") + "}",
              11));
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'a (C64)', 'c (F8_E8M0)', 'd (F4)'"));
}

TEST_F(SafetensorsTest, overlap_hole_and_bytes_after_the_last_tensor_are_corrupt) {
  expect_corrupt_entry(
      entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "2", "1,3"), 3,
      "tensor 'b' begins at data offset 1, but the one before ends at 2: they overlap");
  expect_corrupt_entry(
      entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "2", "3,5"), 5,
      "tensor 'b' begins at data offset 3, but the one before ends at 2: the bytes between");
  expect_corrupt_entry(entry("a", "U8", "2", "1,3"), 3, "tensor 'a' begins at data offset 1");
  expect_corrupt_entry(entry("a", "U8", "2", "0,2"), 3,
                       "the last tensor ends at data offset 2, but the file goes on to 3");
  expect_corrupt(file_of("{}", 1), "goes on to 1");
}

TEST_F(SafetensorsTest, name_that_stands_twice_is_corrupt) {
  expect_corrupt_entry(entry("a", "U8", "1", "0,1") + "," + entry("a", "U8", "1", "0,1"), 1,
                       "tensor 'a' stands twice");
}

TEST_F(SafetensorsTest, fields_that_are_missing_unknown_doubled_or_of_another_type_are_corrupt) {
  expect_corrupt_entry(R"("a":{"shape":[1],"data_offsets":[0,1]})", 1, "tensor 'a' has no 'dtype'");
  expect_corrupt_entry(R"("a":{"dtype":"U8","data_offsets":[0,1]})", 1,
                       "tensor 'a' has no 'shape'");
  expect_corrupt_entry(R"("a":{"dtype":"U8","shape":[1]})", 1, "tensor 'a' has no 'data_offsets'");
  expect_corrupt_entry(entry("a", "U8", "1", "0,1,2"), 1, "tensor 'a' has 3 data_offsets");
  expect_corrupt_entry(entry("a", "U8", "1", ""), 1, "tensor 'a' has 0 data_offsets");
  expect_corrupt_entry(R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"zip":1})", 1,
                       "'zip' is not a field");
  expect_corrupt_entry(R"("a":{"dtype":"U8","dtype":"I8"})", 1,
                       "tensor 'a': 'dtype' is there twice");
  expect_corrupt_entry(R"("a":{"dtype":8})", 1, "tensor 'a': 'dtype' is a number");
  expect_corrupt_entry(R"("a":{"dtype":["U8"]})", 1, "tensor 'a': 'dtype' is a list");
  expect_corrupt_entry(R"("a":{"shape":1})", 1, "tensor 'a': 'shape' is a number");
  expect_corrupt_entry(R"("a":{"shape":[[1]]})", 1, "tensor 'a': 'shape' is a list");
  expect_corrupt_entry(R"("a":{"shape":["1"]})", 1, "tensor 'a': 'shape' is a string");
  expect_corrupt_entry(R"("a":{"shape":[{}]})", 1, "tensor 'a': 'shape' is an object");
  expect_corrupt_entry(R"("a":{"shape":[1.0]})", 1,
                       "tensor 'a': 'shape' is 1.0, which is not a whole number");
  expect_corrupt_entry(entry("a", "U8", "18446744073709551616", "0,1"), 1,
                       "not a whole number of 64 bits");
  expect_corrupt_entry(R"("a":{"shape":[true]})", 1, "tensor 'a': 'shape' is true or false");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_corrupt_entry(entry("a", "U8", ones, "0,1"), 1,
                       "tensor 'a': 'shape' is a list of over 64 numbers");
  expect_corrupt_entry(entry("a", "U8", "1", ones), 1,
                       "tensor 'a': 'data_offsets' is a list of over 64 numbers");
  expect_corrupt_entry(R"("a":null)", 0, "tensor 'a' is null");
  expect_corrupt_entry(R"("a":[])", 0, "tensor 'a' is a list");
  expect_corrupt_entry(R"("a":1)", 0, "tensor 'a' is a number");
}

TEST_F(SafetensorsTest, header_that_is_not_json_is_corrupt_with_the_byte) {
  expect_corrupt(file_of("", 0), "must begin with '{'");
  expect_corrupt(file_of(" {}", 0), "must begin with '{'");
  expect_corrupt(file_of("[]", 0), "must begin with '{'");
  expect_corrupt(file_of("{\"a\":}", 0), "byte 6 of the JSON: expected a value");
  expect_corrupt(file_of("{} x", 0), "byte 4 of the JSON: expected nothing more, found 'x'");
  expect_corrupt(file_of("{\"\xff\":1}", 0), "of the JSON: expected UTF-8, found the byte 0xff");
  expect_corrupt(file_of(std::string("{}\0x", 4), 0), "byte 2 of the JSON is zero");
}

TEST_F(SafetensorsTest, git_lfs_pointer_is_named_as_one) {
  expect_corrupt("version https://git-lfs.example/spec/v1\noid sha256:0\nsize 1\n",
                 "Git LFS pointer");
}

TEST_F(SafetensorsTest, file_that_is_absent_is_an_io_error) {
  EXPECT_EQ(error_of([&] { open_safetensors(folder_ / "absent.safetensors"); }).kind(),
            ErrorKind::kIo);
}

TEST_F(SafetensorsTest, fifty_thousand_tensors_open_in_linear_time) {
  std::string header = "{";
  for (int i = 0; i < 50000; ++i) {
    header += (i > 0 ? "," : "") + entry(fmt::format("model.layers.{}.weight", i), "U8", "1",
                                         fmt::format("{},{}", i, i + 1));
  }
  const auto path = folder_.write("x.safetensors", file_of(header + "}", 50000));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(open_safetensors(path).tensors.size(), 50000u);
  // About 0.5 s with the sanitizers; a look-up that walks the list would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// Shards.

class ShardedTest : public SafetensorsTest {
 protected:
  ShardedTest() {
    folder_.write("one.safetensors", file_of("{" + entry("a", "U8", "1", "0,1") + "}", 1));
    folder_.write("two.safetensors", file_of("{" + entry("b", "U8", "2", "0,2") + "}", 2));
  }
  std::filesystem::path index(std::string_view weight_map) {
    return folder_.write(
        "model.safetensors.index.json",
        fmt::format(
            R"({{"metadata": {{"total_size": 3, "x": [null, {{}}]}}, "weight_map": {{{}}}}})",
            weight_map));
  }
  Error error_with(std::string_view weight_map) {
    const auto path = index(weight_map);
    return error_of([&] { open_sharded_safetensors(path); });
  }
};

TEST_F(ShardedTest, tensors_come_from_their_shards) {
  const auto tensors =
      open_sharded_safetensors(index(R"("a": "one.safetensors", "b": "two.safetensors")"));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("b")->file_range()->file->path().filename(), "two.safetensors");
}

TEST_F(ShardedTest, shards_that_are_not_there_are_all_named) {
  const Error error =
      error_with(R"("a": "one.safetensors", "c": "three.safetensors", "d": "four.safetensors")");
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(
      error.what(),
      HasSubstr(
          "names 3 files, of which 2 are not there: 'four.safetensors', 'three.safetensors'"));
  EXPECT_THAT(error.what(), HasSubstr("incomplete download?"));
}

TEST_F(ShardedTest, shard_that_is_a_dangling_link_is_not_there) {
  std::filesystem::create_symlink("nowhere", folder_ / "three.safetensors");
  EXPECT_EQ(error_with(R"("c": "three.safetensors")").kind(), ErrorKind::kIo);
}

TEST_F(ShardedTest, shard_with_a_name_that_no_file_can_have_is_not_there) {
  EXPECT_EQ(error_with(fmt::format(R"("c": "{:x>256}")", "")).kind(), ErrorKind::kIo);
}

TEST_F(ShardedTest, shard_outside_the_folder_is_corrupt) {
  for (const char* shard : {"../one.safetensors", "x/../../one.safetensors", "/etc/passwd", ""}) {
    const Error error = error_with(fmt::format(R"("a": "{}")", shard));
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(),
                HasSubstr(fmt::format("tensor 'a' lies in '{}', which is not", shard)));
  }
}

TEST_F(ShardedTest, tensors_of_the_index_that_are_not_in_their_shard_are_all_named) {
  const Error error = error_with(
      R"("a": "one.safetensors", "b": "two.safetensors", "x": "one.safetensors", "y": "two.safetensors")");
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(),
              HasSubstr("not in their files: 'x in one.safetensors', 'y in two.safetensors'"));
}

TEST_F(ShardedTest, tensors_of_the_shards_that_are_not_in_the_index_are_all_named) {
  folder_.write("two.safetensors",
                file_of("{" + entry("b", "U8", "1", "0,1") + "," + entry("c", "U8", "1", "1,2") +
                            "," + entry("d", "U8", "0", "2,2") + "}",
                        2));
  const Error error = error_with(R"("a": "one.safetensors", "b": "two.safetensors")");
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(
      error.what(),
      HasSubstr("does not name tensors that are in its files: 'c in two.safetensors', 'd in two"));
}

TEST_F(ShardedTest, tensor_that_lies_in_two_shards_is_corrupt) {
  folder_.write(
      "two.safetensors",
      file_of("{" + entry("a", "U8", "1", "0,1") + "," + entry("b", "U8", "1", "1,2") + "}", 2));
  const Error error = error_with(R"("a": "one.safetensors", "b": "two.safetensors")");
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("'a in two.safetensors'"));
}

TEST_F(ShardedTest, index_that_is_not_one_is_corrupt) {
  const auto message = [&](std::string_view text) {
    const auto path = folder_.write("model.safetensors.index.json", text);
    const Error error = error_of([&] { open_sharded_safetensors(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    return std::string(error.what());
  };
  EXPECT_THAT(message("{}"), HasSubstr("there is no weight_map"));
  EXPECT_THAT(message(R"({"weight_map": {"a")"), HasSubstr("of the JSON"));
  EXPECT_THAT(message(R"({"weight_map": []})"), HasSubstr("weight_map is a list"));
  EXPECT_THAT(message(R"({"weight_map": "a"})"), HasSubstr("weight_map is a string"));
  EXPECT_THAT(message(R"({"weight_map": {"a": 1}})"),
              HasSubstr("the file of tensor 'a' is a number"));
  EXPECT_THAT(message(R"({"weight_map": {"a": {"b": "c"}}})"),
              HasSubstr("the file of tensor 'a' is an object"));
  EXPECT_THAT(message(R"({"weight_map": {"a": "b", "a": "c"}})"),
              HasSubstr("tensor 'a' stands twice"));
  EXPECT_THAT(message(R"({"weight_map": {}, "weight_map": {}})"),
              HasSubstr("weight_map stands twice"));
  EXPECT_THAT(message(R"({"x": )" + std::string(1000, '[')), HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace tranship
