// The C ABI of src/text/rust (lib.rs says who owns what). Only rust_tokenizer.cpp calls it; without
// a Rust compiler rust/no_tokenizer.cpp stands in.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct TranshipText {
  char* data;
  size_t size;
};

struct TranshipEncoded {
  uint32_t* ids;
  uint32_t* type_ids;
  size_t size;
};

struct TranshipTokenizer;

enum TranshipPrepend { kPrependNever, kPrependFirst, kPrependAlways };

/// False where the Rust side was not built; then nothing else may be called.
bool tranship_tokenizer_available();

void tranship_text_free(TranshipText text);
void tranship_encoded_free(TranshipEncoded encoded);

bool tranship_tokenizer_new(const char* json, size_t json_size, TranshipTokenizer** out,
                            TranshipText* error);
void tranship_tokenizer_free(TranshipTokenizer* tokenizer);
bool tranship_tokenizer_describe(const TranshipTokenizer* tokenizer, TranshipText* out,
                                 TranshipText* error);
bool tranship_tokenizer_use_llama_steps(TranshipTokenizer* tokenizer, TranshipPrepend prepend,
                                        TranshipText* error);
bool tranship_tokenizer_add_tokens(TranshipTokenizer* tokenizer, const char* json, size_t json_size,
                                   TranshipText* error);
bool tranship_tokenizer_split_special_tokens(TranshipTokenizer* tokenizer, bool yes,
                                             TranshipText* error);
bool tranship_tokenizer_encode(const TranshipTokenizer* tokenizer, const char* text,
                               size_t text_size, bool add_special_tokens, size_t max_length,
                               bool truncate_left, TranshipEncoded* out, TranshipText* error);
bool tranship_tokenizer_decode(const TranshipTokenizer* tokenizer, const uint32_t* ids, size_t size,
                               bool skip_special_tokens, TranshipText* out, TranshipText* error);
bool tranship_tokenizer_token_to_id(const TranshipTokenizer* tokenizer, const char* token,
                                    size_t token_size, int64_t* out, TranshipText* error);
bool tranship_tokenizer_id_to_token(const TranshipTokenizer* tokenizer, uint32_t id,
                                    TranshipText* out, int32_t* kind, TranshipText* error);
bool tranship_template_render(const char* source, size_t source_size, const char* variables,
                              size_t variables_size, TranshipText* out, TranshipText* error);
}
