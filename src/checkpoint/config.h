// A config.json as definitions read it: typed, with defaults, and it remembers what nobody asked
// for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tranship {

/// A JSON object. Copies share the object and the memory of which keys were read.
/// A key that is absent and one that is null are the same, as in Transformers.
/// Errors of all readers: corrupt, with the file and the key's path, if the value has another type;
/// invalid_argument if a key without a default is absent.
class Config {
 public:
  /// Errors: corrupt if `text` is not a JSON object. `where` is the file's name in messages.
  static Config parse(std::string_view where, std::string_view text);
  Config();  // an empty object

  bool has(std::string_view key) const;
  /// Whether the key is there with the value null: for the few keys whose default is not null.
  bool is_null(std::string_view key) const;

  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t absent) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double absent) const;
  bool boolean(std::string_view key, bool absent) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view absent) const;
  std::optional<int64_t> find_integer(std::string_view key) const;
  /// Nothing also where the key has this word instead of a number ("auto").
  std::optional<int64_t> find_integer(std::string_view key, std::string_view word) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<std::string> find_text(std::string_view key) const;
  std::optional<Config> find_object(std::string_view key) const;
  /// A list; absent: empty. `integers` takes a single number as a list of one. Elements of
  /// `numbers` may be infinite or NaN, as Python writes them (Infinity, -Infinity, NaN); a number
  /// of its own may not.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// These keys do not change what a model computes, or not in what is built: they count as read.
  void ignore(std::initializer_list<std::string_view> keys) const;
  /// The key may be absent or have this value; any other one is Error{unsupported} with the path
  /// and both values.
  void require(std::string_view key, bool value) const;
  void require(std::string_view key, int64_t value) const;
  void require(std::string_view key, std::string_view value) const;
  void require(std::string_view key, const char* value) const {
    require(key, std::string_view(value));
  }
  /// Paths of the keys that nobody has read, nested ones too ("rope_scaling.beta"). Objects count
  /// as read when a reader opened them; then their own keys are looked at.
  std::vector<std::string> unread() const;
  /// Forgets what was read.
  void reset_reads() const;

  /// All keys, in the file's order.
  std::vector<std::string> keys() const;
  /// "config.json" or "config.json: rope_scaling": how messages name this object.
  std::string where() const;
  /// The whole object as JSON text: indent 2, sorted keys, as Transformers writes it.
  std::string to_json() const;
  /// A copy with a key set to a JSON value ("null", "[\"LlamaModel\"]", "1e-05"). Reads start anew.
  Config with(std::string_view key, std::string_view json_value) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  explicit Config(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
};

}  // namespace tranship
