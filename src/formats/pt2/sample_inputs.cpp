#include "formats/pt2/sample_inputs.h"

#include "base/error.h"
#include "formats/pt2/tensor_meta.h"
#include "formats/pt2/zip_writer.h"

namespace tranship::pt2 {
namespace {

using Kind = PythonValue::Kind;

/// The class of storages of a dtype, as torch.save names it.
std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "DoubleStorage";
    case DType::kF32:
      return "FloatStorage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kI64:
      return "LongStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI16:
      return "ShortStorage";
    case DType::kI8:
      return "CharStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kBool:
      return "BoolStorage";
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kU64:
    case DType::kU32:
    case DType::kU16:
      break;
  }
  fail(ErrorKind::kUnsupported, "[pt2] an input of {} has no storage class in torch.save's format",
       name(dtype));
}

/// The bytes of `count` ones.
std::string ones(DType dtype, int64_t count) {
  Tensor tensor(dtype, {count});
  for (int64_t i = 0; i < count; ++i) tensor.set(i, 1);
  return std::string(as_text(tensor.bytes()));
}

/// A pickle of protocol 2, an opcode at a time.
class Pickler {
 public:
  explicit Pickler(const std::function<SampleTensor(const std::string&)>& tensor_of)
      : tensor_of_(tensor_of) {}

  std::string run(const PythonValue& value) {
    bytes_ = "\x80\x02";
    add(value);
    bytes_ += '.';
    zip_.add("archive/data.pkl", std::move(bytes_));
    zip_.add("archive/byteorder", std::string("little"));
    zip_.add("archive/version", std::string("3\n"));
    return zip_.to_bytes();
  }

 private:
  void add(const PythonValue& value) {
    switch (value.kind) {
      case Kind::kNone:
        bytes_ += 'N';
        return;
      case Kind::kBool:
        bytes_ += value.flag ? '\x88' : '\x89';
        return;
      case Kind::kInt:
        return add_int(value.number);
      case Kind::kDType:
        return add_global("torch", torch_name(value.dtype));
      case Kind::kDevice:
        add_global("torch", "device");
        add_text("cpu");
        bytes_ += "\x85R";  // called with a tuple of one
        return;
      case Kind::kTensor:
        return add_tensor(tensor_of_(value.text));
      case Kind::kTuple:
        bytes_ += '(';
        for (const PythonValue& item : value.items) add(item);
        bytes_ += 't';
        return;
      case Kind::kList:
        bytes_ += "](";
        for (const PythonValue& item : value.items) add(item);
        bytes_ += 'e';
        return;
      case Kind::kDict:
        return add_fields(value);
      case Kind::kNumbered:
        bytes_ += "}(";
        for (size_t i = 0; i < value.items.size(); ++i) {
          add_int(static_cast<int64_t>(i));
          add(value.items[i]);
        }
        bytes_ += 'u';
        return;
      case Kind::kObject:
        return add_object(value);
      case Kind::kOutput:
        return add_output(value);
    }
  }

  /// The class, called with its first fields.
  void add_output(const PythonValue& value) {
    const size_t dot = value.text.find_last_of(":.");
    add_global(value.text.substr(0, dot), value.text.substr(dot + 1));
    bytes_ += '(';
    for (const PythonValue& item : value.items) add(item);
    bytes_ += "tR";
  }

  void add_int(int64_t value) {
    if (value >= 0 && value < 256) {
      bytes_ += 'K';
      return add_number(value, 1);
    }
    bytes_ += "\x8a\x08";  // a long of eight bytes
    add_number(value, 8);
  }

  void add_number(int64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  void add_text(std::string_view text) {
    bytes_ += 'X';
    add_number(static_cast<int64_t>(text.size()), 4);
    bytes_ += text;
  }

  void add_global(std::string_view module, std::string_view name) {
    bytes_ += 'c';
    bytes_.append(module).append("\n").append(name).append("\n");
  }

  /// A dict.
  void add_fields(const PythonValue& value) {
    bytes_ += "}(";
    for (size_t i = 0; i < value.items.size(); ++i) {
      add_text(value.names[i]);
      add(value.items[i]);
    }
    bytes_ += 'u';
  }

  /// cls.__new__(cls), and its attributes.
  void add_object(const PythonValue& value) {
    const size_t colon = value.text.find(':');
    add_global(value.text.substr(0, colon), value.text.substr(colon + 1));
    bytes_ += ")\x81";
    add_fields(value);
    bytes_ += 'b';
  }

  void add_ints(const std::vector<int64_t>& values) {
    bytes_ += '(';
    for (const int64_t value : values) add_int(value);
    bytes_ += 't';
  }

  void add_tensor(const SampleTensor& tensor) {
    const std::string key = std::to_string(num_storages_++);
    int64_t count = 1;
    for (const int64_t size : tensor.sizes) count *= size;
    const std::string record = "archive/data/" + key;
    if (tensor.of_ones) {
      zip_.add(record, ones(tensor.dtype, count));
    } else {
      zip_.add_zeros(record, static_cast<uint64_t>(count) * size_bytes(tensor.dtype));
    }
    add_global("torch._utils", "_rebuild_tensor_v2");
    bytes_ += "((";
    add_text("storage");
    add_global("torch", storage_class(tensor.dtype));
    add_text(key);
    add_text("cpu");
    add_int(count);
    bytes_ += "tQ";
    add_int(0);  // the storage's first element
    add_ints(tensor.sizes);
    add_ints(dense_strides(tensor.sizes));
    bytes_ += '\x89';  // no gradients
    add_global("collections", "OrderedDict");
    bytes_ += ")RtR";
  }

  const std::function<SampleTensor(const std::string&)>& tensor_of_;
  std::string bytes_;
  ZipWriter zip_;
  int64_t num_storages_ = 0;
};

}  // namespace

std::string pickle(const PythonValue& value,
                   const std::function<SampleTensor(const std::string& port)>& tensor_of) {
  return Pickler(tensor_of).run(value);
}

}  // namespace tranship::pt2
