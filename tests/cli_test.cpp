// The program `tranship` itself, run as a person runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/testing.h"
#include "checkpoint/checkpoint_data.h"
#include "checkpoint/safetensors.h"
#include "ir/text.h"
#include "support/tiny_checkpoint.h"

namespace tranship {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kTinyLlama =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "pad_token_id": 0})";

constexpr std::string_view kLlama405B =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126,
  "num_attention_heads": 128, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0, "torch_dtype": "bfloat16", "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}})";

const fs::path kCorpus = fs::path(TRANSHIP_SOURCE_DIR) / "tests/fuzz/corpus";

struct Result {
  int code = -1;
  std::string out;
  std::string error;
};

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

class CommandLine : public ::testing::Test {
 protected:
  Result run(const std::vector<std::string>& words, const std::string& redirection = "") const {
    std::string command = quoted(TRANSHIP_CLI);
    for (const std::string& word : words) command += " " + quoted(word);
    const std::string out = folder_ / "standard_output";
    const std::string error = folder_ / "standard_error";
    command += " </dev/null >" + quoted(out) + " 2>" + quoted(error) + " " + redirection;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(out), read_text(error)};
  }

  /// What a command prints that must succeed.
  std::string output_of(const std::vector<std::string>& words) const {
    const Result result = run(words);
    EXPECT_EQ(result.code, 0) << ::testing::PrintToString(words) << "\n" << result.error;
    return result.out;
  }
  Json json_of(const std::vector<std::string>& words) const {
    return parse_json("test", "output", output_of(words));
  }

  std::string config(std::string_view text = kTinyLlama) const {
    return folder_.write("model/config.json", text).string();
  }
  std::string path(std::string_view name) const { return (folder_ / name).string(); }

  TestFolder folder_;
};

TEST_F(CommandLine, version_says_which_onnx_runtime_is_found) {
  EXPECT_THAT(output_of({"--version"}),
              AllOf(StartsWith("tranship 0."), HasSubstr("\nONNX Runtime 1."),
                    HasSubstr("CPUExecutionProvider")));
}

TEST_F(CommandLine, an_onnx_runtime_that_cannot_be_used_is_told_with_the_reason) {
  ::setenv("TRANSHIP_ORT_LIBRARY", "/nowhere/libonnxruntime.so", 1);
  const std::string text = output_of({"--version"});
  ::unsetenv("TRANSHIP_ORT_LIBRARY");
  EXPECT_THAT(text,
              AllOf(HasSubstr("ONNX Runtime: none"), HasSubstr("/nowhere/libonnxruntime.so")));
}

TEST_F(CommandLine, list_has_each_class_with_tasks_and_formats) {
  const Json list = json_of({"list", "--json"});
  const auto llama = std::ranges::find_if(
      list, [](const Json& entry) { return entry["architecture"] == "LlamaForCausalLM"; });
  ASSERT_NE(llama, list.end());
  EXPECT_EQ((*llama)["model_type"], "llama");
  EXPECT_EQ((*llama)["tasks"], Json({"forward", "generation"}));
  EXPECT_EQ((*llama)["formats"], Json({"onnx", "dynamo"}));
  EXPECT_THAT(output_of({"list"}),
              AllOf(HasSubstr("BertForMaskedLM"), HasSubstr("forward, generation")));
}

