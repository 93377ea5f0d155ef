// What `export --dry-run` and `inspect` say is what is on disk, to the byte: for every tiny model,
// task, dtype and place of the weights, for each option that changes a size, and for the two real
// checkpoints.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "checkpoint/safetensors.h"
#include "cli/cli.h"
#include "models/families.h"
#include "tasks/task.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
/// File name -> bytes.
using Sizes = std::map<std::string, uint64_t>;

/// Runs the command line in this process. -> what it prints to standard output.
std::string output_of(Words words, const TestFolder& folder) {
  words.insert(words.begin(), "tranship");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const fs::path file = folder / "standard_output";
  std::fflush(stdout);
  const int terminal = ::dup(STDOUT_FILENO);
  const int captured = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(captured, STDOUT_FILENO);
  const int code = cli::run(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  ::dup2(terminal, STDOUT_FILENO);
  ::close(terminal);
  ::close(captured);
  EXPECT_EQ(code, 0) << testing::PrintToString(words);
  return read_text(file);
}

Json json_of(Words words, const TestFolder& folder) {
  words.emplace_back("--json");
  return parse_json("test", "output", output_of(words, folder));
}

Sizes sizes_in(const fs::path& directory) {
  Sizes sizes;
  if (!fs::exists(directory)) return sizes;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) sizes[entry.path().filename().string()] = entry.file_size();
  }
  return sizes;
}

Sizes sizes_of(const Json& files) {
  Sizes sizes;
  for (const Json& file : files) sizes[file["name"].get<std::string>()] = file["bytes"];
  return sizes;
}

uint64_t sum(const Sizes& sizes) {
  uint64_t total = 0;
  for (const auto& [name, bytes] : sizes) total += bytes;
  return total;
}

uint64_t num_elements(const Json& tensor) {
  uint64_t product = 1;
  for (const Json& size : tensor["shape"]) product *= size.get<uint64_t>();
  return product;
}

uint64_t element_bytes(const Json& tensor) {
  return size_bytes(*find_dtype(tensor["dtype"].get<std::string>()));
}

/// By how much one token of one sequence makes the cache grow, read off the artifact's outputs.
uint64_t cache_bytes_per_token(const Json& component) {
  uint64_t total = 0;
  for (const Json& port : component["outputs"]) {
    const auto port_name = port["name"].get<std::string>();
    // What an encoder said, and states like Mamba's, do not grow.
    const bool grows = port_name.find(".layers.") != std::string::npos &&
                       port_name.find("cross_attention_cache") == std::string::npos &&
                       port["shape"].size() == 4;
    if (!grows) continue;
    uint64_t bytes = element_bytes(port);
    for (size_t axis : {1u, 3u}) bytes *= port["shape"][axis].get<uint64_t>();  // [B, H, S, D]
    total += bytes;
  }
  return total;
}

/// The numbers of a program's weights against those of the file they lie in: an .onnx file's data
/// file, or the .pt2 itself.
void expect_weights_fit(const Json& component, const Sizes& on_disk) {
  Sizes used;  // bytes by data file, each weight at a multiple of 64
  for (const Json& weight : component["weights"]) {
    const uint64_t bytes = weight["bytes"];
    EXPECT_EQ(bytes, num_elements(weight) * element_bytes(weight)) << weight.dump();
    const Json& file = weight.contains("file") ? weight["file"] : component["file"];
    used[file.get<std::string>()] += (bytes + 63) / 64 * 64;
  }
  const auto program = component["file"].get<std::string>();
  if (program.ends_with(".pt2")) {
    EXPECT_LE(used.at(program), on_disk.at(program));
    return;
  }
  for (const Json& file : component["data_files"]) {
    const auto name = file["name"].get<std::string>();
    EXPECT_EQ(file["bytes"], on_disk.at(name)) << name;
    if (name.ends_with(".onnx.data")) {
      EXPECT_LE(used.at(name), on_disk.at(name));
    }
  }
}

/// A checkpoint on disk, and what is known about it from its files alone.
struct OnDisk {
  fs::path path;
  uint64_t num_parameters = 0;
};

/// One export: planned, done, and looked at.
class Export {
 public:
  Export(const OnDisk& checkpoint, Words options, const TestFolder& folder)
      : checkpoint_(checkpoint), options_(std::move(options)), folder_(folder) {
    const bool beside = std::ranges::find(options_, "reference") != options_.end();
    target_ = beside ? checkpoint.path : folder / "target";
  }

