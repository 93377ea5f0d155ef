// Configurations and calls that people have, or that a stranger may send: refused with a message
// that says what is wrong, or honoured as Transformers does.
#include "checkpoint/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/testing.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})";
constexpr std::string_view kMistral =
    R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})";
constexpr std::string_view kBert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})";

struct Anomaly {
  const char* name;
  std::string_view config;
  const char* key;
  const char* json;
  const char* message;
};

class ConfigAnomaly : public ::testing::TestWithParam<Anomaly> {};

TEST_P(ConfigAnomaly, IsRefusedWithItsKey) {
  const Config config =
      Config::parse("config.json", GetParam().config).with(GetParam().key, GetParam().json);
  const Error error = error_of([&] {
    OnnxExporter().export_model(Checkpoint::synthetic(config.to_json()), {.dynamic = true});
  });
  EXPECT_THAT(error.what(), HasSubstr(GetParam().key));
  EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Llama, ConfigAnomaly,
    ::testing::Values(
        Anomaly{"unknown_key", kLlama, "attn_logit_softcapping", "50.0", "does not know"},
        Anomaly{"quantized", kLlama, "quantization_config",
                R"({"quant_method": "gptq", "bits": 4})", "quantized by 'gptq'"},
        Anomaly{"ten_million_layers", kLlama, "num_hidden_layers", "10000000", "from 1 to 10000"},
        Anomaly{"no_heads", kLlama, "num_attention_heads", "0", "expected a number from 1"},
        Anomaly{"heads_that_do_not_divide", kLlama, "num_key_value_heads", "3", "not a multiple"},
        Anomaly{"odd_head", kLlama, "head_dim", "7", "odd"},
        Anomaly{"theta_of_zero", kLlama, "rope_theta", "0", "expected a positive number"},
        Anomaly{"rope_factor_of_zero", kLlama, "rope_scaling",
                R"({"rope_type": "linear", "factor": 0})", "expected a positive number"},
        Anomaly{"unknown_rope", kLlama, "rope_scaling", R"({"rope_type": "spiral", "factor": 2})",
                "'spiral'"},
        Anomaly{"rope_key_nobody_knows", kLlama, "rope_scaling",
                R"({"rope_type": "linear", "factor": 2, "beta": 3})", "rope_scaling.beta"},
        Anomaly{"partial_rotary", kLlama, "partial_rotary_factor", "0.5", "only 1 is supported"},
        Anomaly{"hidden_states", kLlama, "output_hidden_states", "true", "only false"},
        Anomaly{"unknown_activation", kLlama, "hidden_act", "\"swish9\"", "'swish9'"},
        Anomaly{"window_of_zero", kMistral, "sliding_window", "0", "expected a positive number"},
        Anomaly{"negative_window", kMistral, "sliding_window", "-5", "expected a positive number"},
        Anomaly{"relative_positions", kBert, "position_embedding_type", "\"relative_key\"",
                "absolute"},
        Anomaly{"a_decoder", kBert, "is_decoder", "true", "only false"},
        Anomaly{"a_string_for_a_size", kBert, "hidden_size", "\"32\"", "an integer"}),
    [](const auto& anomaly) { return anomaly.param.name; });

TEST(ConfigAnomaly, BesideRopeScalingRopeParametersDoNotCountAsInTransformers) {
  const Config config =
      Config::parse("config.json", kLlama)
          .with("rope_scaling", R"({"rope_type": "linear", "factor": 2.0})")
          .with("rope_parameters", R"({"rope_type": "default", "rope_theta": 1.0})");
  EXPECT_NO_THROW(
      OnnxExporter().export_model(Checkpoint::synthetic(config.to_json()), {.dynamic = true}));
}

TEST(ExportAnomaly, ACacheIsNamedByAWord) {
  for (const char* name : {"", "a b", "../cache", "a.b"}) {
    const Error error = error_of([&] {
      OnnxExporter().export_model(Checkpoint::synthetic(kLlama),
                                  {.dynamic = true, .cache_name = name});
    });
    EXPECT_THAT(error.what(), HasSubstr("the cache's name"));
  }
}

TEST(ExportAnomaly, AStaticLengthPastTheTableOfPositionsIsRefused) {
  const Error error = error_of([] {
    OnnxExporter().export_model(Checkpoint::synthetic(kBert),
                                {.dynamic = true, .static_shapes = {{"sequence", 65}}});
  });
  EXPECT_THAT(error.what(), HasSubstr("sequence"));
}

TEST(ExportAnomaly, AModelWithoutKeysHasNoStaticCache) {
  const Checkpoint mamba = Checkpoint::synthetic(
      R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"], "vocab_size": 96, "hidden_size": 32,
          "state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4, "time_step_rank": 4})");
  const Error error = error_of([&] {
    OnnxExporter().export_for_generation(mamba, OnnxConfig{.dynamic = true},
                                         {.cache_implementation = "static", .max_cache_len = 16});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("MambaForCausalLM keeps states of one size"));
  EXPECT_THAT(error.what(), HasSubstr("dynamic"));
}

Tensor ints(std::vector<int64_t> values, std::vector<int64_t> shape) {
  return Tensor::of(values, std::move(shape));
}

TEST(RunAnomaly, InputsWhoseSizesDisagreeAreRefusedAndNotBroadcast) {
  const ExportedModel bert =
      OnnxExporter().export_model(Checkpoint::synthetic(kBert), {.dynamic = true});
  const Tensor ids = ints({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_NO_THROW(bert({{"input_ids", ids}, {"attention_mask", ints({1, 1, 1, 1, 1, 0}, {2, 3})}}));
  for (const Tensor& mask :
       {ints({1, 1, 0}, {1, 3}), ints({1, 1}, {2, 1}), ints({1, 1, 1, 1}, {2, 2})}) {
    const Error error = error_of([&] { bert({{"input_ids", ids}, {"attention_mask", mask}}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("expected [batch = 2, sequence = 3]"));
  }
}

TEST(RunAnomaly, ARowThatIsMaskedWholeGivesNumbers) {
  const ExportedModel llama =
      OnnxExporter().export_model(Checkpoint::synthetic(kLlama), {.dynamic = true});
  const NamedTensors outputs = llama(
      {{"input_ids", ints({1, 2, 3, 4}, {2, 2})}, {"attention_mask", ints({0, 0, 1, 1}, {2, 2})}});
  for (const float v : outputs.at("logits").f32()) ASSERT_TRUE(std::isfinite(v));
}

}  // namespace
}  // namespace tranship
