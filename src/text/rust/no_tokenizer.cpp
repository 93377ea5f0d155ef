// Stands in for the Rust library where it was not built: nothing is available, and nothing else is
// called.
#include "text/rust_abi.h"

extern "C" {

bool tranship_tokenizer_available() { return false; }

void tranship_text_free(TranshipText) {}
void tranship_encoded_free(TranshipEncoded) {}
bool tranship_tokenizer_new(const char*, size_t, TranshipTokenizer**, TranshipText*) {
  return false;
}
void tranship_tokenizer_free(TranshipTokenizer*) {}
bool tranship_tokenizer_describe(const TranshipTokenizer*, TranshipText*, TranshipText*) {
  return false;
}
bool tranship_tokenizer_use_llama_steps(TranshipTokenizer*, TranshipPrepend, TranshipText*) {
  return false;
}
bool tranship_tokenizer_add_tokens(TranshipTokenizer*, const char*, size_t, TranshipText*) {
  return false;
}
bool tranship_tokenizer_split_special_tokens(TranshipTokenizer*, bool, TranshipText*) {
  return false;
}
bool tranship_tokenizer_encode(const TranshipTokenizer*, const char*, size_t, bool, size_t, bool,
                               TranshipEncoded*, TranshipText*) {
  return false;
}
bool tranship_tokenizer_decode(const TranshipTokenizer*, const uint32_t*, size_t, bool,
                               TranshipText*, TranshipText*) {
  return false;
}
bool tranship_tokenizer_token_to_id(const TranshipTokenizer*, const char*, size_t, int64_t*,
                                    TranshipText*) {
  return false;
}
bool tranship_tokenizer_id_to_token(const TranshipTokenizer*, uint32_t, TranshipText*, int32_t*,
                                    TranshipText*) {
  return false;
}
bool tranship_template_render(const char*, size_t, const char*, size_t, TranshipText*,
                              TranshipText*) {
  return false;
}
}