  void check() {
    const Sizes before = sizes_in(target_);
    const Json planned = json_of(words({"--dry-run"}), folder_);
    EXPECT_EQ(sizes_in(target_), before) << "a dry run writes nothing";
    const Json done = json_of(words({}), folder_);
    const Sizes after = sizes_in(target_);
    Sizes written = after;
    for (const auto& [name, bytes] : before) written.erase(name);
    EXPECT_EQ(sizes_of(planned["files"]), written);
    EXPECT_EQ(sizes_of(done["files"]), written);
    EXPECT_EQ(planned["written_bytes"], sum(written));
    EXPECT_EQ(done["written_bytes"], sum(written));
    for (const auto& [name, bytes] : before) EXPECT_EQ(after.at(name), bytes) << name;
    check_artifact(planned, after);
    for (const auto& [name, bytes] : written) fs::remove(target_ / name);
  }

 private:
  Words words(const Words& more) const {
    Words out = {"export", checkpoint_.path.string(), "-o", target_.string()};
    if (std::ranges::find(options_, "--to") == options_.end())
      out.insert(out.end(), {"--to", "onnx"});
    out.insert(out.end(), options_.begin(), options_.end());
    out.insert(out.end(), more.begin(), more.end());
    out.emplace_back("--quiet");
    return out;
  }

  void check_artifact(const Json& planned, const Sizes& on_disk) {
    const Json report = json_of({"inspect", target_.string()}, folder_);
    ASSERT_EQ(report["kind"], "artifact");
    EXPECT_EQ(sizes_of(report["files"]), on_disk);
    for (const Json& component : report["components"]) expect_weights_fit(component, on_disk);
    EXPECT_EQ(planned["parameters"], checkpoint_.num_parameters);
    const uint64_t element = size_bytes(*find_dtype(planned["dtype"].get<std::string>()));
    EXPECT_EQ(planned["weight_bytes"], checkpoint_.num_parameters * element);
    const Json& last = report["components"].back();
    EXPECT_EQ(planned["state_bytes_per_token"], cache_bytes_per_token(last));
  }

  const OnDisk& checkpoint_;
  Words options_;
  const TestFolder& folder_;
  fs::path target_;
};

void expect_inspect_is_right(const OnDisk& checkpoint, const TestFolder& folder) {
  const Json report = json_of({"inspect", checkpoint.path.string()}, folder);
  EXPECT_FALSE(report.contains("problem")) << report["problem"];
  EXPECT_EQ(report["parameters"], checkpoint.num_parameters);
  uint64_t bytes = 0;
  for (const Json& tensor : report["tensors"]) bytes += tensor["bytes"].get<uint64_t>();
  const fs::path weights = checkpoint.path / "model.safetensors";
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, read_text(weights, 1u << 30).data(), sizeof(header_bytes));
  EXPECT_EQ(bytes, fs::file_size(weights) - 8 - header_bytes);
}

// ---- tiny models

struct TinyCase {
  const models::Family* family;
  const nn::Architecture* architecture;
};

std::vector<TinyCase> tiny_cases() {
  std::vector<TinyCase> cases;
  for (const models::Family* family : models::families()) {
    for (const nn::Architecture& a : family->architectures) cases.push_back({family, &a});
  }
  return cases;
}

