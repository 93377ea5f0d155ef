#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace tranship {
namespace {

/// Refuses every event; a reader overrides those it expects.
class Sax : public nlohmann::json_sax<Json> {
 public:
  explicit Sax(std::string_view file) : file_(file) {}

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { refuse("a number"); }
  bool number_float(number_float_t, const string_t& text) override {
    refuse(fmt::format("{}, which is not a whole number of 64 bits", text));
  }
  bool string(string_t&) override { refuse("a string"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool start_object(size_t) override { refuse("an object"); }
  bool start_array(size_t) override { refuse("a list"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    fail(ErrorKind::kCorrupt, "[safetensors] '{}': byte {} of the JSON: {}", file_, position,
         syntax_problem(text_, position, error.what()));
  }

  void parse(std::string_view text) {
    if (!text.starts_with('{'))
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': the JSON must begin with '{{'", file_);
    const size_t zero = text.find('\0');  // nlohmann takes it for the end of the text
    if (zero != text.npos) {
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': byte {} of the JSON is zero", file_, zero);
    }
    text_ = text;
    Json::sax_parse(text.begin(), text.end(), this);
  }

 protected:
  /// Where the parser is, for messages: "tensor 'x': 'shape'".
  virtual std::string place() const = 0;

  [[noreturn]] void refuse(std::string_view found) const {
    fail(ErrorKind::kCorrupt, "[safetensors] '{}': {} is {}", file_, place(), found);
  }

  std::string_view file_;
  std::string_view text_;
};

constexpr std::string_view kMetadata = "__metadata__";

class HeaderReader final : public Sax {
 public:
  using Sax::Sax;

  bool start_object(size_t) override {
    if (depth_ == 2 || in_list_) refuse("an object");
    ++depth_;
    fields_.clear();
    return true;
  }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      if (!names_.insert(key).second) {
        fail(ErrorKind::kCorrupt, "[safetensors] '{}': tensor '{}' stands twice in the header",
             file_, key);
      }
      entry_ = {};
      entry_.name = key;
    } else {
      start_field(key);
    }
    return true;
  }

  bool end_object() override {
    if (--depth_ == 1 && !in_metadata()) finish_entry();
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata()) {
      header_.metadata[field_] = value;
    } else if (depth_ == 2 && field_ == "dtype") {
      entry_.dtype = value;
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata() || field_ == "dtype" || in_list_) refuse("a list");
    in_list_ = true;
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) refuse("a number");
    std::vector<uint64_t>& numbers = field_ == "shape" ? entry_.shape : entry_.data_offsets;
    if (numbers.size() == kMaxNumbers)
      refuse(fmt::format("a list of over {} numbers", kMaxNumbers));
    numbers.push_back(value);
    return true;
  }

  SafetensorsHeader take() { return std::move(header_); }

 private:
  bool in_metadata() const { return entry_.name == kMetadata; }

  std::string place() const override {
    const std::string owner = in_metadata() ? entry_.name : fmt::format("tensor '{}'", entry_.name);
    return depth_ < 2 ? owner : fmt::format("{}: '{}'", owner, field_);
  }

  void start_field(const std::string& key) {
    field_ = key;
    if (!fields_.insert(key).second) refuse("there twice");
    if (!in_metadata() && key != "dtype" && key != "shape" && key != "data_offsets") {
      refuse("not a field that the format has (dtype, shape, data_offsets)");
    }
  }

  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (fields_.contains(field)) continue;
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': tensor '{}' has no '{}'", file_, entry_.name,
           field);
    }
    if (entry_.data_offsets.size() != 2) {
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': tensor '{}' has {} data_offsets instead of 2",
           file_, entry_.name, entry_.data_offsets.size());
    }
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
  }

  static constexpr size_t kMaxNumbers = 64;  // PyTorch's limit for axes

  int depth_ = 0;
  bool in_list_ = false;
  std::unordered_set<std::string> names_;
  std::set<std::string> fields_;
  std::string field_;
  SafetensorsEntry entry_;
  SafetensorsHeader header_;
};

/// Looks into "weight_map" and passes over everything else.
class IndexReader final : public Sax {
 public:
  using Sax::Sax;

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("true or false"); }
  bool number_integer(number_integer_t) override { return other("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a number"); }
  bool start_array(size_t) override {
    if (in_map_) refuse("a list");
    return open();
  }
  bool end_array() override { return close(); }
  bool start_object(size_t) override {
    if (in_map_ && depth_ != 1) refuse("an object");
    return open();
  }
  bool end_object() override { return close(); }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      in_map_ = key == "weight_map";
      if (in_map_ && std::exchange(found_, true)) {
        fail(ErrorKind::kCorrupt, "[safetensors] '{}': weight_map stands twice", file_);
      }
      name_.clear();
    } else if (in_map_) {
      name_ = key;
    }
    return true;
  }

  bool string(string_t& value) override {
    if (!in_map_) return true;
    if (depth_ != 2) refuse("a string");
    if (!map_.emplace(name_, value).second) {
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': tensor '{}' stands twice in weight_map", file_,
           name_);
    }
    return true;
  }

  std::map<std::string, std::string> take() {
    if (!found_) fail(ErrorKind::kCorrupt, "[safetensors] '{}': there is no weight_map", file_);
    return std::move(map_);
  }

 private:
  static constexpr int kMaxDepth = 256;

  bool other(std::string_view found) const {
    if (in_map_) refuse(found);
    return true;
  }

  bool open() {
    if (++depth_ > kMaxDepth)
      fail(ErrorKind::kCorrupt, "[safetensors] '{}': nested too deep", file_);
    return true;
  }

  bool close() {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }

  std::string place() const override {
    return depth_ < 2 ? "weight_map" : fmt::format("weight_map: the file of tensor '{}'", name_);
  }

  int depth_ = 0;
  bool in_map_ = false;
  bool found_ = false;
  std::string name_;
  std::map<std::string, std::string> map_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view file, std::string_view text) {
  HeaderReader reader(file);
  reader.parse(text);
  return reader.take();
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view file,
                                                           std::string_view text) {
  IndexReader reader(file);
  reader.parse(text);
  return reader.take();
}

}  // namespace tranship
