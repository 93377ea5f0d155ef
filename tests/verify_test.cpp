// Proof on demand: each planted fault is found, and each clean artifact passes.
#include "exporters/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "ir/tensor_source.h"
#include "support/golden.h"
#include "tranship/exporters.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using exporters::FileVerdict;
using exporters::OutputVerdict;

constexpr std::string_view kQwen2 =
    R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "tie_word_embeddings": false})";

constexpr std::string_view kLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-05})";

fs::path export_to(const TestFolder& folder, const Checkpoint& checkpoint,
                   const std::string& name = "artifact") {
  const OnnxExporter exporter;
  exporter.export_for_generation(checkpoint, {.dynamic = true}).save_pretrained(folder / name);
  return folder / name;
}

std::vector<std::string> wrong_files(const fs::path& directory) {
  std::vector<std::string> wrong;
  for (const FileVerdict& verdict : exporters::check_files(directory)) {
    if (verdict.kind == FileVerdict::Kind::kWrong) wrong.push_back(verdict.file);
  }
  return wrong;
}

std::vector<OutputVerdict> against(const fs::path& directory, const Checkpoint& checkpoint,
                                   const exporters::Inputs& inputs = {}) {
  const ExportedModel model = ExportedModel::from_pretrained(directory);
  const exporters::Reference reference = exporters::reference_of(model, checkpoint);
  const auto found = [&](const std::string& component, const NamedTensors& given) {
    return model.run(component, given);
  };
  return exporters::compare(model, found, reference.runner, reference.longest_sum, inputs);
}

size_t num_wrong(const std::vector<OutputVerdict>& verdicts) {
  return static_cast<size_t>(std::ranges::count(verdicts, false, &OutputVerdict::is_same));
}

void change(const fs::path& file, const std::function<void(std::string&)>& edit) {
  std::string text = read_text(file);
  edit(text);
  write_text(file, text);
}

/// Replaces the first place of a text that must be there.
void replace(const fs::path& file, std::string_view before, std::string_view after) {
  change(file, [&](std::string& text) {
    const size_t at = text.find(before);
    ASSERT_NE(at, text.npos) << before;
    text.replace(at, before.size(), after);
  });
}

struct FileFault {
  std::string name;
  std::string file;  // that must be named
  std::function<void(const fs::path&)> plant;
};

void flip(const fs::path& file, size_t at_per_mille, int bit = 0) {
  change(file, [&](std::string& text) {
    const size_t at = (text.size() - 1) * at_per_mille / 1000;
    text[at] = static_cast<char>(text[at] ^ (1 << bit));
  });
}

const std::vector<FileFault>& file_faults() {
  static const std::vector<FileFault> kFaults = {
      {"first_byte_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 0); }},
      {"middle_bit_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 500, 7); }},
      {"last_byte_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) { flip(d / "prefill.onnx.data", 1000); }},
      {"truncated_weights", "prefill.onnx.data",
       [](const fs::path& d) {
         change(d / "prefill.onnx.data", [](std::string& t) { t.resize(t.size() - 64); });
       }},
      {"longer_weights", "prefill.onnx.data",
       [](const fs::path& d) {
         change(d / "prefill.onnx.data", [](std::string& t) { t += '\0'; });
       }},
      {"missing_weights", "prefill.onnx.data",
       [](const fs::path& d) { fs::remove(d / "prefill.onnx.data"); }},
      {"swapped_halves_of_the_weights", "prefill.onnx.data",
       [](const fs::path& d) {
         change(d / "prefill.onnx.data",
                [](std::string& t) { t = t.substr(t.size() / 2) + t.substr(0, t.size() / 2); });
       }},
      {"missing_graph", "decode.onnx", [](const fs::path& d) { fs::remove(d / "decode.onnx"); }},
      {"truncated_graph", "decode.onnx",
       [](const fs::path& d) {
         change(d / "decode.onnx", [](std::string& t) { t.resize(t.size() / 2); });
       }},
      {"flipped_bit_of_a_graph", "decode.onnx",
       [](const fs::path& d) { flip(d / "decode.onnx", 700); }},
      {"a_folder_in_place_of_a_graph", "decode.onnx",
       [](const fs::path& d) {
         fs::remove(d / "decode.onnx");
         fs::create_directory(d / "decode.onnx");
       }},
      {"the_other_graph", "decode.onnx",
       [](const fs::path& d) {
         fs::copy_file(d / "prefill.onnx", d / "decode.onnx", fs::copy_options::overwrite_existing);
       }},
      {"missing_second_data_file", "decode.onnx.data",
       [](const fs::path& d) { fs::remove(d / "decode.onnx.data"); }},
      {"changed_config", "config.json",
       [](const fs::path& d) { replace(d / "config.json", "1e-05", "1e-06"); }},
      {"missing_config", "config.json", [](const fs::path& d) { fs::remove(d / "config.json"); }},
      {"changed_dtype_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "float32", "float16"); }},
      {"changed_size_in_export_json", "export.json",
       [](const fs::path& d) {
         replace(d / "export.json", "\"size_bytes\": ", "\"size_bytes\": 1");
       }},
      {"changed_hash_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "\"hash\": \"", "\"hash\": \"x"); }},
      {"exchanged_components_in_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "prefill.onnx\"", "decode.onnx\""); }},
      {"broken_export_json", "export.json",
       [](const fs::path& d) { replace(d / "export.json", "{", "["); }},
  };
  return kFaults;
}

