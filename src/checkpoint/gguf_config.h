// What a GGUF file says in llama.cpp's words, in Transformers' words: config.json and tensor names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/gguf_file.h"

namespace tranship {

/// config.json of llama, qwen2 and qwen3 files (a mistral file says llama; with a sliding window it
/// becomes mistral). Numbers are Transformers' own when it loads a GGUF: an f32 eps stays that
/// f32's value. What its loader leaves out and changes the maths is honoured: head_dim, biases,
/// rope scaling (linear, yarn, and llama3 from the tensor rope_freqs.weight, the one tensor that is
/// read here: a few hundred bytes). Errors: unsupported for another architecture, a metadata key of
/// the architecture that is not honoured, and frequency factors that are not llama3's; corrupt if a
/// needed key is absent or has an impossible value. Source: modeling_gguf_pytorch_utils.py
/// load_gguf_checkpoint (5.23).
std::string gguf_config_json(const GgufFile& gguf);

/// generation_config.json: the ids of special tokens, as model.generation_config has them after
/// loading.
std::string gguf_generation_config_json(const GgufFile& gguf);

/// The tensors by Transformers' name, block types as f32, llama's q and k with the rows in
/// Transformers' order. Errors: unsupported for element types and names that are not known: all of
/// them at once.
std::map<std::string, TensorSourcePtr> gguf_tensors(const GgufFile& gguf);

}  // namespace tranship