TEST_F(CommandLine, each_command_has_a_manual_with_examples) {
  for (const char* command :
       {"export", "run", "generate", "inspect", "verify", "list", "completion"}) {
    const std::string page = output_of({command, "--help"});
    EXPECT_THAT(page, AllOf(StartsWith(std::string("tranship ") + command + ": "),
                            HasSubstr("\nExamples:\n"), HasSubstr("--help")));
    EXPECT_EQ(output_of({"help", command}), page);
    EXPECT_THAT(output_of({"--help"}), HasSubstr(std::string("  ") + command + " "));
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST_F(CommandLine, wrong_usage_is_code_2_and_prints_no_result) {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"frobnicate"},
      {"export"},
      {"export", config()},
      {"export", config(), "--to", "tarball", "-o", path("out")},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--dtype", "f31"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--static", "batch"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--dim", "sequence=9:1"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--dynamic", "--static", "batch=1"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--static", "batch=1000000000000"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--dim", "sequence=1:99999999999"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--opset", "5"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--opset", "x"},
      {"export", config(), "--to", "onnx", "-o", path("out"), "--cache-name", "a b"},
      {"run", path("out")},
      {"run", path("out"), "--input", "x=[1, [2]]"},
      {"run", path("out"), "--input", "x=1", "--threads", "100000"},
      {"run", path("out"), "--input", "x=1", "--threads", "-1"},
      {"run", path("out"), "--input", "x=1", "--threads", "1.5"},
      {"run", path("out"), "--input", "x=1", "--device", "tpu"},
      {"generate", path("out"), "--prompt", "x", "--temperature", "0"},
      {"generate", path("out"), "--prompt", "x", "--temperature", "nan"},
      {"generate", path("out"), "--prompt", "x", "--top-p", "1.1"},
      {"generate", path("out"), "--prompt", "x", "--top-k", "-1"},
      {"generate", path("out"), "--prompt", "x", "--max-new-tokens", "0"},
      {"generate", path("out"), "--prompt", "x", "--max-new-tokens", "1000000000000"},
      {"generate", path("out"), "--prompt", "x", "--repetition-penalty", "-1"},
      {"generate", path("out"), "--prompt", "x", "--stop", ""},
      {"generate", path("out"), "--prompt", "x", "--seed", "-1"},
      {"generate", path("out"), "--prompt", "x", "--greedy", "--temperature", "2"},
      {"generate", path("out"), "--prompt", "x", "--system", "y"},
      {"inspect"},
      {"inspect", "a", "b"},
      {"inspect", config(), "--component", "prefill"},
      {"verify"},
      {"verify", path("out"), "--layers"},
      {"verify", path("out"), "--against", config(), "--batch", "0"},
      {"verify", path("out"), "--against", config(), "--tokens", "four"},
      {"completion", "tcsh"},
  };
  for (const auto& words : lines) {
    const Result result = run(words);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(words);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(words);
    EXPECT_THAT(result.error, HasSubstr("Usage: tranship")) << ::testing::PrintToString(words);
  }
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(CommandLine, a_mistyped_word_is_answered_with_the_nearest) {
  EXPECT_THAT(run({"exprot"}).error, HasSubstr("did you mean 'export'?"));
  EXPECT_THAT(run({"export", "--dtyp", "f16"}).error, HasSubstr("did you mean '--dtype'?"));
  EXPECT_THAT(run({"inspect", config(), "--task", "generaton"}).error,
              HasSubstr("did you mean 'generation'?"));
}

TEST_F(CommandLine, an_error_is_code_1_and_one_paragraph_that_names_the_place) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"inspect", "/nowhere/at all"},
           {"export", "/nowhere/at all", "--to", "onnx", "-o", path("out")},
           {"run", "/nowhere/at all", "--input", "x=1"},
           {"verify", "/nowhere/at all"},
           {"generate", "/nowhere/at all", "--prompt", "x"}}) {
    const Result result = run(words);
    EXPECT_EQ(result.code, 1) << result.error;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.error, AllOf(StartsWith("error: "), HasSubstr("/nowhere/at all")));
    EXPECT_EQ(std::ranges::count(result.error, '\n'), 1) << result.error;
  }
}

TEST_F(CommandLine, a_full_disk_behind_standard_output_is_an_error) {
  const Result result = run({"list"}, ">/dev/full");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, HasSubstr("standard output"));
}