class TinySizes : public testing::TestWithParam<TinyCase> {
 protected:
  /// Hash weights of the tiny configuration, and the small files that go along.
  OnDisk write_checkpoint(DType dtype) const {
    const auto& [family, architecture] = GetParam();
    const std::string config =
        Config::parse("tiny", family->tiny_config)
            .with("architectures", fmt::format(R"(["{}"])", architecture->name))
            .with("dtype", fmt::format("\"{}\"", torch_name(dtype)))
            .to_json();
    const tasks::TaskProgram made =
        tasks::forward(Checkpoint::synthetic(config).data(), {.dtype = dtype});
    OnDisk out{folder_ / fmt::format("checkpoint_{}", name(dtype))};
    NamedTensors tensors;
    for (const auto& [name, source] : made.program.parameters) {
      out.num_parameters += static_cast<uint64_t>(source->num_elements());
      tensors.emplace(name, read_all(*source));
    }
    const std::string at = out.path.filename().string() + "/";
    folder_.write(at + "config.json", config);
    folder_.write(at + "generation_config.json", R"({"eos_token_id": 2, "temperature": 0.5})");
    folder_.write(at + "tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    folder_.write(at + "special_tokens_map.json", "{}");
    write_safetensors(out.path / "model.safetensors", tensors);
    return out;
  }

  /// Not every model has an axis "sequence", or takes position_ids, or fits into f16.
  bool takes(const Words& options) const {
    const nn::Family& family = *GetParam().family;
    const std::string all = testing::PrintToString(options);
    if (all.find("f16") != std::string::npos && all.find("bf16") == std::string::npos)
      return family.model_type != "t5";
    if (all.find("sequence") != std::string::npos)
      return family.model_type != "vit" && family.model_type != "whisper";
    return all.find("position_ids") == std::string::npos ||
           std::ranges::count(family.optional_inputs, "position_ids") > 0;
  }

  std::vector<std::string> tasks() const {
    return GetParam().architecture->generates ? std::vector<std::string>{"forward", "generation"}
                                              : std::vector<std::string>{"forward"};
  }

  TestFolder folder_;
};

TEST_P(TinySizes, AreAsPlannedForEachTaskDtypeAndPlaceOfTheWeights) {
  for (const DType source : {DType::kF32, DType::kBF16}) {
    const OnDisk checkpoint = write_checkpoint(source);
    expect_inspect_is_right(checkpoint, folder_);
    for (const std::string& task : tasks()) {
      for (const Words& options :
           {Words{}, Words{"--dtype", "f16"}, Words{"--dtype", "bf16"}, Words{"--no-external-data"},
            Words{"--no-external-data", "--dtype", "bf16"}, Words{"--weights", "reference"}}) {
        const bool depends_on_source = options.empty() || options[0] == "--weights";
        if (!takes(options) || (source == DType::kBF16 && !depends_on_source)) continue;
        SCOPED_TRACE(fmt::format("{} {} {}", name(source), task, testing::PrintToString(options)));
        Words all = {"--task", task};
        all.insert(all.end(), options.begin(), options.end());
        Export(checkpoint, all, folder_).check();
      }
    }
  }
}

TEST_P(TinySizes, AreAsPlannedWithEachOptionThatChangesAGraph) {
  const OnDisk checkpoint = write_checkpoint(DType::kF32);
  for (const std::string& task : tasks()) {
    for (const Words& options :
         {Words{"--opset", "18"}, Words{"--opset", "24"}, Words{"--static", "batch=1,sequence=8"},
          Words{"--dim", "batch=1:7", "--dim", "sequence=2:16"}, Words{"--cache-name", "cache"},
          Words{"--graph-inputs", "attention_mask,position_ids"}, Words{"--ort-fusions", "cpu"},
          Words{"--to", "dynamo"}, Words{"--to", "dynamo", "--dtype", "f16"}}) {
      if (!takes(options) || (task == "generation" && options[0] == "--static")) continue;
      SCOPED_TRACE(fmt::format("{} {}", task, testing::PrintToString(options)));
      Words all = {"--task", task};
      all.insert(all.end(), options.begin(), options.end());
      Export(checkpoint, all, folder_).check();
    }
  }
}

TEST_P(TinySizes, AreAsPlannedWithEachFormOfGeneration) {
  if (!GetParam().architecture->generates) return;
  const OnDisk checkpoint = write_checkpoint(DType::kF32);
  for (const Words& format : {Words{"--to", "onnx"}, Words{"--to", "onnx", "--ort-fusions", "cpu"},
                              Words{"--to", "dynamo"}}) {
    for (const Words& options :
         {Words{"--multi-token-decode"}, Words{"--last-token-logits"},
          Words{"--multi-token-decode", "--components", "decode"},
          Words{"--cache-implementation", "static", "--max-cache-len", "16"}}) {
      const bool is_static = options[0] == "--cache-implementation";
      if (is_static && !GetParam().family->state_cache.empty()) continue;
      SCOPED_TRACE(testing::PrintToString(format) + testing::PrintToString(options));
      Words all = format;
      all.insert(all.end(), options.begin(), options.end());
      Export(checkpoint, all, folder_).check();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TinySizes, testing::ValuesIn(tiny_cases()),
                         [](const auto& c) { return std::string(c.param.architecture->name); });

// ---- real models

std::optional<fs::path> path_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<fs::path>(value);
}

TEST(RealSizes, SmolLm2) {
  const auto path = path_in("TRANSHIP_SMOLLM2");
  if (!path)
    GTEST_SKIP() << "TRANSHIP_SMOLLM2 is not set: the path of SmolLM2-135M-Instruct's .gguf";
  const TestFolder folder;
  const OnDisk checkpoint{*path,
                          134'515'008};  // Transformers: sum(p.numel() for p in model.parameters())
  Export(checkpoint, {}, folder).check();
  const Json report = json_of({"inspect", path->string()}, folder);
  EXPECT_EQ(report["parameters"], checkpoint.num_parameters);
  EXPECT_EQ(report["state_bytes_per_token"], 30 * 2 * 3 * 64 * sizeof(float));
}

TEST(RealSizes, MiniLm) {
  const auto path = path_in("TRANSHIP_MINILM");
  if (!path) GTEST_SKIP() << "TRANSHIP_MINILM is not set: the folder of all-MiniLM-L6-v2";
  const TestFolder folder;
  const OnDisk checkpoint{*path, 22'713'216};
  expect_inspect_is_right(checkpoint, folder);
  Export(checkpoint, {}, folder).check();
  Export(checkpoint, {"--static", "batch=1,sequence=128", "--dtype", "f16"}, folder).check();
}

}  // namespace
}  // namespace tranship
