// The graphs themselves: small ones as text in tests/golden/graphs, so that a change shows as a
// diff; large ones by the time it takes to build them, without weights. To renew the files:
// TRANSHIP_UPDATE=1 build/dev/tests/graphs_test
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tasks/task.h"

namespace tranship {
namespace {

std::vector<std::string> model_types() {
  std::vector<std::string> names;
  for (const models::Family* f : models::families()) names.emplace_back(f->model_type);
  return names;
}

class TinyGraphs : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyGraphs, AreAsCommitted) {
  const models::Family& family = *models::find_family(GetParam());
  const Checkpoint checkpoint = Checkpoint::synthetic(family.tiny_config);
  const tasks::TaskProgram built = tasks::forward(checkpoint.data(), {});
  const std::string text = ir::print(*built.program.components[0].graph);
  const std::filesystem::path file =
      std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/golden/graphs" / (GetParam() + ".ir");
  if (std::getenv("TRANSHIP_UPDATE") != nullptr) write_text(file, text);
  EXPECT_EQ(text, read_text(file))
      << "if the change is meant: TRANSHIP_UPDATE=1 build/dev/tests/graphs_test";
}

TEST_P(TinyGraphs, BuildForEveryArchitectureAndTaskAndVerify) {
  const models::Family& family = *models::find_family(GetParam());
  const Checkpoint checkpoint = Checkpoint::synthetic(family.tiny_config);
  for (const nn::Architecture& a : family.architectures) {
    const tasks::TaskOptions options = {.architecture = std::string(a.name)};
    std::vector<tasks::TaskProgram> programs;
    programs.push_back(tasks::forward(checkpoint.data(), options));
    if (a.generates) programs.push_back(tasks::generation(checkpoint.data(), options));
    for (const tasks::TaskProgram& p : programs) {
      for (const ir::Component& c : p.program.components) {
        ir::verify(*c.graph);
        EXPECT_EQ(ir::print(*ir::parse(ir::print(*c.graph))), ir::print(*c.graph));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TinyGraphs, ::testing::ValuesIn(model_types()),
                         [](const auto& family) { return family.param; });

double seconds_to_build(const char* config_json) {
  const Checkpoint checkpoint = Checkpoint::synthetic(config_json);
  const auto start = std::chrono::steady_clock::now();
  const tasks::TaskProgram built = tasks::generation(checkpoint.data(), {});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(built.program.components.size(), 2u);
  return elapsed.count();
}

/// A checkpoint of the tiny Qwen3-MoE, as on disk: each expert's tensors by themselves.
CheckpointData experts_apart() {
  const CheckpointData synthetic =
      Checkpoint::synthetic(models::find_family("qwen3_moe")->tiny_config).data();
  CheckpointData data = synthetic;
  data.kind = CheckpointKind::kSafetensors;
  const tasks::TaskProgram built = tasks::forward(synthetic, {});
  for (const auto& [name, source] : built.program.parameters) {
    if (name.find(".experts.") == std::string::npos) data.tensors.emplace(name, source);
  }
  for (int i = 0; i < 5; ++i) {
    for (const auto& [part, rows, columns] :
         {std::tuple("gate_proj", 24, 32), std::tuple("up_proj", 24, 32),
          std::tuple("down_proj", 32, 24)}) {
      const std::string name = fmt::format("model.layers.1.mlp.experts.{}.{}.weight", i, part);
      data.tensors.emplace(name, hash_source(name, DType::kF32, {rows, columns}));
    }
  }
  return data;
}

TEST(Experts, ThatLieApartAreOneWeight) {
  const tasks::TaskProgram apart = tasks::forward(experts_apart(), {});
  const std::string name = "model.layers.1.mlp.experts.gate_up_proj";
  EXPECT_EQ(apart.program.parameters.at(name)->shape(), (std::vector<int64_t>{5, 48, 32}));
  EXPECT_FALSE(apart.program.parameters.contains("model.layers.1.mlp.experts.0.up_proj.weight"));
  // The third expert's up_proj stands behind its gate_proj.
  const Tensor up =
      read_all(*experts_apart().tensors.at("model.layers.1.mlp.experts.2.up_proj.weight"));
  const Tensor all = read_all(*apart.program.parameters.at(name));
  for (int64_t i = 0; i < 24 * 32; ++i) ASSERT_EQ(all.at((2 * 48 + 24) * 32 + i), up.at(i));
}

TEST(Experts, OneThatIsNotThereIsNamed) {
  CheckpointData data = experts_apart();
  data.tensors.erase("model.layers.1.mlp.experts.3.up_proj.weight");
  try {
    tasks::forward(data, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("experts.3.up_proj.weight"), std::string::npos)
        << error.what();
  }
}

TEST(HostileConfigs, SizesThatNoModelHasAreRefusedBeforeAGraphGrows) {
  for (const char* model : {"llama", "bert", "qwen3_moe", "mamba", "vit"}) {
    for (const char* key : {"num_hidden_layers", "vocab_size", "hidden_size", "intermediate_size",
                            "num_attention_heads"}) {
      const models::Family* family = models::find_family(model);
      if (std::string(family->tiny_config).find(fmt::format("\"{}\"", key)) == std::string::npos)
        continue;  // not a key of this family
      for (const char* value : {"0", "-1", "4294967296", "9223372036854775807"}) {
        const Checkpoint checkpoint = Checkpoint::synthetic(
            fmt::format(R"({{"model_type": "{}", "{}": {}}})", model, key, value));
        try {
          tasks::forward(checkpoint.data(), {});
          ADD_FAILURE() << model << " takes " << key << " " << value;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
          EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
        }
      }
    }
  }
}

TEST(HostileConfigs, OfEncoderDecodersAreRefusedToo) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> models = {
      {"t5",
       {"vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads",
        "relative_attention_num_buckets", "relative_attention_max_distance"}},
      {"whisper",
       {"vocab_size", "num_mel_bins", "d_model", "encoder_layers", "decoder_layers",
        "encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim",
        "max_source_positions", "max_target_positions"}}};
  for (const auto& [model, keys] : models) {
    for (const char* key : keys) {
      for (const char* value : {"0", "-1", "4294967296", "9223372036854775807"}) {
        const Checkpoint checkpoint = Checkpoint::synthetic(
            fmt::format(R"({{"model_type": "{}", "{}": {}}})", model, key, value));
        try {
          tasks::forward(checkpoint.data(), {});
          ADD_FAILURE() << model << " takes " << key << " " << value;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
          EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
        }
      }
    }
  }
}

// What checkpoints in the wild say: flan-t5-base and whisper-large-v3.
TEST(RealConfigs, OfEncoderDecodersBuild) {
  for (
      const char* config :
      {R"({"architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 768,
           "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "feed_forward_proj": "gated-gelu",
           "initializer_factor": 1.0, "is_encoder_decoder": true, "layer_norm_epsilon": 1e-06, "model_type": "t5",
           "n_positions": 512, "num_decoder_layers": 12, "num_heads": 12, "num_layers": 12, "output_past": true,
           "pad_token_id": 0, "relative_attention_max_distance": 128, "relative_attention_num_buckets": 32,
           "task_specific_params": {"summarization": {"num_beams": 4}}, "tie_word_embeddings": false,
           "transformers_version": "4.23.1", "use_cache": true, "vocab_size": 32128})",
       R"({"_name_or_path": "", "activation_dropout": 0.0, "activation_function": "gelu", "apply_spec_augment": false,
           "architectures": ["WhisperForConditionalGeneration"], "attention_dropout": 0.0,
           "begin_suppress_tokens": [220, 50257], "bos_token_id": 50257, "classifier_proj_size": 256, "d_model": 1280,
           "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "decoder_layerdrop": 0.0, "decoder_layers": 32,
           "decoder_start_token_id": 50258, "dropout": 0.0, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
           "encoder_layerdrop": 0.0, "encoder_layers": 32, "eos_token_id": 50257, "init_std": 0.02,
           "is_encoder_decoder": true, "mask_feature_length": 10, "mask_feature_min_masks": 0, "mask_feature_prob": 0.0,
           "mask_time_length": 10, "mask_time_min_masks": 2, "mask_time_prob": 0.05, "max_length": 448,
           "max_source_positions": 1500, "max_target_positions": 448, "median_filter_width": 7, "model_type": "whisper",
           "num_hidden_layers": 32, "num_mel_bins": 128, "pad_token_id": 50256, "scale_embedding": false,
           "torch_dtype": "float16", "transformers_version": "4.36.0.dev0", "use_cache": true,
           "use_weighted_layer_sum": false, "vocab_size": 51866})"}) {
    const tasks::TaskProgram built = tasks::generation(Checkpoint::synthetic(config).data(), {});
    EXPECT_EQ(built.program.components.size(), 3u);
  }
}

// Sanitizers cost some ten times; the issue's limits (50 ms, 1 s) are for the release build, where
// bench/ measures them.
TEST(LargeGraphs, ASmallModelBuildsAtOnce) {
  EXPECT_LT(
      seconds_to_build(
          R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "tie_word_embeddings": true, "max_position_embeddings": 40960, "rope_theta": 1000000})"),
      0.05 * 20);
}

TEST(LargeGraphs, A405BillionParameterModelBuildsWithoutWeights) {
  EXPECT_LT(
      seconds_to_build(
          R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16384, "intermediate_size": 53248,
    "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192}})"),
      1.0 * 20);
}

}  // namespace
}  // namespace tranship