TEST_F(CommandLine, without_a_terminal_there_are_no_colors_and_no_progress) {
  const Result result = run({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out, ContainsRegex("Wrote .* to .*out in "));
}

TEST_F(CommandLine, a_config_gives_its_graphs_as_text_that_can_be_read_back) {
  const std::string all = output_of({"inspect", config(), "--graph"});
  EXPECT_THAT(all, AllOf(StartsWith("graph prefill\n"), HasSubstr("\ngraph decode\n")));
  const std::string decode = output_of({"inspect", config(), "--graph", "--component", "decode"});
  EXPECT_EQ(ir::print(*ir::parse(decode)), decode);
  EXPECT_THAT(output_of({"inspect", config(), "--graph", "--task", "forward"}),
              StartsWith("graph model\n"));
  EXPECT_EQ(run({"inspect", config(), "--graph", "--component", "encoder"}).code, 2);
}

TEST_F(CommandLine, a_graph_is_drawn_as_svg_and_as_dot) {
  const std::string model = config();
  EXPECT_EQ(output_of({"inspect", model, "--component", "decode", "--graph", path("g.svg")}), "");
  EXPECT_THAT(read_text(path("g.svg")),
              AllOf(StartsWith("<svg "), HasSubstr("model.layers.0 ... 1"), HasSubstr("&#215; 2"),
                    HasSubstr("keys cache"), HasSubstr("q_proj"), HasSubstr("rotary table")));
  EXPECT_EQ(output_of({"inspect", model, "--task", "forward", "--graph=" + path("g.dot")}), "");
  EXPECT_THAT(read_text(path("g.dot")),
              AllOf(StartsWith("digraph \"model\" {"), HasSubstr("model.layers.0 ... 1 (x2)")));
  EXPECT_THAT(output_of({"inspect", "--graph", model}), StartsWith("graph prefill\n"));
}

TEST_F(CommandLine, a_graph_that_cannot_be_drawn_is_a_usage_error_and_no_file) {
  const std::string model = config(), file = path("g.svg");
  EXPECT_THAT(run({"inspect", model, "--graph", file}).error,
              AllOf(HasSubstr("--component"), HasSubstr("decode")));
  EXPECT_EQ(run({"inspect", model, "--graph", file, "--component", "encoder"}).code, 2);
  EXPECT_THAT(run({"inspect", model, "--graph", path("g.png")}).error, HasSubstr(".svg or .dot"));
  EXPECT_EQ(run({"inspect", "--graph", file}).code, 2);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(CommandLine, a_model_of_405_billion_parameters_is_drawn_in_less_than_a_second) {
  const std::string model = config(kLlama405B), file = path("g.svg");
  const auto used_seconds = [] {
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return double(usage.ru_utime.tv_sec) + double(usage.ru_utime.tv_usec) / 1e6;
  };
  const double before = used_seconds();
  output_of({"inspect", model, "--component", "decode", "--graph", file});
  EXPECT_LT(used_seconds() - before, 1.0);
  EXPECT_THAT(read_text(file), AllOf(HasSubstr("model.layers.0 ... 125"), HasSubstr("&#215; 126"),
                                     HasSubstr("405,853,388,800 parameters, 126 layers")));
}

TEST_F(CommandLine, a_model_of_405_billion_parameters_needs_no_weights_to_be_looked_at) {
  const Json report = json_of({"inspect", config(kLlama405B), "--json"});
  EXPECT_EQ(report["parameters"], 405'853'388'800);
  EXPECT_EQ(report["state_bytes_per_token"], 126 * 2 * 8 * 128 * 2);
  EXPECT_THAT(output_of({"inspect", config(kLlama405B), "--graph"}),
              HasSubstr("model.layers.125.mlp"));
}

TEST_F(CommandLine, a_model_without_a_definition_can_still_be_looked_at) {
  const std::string file =
      folder_.write("config.json", R"({"model_type": "unheard_of", "hidden_size": 7})").string();
  const Json report = json_of({"inspect", file, "--json"});
  EXPECT_EQ(report["config"]["hidden_size"], 7);
  EXPECT_THAT(report["problem"].get<std::string>(), HasSubstr("unheard_of"));
  EXPECT_THAT(output_of({"inspect", file}), HasSubstr("Cannot be exported"));
}

TEST_F(CommandLine, export_writes_what_it_says_and_a_dry_run_says_the_same) {
  const std::vector<std::string> words = {"export", config(), "--synthetic", "--to",
                                          "onnx",   "-o",     path("out"),   "--json"};
  std::vector<std::string> dry = words;
  dry.emplace_back("--dry-run");
  const Json planned = json_of(dry);
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_EQ(planned["parameters"], 21664);
  EXPECT_EQ(planned["state_bytes_per_token"], 256);
  const Json done = json_of(words);
  EXPECT_EQ(done["task"], "generation");
  EXPECT_EQ(done["files"], planned["files"]);
  size_t num_files = 0;
  for (const auto& entry : fs::directory_iterator(path("out")))
    num_files += entry.is_regular_file() ? 1U : 0U;
  EXPECT_EQ(num_files, done["files"].size());
  for (const Json& file : done["files"]) {
    EXPECT_EQ(fs::file_size(folder_ / "out" / file["name"].get<std::string>()), file["bytes"])
        << file.dump();
  }
}

TEST_F(CommandLine, an_export_to_pytorch_writes_what_a_dry_run_says) {
  for (const char* format : {"dynamo", "pt2"}) {
    const std::vector<std::string> words = {"export", config(), "--synthetic", "--to",
                                            format,   "-o",     path(format),  "--json"};
    std::vector<std::string> dry = words;
    dry.emplace_back("--dry-run");
    const Json planned = json_of(dry), done = json_of(words);
    EXPECT_EQ(done["export_format"], "dynamo");
    EXPECT_EQ(done["files"], planned["files"]);
    for (const Json& file : done["files"]) {
      EXPECT_EQ(fs::file_size(folder_ / format / file["name"].get<std::string>()), file["bytes"])
          << file.dump();
    }
    EXPECT_TRUE(fs::exists(folder_ / format / "prefill.pt2"));
    EXPECT_TRUE(fs::exists(folder_ / format / "decode.pt2"));
  }
}

TEST_F(CommandLine, what_only_onnx_has_is_refused_for_pytorch) {
  const Result result = run({"export", config(), "--synthetic", "--to", "dynamo", "-o", path("out"),
                             "--opset", "20", "--no-external-data"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("'--opset', '--no-external-data'"));
}

TEST_F(CommandLine, an_artifact_runs_on_inputs_of_the_line_and_of_files) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("forward"), "--task",
             "forward"});
  output_of({"run", path("forward"), "--input", "input_ids=[[5, 6, 7]]", "--outputs",
             path("a.safetensors")});
  const std::vector<int64_t> ids = {5, 6, 7};
  write_safetensors(path("ids.safetensors"), {{"input_ids", Tensor::of(ids, {1, 3})}});
  output_of({"run", path("forward"), "--inputs", path("ids.safetensors"), "--outputs",
             path("b.safetensors")});
  output_of({"run", path("forward"), "--input", "input_ids=@" + path("ids.safetensors"),
             "--outputs", path("c.safetensors")});
  EXPECT_EQ(read_text(path("a.safetensors")), read_text(path("b.safetensors")));
  EXPECT_EQ(read_text(path("a.safetensors")), read_text(path("c.safetensors")));
  const NamedTensors outputs = read_safetensors(path("a.safetensors"));
  ASSERT_TRUE(outputs.contains("logits"));
  EXPECT_THAT(outputs.at("logits").shape(), ElementsAre(1, 3, 96));
  EXPECT_THAT(output_of({"run", path("forward"), "--input", "input_ids=[[5, 6, 7]]"}),
              StartsWith("logits f32[1, 3, 96]\n"));
}

TEST_F(CommandLine, one_of_several_components_must_be_chosen) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  const Result result = run({"run", path("out"), "--input", "input_ids=[[5]]"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("'prefill', 'decode'"));
  EXPECT_THAT(
      output_of({"run", path("out"), "--component", "prefill", "--input", "input_ids=[[5]]"}),
      HasSubstr("logits f32[1, 1, 96]"));
}

TEST_F(CommandLine, static_sizes_and_ranges_reach_the_graph) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out"), "--task",
             "forward", "--static", "batch=1,sequence=8"});
  const Json report = json_of({"inspect", path("out"), "--json"});
  EXPECT_EQ(report["components"][0]["inputs"][0]["shape"], Json({1, 8}));
  EXPECT_EQ(run({"run", path("out"), "--input", "input_ids=[[5]]"}).code, 1) << "another length";
}

