// What models compute where exporters of today go wrong: padding, tied weights, rotary embeddings,
// windows, biases, dtypes (README.md has the list).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "anomalies/support.h"
#include "interpret/interpret.h"
#include "ir/text.h"
#include "models/families.h"
#include "tranship/generation.h"

namespace tranship::anomalies {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

// ---- padding

/// A batch of a whole row and one of `kept` tokens with padding on the left, and positions counted
/// over the mask.
struct Padded {
  int64_t length = 7, kept = 4;
  std::vector<int64_t> whole = {5, 17, 40, 8, 63, 21, 9};
  std::vector<int64_t> row = {12, 70, 33, 6};
  std::vector<int64_t> mask = {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1};
  std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 1, 2, 3};

  NamedTensors batch() const {
    std::vector<int64_t> ids = whole;
    ids.insert(ids.end(), static_cast<size_t>(length - kept), 0);
    ids.insert(ids.end(), row.begin(), row.end());
    return {{"input_ids", ints(ids, {2, length})},
            {"attention_mask", ints(mask, {2, length})},
            {"position_ids", ints(positions, {2, length})}};
  }
  NamedTensors alone() const { return {{"input_ids", ints(row, {1, kept})}}; }
};

/// The last `kept` of the second of two rows.
std::vector<double> kept_of_second_row(const Tensor& output, const Padded& padded) {
  const int64_t features = output.shape().back();
  return slice(output, (2 * padded.length - padded.kept) * features, padded.kept * features);
}

std::vector<double> all_of(const Tensor& tensor) { return slice(tensor, 0, tensor.num_elements()); }

/// The inputs of a step after prefill: its cache, and one new token a row.
NamedTensors next(const NamedTensors& prefill, const std::vector<int64_t>& ids,
                  const std::vector<int64_t>& mask, const std::vector<int64_t>& positions) {
  const auto rows = static_cast<int64_t>(ids.size());
  NamedTensors inputs = prefill;
  inputs.erase("logits");
  inputs.emplace("input_ids", ints(ids, {rows, 1}));
  inputs.emplace("attention_mask", ints(mask, {rows, static_cast<int64_t>(mask.size()) / rows}));
  inputs.emplace("position_ids", ints(positions, {rows, 1}));
  return inputs;
}

TEST(Padding, batch_output_does_not_depend_on_left_padding) {
  const Padded padded;
  for (const nn::Family* family : models::families()) {
    const auto& optional = family->optional_inputs;  // others count positions by themselves
    if (!family->has_cache || std::ranges::find(optional, "position_ids") == optional.end())
      continue;
    SCOPED_TRACE(family->model_type);
    const ExportedModel model = OnnxExporter().export_for_generation(
        Checkpoint::synthetic(family->tiny_config), {.dynamic = true});
    const NamedTensors batch = model.run("prefill", padded.batch());
    const NamedTensors alone = model.run("prefill", padded.alone());
    expect_near(kept_of_second_row(batch.at("logits"), padded), all_of(alone.at("logits")));

    std::vector<int64_t> mask = padded.mask;
    mask.insert(mask.begin() + 7, 1);
    mask.push_back(1);
    const NamedTensors step = model.run("decode", next(batch, {30, 31}, mask, {7, 4}));
    const NamedTensors step_alone =
        model.run("decode", next(alone, {31}, std::vector<int64_t>(5, 1), {4}));
    const int64_t vocabulary = step.at("logits").shape().back();
    expect_near(slice(step.at("logits"), vocabulary, vocabulary), all_of(step_alone.at("logits")));
  }
}

TEST(Padding, learned_absolute_positions_of_a_left_padded_batch_are_those_of_position_ids) {
  const Padded padded;
  const OnnxConfig config = {
      .dynamic = true, .graph_inputs = std::vector<std::string>{"attention_mask", "position_ids"}};
  const ExportedModel bert = OnnxExporter().export_model(Checkpoint::synthetic(kBert), config);
  const std::string name = "last_hidden_state";
  expect_near(kept_of_second_row(bert(padded.batch()).at(name), padded),
              all_of(bert(padded.alone()).at(name)));
}

