#include "checkpoint/config.h"

#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace tranship {

/// One object of the document and what was read of it. The objects opened below it are its
/// children, so that the root can list what nobody read; each of them keeps the whole document
/// alive.
struct Config::Impl {
  std::shared_ptr<const Json> document;
  const Json* object = nullptr;
  std::string file;
  std::string path;  // "" for the root, else "rope_scaling" or "text_config.rope_scaling"
  bool opened = true;
  std::set<std::string, std::less<>> read;
  std::map<std::string, std::shared_ptr<Impl>, std::less<>> children;

  std::string path_of(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }

  /// The value of a key, which now counts as read; null if it is absent or null.
  const Json* find(std::string_view key) {
    opened = true;
    read.emplace(key);
    return peek(key);
  }
  const Json* peek(std::string_view key) const {
    const auto it = object->find(std::string(key));
    return it == object->end() || it->is_null() ? nullptr : &*it;
  }

  [[noreturn]] void fail_absent(std::string_view key) const {
    fail(ErrorKind::kInvalidArgument,
         "[config] '{}': the key '{}' is absent, and there is no default for it", file,
         path_of(key));
  }
  [[noreturn]] void fail_type(std::string_view key, const Json& found,
                              std::string_view expected) const {
    fail(ErrorKind::kCorrupt, "[config] '{}': '{}' must be {}, but it is {}", file, path_of(key),
         expected, shown(found));
  }

  static std::string shown(const Json& value) {
    std::string text = to_python_json_line(value);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    return text;
  }

  int64_t to_integer(std::string_view key, const Json& value) const {
    if (!value.is_number_integer()) fail_type(key, value, "an integer");
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      fail_type(key, value, "an integer of 64 bits");
    }
    return value.get<int64_t>();
  }
  double to_number(std::string_view key, const Json& value) const {
    if (!value.is_number()) fail_type(key, value, "a number");
    return value.get<double>();
  }
  double to_finite(std::string_view key, const Json& value) const {
    const double number = to_number(key, value);
    if (!std::isfinite(number)) fail_type(key, value, "a finite number");
    return number;
  }
  std::string to_text(std::string_view key, const Json& value) const {
    if (!value.is_string()) fail_type(key, value, "a string");
    return value.get<std::string>();
  }

  template <class Read>
  auto list(std::string_view key, std::string_view expected, Read&& read_item) {
    std::vector<std::invoke_result_t<Read, std::string_view, const Json&>> items;
    const Json* value = find(key);
    if (value == nullptr) return items;
    if (!value->is_array()) fail_type(key, *value, expected);
    for (size_t i = 0; i < value->size(); ++i) {
      items.push_back(read_item(fmt::format("{}[{}]", key, i), (*value)[i]));
    }
    return items;
  }

  void require(std::string_view key, const Json& expected) {
    const Json* value = find(key);
    if (value == nullptr || *value == expected) return;
    fail(ErrorKind::kUnsupported, "[config] '{}': '{}' is {}, but only {} is supported", file,
         path_of(key), shown(*value), shown(expected));
  }

  void append_unread(std::vector<std::string>& paths) const {
    for (auto it = object->begin(); it != object->end(); ++it) {
      if (it.value().is_null() || read.contains(it.key())) continue;
      const auto child = children.find(it.key());
      if (child != children.end() && child->second->opened) {
        child->second->append_unread(paths);
      } else {
        paths.push_back(path_of(it.key()));
      }
    }
  }

  void reset() {
    opened = path.empty();
    read.clear();
    for (const auto& [key, child] : children) child->reset();
  }

  static std::shared_ptr<Impl> root(std::string_view file, Json object) {
    auto impl = std::make_shared<Impl>();
    impl->document = std::make_shared<const Json>(std::move(object));
    impl->object = impl->document.get();
    impl->file = file;
    return impl;
  }
};

Config Config::parse(std::string_view where, std::string_view text) {
  Json document = parse_json("config", where, text, NonFinite::kAsPython);
  if (!document.is_object()) {
    fail(ErrorKind::kCorrupt, "[config] '{}': a JSON object is expected, but it is {}", where,
         Impl::shown(document));
  }
  return Config(Impl::root(where, std::move(document)));
}

Config::Config() : impl_(Impl::root("config", Json::object())) {}

bool Config::has(std::string_view key) const { return impl_->peek(key) != nullptr; }
bool Config::is_null(std::string_view key) const {
  return impl_->object->contains(std::string(key)) && !has(key);
}