TEST_F(CommandLine, an_artifact_and_its_onnx_files_can_be_looked_at) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  const Json report = json_of({"inspect", path("out"), "--json"});
  EXPECT_EQ(report["kind"], "artifact");
  ASSERT_EQ(report["components"].size(), 2U);
  EXPECT_EQ(report["components"][0]["name"], "prefill");
  EXPECT_EQ(report["components"][0]["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(report["components"][1]["inputs"][0]["name"], "input_ids");
  const std::string text = output_of({"inspect", path("out"), "--component", "decode"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("decode: LlamaForCausalLM"),
                    HasSubstr("input.past_key_values.layers.*.keys"), Not(HasSubstr("prefill:"))));

  const Json onnx = json_of({"inspect", path("out/decode.onnx"), "--json"});
  EXPECT_EQ(onnx["nodes"], report["components"][1]["nodes"]);
  EXPECT_EQ(onnx["data_files"][0]["name"], "prefill.onnx.data");
  EXPECT_EQ(onnx["data_files"][0]["present"], true);
  EXPECT_GT(onnx["operators"]["Mul"], 0);
  fs::remove(path("out/prefill.onnx.data"));
  EXPECT_THAT(output_of({"inspect", path("out/decode.onnx")}),
              HasSubstr("prefill.onnx.data (which is not there)"));
}

TEST_F(CommandLine, a_json_file_that_is_no_config_is_told_what_it_is) {
  for (const auto& [text, hint] : std::vector<std::pair<std::string, std::string>>{
           {R"({"weight_map": {}})", "the index of a sharded checkpoint"},
           {R"({"export_format": "onnx"})", "export.json: give its directory"},
           {R"({"model": {}, "added_tokens": []})", "it is a tokenizer"},
           {R"({"a": 1})", "expected a model's config.json"}}) {
    const Result result = run({"inspect", folder_.write("x.json", text).string()});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.error, AllOf(HasSubstr("x.json"), HasSubstr(hint)));
  }
}

