// Checkpoints of strangers, from their bytes to the bound graphs: cut at every byte, and each field
// of their heads set to numbers that readers trip over. Each ends in an error of the right kind, or
// is a checkpoint that says something else. (A read past the end of a file is seen by the address
// sanitizer: see MappedFile::open.)
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/testing.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/safetensors.h"
#include "tasks/task.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxSigned = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMaxUnsigned = std::numeric_limits<uint64_t>::max();

/// How reading ended.
struct Outcome {
  std::optional<ErrorKind> kind;  // absent: it was read
  std::string message;

  bool is(ErrorKind expected) const { return kind == expected; }
  std::string text() const { return kind ? fmt::format("{}: {}", name(*kind), message) : "read"; }
};

template <class Action>
Outcome outcome_of(Action&& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
}

// ---- GGUF

/// A number in a file's head.
struct Field {
  std::string name;  // "type of llama.block_count"
  size_t offset = 0;
  size_t width = 0;  // in bytes
};

/// Walks a file of the format, apart from the reader that is tested. Of a list's elements, which
/// are alike, the first three count.
class GgufFields {
 public:
  explicit GgufFields(std::string_view file)
      : file_(file), reader_("test", "gguf", as_bytes(file)) {
    number<uint32_t>("magic number");
    number<uint32_t>("version");
    const auto num_tensors = number<uint64_t>("number of tensors");
    const auto num_pairs = number<uint64_t>("number of pairs");
    for (uint64_t i = 0; i < num_pairs; ++i) read_pair();
    for (uint64_t i = 0; i < num_tensors; ++i) read_tensor();
  }
  std::vector<Field> take() { return std::move(fields_); }

 private:
  template <class T>
  uint64_t number(const std::string& name) {
    fields_.push_back({name, reader_.offset(), sizeof(T)});
    return static_cast<uint64_t>(reader_.number<T>(name));
  }

  std::string text(const std::string& name) {
    const uint64_t size = number<uint64_t>(name);
    return std::string(as_text(reader_.take(size, name)));
  }

  void read_pair() {
    const size_t place = fields_.size();
    const std::string key = text("");
    fields_[place].name = "length of the key " + key;
    const auto type = static_cast<GgufType>(number<uint32_t>("type of " + key));
    read_value(type, key);
  }

  void read_value(GgufType type, const std::string& key) {
    switch (type) {
      case GgufType::kString:
        text("length of " + key);
        return;
      case GgufType::kArray:
        return read_list(key);
      case GgufType::kUInt8:
      case GgufType::kInt8:
      case GgufType::kBool:
        number<uint8_t>(key);
        return;
      case GgufType::kUInt16:
      case GgufType::kInt16:
        number<uint16_t>(key);
        return;
      case GgufType::kUInt32:
      case GgufType::kInt32:
      case GgufType::kFloat32:
        number<uint32_t>(key);
        return;
      case GgufType::kUInt64:
      case GgufType::kInt64:
      case GgufType::kFloat64:
        number<uint64_t>(key);
        return;
    }
  }

  void read_list(const std::string& key) {
    const auto element = static_cast<GgufType>(number<uint32_t>("element type of " + key));
    const uint64_t count = number<uint64_t>("number of " + key);
    for (uint64_t i = 0; i < count; ++i) {
      const size_t place = fields_.size();
      read_value(element, "elements of " + key);
      if (i >= 3) fields_.resize(place);
    }
  }

  void read_tensor() {
    const size_t place = fields_.size();
    const std::string name = text("");
    fields_[place].name = "length of the name " + name;
    const uint64_t rank = number<uint32_t>("rank of " + name);
    for (uint64_t i = 0; i < rank; ++i) number<uint64_t>("dimension of " + name);
    number<uint32_t>("tensor type of " + name);
    number<uint64_t>("offset of " + name);
  }

  std::string_view file_;
  ByteReader reader_;
  std::vector<Field> fields_;
};

uint64_t value_at(const std::string& file, const Field& field) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + field.offset, field.width);
  return value;
}

/// 0, 1, the neighbours of what is there, the largest signed and unsigned number of the field, one
/// more than each, and the format's own limits with theirs.
std::set<uint64_t> values_for(const Field& field, uint64_t original) {
  const uint64_t mask = field.width == 8 ? kMaxUnsigned : (uint64_t{1} << 8 * field.width) - 1;
  std::set<uint64_t> values = {0, 1, original - 1, original + 1, mask / 2, mask / 2 + 1, mask,
                               4, 5, 12,           13,           65535,    65536};
  std::set<uint64_t> out;
  for (const uint64_t value : values) out.insert(value & mask);
  out.erase(original);
  return out;
}

/// From a file's bytes to the graphs with their weights.
Outcome open_and_bind_gguf(std::string_view file) {
  return outcome_of([&] {
    const CheckpointData data = open_gguf(MappedFile::of_memory("x.gguf", as_bytes(file)), {});
    tasks::generation(data, {});
  });
}