std::optional<int64_t> Config::find_integer(std::string_view key) const {
  const Json* value = impl_->find(key);
  return value == nullptr ? std::nullopt : std::optional(impl_->to_integer(key, *value));
}

std::optional<int64_t> Config::find_integer(std::string_view key, std::string_view word) const {
  const Json* value = impl_->find(key);
  return value != nullptr && *value == word ? std::nullopt : find_integer(key);
}

std::optional<double> Config::find_number(std::string_view key) const {
  const Json* value = impl_->find(key);
  return value == nullptr ? std::nullopt : std::optional(impl_->to_finite(key, *value));
}

std::optional<std::string> Config::find_text(std::string_view key) const {
  const Json* value = impl_->find(key);
  return value == nullptr ? std::nullopt : std::optional(impl_->to_text(key, *value));
}

std::optional<Config> Config::find_object(std::string_view key) const {
  const Json* value = impl_->peek(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) impl_->fail_type(key, *value, "an object");
  impl_->opened = true;
  std::shared_ptr<Impl>& child = impl_->children[std::string(key)];
  if (child == nullptr) {
    child = std::make_shared<Impl>();
    child->document = impl_->document;
    child->object = value;
    child->file = impl_->file;
    child->path = impl_->path_of(key);
  }
  child->opened = true;
  return Config(child);
}

int64_t Config::integer(std::string_view key) const {
  const auto value = find_integer(key);
  if (!value) impl_->fail_absent(key);
  return *value;
}
int64_t Config::integer(std::string_view key, int64_t absent) const {
  return find_integer(key).value_or(absent);
}

double Config::number(std::string_view key) const {
  const auto value = find_number(key);
  if (!value) impl_->fail_absent(key);
  return *value;
}
double Config::number(std::string_view key, double absent) const {
  return find_number(key).value_or(absent);
}

bool Config::boolean(std::string_view key, bool absent) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) impl_->fail_type(key, *value, "true or false");
  return value->get<bool>();
}

std::string Config::text(std::string_view key) const {
  auto value = find_text(key);
  if (!value) impl_->fail_absent(key);
  return *std::move(value);
}
std::string Config::text(std::string_view key, std::string_view absent) const {
  return find_text(key).value_or(std::string(absent));
}

std::vector<int64_t> Config::integers(std::string_view key) const {
  const Json* value = impl_->find(key);
  if (value != nullptr && value->is_number()) return {impl_->to_integer(key, *value)};
  return impl_->list(
      key, "an integer or a list of integers",
      [&](std::string_view at, const Json& item) { return impl_->to_integer(at, item); });
}

std::vector<double> Config::numbers(std::string_view key) const {
  return impl_->list(key, "a list of numbers", [&](std::string_view at, const Json& item) {
    return impl_->to_number(at, item);
  });
}

std::vector<std::string> Config::texts(std::string_view key) const {
  return impl_->list(key, "a list of strings", [&](std::string_view at, const Json& item) {
    return impl_->to_text(at, item);
  });
}

void Config::ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) impl_->read.emplace(key);
}

void Config::require(std::string_view key, bool value) const { impl_->require(key, Json(value)); }
void Config::require(std::string_view key, int64_t value) const {
  impl_->require(key, Json(value));
}
void Config::require(std::string_view key, std::string_view value) const {
  impl_->require(key, Json(value));
}

std::vector<std::string> Config::unread() const {
  std::vector<std::string> paths;
  impl_->append_unread(paths);
  return paths;
}

void Config::reset_reads() const { impl_->reset(); }

std::vector<std::string> Config::keys() const {
  std::vector<std::string> names;
  for (auto it = impl_->object->begin(); it != impl_->object->end(); ++it)
    names.push_back(it.key());
  return names;
}

std::string Config::where() const {
  return impl_->path.empty() ? impl_->file : impl_->file + ": " + impl_->path;
}

std::string Config::to_json() const { return to_python_json(*impl_->object, true); }

Config Config::with(std::string_view key, std::string_view json_value) const {
  Json changed = *impl_->object;
  changed[std::string(key)] =
      parse_json("config", impl_->path_of(key), json_value, NonFinite::kAsPython);
  auto impl = Impl::root(impl_->file, std::move(changed));
  impl->path = impl_->path;
  return Config(std::move(impl));
}

}  // namespace tranship