TEST_F(CommandLine, an_export_that_is_not_whole_is_told_as_one) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  fs::remove(path("out/export.json"));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"inspect", path("out")},
                                             {"run", path("out"), "--input", "x=1"},
                                             {"verify", path("out")},
                                             {"generate", path("out"), "--prompt", "x"}}) {
    const Result result = run(words);
    EXPECT_EQ(result.code, 1) << words.front();
    EXPECT_THAT(result.error, HasSubstr("holds an export that is not whole")) << words.front();
  }
}

TEST_F(CommandLine, a_conversation_goes_line_by_line_and_reads_only_what_is_new) {
  const fs::path tokenizer = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/tokenizer/bytelevel";
  Json model = Json::parse(kTinyLlama);
  model["vocab_size"] = 400;
  model["max_position_embeddings"] = 4096;
  output_of({"export", config(model.dump()), "--synthetic", "--to", "onnx", "-o", path("out"),
             "--multi-token-decode"});
  for (const auto& file : fs::directory_iterator(tokenizer))
    fs::copy(file.path(), path("out"), fs::copy_options::skip_existing);
  const std::string said =
      folder_.write("said", "The quick\nbrown \\\nfox\n/clear\nThe quick\n/bye\nno").string();
  const std::vector<std::string> words = {"generate", path("out"),        "--interactive",
                                          "--greedy", "--max-new-tokens", "8",
                                          "--system", "Be brief."};
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const Result result = run(with_json, "<" + quoted(said));
  ASSERT_EQ(result.code, 0) << result.error;
  std::vector<Json> answers;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    answers.push_back(parse_json("test", "line", line));
  ASSERT_EQ(answers.size(), 3U);
  const auto cached = [&](size_t i) { return answers[i]["stats"]["cached_tokens"].get<int64_t>(); };
  const auto length = [](const Json& ids) { return static_cast<int64_t>(ids.size()); };
  EXPECT_EQ(cached(0), 0);
  EXPECT_GE(cached(1), length(answers[0]["prompt_ids"])) << "words may be cut another way";
  EXPECT_LT(cached(1), length(answers[1]["prompt_ids"]));
  EXPECT_EQ(answers[2]["prompt_ids"], answers[0]["prompt_ids"]) << "forgotten";
  EXPECT_EQ(answers[2]["new_ids"], answers[0]["new_ids"]);
  EXPECT_GT(answers[0]["stats"]["runtime_seconds"].get<double>(), 0);
  EXPECT_GT(answers[0]["stats"]["cache_bytes"].get<int64_t>(), 0);

  std::vector<std::string> with_stats = words;
  with_stats.insert(with_stats.end(), {"--stats", "--no-memory-arena", "--no-memory-pattern",
                                       "--session-option", "session.disable_prepacking=1",
                                       "--session-option=session.intra_op.allow_spinning=0"});
  const Result text = run(with_stats, "<" + quoted(said));
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_EQ(std::ranges::count(text.out, '\n'), 3) << "only the text";
  EXPECT_THAT(text.error, AllOf(HasSubstr(" cached)"), HasSubstr("tokens/s"), HasSubstr("loop"),
                                HasSubstr("anonymous"), HasSubstr("caches")));
  EXPECT_EQ(run({"generate", path("out"), "--prompt", "x", "--session-option", "nothing"}).code, 2);
}

