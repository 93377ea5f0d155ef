#include "formats/pt2/pickle_reader.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace tranship::pt2 {
namespace {

constexpr size_t kMaxDepth = 32;

constexpr size_t kMaxRank = 64;
constexpr size_t kMaxKeyBytes = 256;

struct Object;
using ObjectPtr = std::shared_ptr<Object>;

struct None {};
struct Function {  // what GLOBAL names
  std::string name;
};
struct Sequence {
  std::vector<ObjectPtr> items;
};
/// Its entries grow after it is made, and memoized references see them.
struct Dict {
  std::vector<std::pair<ObjectPtr, ObjectPtr>> entries;
};
struct Storage {
  std::string key;
  ScalarType type;
};

struct Object {
  std::variant<None, bool, int64_t, double, std::string, Function, Sequence, Dict, Storage,
               PickledTensor>
      value;
  size_t depth = 1;
  bool contained = false;  // then it stays as it is: nothing can hold itself
};

struct StorageClass {
  std::string_view name;
  int64_t scalar_type;
};
constexpr std::array<StorageClass, 11> kStorages = {{{"torch ByteStorage", 1},
                                                     {"torch CharStorage", 2},
                                                     {"torch ShortStorage", 3},
                                                     {"torch IntStorage", 4},
                                                     {"torch LongStorage", 5},
                                                     {"torch HalfStorage", 6},
                                                     {"torch FloatStorage", 7},
                                                     {"torch DoubleStorage", 8},
                                                     {"torch BoolStorage", 12},
                                                     {"torch BFloat16Storage", 13},
                                                     {"torch.storage UntypedStorage", 1}}};

/// A machine with a stack and a memo, as Python's, that knows thirty opcodes.
class Unpickler {
 public:
  Unpickler(std::string_view where, Bytes pickle)
      : where_(where), reader_("pickle", where, pickle) {}

  ObjectPtr run() {
    while (!done_) step(reader_.number<uint8_t>("an opcode"));
    if (stack_.size() != 1 || reader_.left() != 0) corrupt("it does not end with one value");
    return stack_.back();
  }

