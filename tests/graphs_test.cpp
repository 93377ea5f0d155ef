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

TEST(HostileConfigs, SizesThatNoModelHasAreRefusedBeforeAGraphGrows) {
  for (const char* model : {"llama", "bert"}) {
    for (const char* key : {"num_hidden_layers", "vocab_size", "hidden_size", "intermediate_size",
                            "num_attention_heads"}) {
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