TEST_F(CommandLine, a_directory_with_a_gguf_shows_what_the_file_shows) {
  const std::string file =
      folder_.write("one/llama.gguf", read_text(kCorpus / "gguf/llama.gguf")).string();
  Json of_file = json_of({"inspect", file, "--json"});
  Json of_directory = json_of({"inspect", path("one"), "--json"});
  EXPECT_EQ(of_file["kind"], "gguf");
  for (const char* key : {"kind", "path", "tensors", "config", "dtype"})
    EXPECT_EQ(of_directory[key], of_file[key]) << key;
}

TEST_F(CommandLine, a_range_of_the_cache_may_begin_at_0_and_ranges_hold_when_it_runs) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out"), "--dim",
             "past=0:16", "--dim", "sequence=1:4"});
  output_of({"run", path("out"), "--component", "prefill", "--input", "input_ids=[[1, 2, 3, 4]]"});
  const Result result =
      run({"run", path("out"), "--component", "prefill", "--input", "input_ids=[[1, 2, 3, 4, 5]]"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, HasSubstr("'sequence' is 5, outside of the range"));
}

TEST_F(CommandLine, an_export_that_refers_to_its_weights_counts_what_it_writes) {
  NamedTensors weights;
  const Json report = json_of({"inspect", config(), "--json"});
  for (const Json& tensor : report["tensors"]) {
    const std::string name = tensor["name"].get<std::string>();
    const auto shape = tensor["shape"].get<std::vector<int64_t>>();
    weights.emplace(name, read_all(*hash_source(name, DType::kF32, shape)));
  }
  const std::string model = path("model");
  write_safetensors(model + "/model.safetensors", weights);
  folder_.write("model/tokenizer.json", std::string(100000, ' ') + "{}");
  const Json done = json_of({"export", model, "--to", "onnx", "-o", model, "--task", "forward",
                             "--weights", "reference", "--json"});
  uint64_t written = 0;
  for (const char* name : {"model.onnx", "model.onnx.data", "export.json"})
    written += fs::file_size(model + "/" + name);
  EXPECT_EQ(done["written_bytes"], written);
  EXPECT_GT(done["bytes"], written + 100000);
  EXPECT_EQ(done["tokenizer"], true);
  const Result elsewhere = run({"export", model, "--to", "onnx", "-o", path("elsewhere"), "--task",
                                "forward", "--weights", "reference"});
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_FALSE(fs::exists(path("elsewhere")));
}