TEST(Verify, finds_each_fault_of_a_file_and_names_it) {
  const TestFolder folder;
  const fs::path clean = export_to(folder, Checkpoint::synthetic(kLlama));
  ASSERT_THAT(wrong_files(clean), ::testing::IsEmpty());
  for (const FileFault& fault : file_faults()) {
    const fs::path damaged = folder / fault.name;
    fs::copy(clean, damaged);
    fault.plant(damaged);
    EXPECT_THAT(wrong_files(damaged), ::testing::Contains(fault.file)) << fault.name;
  }
}

TEST(Verify, finds_a_flip_of_every_byte_of_the_small_files) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder, Checkpoint::synthetic(kLlama));
  const std::string text = read_text(artifact / "config.json");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    folder.write("artifact/config.json", changed);
    EXPECT_THAT(wrong_files(artifact), ::testing::ElementsAre("config.json")) << at;
  }
}

TEST(Verify, finds_a_flip_of_every_byte_of_export_json) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder, Checkpoint::synthetic(kLlama));
  const std::string text = read_text(artifact / "export.json");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    folder.write("artifact/export.json", changed);
    EXPECT_THAT(wrong_files(artifact), ::testing::Contains("export.json")) << at;
  }
}

TEST(Verify, a_directory_without_an_artifact_is_an_error) {
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { exporters::check_files(folder.path()); }).kind(), ErrorKind::kIo);
}

TEST(Verify, of_an_artifact_of_transformers_says_what_cannot_be_checked) {
  const TestFolder folder;
  const fs::path artifact = export_to(folder, Checkpoint::synthetic(kLlama));
  change(artifact / "export.json", [](std::string& text) {
    Json json = parse_json("test", "export.json", text);
    json.erase("tranship");
    for (Json& component : json["components"])
      component["metadata"]["packages"] = {{"transformers", "5.23.0"}};
    text = to_python_json(json);
  });
  size_t unknown = 0;
  for (const FileVerdict& verdict : exporters::check_files(artifact))
    unknown += verdict.kind == FileVerdict::Kind::kUnknown ? 1 : 0;
  EXPECT_EQ(unknown, 4U);  // export.json, two graphs, their weights
  EXPECT_THAT(wrong_files(artifact), ::testing::IsEmpty());
  fs::resize_file(artifact / "prefill.onnx.data", 1000);
  EXPECT_THAT(wrong_files(artifact), ::testing::ElementsAre("prefill.onnx.data"));
  fs::remove(artifact / "prefill.onnx");
  EXPECT_THAT(wrong_files(artifact), ::testing::Contains("prefill.onnx"));
}

class VerifyGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(VerifyGolden, a_clean_artifact_passes) {
  const testing::GoldenCase golden = testing::read_golden(GetParam());
  const Checkpoint checkpoint(
      std::make_shared<const CheckpointData>(testing::golden_checkpoint(golden)));
  const TestFolder folder;
  const OnnxExporter exporter;
  const OnnxConfig config = {.dynamic = true};
  (golden.generation ? exporter.export_for_generation(checkpoint, config)
                     : exporter.export_model(checkpoint, config))
      .save_pretrained(folder.path());
  for (const FileVerdict& verdict : exporters::check_files(folder.path()))
    EXPECT_EQ(verdict.kind, FileVerdict::Kind::kSame) << verdict.file << " " << verdict.text;
  const std::vector<OutputVerdict> outputs =
      against(folder.path(), checkpoint,
              {.batch = golden.runs.at(0).at(0).inputs.at("input_ids").shape().at(0)});
  EXPECT_FALSE(outputs.empty());
  for (const OutputVerdict& output : outputs) {
    EXPECT_TRUE(output.is_same()) << output.component << " " << output.output << ": "
                                  << output.largest_difference << " > " << output.tolerance;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, VerifyGolden, ::testing::ValuesIn(testing::golden_cases()),
                         [](const auto& golden) { return golden.param; });

struct NumberFault {
  std::string name;
  std::function<void(Json&)> plant;  // into the configuration that is exported
};

/// An artifact of a configuration with a fault, beside the checkpoint with the right one.
size_t wrong_outputs(const std::string& name, const std::function<void(Json&)>& plant) {
  const TestFolder folder;
  Json config = parse_json("test", "config", kQwen2);
  plant(config);
  export_to(folder, Checkpoint::synthetic(config.dump()), name);
  return num_wrong(against(folder / name, Checkpoint::synthetic(kQwen2)));
}

TEST(Verify, against_its_checkpoint_finds_each_fault_of_the_numbers) {
  EXPECT_EQ(wrong_outputs("clean", [](Json&) {}), 0U);
  const std::vector<NumberFault> faults = {
      {"wrong_epsilon", [](Json& c) { c["rms_norm_eps"] = 1e-3; }},
      {"wrong_rope_theta", [](Json& c) { c["rope_theta"] = 500000.0; }},
      {"wrong_activation", [](Json& c) { c["hidden_act"] = "gelu"; }},
      {"tied_output", [](Json& c) { c["tie_word_embeddings"] = true; }},
      {"missing_window",
       [](Json& c) {
         c["use_sliding_window"] = true;
         c["sliding_window"] = 2;
         c["max_window_layers"] = 0;
       }},
  };
  for (const NumberFault& fault : faults)
    EXPECT_GT(wrong_outputs(fault.name, fault.plant), 0U) << fault.name;
}

/// A weight's numbers in prefill.onnx.data, found by their bytes.
class Weights {
 public:
  Weights(std::string& data, const Checkpoint& checkpoint) : data_(data), checkpoint_(checkpoint) {}

  std::vector<float> read(const std::string& name, const std::vector<int64_t>& shape) const {
    const Tensor tensor = read_all(*checkpoint_.data().find_tensor(name, shape));
    return {tensor.f32().begin(), tensor.f32().end()};
  }
  size_t place(const std::vector<float>& numbers) const {
    const std::string bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    const size_t at = data_.find(bytes);
    EXPECT_NE(at, data_.npos);
    return at;
  }
  void write(size_t at, const std::vector<float>& numbers) {
    std::memcpy(data_.data() + at, numbers.data(), numbers.size() * 4);
  }
  void multiply(const std::string& name, const std::vector<int64_t>& shape, float factor) {
    std::vector<float> numbers = read(name, shape);
    const size_t at = place(numbers);
    for (float& number : numbers) number *= factor;
    write(at, numbers);
  }
  void swap(const std::string& a, const std::string& b, const std::vector<int64_t>& shape) {
    const std::vector<float> first = read(a, shape), second = read(b, shape);
    const size_t at_first = place(first), at_second = place(second);
    write(at_first, second);
    write(at_second, first);
  }

 private:
  std::string& data_;
  const Checkpoint& checkpoint_;
};

struct WeightFault {
  std::string name;
  std::function<void(Weights&)> plant;
};

TEST(Verify, against_its_checkpoint_finds_each_fault_of_the_weights_without_their_hash) {
  const std::string layer = "model.layers.0.", next = "model.layers.1.";
  const std::vector<WeightFault> faults = {
      {"swapped_layers",
       [&](Weights& w) {
         w.swap(layer + "self_attn.q_proj.weight", next + "self_attn.q_proj.weight", {32, 32});
       }},
      {"swapped_gate_and_up",
       [&](Weights& w) {
         w.swap(layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight", {48, 32});
       }},
      {"swapped_keys_and_values",
       [&](Weights& w) {
         w.swap(layer + "self_attn.k_proj.weight", layer + "self_attn.v_proj.weight", {16, 32});
       }},
      {"dropped_bias", [&](Weights& w) { w.multiply(layer + "self_attn.q_proj.bias", {32}, 0); }},
      {"wrong_scale",
       [&](Weights& w) { w.multiply(layer + "self_attn.q_proj.weight", {32, 32}, 2); }},
      {"norm_of_ones_off_by_a_thousandth",
       [&](Weights& w) { w.multiply("model.norm.weight", {32}, 1.001F); }},
  };
  const Checkpoint checkpoint = Checkpoint::synthetic(kQwen2);
  const TestFolder folder;
  const fs::path artifact = export_to(folder, checkpoint);
  const std::string clean = read_text(artifact / "prefill.onnx.data");
  for (const WeightFault& fault : faults) {
    std::string data = clean;
    Weights weights(data, checkpoint);
    fault.plant(weights);
    folder.write("artifact/prefill.onnx.data", data);
    EXPECT_GT(num_wrong(against(artifact, checkpoint)), 0U) << fault.name;
    EXPECT_THAT(wrong_files(artifact), ::testing::ElementsAre("prefill.onnx.data")) << fault.name;
  }
}

}  // namespace
}  // namespace tranship
