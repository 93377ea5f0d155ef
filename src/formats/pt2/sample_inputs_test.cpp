#include "formats/pt2/sample_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/atomic_file.h"
#include "base/testing.h"

namespace tranship::pt2 {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

SampleTensor two_by_three(const std::string&) { return {DType::kI64, {2, 3}, false}; }

TEST(SampleInputs, a_tensor_is_rebuilt_from_its_storage) {
  const std::string bytes = pickle(PythonValue::tensor("x"), two_by_three);
  EXPECT_THAT(bytes,
              HasSubstr("\x80\x02"                               // protocol 2
                        "ctorch._utils\n_rebuild_tensor_v2\n(("  // called with
                        "X\x07\0\0\0storage"                     // a persistent id
                        "ctorch\nLongStorage\nX\x01\0\0\0"
                        "0X\x03\0\0\0cpuK\x06tQ"
                        "K\0(K\x02K\x03t(K\x03K\x01t"  // offset, sizes, strides
                        "\x89"                         // without gradients or hooks
                        "ccollections\nOrderedDict\n)RtR."s));
}

TEST(SampleInputs, values_are_protocol_2) {
  const auto body = [](const PythonValue& value) {
    const std::string bytes = pickle(value, two_by_three);
    const size_t begin = bytes.find("\x80\x02") + 2;
    return bytes.substr(begin, bytes.find("PK", begin) - begin);
  };
  EXPECT_EQ(body(PythonValue::none()), "N.");
  EXPECT_EQ(body(PythonValue::of(true)), "\x88.");
  EXPECT_EQ(body(PythonValue::of(int64_t{255})), "K\xff.");
  EXPECT_EQ(body(PythonValue::of(int64_t{-2})), "\x8a\x08\xfe\xff\xff\xff\xff\xff\xff\xff.");
  EXPECT_EQ(body(PythonValue::of(DType::kBF16)), "ctorch\nbfloat16\n.");
  EXPECT_EQ(body(PythonValue::cpu()), "ctorch\ndevice\nX\x03\0\0\0cpu\x85R."s);
  EXPECT_EQ(body(PythonValue::tuple({PythonValue::list({PythonValue::none()})})), "(](Net.");
  EXPECT_EQ(body(PythonValue::object("m.n:C", {{"a", PythonValue::none()}})),
            "cm.n\nC\n)\x81}(X\x01\0\0\0aNub."s);
}

TEST(SampleInputs, a_cache_of_zeros_takes_little) {
  const auto large = [](const std::string&) {
    return SampleTensor{DType::kBF16, {1, 8, 32'768, 128}, false};
  };
  EXPECT_LT(pickle(PythonValue::tensor("cache"), large).size(), size_t{1} << 19);
}

TEST(SampleInputs, another_program_unpacks_them) {
  const TestFolder folder;
  const auto of_ones = [](const std::string& port) {
    return SampleTensor{port == "a" ? DType::kBool : DType::kF16, {2, 2}, true};
  };
  const PythonValue value =
      PythonValue::dict({{"a", PythonValue::tensor("a")}, {"b", PythonValue::tensor("b")}});
  const std::filesystem::path path = folder / "model.pt";
  write_text(path, pickle(value, of_ones));
  EXPECT_EQ(std::system(("unzip -tqq '" + path.string() + "'").c_str()), 0);
  EXPECT_THAT(read_text(path), HasSubstr("\1\1\1\1"));
  EXPECT_THAT(read_text(path), HasSubstr("\0\x3c\0\x3c\0\x3c\0\x3c"s));
}

TEST(SampleInputs, a_dtype_without_a_storage_class_is_unsupported) {
  const auto of_u64 = [](const std::string&) { return SampleTensor{DType::kU64, {1}, false}; };
  EXPECT_EQ(error_of([&] { pickle(PythonValue::tensor("x"), of_u64); }).kind(),
            ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace tranship::pt2
