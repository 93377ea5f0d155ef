#include "text/rust_tokenizer.h"

#include "base/error.h"

namespace tranship::text {
namespace {

// Text from the Rust side: read once, then freed.
struct OwnedText {
  TranshipText text{nullptr, 0};
  OwnedText() = default;
  OwnedText(const OwnedText&) = delete;
  OwnedText& operator=(const OwnedText&) = delete;
  ~OwnedText() { tranship_text_free(text); }
  std::string str() const {
    return text.size == 0 ? std::string() : std::string(text.data, text.size);
  }
};

void require_rust() {
  if (!tranship_tokenizer_available()) {
    fail(ErrorKind::kUnsupported,
         "[tokenizer] this tranship was built without its tokenizer: install cargo and rustc, "
         "configure with "
         "-DTRANSHIP_TOKENIZER=ON and build again");
  }
}

std::vector<int64_t> widened(const uint32_t* values, size_t size) {
  return {values, values + size};
}

}  // namespace

RustTokenizer::RustTokenizer(std::string_view where, std::string_view tokenizer_json)
    : where_(where) {
  require_rust();
  OwnedText error;
  TranshipTokenizer* handle = nullptr;
  if (!tranship_tokenizer_new(tokenizer_json.data(), tokenizer_json.size(), &handle, &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}' cannot be read: {}", where_, error.str());
  }
  handle_.reset(handle);
}

std::string RustTokenizer::describe() const {
  OwnedText out, error;
  if (!tranship_tokenizer_describe(handle_.get(), &out.text, &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}' cannot be described: {}", where_, error.str());
  }
  return out.str();
}

void RustTokenizer::use_llama_steps(TranshipPrepend prepend) {
  OwnedText error;
  if (!tranship_tokenizer_use_llama_steps(handle_.get(), prepend, &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}' does not work as a LlamaTokenizer: {}", where_,
         error.str());
  }
}

void RustTokenizer::add_tokens(std::string_view tokens_json) {
  OwnedText error;
  if (!tranship_tokenizer_add_tokens(handle_.get(), tokens_json.data(), tokens_json.size(),
                                     &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}' does not take the added tokens {}: {}", where_,
         tokens_json, error.str());
  }
}

void RustTokenizer::split_special_tokens() {
  OwnedText error;
  if (!tranship_tokenizer_split_special_tokens(handle_.get(), true, &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}': {}", where_, error.str());
  }
}

EncodedText RustTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  OwnedText error;
  TranshipEncoded raw{nullptr, nullptr, 0};
  if (!tranship_tokenizer_encode(handle_.get(), text.data(), text.size(),
                                 options.add_special_tokens, options.max_length_tokens,
                                 options.truncate_left, &raw, &error.text)) {
    fail(ErrorKind::kInvalidArgument, "[tokenizer] '{}' cannot encode a text of {} bytes: {}",
         where_, text.size(), error.str());
  }
  const std::unique_ptr<TranshipEncoded, void (*)(TranshipEncoded*)> owner(
      &raw, [](TranshipEncoded* encoded) { tranship_encoded_free(*encoded); });
  return {widened(raw.ids, raw.size), widened(raw.type_ids, raw.size)};
}

std::string RustTokenizer::decode(std::span<const uint32_t> ids, bool skip_special_tokens) const {
  OwnedText out, error;
  if (!tranship_tokenizer_decode(handle_.get(), ids.data(), ids.size(), skip_special_tokens,
                                 &out.text, &error.text)) {
    fail(ErrorKind::kInvalidArgument, "[tokenizer] '{}' cannot decode {} ids: {}", where_,
         ids.size(), error.str());
  }
  return out.str();
}

std::optional<int64_t> RustTokenizer::token_to_id(std::string_view token) const {
  OwnedText error;
  int64_t id = -1;
  if (!tranship_tokenizer_token_to_id(handle_.get(), token.data(), token.size(), &id, &error.text))
    return std::nullopt;
  if (id < 0) return std::nullopt;
  return id;
}

std::optional<Token> RustTokenizer::id_to_token(uint32_t id) const {
  OwnedText out, error;
  int32_t kind = 0;
  if (!tranship_tokenizer_id_to_token(handle_.get(), id, &out.text, &kind, &error.text)) {
    fail(ErrorKind::kCorrupt, "[tokenizer] '{}' cannot look up the id {}: {}", where_, id,
         error.str());
  }
  if (kind == 0) return std::nullopt;
  return Token{out.str(), kind == 2};
}

std::string render_template(std::string_view source, std::string_view variables_json) {
  require_rust();
  OwnedText out, error;
  if (!tranship_template_render(source.data(), source.size(), variables_json.data(),
                                variables_json.size(), &out.text, &error.text)) {
    fail(ErrorKind::kInvalidArgument, "[chat template] {}", error.str());
  }
  return out.str();
}

}  // namespace tranship::text
