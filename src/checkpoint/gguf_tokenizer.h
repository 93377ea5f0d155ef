// The tokenizer inside a GGUF, as the files that Hugging Face's libraries read.
#pragma once

#include <string>

#include "checkpoint/gguf_file.h"

namespace tranship {

/// True if the file has a tokenizer at all.
bool has_tokenizer(const GgufFile& gguf);

/// tokenizer.json for the models "gpt2" (byte-level BPE) and "llama" (SentencePiece's BPE with byte
/// fallback). `tokenizer.ggml.pre` names a known tokenizer: what its own tokenizer.json has and a
/// GGUF leaves out comes from here (how text is split, normalization, whole words before merges).
/// Absent or "default", text is split as GPT-2 does. Merges that a "llama" vocabulary leaves out
/// follow from its scores. Errors: unsupported for another model or an unknown `pre`, by name;
/// corrupt for lists of different lengths, ids outside the vocabulary, merges of unknown tokens,
/// and invalid UTF-8. Source: integrations/gguf/gguf_tokenizer_mapping.py convert_gguf_tokenizer
/// (5.23).
std::string gguf_tokenizer_json(const GgufFile& gguf);

/// tokenizer_config.json: special tokens, chat template, what encode adds.
/// Errors: as gguf_tokenizer_json.
std::string gguf_tokenizer_config_json(const GgufFile& gguf);

}  // namespace tranship