 private:
  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[pickle] '{}', byte {}: {}", where_, reader_.offset(),
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kUnsupported, "[pickle] '{}', byte {}: {}: only a dict of tensors is read",
         where_, reader_.offset(),
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  void push(Object object) { stack_.push_back(std::make_shared<Object>(std::move(object))); }
  ObjectPtr pop() {
    if (stack_.size() <= floor()) corrupt("a value is missing");
    ObjectPtr top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  /// What was pushed since the last mark.
  std::vector<ObjectPtr> pop_to_mark() {
    if (marks_.empty()) corrupt("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<ObjectPtr> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<ObjectPtr> pop_count(size_t count) {
    std::vector<ObjectPtr> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    return items;
  }
  /// What holds the object is one level deeper.
  size_t contain(Object& object) const {
    object.contained = true;
    if (object.depth >= kMaxDepth) corrupt("nested more than {} levels deep", kMaxDepth);
    return object.depth + 1;
  }
  template <class T>
  const T& as(const ObjectPtr& object, std::string_view expected) const {
    const T* value = std::get_if<T>(&object->value);
    if (value == nullptr) corrupt("expected {}", expected);
    return *value;
  }

  void push_sequence(std::vector<ObjectPtr> items) {
    size_t depth = 1;
    for (const ObjectPtr& item : items) depth = std::max(depth, contain(*item));
    push({Sequence{std::move(items)}, depth});
  }

  void step(uint8_t opcode);
  void step_container(uint8_t opcode);
  void push_text(size_t size) { push({std::string(as_text(reader_.take(size, "a string")))}); }
  void push_long();
  void push_global();
  void memoize(size_t key);
  void recall(size_t key);
  void set_items(std::vector<ObjectPtr> items);
  void persistent_load();
  void reduce();
  void build();
  PickledTensor rebuild_tensor(const std::vector<ObjectPtr>& arguments) const;
  std::vector<Size> sizes(const ObjectPtr& tuple) const;

  std::string_view where_;
  ByteReader reader_;
  std::vector<ObjectPtr> stack_;
  std::vector<size_t> marks_;
  std::map<size_t, ObjectPtr> memo_;
  bool done_ = false;
};

void Unpickler::step(uint8_t opcode) {  // #lizard forgives: a table, a line an opcode
  switch (opcode) {
    case 0x80:
      if (const auto protocol = reader_.number<uint8_t>("the protocol"); protocol > 4)
        unsupported("protocol {}", protocol);
      return;
    case '.':
      done_ = true;
      return;
    case 'N':
      return push({None{}});
    case 0x88:
      return push({true});
    case 0x89:
      return push({false});
    case 'J':
      return push({int64_t{reader_.number<int32_t>("an integer")}});
    case 'K':
      return push({int64_t{reader_.number<uint8_t>("an integer")}});
    case 'M':
      return push({int64_t{reader_.number<uint16_t>("an integer")}});
    case 0x8a:
      return push_long();
    case 'X':
      return push_text(reader_.number<uint32_t>("a length"));
    case 0x8c:
      return push_text(reader_.number<uint8_t>("a length"));
    case 'c':
      return push_global();
    case 'q':
      return memoize(reader_.number<uint8_t>("a memo key"));
    case 'r':
      return memoize(reader_.number<uint32_t>("a memo key"));
    case 'h':
      return recall(reader_.number<uint8_t>("a memo key"));
    case 'j':
      return recall(reader_.number<uint32_t>("a memo key"));
    case 'Q':
      return persistent_load();
    case 'R':
      return reduce();
    case 'b':
      return build();
    default:
      return step_container(opcode);
  }
}

void Unpickler::step_container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return;
    case ')':
      return push({Sequence{}});
    case 't':
      return push_sequence(pop_to_mark());
    case 0x85:
    case 0x86:
    case 0x87:
      return push_sequence(pop_count(size_t{opcode} - 0x84));
    case '}':
      return push({Dict{}});
    case 's':
      return set_items(pop_count(2));
    case 'u':
      return set_items(pop_to_mark());
    default:
      unsupported("the opcode 0x{:02x}", opcode);
  }
}

void Unpickler::push_long() {
  const size_t size = reader_.number<uint8_t>("a length");
  const Bytes bytes = reader_.take(size, "an integer");
  if (size > 8) corrupt("an integer of {} bytes", size);
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  if (size > 0 && size < 8 && std::to_integer<int>(bytes[size - 1]) >= 128)
    value |= ~uint64_t{0} << (8 * size);
  push({static_cast<int64_t>(value)});
}

/// Two lines: the module and the name in it.
void Unpickler::push_global() {
  std::string name;
  for (int line = 0; line < 2; ++line) {
    if (line > 0) name += ' ';
    for (;;) {
      const auto c = static_cast<char>(reader_.number<uint8_t>("a name"));
      if (c == '\n') break;
      name += c;
    }
  }
  static constexpr std::array<std::string_view, 4> kFunctions = {
      "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter",
      "collections OrderedDict", "torch Tensor"};
  const bool known = std::ranges::find(kFunctions, name) != kFunctions.end() ||
                     std::ranges::find(kStorages, name, &StorageClass::name) != kStorages.end();
  if (!known) unsupported("the name '{}'", name);
  push({Function{std::move(name)}});
}

void Unpickler::memoize(size_t key) {
  ObjectPtr top = pop();
  memo_[key] = top;
  stack_.push_back(std::move(top));
}

void Unpickler::recall(size_t key) {
  const auto it = memo_.find(key);
  if (it == memo_.end()) corrupt("nothing was memoized as {}", key);
  stack_.push_back(it->second);
}

void Unpickler::set_items(std::vector<ObjectPtr> items) {
  if (items.size() % 2 != 0) corrupt("a key without a value");
  ObjectPtr target = pop();
  auto* dict = std::get_if<Dict>(&target->value);
  if (dict == nullptr || target->contained) corrupt("expected a dict that nothing holds yet");
  for (size_t i = 0; i < items.size(); i += 2) {
    if (items[i] == target || items[i + 1] == target) corrupt("a dict holds itself");
    target->depth = std::max({target->depth, contain(*items[i]), contain(*items[i + 1])});
    dict->entries.emplace_back(items[i], items[i + 1]);
  }
  stack_.push_back(std::move(target));
}

/// ("storage", class, key, device, number of elements).
void Unpickler::persistent_load() {
  const ObjectPtr id = pop();
  const std::vector<ObjectPtr>& items = as<Sequence>(id, "a storage").items;
  if (items.size() != 5 || as<std::string>(items[0], "a word") != "storage")
    corrupt("expected a storage");
  const std::string& name = as<Function>(items[1], "a storage's class").name;
  const auto* const it = std::ranges::find(kStorages, name, &StorageClass::name);
  if (it == kStorages.end()) corrupt("'{}' is not a storage", name);
  const auto& key = as<std::string>(items[2], "a storage's key");
  if (key.size() > kMaxKeyBytes) corrupt("a storage's key of {} bytes", key.size());
  push({Storage{key, {it->scalar_type}}});
}

void Unpickler::reduce() {
  const ObjectPtr arguments = pop();
  const std::vector<ObjectPtr>& items = as<Sequence>(arguments, "arguments").items;
  const ObjectPtr function = pop();
  const std::string& name = as<Function>(function, "a function").name;
  if (name == "collections OrderedDict") {
    if (!items.empty()) unsupported("an OrderedDict made of something");
    return push({Dict{}});
  }
  if (name == "torch._utils _rebuild_tensor_v2") return push({rebuild_tensor(items)});
  if (name == "torch._utils _rebuild_parameter") {
    if (items.empty()) corrupt("a parameter of nothing");
    return push({PickledTensor(as<PickledTensor>(items[0], "a tensor"))});
  }
  unsupported("a call of '{}'", name);
}

/// State of an object: an OrderedDict's _metadata, which says nothing about tensors.
void Unpickler::build() {
  as<Dict>(pop(), "a state");
  const ObjectPtr target = pop();
  as<Dict>(target, "an OrderedDict");
  stack_.push_back(target);
}

std::vector<Size> Unpickler::sizes(const ObjectPtr& tuple) const {
  std::vector<Size> out;
  const std::vector<ObjectPtr>& items = as<Sequence>(tuple, "a tuple").items;
  if (items.size() > kMaxRank) corrupt("a tensor of {} axes", items.size());
  for (const ObjectPtr& item : items) {
    const auto value = as<int64_t>(item, "a size");
    if (value < 0) corrupt("a size of {}", value);
    out.emplace_back(value);
  }
  return out;
}

/// (storage, offset, sizes, strides, requires_grad, hooks).
PickledTensor Unpickler::rebuild_tensor(const std::vector<ObjectPtr>& arguments) const {
  if (arguments.size() < 4) corrupt("a tensor of {} arguments", arguments.size());
  const auto& storage = as<Storage>(arguments[0], "a storage");
  PickledTensor tensor;
  tensor.storage = storage.key;
  tensor.meta.type = storage.type;
  tensor.meta.storage_offset = as<int64_t>(arguments[1], "an offset");
  tensor.meta.sizes = sizes(arguments[2]);
  tensor.meta.strides = sizes(arguments[3]);
  if (tensor.meta.sizes.size() != tensor.meta.strides.size())
    corrupt("{} sizes and {} strides", tensor.meta.sizes.size(), tensor.meta.strides.size());
  return tensor;
}

}  // namespace

std::map<std::string, PickledTensor> read_pickled_tensors(std::string_view where, Bytes pickle) {
  const ObjectPtr root = Unpickler(where, pickle).run();
  const auto* dict = std::get_if<Dict>(&root->value);
  if (dict == nullptr)
    fail(ErrorKind::kUnsupported, "[pickle] '{}' is not a dict of tensors", where);
  std::map<std::string, PickledTensor> out;
  for (const auto& [key, value] : dict->entries) {
    const auto* name = std::get_if<std::string>(&key->value);
    const auto* tensor = std::get_if<PickledTensor>(&value->value);
    if (name == nullptr || tensor == nullptr) {
      fail(ErrorKind::kUnsupported, "[pickle] '{}' holds '{}', which is not a tensor", where,
           name == nullptr ? "?" : *name);
    }
    if (!out.emplace(*name, *tensor).second)
      fail(ErrorKind::kCorrupt, "[pickle] '{}' has two tensors named '{}'", where, *name);
  }
  return out;
}

}  // namespace tranship::pt2