TEST_F(CommandLine, verify_of_a_whole_artifact_is_code_0_and_names_each_file) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  const std::string text = output_of({"verify", path("out")});
  for (const auto& entry : fs::directory_iterator(path("out")))
    EXPECT_THAT(text, ContainsRegex(entry.path().filename().string() + " +same\n"));
  EXPECT_THAT(text, HasSubstr("\nNo fault found\n"));
  const Json report = json_of({"verify", path("out"), "--json"});
  EXPECT_EQ(report["faults"], 0);
  EXPECT_EQ(report["files"].size(), 6U);
  EXPECT_EQ(report["files"][0],
            Json({{"name", "export.json"}, {"verdict", "same"}, {"reason", ""}}));
}

TEST_F(CommandLine, verify_of_a_damaged_artifact_is_code_1_and_names_each_fault) {
  output_of({"export", config(), "--synthetic", "--to", "onnx", "-o", path("out")});
  fs::remove(path("out/decode.onnx"));
  fs::resize_file(path("out/prefill.onnx.data"), 100);
  const Result result = run({"verify", path("out")});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              AllOf(ContainsRegex("decode\\.onnx +wrong  is missing\n"),
                    ContainsRegex("prefill\\.onnx\\.data +wrong  has 100 bytes, expected 86656\n"),
                    HasSubstr("\nFaults: 2 of them\n")));
  EXPECT_THAT(result.error, AllOf(StartsWith("error: [verify] "), HasSubstr("2 are wrong")));
  const Result json = run({"verify", path("out"), "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(parse_json("test", "output", json.out)["faults"], 2);
}

TEST_F(CommandLine, verify_compares_an_artifact_with_its_checkpoint_layer_by_layer) {
  testing::write_checkpoint(testing::tiny_checkpoint(kTinyLlama), path("model"));
  output_of({"export", path("model"), "--to", "onnx", "-o", path("out")});
  const std::string text = output_of({"verify", path("out"), "--against", path("model")});
  EXPECT_THAT(text, AllOf(ContainsRegex("prefill +logits +[0-9.e-]+ +[0-9.e-]+ +[0-9.e-]+  same\n"),
                          ContainsRegex("decode +output\\.past_key_values\\.layers\\.1\\.values"),
                          HasSubstr("\nNo fault found\n"), Not(HasSubstr("layers.1.mlp"))));
  EXPECT_THAT(output_of({"verify", path("out"), "--against", path("model"), "--layers"}),
              AllOf(ContainsRegex("prefill +model\\.embed_tokens +0\\.00e\\+00"),
                    ContainsRegex("decode +model\\.layers\\.1\\.[a-z_.]+ "), HasSubstr("lm_head")));
  const Json report = json_of(
      {"verify", path("out"), "--against", path("model"), "--layers", "--seed", "7", "--json"});
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["outputs"].size(), 10U);
  EXPECT_EQ(report["modules"].size(), 32U);
  EXPECT_EQ(report["modules"][1]["module"], "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(report["outputs"][0]["verdict"], "same");
}

TEST_F(CommandLine, verify_against_another_model_is_code_1_and_shows_where_it_begins) {
  CheckpointData model = testing::tiny_checkpoint(kTinyLlama);
  testing::write_checkpoint(model, path("model"));
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  model.tensors.at(name) = hash_source("another", DType::kF32, {48, 32});
  testing::write_checkpoint(model, path("other"));
  output_of({"export", path("model"), "--to", "onnx", "-o", path("out")});
  output_of({"export", path("other"), "--to", "onnx", "-o", path("out-of-other")});
  for (const char* against : {"other", "out-of-other"}) {
    const Result result = run({"verify", path("out"), "--against", path(against), "--layers"});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.out, AllOf(HasSubstr("the first module that is far away: "
                                            "model.layers.1.mlp.up_proj of prefill\n"),
                                  ContainsRegex("prefill +logits .* wrong\n"),
                                  ContainsRegex("Faults: [0-9]+ of them")));
    EXPECT_THAT(result.error, HasSubstr("[verify]"));
  }
}