std::string gguf_fixture() {
  return read_text(fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/gguf/bytelevel.gguf");
}

TEST(HostileGguf, CutAtEveryByteIsCorrupt) {
  const std::string file = gguf_fixture();
  ASSERT_FALSE(open_and_bind_gguf(file).kind.has_value());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);  // a copy: the sanitizer knows where it ends
    const Outcome outcome = open_and_bind_gguf(cut);
    ASSERT_TRUE(outcome.is(ErrorKind::kCorrupt)) << "cut at " << size << ": " << outcome.text();
  }
}

/// What a changed field may lead to, besides an error of the file (corrupt, unsupported).
struct Allowance {
  std::string_view field;
  bool readable = false;         // other values make sense too
  bool nonsense_config = false;  // invalid_argument: a size that no model has
};

constexpr Allowance kAllowances[] = {
    {.field = "version", .readable = true},
    {.field = "llama.context_length", .readable = true},
    {.field = "llama.block_count", .nonsense_config = true},
    {.field = "llama.attention.key_length", .nonsense_config = true},
    {.field = "llama.attention.layer_norm_rms_epsilon", .readable = true},
    {.field = "llama.rope.freq_base", .readable = true},
    {.field = "elements of tokenizer.ggml.token_type", .readable = true},
    {.field = "tokenizer.ggml.bos_token_id", .readable = true},
    {.field = "tokenizer.ggml.eos_token_id", .readable = true},
    {.field = "tokenizer.ggml.padding_token_id", .readable = true},
    {.field = "tokenizer.ggml.add_bos_token", .readable = true},
    // 8 numbers of f16 end within the alignment, and the last tensor of the file where it likes.
    {.field = "tensor type of output_norm.weight", .readable = true},
    {.field = "tensor type of blk.0.attn_norm.weight", .readable = true},
    {.field = "tensor type of blk.0.ffn_norm.weight", .readable = true},
    {.field = "tensor type of blk.0.ffn_down.weight", .readable = true},
};

/// A number's type may be another type of number.
bool is_type_of_number(const Field& field) {
  return (field.name.starts_with("type of llama.") && !field.name.ends_with("architecture")) ||
         field.name.ends_with("_token_id") || field.name.ends_with("token_type");
}

bool is_allowed(const Field& field, const Outcome& outcome) {
  if (outcome.is(ErrorKind::kCorrupt)) return true;
  const bool structural = field.name.starts_with("length of") ||
                          field.name.starts_with("dimension of") ||
                          field.name.starts_with("offset of");
  if (outcome.is(ErrorKind::kUnsupported)) return !structural;
  if (!outcome.kind && is_type_of_number(field)) return true;
  const auto* allowance = std::ranges::find(kAllowances, field.name, &Allowance::field);
  if (allowance == std::end(kAllowances)) return false;
  return outcome.kind ? allowance->nonsense_config : allowance->readable;
}

TEST(HostileGguf, EachFieldOfTheHeadAtItsLimitsIsAnErrorOfTheFile) {
  const std::string file = gguf_fixture();
  size_t count = 0;
  for (const Field& field : GgufFields(file).take()) {
    for (const uint64_t value : values_for(field, value_at(file, field))) {
      std::string changed = file;
      std::memcpy(changed.data() + field.offset, &value, field.width);
      const Outcome outcome = open_and_bind_gguf(changed);
      EXPECT_TRUE(is_allowed(field, outcome))
          << field.name << " = " << value << ": " << outcome.text();
      ++count;
    }
  }
  EXPECT_GT(count, 1500u);
}

// ---- a sharded checkpoint

class HostileShards : public testing::Test {
 protected:
  /// Two layers with hash weights: layer 0 in one shard, all else in the other.
  HostileShards() {
    const std::string config = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "vocab_size": 12, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 16})";
    std::map<std::string, NamedTensors> shards;
    std::string map;
    for (const auto& [name, source] :
         tasks::forward(Checkpoint::synthetic(config).data(), {}).program.parameters) {
      const std::string shard =
          name.find("layers.0.") == name.npos ? "1.safetensors" : "0.safetensors";
      shards[shard].emplace(name, read_all(*source));
      map += fmt::format(R"({}"{}": "{}")", map.empty() ? "" : ", ", name, shard);
    }
    folder_.write("config.json", config);
    folder_.write("model.safetensors.index.json",
                  fmt::format(R"({{"metadata": {{"total_size": 7}}, "weight_map": {{{}}}}})", map));
    for (const auto& [shard, tensors] : shards) write_safetensors(folder_ / shard, tensors);
  }

  Outcome open_and_bind() const {
    return outcome_of([&] { tasks::generation(Checkpoint::open(folder_.path()).data(), {}); });
  }

  TestFolder folder_;
};