TEST(Padding, text_generation_pads_on_the_left_whatever_the_tokenizer_says) {
  const TestFolder folder;
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(kLlama), {.dynamic = true})
      .save_pretrained(folder.path());
  folder.write("tokenizer_config.json", R"({"padding_side": "right"})");
  Generator generator = Generator::open(folder.path());
  const std::vector<std::vector<int64_t>> prompts = {{5, 17, 40, 8, 63, 21}, {12, 70}, {33}};
  const GenerationConfig config = {.max_new_tokens = 8};
  const GenerationResult batch = generator.generate(prompts, config);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const GenerationResult alone = generator.generate(std::span(&prompts[i], 1), config);
    EXPECT_EQ(batch.sequences[i].new_ids, alone.sequences[0].new_ids) << i;
  }
}

// ---- tied weights

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr uint64_t kEmbeddingBytes = 96 * 32 * 4;  // a multiple of the alignment

/// The bytes of the data file of an export for generation: that of all its components.
uint64_t data_bytes(const Checkpoint& checkpoint, const Sink& sink = {}) {
  uint64_t bytes = 0;
  const ExportedModel model =
      OnnxExporter().export_for_generation(checkpoint, {.dynamic = true}, {}, sink);
  for (const ArtifactFile& file : model.files())
    bytes += file.name.ends_with(".data") ? file.size_bytes : 0;
  return bytes;
}

class Tying : public ::testing::Test {
 protected:
  /// Writes the tied llama with a head of its own in the file.
  Checkpoint with_head(const Tensor& head) const {
    NamedTensors weights = weights_of(kTied);
    weights.emplace(kHead, head);
    return write_checkpoint(folder_, kTied, weights);
  }

  const std::string kTied = with(kLlama, {{"tie_word_embeddings", "true"}});
  const uint64_t once_ = data_bytes(Checkpoint::synthetic(kTied));
  TestFolder folder_;
  Warnings warnings_;
};

TEST_F(Tying, a_tied_embedding_is_written_once) {
  EXPECT_EQ(data_bytes(Checkpoint::synthetic(kLlama)), once_ + kEmbeddingBytes);
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(kTied), {.dynamic = true})
      .save_pretrained(folder_.path());
  EXPECT_EQ(fs::file_size(folder_ / "prefill.onnx.data"), once_);
  EXPECT_EQ(fs::file_size(folder_ / "decode.onnx.data"), 0U);
  for (const char* file : {"prefill.onnx", "decode.onnx"})
    EXPECT_LT(fs::file_size(folder_ / file), kEmbeddingBytes * 8) << file;
}