TEST_F(CommandLine, verify_chooses_inputs_that_the_model_can_take) {
  Json classifier = parse_json("test", "config", kTinyLlama);
  classifier.erase("pad_token_id");  // without one, Transformers takes a single sequence
  classifier["architectures"] = {"LlamaForSequenceClassification"};
  testing::write_checkpoint(testing::tiny_checkpoint(classifier.dump()), path("model"));
  output_of({"export", path("model"), "--to", "onnx", "-o", path("out")});
  output_of({"verify", path("out"), "--against", path("model")});
  const Result two = run({"verify", path("out"), "--against", path("model"), "--batch", "2"});
  EXPECT_EQ(two.code, 1);
  EXPECT_THAT(two.error, HasSubstr("needs batch == 1"));
}

TEST_F(CommandLine, a_file_that_is_not_what_its_name_says_is_an_error) {
  for (const char* name : {"x.onnx", "x.safetensors", "x.gguf", "x.json", "x.txt"}) {
    const Result result = run({"inspect", folder_.write(name, "\xff not it").string()});
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_THAT(result.error, HasSubstr(name));
  }
}

TEST_F(CommandLine, a_program_of_pytorch_is_looked_at_exported_and_run) {
  const std::string program = fs::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2/tree.pt2";
  const Result seen = run({"inspect", program});
  EXPECT_EQ(seen.code, 0) << seen.error;
  EXPECT_THAT(seen.out, HasSubstr("aten.add.Tensor(1)"));
  EXPECT_THAT(run({"inspect", program, "--graph"}).out, HasSubstr("graph model"));
  const std::string artifact = folder_ / "tree-onnx";
  EXPECT_EQ(run({"export", program, "--to", "onnx", "-o", artifact}).code, 0);
  const Result ran =
      run({"run", artifact, "--input", "a=[1.0, 2.0]", "--input", "pair.0=[3.0, 4.0]", "--input",
           "pair.1=[0.0, 0.0]", "--input", "more.k=[0.0, 0.0]"});
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr("7"));
  EXPECT_EQ(run({"export", program, "--to", "onnx", "-o", artifact, "--task", "forward"}).code, 2);
}

TEST_F(CommandLine, safetensors_are_shown_by_dtype_and_shape) {
  write_safetensors(path("x.safetensors"), {{"layers.0.weight", Tensor(DType::kF32, {2, 3})},
                                            {"layers.1.weight", Tensor(DType::kF32, {2, 3})},
                                            {"steps", Tensor(DType::kI64, {1})}});
  EXPECT_THAT(output_of({"inspect", path("x.safetensors")}),
              AllOf(ContainsRegex("layers\\.\\*\\.weight +2  f32 +\\[2, 3\\] +48 B"),
                    ContainsRegex("steps +1  i64 +\\[1\\] +8 B")));
  const Json report = json_of({"inspect", path("x.safetensors"), "--json"});
  ASSERT_EQ(report["tensors"].size(), 3U);
  EXPECT_EQ(report["tensors"][0]["name"], "layers.0.weight");
  EXPECT_EQ(report["tensors"][0]["bytes"], 24);
}

TEST_F(CommandLine, a_path_may_have_the_name_of_a_command) {
  const Result result = run({"inspect", "list"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, HasSubstr("nothing at 'list'"));
}

TEST_F(CommandLine, completion_knows_all_commands_and_is_a_script) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = output_of({"completion", shell});
    for (const char* word : {"export", "generate", "dtype", "f32 f16 bf16"})
      EXPECT_THAT(script, HasSubstr(word)) << shell;
  }
  const std::string file =
      folder_.write("completion.bash", output_of({"completion", "bash"})).string();
  const std::string check = "bash -c 'source " + file +
                            "; COMP_WORDS=(tranship export --dtype b); COMP_CWORD=3; _tranship; "
                            "echo \"${COMPREPLY[*]}\"' >" +
                            path("completed") + " 2>&1";
  ASSERT_EQ(std::system(check.c_str()), 0) << read_text(path("completed"));
  EXPECT_EQ(read_text(path("completed")), "bf16\n");
}

}  // namespace
}  // namespace tranship