TEST_F(HostileShards, EachFileCutAtEveryByteIsCorrupt) {
  ASSERT_EQ(open_and_bind().text(), "read");
  for (const char* name :
       {"0.safetensors", "1.safetensors", "model.safetensors.index.json", "config.json"}) {
    const std::string whole = read_text(folder_ / name);
    const fs::path path = folder_.write(name, whole);
    for (size_t size = whole.size(); size-- > 0;) {
      fs::resize_file(path, size);
      const Outcome outcome = open_and_bind();
      ASSERT_TRUE(outcome.is(ErrorKind::kCorrupt))
          << name << " cut at " << size << ": " << outcome.text();
    }
    folder_.write(name, whole);
  }
}

/// Where the numbers of a safetensors header are: [begin, end) of each.
std::vector<std::pair<size_t, size_t>> numbers_in_header(const std::string& file) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  std::vector<std::pair<size_t, size_t>> numbers;
  bool quoted = false;
  for (size_t i = 8; i < 8 + header_bytes; ++i) {
    if (file[i] == '"') quoted = !quoted;
    if (quoted || file[i] < '0' || file[i] > '9') continue;
    const size_t end = file.find_first_not_of("0123456789", i);
    numbers.emplace_back(i, end);
    i = end;
  }
  return numbers;
}

/// The file with a number of its header written anew, and the header's length as it then is.
std::string with_number(const std::string& file, std::pair<size_t, size_t> place,
                        std::string_view number) {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  std::string changed = file;
  changed.replace(place.first, place.second - place.first, number);
  header_bytes += changed.size() - file.size();
  std::memcpy(changed.data(), &header_bytes, sizeof(header_bytes));
  return changed;
}

TEST_F(HostileShards, EachNumberOfAHeaderAtItsLimitsIsCorrupt) {
  const std::string whole = read_text(folder_ / "0.safetensors");
  const auto numbers = numbers_in_header(whole);
  ASSERT_EQ(numbers.size(),
            9u * 2 + 7 * 2 + 2);  // offsets of 9 tensors, shapes of 7 matrices and 2 vectors
  for (const auto& place : numbers) {
    const std::string original = whole.substr(place.first, place.second - place.first);
    for (const char* number :
         {"0", "1", "9223372036854775807", "9223372036854775808", "18446744073709551615",
          "18446744073709551616", "-1", "1e3", "340282366920938463463374607431768211456"}) {
      if (number == original) continue;
      folder_.write("0.safetensors", with_number(whole, place, number));
      const Outcome outcome = open_and_bind();
      EXPECT_TRUE(outcome.is(ErrorKind::kCorrupt))
          << original << " at byte " << place.first << " = " << number << ": " << outcome.text();
    }
  }
}

TEST_F(HostileShards, EachLengthOfAHeaderIsCorruptButTheRightOne) {
  const std::string whole = read_text(folder_ / "0.safetensors");
  uint64_t right = 0;
  std::memcpy(&right, whole.data(), sizeof(right));
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1}, right - 1, right + 1, uint64_t{whole.size() - 8},
        uint64_t{whole.size() - 7}, uint64_t{100'000'000}, uint64_t{100'000'001}, kMaxSigned,
        kMaxSigned + 1, kMaxUnsigned - 7, kMaxUnsigned}) {
    std::string changed = whole;
    std::memcpy(changed.data(), &length, sizeof(length));
    folder_.write("0.safetensors", changed);
    const Outcome outcome = open_and_bind();
    EXPECT_TRUE(outcome.is(ErrorKind::kCorrupt)) << length << ": " << outcome.text();
  }
}

TEST_F(HostileShards, EachStringOfAHeaderAndOfTheIndexEmptyOrAnothersIsRefused) {
  for (const char* name : {"0.safetensors", "model.safetensors.index.json"}) {
    const std::string whole = read_text(folder_ / name);
    const bool is_shard = whole[0] != '{';
    size_t end = 0;
    for (size_t begin = whole.find('"'); begin != whole.npos; begin = whole.find('"', end + 1)) {
      end = whole.find('"', begin + 1);
      if (end == whole.npos) break;  // of the data
      const std::string original = whole.substr(begin + 1, end - begin - 1);
      for (const char* text : {"", "F32", "shape", "../x", "/etc/passwd", "weight_map"}) {
        if (text == original || original == "metadata" || original == "total_size") continue;
        const std::pair place(begin + 1, end);
        std::string changed = whole;
        changed.replace(place.first, original.size(), text);
        folder_.write(name, is_shard ? with_number(whole, place, text) : changed);
        const Outcome outcome = open_and_bind();
        const bool is_absent_shard =
            original.ends_with(".safetensors") && outcome.is(ErrorKind::kIo);
        EXPECT_TRUE(outcome.is(ErrorKind::kCorrupt) || is_absent_shard)
            << name << ": " << original << " = " << text << ": " << outcome.text();
      }
    }
    folder_.write(name, whole);
  }
}

}  // namespace
}  // namespace tranship