TEST_F(Tying, every_weight_of_a_family_is_written_once_whatever_graphs_share_it) {
  constexpr uint64_t kAlignment = 64;
  for (const nn::Family* family : models::families()) {
    if (!family->architectures.front().generates) continue;
    SCOPED_TRACE(family->model_type);
    const Checkpoint checkpoint = Checkpoint::synthetic(family->tiny_config);
    uint64_t bytes = 0;
    const tasks::TaskProgram made = tasks::generation(checkpoint.data(), {});
    for (const auto& [name, source] : made.program.parameters)
      bytes += (source->size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    EXPECT_EQ(data_bytes(checkpoint), bytes);
  }
  // T5's encoder, decoder and head have one embedding.
  const tasks::TaskProgram t5 =
      tasks::generation(Checkpoint::synthetic(models::find_family("t5")->tiny_config).data(), {});
  size_t embeddings = 0;
  for (const auto& [name, source] : t5.program.parameters)
    embeddings += name.find("embed_tokens") != name.npos || name.starts_with("shared") ||
                  name.starts_with("lm_head");
  EXPECT_EQ(embeddings, 1U);
}

TEST_F(Tying, a_tied_head_that_is_in_the_file_too_is_written_once) {
  const Checkpoint checkpoint = with_head(weights_of(kTied).at(kEmbedding));
  EXPECT_EQ(data_bytes(checkpoint, warnings_.sink()), once_);
  for (const std::string& warning : warnings_.all)
    EXPECT_THAT(warning, ::testing::Not(HasSubstr(kHead)));
}

TEST_F(Tying, a_tied_head_of_equal_numbers_in_another_dtype_is_written_once) {
  NamedTensors weights = weights_of(kTied);
  const Tensor half = converted(weights.at(kEmbedding), DType::kBF16);
  weights.at(kEmbedding) = converted(half, DType::kF32);
  weights.emplace(kHead, half);
  EXPECT_EQ(data_bytes(write_checkpoint(folder_, kTied, weights)), once_);
  weights.at(kHead).set(7, 3.0);
  EXPECT_EQ(data_bytes(write_checkpoint(folder_, kTied, weights)), once_ + kEmbeddingBytes);
}

TEST_F(Tying, a_different_head_beside_tie_word_embeddings_is_kept_with_a_warning) {
  const Tensor head = weights_of(kLlama).at(kHead);
  const Checkpoint checkpoint = with_head(head);
  const ExportedModel kept =
      OnnxExporter().export_model(checkpoint, {.dynamic = true}, warnings_.sink());
  EXPECT_THAT(warnings_.all, ::testing::Contains(HasSubstr(
                                 "the config ties 'lm_head.weight' to 'model.embed_tokens.weight', "
                                 "but the checkpoint has both, with different numbers")));
  const ExportedModel untied =
      OnnxExporter().export_model(Checkpoint::synthetic(kLlama), {.dynamic = true});
  const NamedTensors inputs = {{"input_ids", ints({5, 17, 40}, {1, 3})}};
  EXPECT_EQ(all_of(kept(inputs).at("logits")), all_of(untied(inputs).at("logits")));
}

// ---- rotary embeddings

/// The graph of one forward, as text.
std::string graph_of(std::string_view config) {
  return ir::print(
      *tasks::forward(Checkpoint::synthetic(config).data(), {}).program.components.at(0).graph);
}

constexpr const char* kFactors =
    R"("short_factor": [1, 1.1, 1.3, 1.8], "long_factor": [1, 2.5, 6, 12], "original_max_position_embeddings": 16})";

TEST(Rope, su_and_longrope_and_type_and_rope_type_are_one) {
  std::vector<std::string> graphs;
  for (const char* type : {R"("type": "su")", R"("rope_type": "su")", R"("type": "longrope")",
                           R"("rope_type": "longrope")"}) {
    for (const char* key : {"rope_scaling", "rope_parameters"})
      graphs.push_back(graph_of(with(kLlama, {{key, fmt::format("{{{}, {}", type, kFactors)}})));
  }
  for (const std::string& graph : graphs) EXPECT_EQ(graph, graphs.front());
  EXPECT_NE(graphs.front(), graph_of(kLlama));
}

TEST(Rope, rope_scaling_and_rope_parameters_say_the_same) {
  const std::string older =
      graph_of(with(kLlama, {{"rope_theta", "5000.0"},
                             {"rope_scaling", R"({"type": "linear", "factor": 4.0})"}}));
  const std::string newer = graph_of(with(
      kLlama,
      {{"rope_parameters", R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0})"}}));
  EXPECT_EQ(older, newer);
}

constexpr std::string_view kQwen3 =
    R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "use_sliding_window": true, "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"]})";

/// rope_parameters by layer type: those of full and those of sliding attention.
std::string by_layer_type(const char* full, const char* sliding) {
  return with(
      kQwen3,
      {{"rope_parameters",
        fmt::format(R"({{"full_attention": {}, "sliding_attention": {}}})", full, sliding)}});
}

