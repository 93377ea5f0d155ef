#include "formats/pt2/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace tranship::pt2 {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::map<std::string, PickledTensor> read(const std::string& pickle) {
  return read_pickled_tensors("p", as_bytes(pickle));
}

std::string text(const std::string& s) {
  return "X"s + static_cast<char>(s.size()) + "\0\0\0"s + s;
}
const std::string kStorage =
    "("s + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\x06tQ"s;
const std::string kTensor = "ctorch._utils\n_rebuild_tensor_v2\n(" + kStorage +
                            "K\x01K\x02K\x02\x86K\x02K\x01\x86\x89N"s + "tR";

TEST(PickleReader, a_dict_of_tensors_is_read) {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + kTensor + "\x88)tR"s;
  const auto found = read("\x80\x02}q\0("s + text("a") + kTensor + text("b") + parameter + "u.");
  ASSERT_EQ(found.size(), 2U);
  const PickledTensor& tensor = found.at("b");
  EXPECT_EQ(tensor.storage, "0");
  EXPECT_EQ(tensor.meta.type.number, 7);
  EXPECT_EQ(std::get<int64_t>(tensor.meta.storage_offset), 1);
  EXPECT_EQ(std::get<int64_t>(tensor.meta.sizes.at(1)), 2);
  EXPECT_EQ(read("\x80\x02"s + "ccollections\nOrderedDict\n)R.").size(), 0U);
}

TEST(PickleReader, every_truncation_is_corrupt) {
  const std::string whole = "\x80\x02}q\0("s + text("a") + kTensor + "u.";
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(error_of([&] { read(whole.substr(0, size)); }).kind(), ErrorKind::kCorrupt) << size;
}

struct Bad {
  std::string what;
  std::string pickle;
  ErrorKind kind = ErrorKind::kCorrupt;
};

TEST(PickleReader, nothing_is_called_and_nothing_holds_itself) {
  std::string deep = "\x80\x02)"s;
  for (int i = 0; i < 100; ++i) deep += "\x85"s;
  const ErrorKind unsupported = ErrorKind::kUnsupported;
  const std::vector<Bad> cases = {
      {"'os system'", "\x80\x02"s + "cos\nsystem\n" + text("ls") + "\x85R.", unsupported},
      {"'builtins eval'", "\x80\x02"s + "cbuiltins\neval\n.", unsupported},
      {"the opcode 0x69", "\x80\x02"s + "(ios\nsystem\n.", unsupported},
      {"protocol 5", "\x80\x05N.", unsupported},
      {"not a dict", "\x80\x02N.", unsupported},
      {"which is not a tensor", "\x80\x02}"s + text("a") + "K\1s.", unsupported},
      {"two tensors named 'a'", "\x80\x02}("s + text("a") + kTensor + text("a") + kTensor + "u."},
      {"a value is missing", "\x80\x02R."},
      {"a mark is missing", "\x80\x02}u."},
      {"nothing was memoized", "\x80\x02h\5."},
      {"a dict holds itself", "\x80\x02}q\0"s + text("a") + "h\0s."s},
      {"that nothing holds yet",
       "\x80\x02}q\0}q\1"s + text("b") + "h\0sh\0"s + text("a") + "h\1s."s},
      {"nested more than", deep + "."},
      {"end with one value", "\x80\x02NN."},
      {"end with one value", "\x80\x02N.N"s},
      {"a key without a value", "\x80\x02}("s + text("a") + "u."},
      {"a size of -1", "\x80\x02}"s + text("a") + "ctorch._utils\n_rebuild_tensor_v2\n(" +
                           kStorage + "K\0J\xff\xff\xff\xff\x85K\1\x85\x89N"s + "tRs."},
      {"expected a storage", "\x80\x02"s + "(" + text("module") + "NNNNtQ."},
      {"is not a storage", "\x80\x02"s + "(" + text("storage") + "ctorch\nTensor\n" + text("0") +
                               text("cpu") + "K\6tQ."}};
  for (const Bad& bad : cases) {
    const Error e = error_of([&] { read(bad.pickle); });
    EXPECT_EQ(e.kind(), bad.kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(bad.what));
  }
}

}  // namespace
}  // namespace tranship::pt2