TEST(Rope, rope_parameters_by_layer_type_are_those_of_the_layers) {
  const char* const slow = R"({"rope_type": "default", "rope_theta": 5000.0})";
  const char* const fast = R"({"rope_type": "default", "rope_theta": 100.0})";
  const std::string flat = graph_of(with(kQwen3, {{"rope_parameters", slow}}));
  EXPECT_EQ(graph_of(by_layer_type(slow, slow)), flat);
  EXPECT_NE(graph_of(by_layer_type(slow, fast)), graph_of(by_layer_type(fast, slow)));
  for (const auto& [full, sliding] : {std::pair(slow, "null"), std::pair("null", fast)}) {
    const Error error = error_of([&] { graph_of(by_layer_type(full, sliding)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("none for"));
  }
}

TEST(Rope, partial_rotary_factor_is_refused_where_a_model_rotates_whole_heads) {
  EXPECT_EQ(graph_of(with(kLlama, {{"partial_rotary_factor", "1.0"}})), graph_of(kLlama));
  for (const auto& changes : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"partial_rotary_factor", "0.5"}},
           {{"rope_scaling",
             R"({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5})"}},
           {{"rope_parameters",
             R"({"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})"}}}) {
    const Error error = error_of([&] { graph_of(with(kLlama, changes)); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("partial_rotary_factor"));
  }
}

// ---- windows

/// What follows a prompt whose token at a place is `id`: the logits at its end, and after one more.
std::vector<double> continuation(const ExportedModel& model, size_t place, int64_t id) {
  std::vector<int64_t> ids = {5, 17, 40, 8, 63, 21, 9, 77, 31, 2};
  ids.at(place) = id;
  const auto length = static_cast<int64_t>(ids.size());
  const NamedTensors prefill = model.run("prefill", {{"input_ids", ints(ids, {1, length})}});
  const Tensor& logits = prefill.at("logits");
  std::vector<double> out = slice(logits, (length - 1) * 96, 96);
  const NamedTensors step =
      model.run("decode", next(prefill, {50}, std::vector<int64_t>(ids.size() + 1, 1), {length}));
  const std::vector<double> after = all_of(step.at("logits"));
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

TEST(Window, a_prompt_longer_than_the_window_runs_and_sees_no_further) {
  const auto exported = [](const std::string& config) {
    return OnnxExporter().export_for_generation(Checkpoint::synthetic(config), {.dynamic = true});
  };
  const ExportedModel slides = exported(std::string(kMistral));
  const ExportedModel sees_all = exported(with(kMistral, {{"sliding_window", "null"}}));
  // Two layers of window 3 see four tokens back from the last of ten: place 5, and not place 4.
  EXPECT_EQ(continuation(slides, 4, 63), continuation(slides, 4, 64));
  EXPECT_NE(continuation(slides, 5, 21), continuation(slides, 5, 22));
  EXPECT_NE(continuation(sees_all, 0, 5), continuation(sees_all, 0, 6));
}

TEST(Window, is_that_of_each_layer_s_type) {
  const std::string graph = graph_of(kQwen3);
  EXPECT_THAT(graph, HasSubstr("window=4"));
  EXPECT_EQ(graph.find("window=4"), graph.rfind("window=4")) << "the second layer sees all";
}

TEST(Window, of_zero_or_less_is_refused) {
  for (const char* window : {"0", "-1", "-4096"}) {
    const Error error = error_of([&] { graph_of(with(kMistral, {{"sliding_window", window}})); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("sliding_window"));
  }
}

// ---- experts

TEST(Experts, are_all_in_the_graph_and_each_gets_its_tokens) {
  const CheckpointData checkpoint =
      Checkpoint::synthetic(models::find_family("qwen3_moe")->tiny_config).data();
  tasks::TaskProgram made = tasks::forward(checkpoint, {});
  std::vector<int64_t> ids(48);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 2);
  const NamedTensors inputs = {{"input_ids", ints(ids, {1, 48})},
                               {"attention_mask", ints(std::vector<int64_t>(48, 1), {1, 48})}};
  const Tensor whole = interpret(made.program, "model", inputs).at("logits");
  const std::string name = "model.layers.1.mlp.experts.down_proj";
  const TensorSourcePtr source = made.program.parameters.at(name);
  const int64_t num_experts = source->shape().at(0);
  ASSERT_EQ(num_experts, 5);
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    Tensor weights = read_all(*source);
    const int64_t size = weights.num_elements() / num_experts;
    for (int64_t i = 0; i < size; ++i) weights.set(expert * size + i, 0);
    made.program.parameters.at(name) = memory_source(name, std::move(weights));
    const Tensor without = interpret(made.program, "model", inputs).at("logits");
    EXPECT_NE(all_of(without), all_of(whole)) << "no token came to expert " << expert;
  }
}

// ---- biases

TEST(Biases, exist_if_their_tensors_do_and_none_is_lost) {
  const std::string said = with(kLlama, {{"attention_bias", "true"}, {"mlp_bias", "true"}});
  const TestFolder folder;
  const Checkpoint unsaid = write_checkpoint(folder, kLlama, weights_of(said));  // no key in config
  const tasks::TaskProgram made = tasks::forward(unsaid.data(), {});
  EXPECT_EQ(ir::print(*made.program.components.at(0).graph), graph_of(said));
  size_t biases = 0;
  for (const auto& [name, source] : made.program.parameters) biases += name.ends_with(".bias");
  EXPECT_EQ(biases, 2U * 7U);
}

TEST(Biases, and_other_tensors_that_a_definition_does_not_use_are_refused_by_name) {
  for (const char* name : {"model.norm.bias", "model.layers.0.input_layernorm.bias", "extra"}) {
    NamedTensors weights = weights_of(kLlama);
    weights.emplace(name, Tensor(DType::kF32, {32}));
    const TestFolder folder;
    const Checkpoint checkpoint = write_checkpoint(folder, kLlama, weights);
    const Error error = error_of([&] { tasks::forward(checkpoint.data(), {}); });
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

// ---- dtypes

class HalfFloats : public ::testing::Test {
 protected:
  /// A llama in bf16 with one large weight.
  Checkpoint write(double largest) const {
    NamedTensors weights;
    for (const auto& [name, tensor] : weights_of(kLlama))
      weights.emplace(name, converted(tensor, DType::kBF16));
    weights.at("model.layers.1.mlp.up_proj.weight").set(11, largest);
    return write_checkpoint(folder_, with(kLlama, {{"torch_dtype", "\"bfloat16\""}}), weights);
  }
  TestFolder folder_;
};

TEST_F(HalfFloats, bf16_becomes_f16_only_if_asked_and_then_with_a_warning) {
  const Checkpoint checkpoint = write(1.0);
  Warnings warnings;
  const ExportedModel unasked =
      OnnxExporter().export_model(checkpoint, {.dynamic = true}, warnings.sink());
  EXPECT_EQ(unasked.metadata().export_dtype, "float32");
  EXPECT_THAT(warnings.all, ::testing::Not(::testing::Contains(HasSubstr("f16"))));
  const ExportedModel asked = OnnxExporter().export_model(
      checkpoint, {.dynamic = true, .dtype = DType::kF16}, warnings.sink());
  EXPECT_THAT(warnings.all, ::testing::Contains(HasSubstr("no numbers over 65504")));
}

TEST_F(HalfFloats, a_weight_that_f16_cannot_hold_is_named_and_nothing_is_written) {
  const ExportedModel model =
      OnnxExporter().export_model(write(70000), {.dynamic = true, .dtype = DType::kF16});
  const TestFolder out;
  const Error error = error_of([&] { model.save_pretrained(out.path()); });
  EXPECT_THAT(error.what(), HasSubstr("model.layers.1.mlp.up_proj.weight"));
  EXPECT_TRUE(fs::is_empty(out.path()));
}

// ---- quantized checkpoints

struct Quantized {
  const char* name;
  const char* config;  // quantization_config, or empty
  const char* tensor;  // or empty
  const char* message;
};

class QuantizedCheckpoint : public ::testing::TestWithParam<Quantized> {};

TEST_P(QuantizedCheckpoint, is_refused_by_name) {
  const Quantized& q = GetParam();
  const bool is_said = *q.config != '\0';
  NamedTensors weights = weights_of(kLlama);
  if (*q.tensor != '\0') weights.emplace(q.tensor, Tensor(DType::kI32, {4, 32}));
  const TestFolder folder;
  const Checkpoint checkpoint = write_checkpoint(
      folder, is_said ? with(kLlama, {{"quantization_config", q.config}}) : std::string(kLlama),
      weights);
  const Error error = error_of([&] { OnnxExporter().export_model(checkpoint, {.dynamic = true}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr(fmt::format("quantized by '{}", q.message)));
}

INSTANTIATE_TEST_SUITE_P(
    Methods, QuantizedCheckpoint,
    ::testing::Values(
        Quantized{"gptq",
                  R"({"bits": 4, "quant_method": "gptq", "desc_act": true, "group_size": 128})", "",
                  "gptq"},
        Quantized{"awq",
                  R"({"bits": 4, "quant_method": "awq", "version": "gemm", "zero_point": true})",
                  "", "awq"},
        Quantized{
            "bitsandbytes",
            R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "quant_method": "bitsandbytes"})",
            "", "bitsandbytes"},
        Quantized{"older_bitsandbytes", R"({"load_in_8bit": true})", "", "bitsandbytes"},
        Quantized{"fp8",
                  R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})", "",
                  "fp8"},
        Quantized{"compressed_tensors",
                  R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})", "",
                  "compressed-tensors"},
        Quantized{"gptq_that_no_key_tells_of", "", "model.layers.0.self_attn.q_proj.qweight",
                  "GPTQ or AWQ"},
        Quantized{"int8_that_no_key_tells_of", "", "model.layers.0.self_attn.q_proj.SCB",
                  "bitsandbytes"},
        Quantized{"fp8_that_no_key_tells_of", "",
                  "model.layers.0.self_attn.q_proj.weight_scale_inv", "FP8"}),
    [](const auto& test) { return test.param.name; });

TEST(QuantizedTensor, of_codes_without_a_scale_is_refused_with_its_dtype) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2, DType::kI8, DType::kU8}) {
    NamedTensors weights = weights_of(kLlama);
    weights.at(name) = Tensor(dtype, weights.at(name).shape());
    const TestFolder folder;
    const Checkpoint checkpoint = write_checkpoint(folder, kLlama, weights);
    const Error error = error_of([&] { tasks::forward(checkpoint.data(), {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("{} ({})", name, tranship::name(dtype))));
  }
}

}  // namespace
}  // namespace tranship::anomalies
