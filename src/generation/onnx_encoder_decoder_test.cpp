// Encoder-decoders over real graphs: tiny ones, exported, run by ONNX Runtime, against
// Transformers' generate().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "generation/testing.h"
#include "tranship/exporters.h"
#include "tranship/generation.h"

namespace tranship::generation {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

Json golden_model(const std::string& name) {
  const fs::path path = kTests / "golden" / "encoder_decoder.json";
  const Json golden = parse_json("test", path.string(), read_text(path));
  for (const Json& model : golden["models"]) {
    if (model["name"] == name) return model;
  }
  ADD_FAILURE() << "no golden model " << name;
  return {};
}

GenerationConfig config_of(const Json& run) {
  GenerationConfig config = GenerationConfig::from_json(run["config"].dump(), "");
  config.max_new_tokens = 24;
  config.pad_token_id = 2;
  config.decoder_start_token_id = 2;
  return config;
}

std::vector<Ids> new_ids(const GenerationResult& result) {
  std::vector<Ids> out;
  for (const GeneratedSequence& sequence : result.sequences) out.push_back(sequence.new_ids);
  return out;
}

/// Every form of a cache beside an encoder.
struct Form {
  std::optional<std::string> fusions;
  GenerationOptions options;
};

std::vector<Form> forms() {
  const GenerationOptions slots = {.cache_implementation = "static", .max_cache_len = 30};
  GenerationOptions blocks = slots;
  blocks.multi_token_decode = true;
  return {{{}, slots}, {{}, blocks}, {"cpu", {}}, {"cpu", slots}, {"cpu", blocks}};
}

class Tiny : public onnx::NeedsOnnxRuntime {
 protected:
  explicit Tiny(const std::string& name) : model_(golden_model(name)) {}

  Checkpoint checkpoint() const { return Checkpoint::synthetic(model_["config"].dump()); }

  Generator exported(OnnxConfig config = {}, const GenerationOptions& options = {}) const {
    config.dynamic = true;
    OnnxExporter()
        .export_for_generation(checkpoint(), config, options)
        .save_pretrained(folder_.path());
    return Generator::open(folder_.path(), {}, no_warnings());
  }
  static Sink no_warnings() {
    return {.warning = [](std::string_view warning) { ADD_FAILURE() << warning; }, .progress = {}};
  }

  const Json model_;
  TestFolder folder_;
};

struct TinyT5 : Tiny {
  TinyT5() : Tiny("t5") {}
};

TEST_F(TinyT5, a_padded_batch_gives_the_tokens_of_transformers) {
  Generator generator = exported();
  for (const Json& run : model_["runs"]) {
    SCOPED_TRACE(run["config"].dump());
    const auto prompts = run["prompts"].get<std::vector<Ids>>();
    const auto expected = run["new_ids"].get<std::vector<Ids>>();
    if (run.contains("decoder_input_ids")) continue;
    EXPECT_EQ(new_ids(generator.generate(prompts, config_of(run))), expected);
    // What an encoder gave does not stay for the next text.
    for (size_t i = 0; i < prompts.size(); ++i) {
      const GenerationResult alone = generator.generate(std::span(&prompts[i], 1), config_of(run));
      EXPECT_EQ(alone.sequences[0].new_ids, expected[i]) << "alone: " << i;
    }
  }
}

TEST_F(TinyT5, every_form_of_its_cache_gives_the_tokens_of_transformers) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.fusions.value_or("plain") + " " + form.options.cache_implementation);
    Generator generator = exported({.ort_fusions = form.fusions}, form.options);
    for (const Json& run : model_["runs"]) {
      if (run.contains("decoder_input_ids")) continue;
      EXPECT_EQ(new_ids(generator.generate(run["prompts"].get<std::vector<Ids>>(), config_of(run))),
                run["new_ids"].get<std::vector<Ids>>());
    }
  }
}

TEST_F(TinyT5, every_form_reads_a_beginning_in_pieces_and_at_once) {
  OnnxConfig config;
  config.graph_inputs = std::vector<std::string>{"attention_mask", "decoder_attention_mask"};
  const Json run = model_["runs"][0];
  const Ids prompt = run["prompts"][0].get<Ids>();
  const Tensor ids = Tensor::of(std::span(prompt), {1, std::ssize(prompt)});
  const NamedTensors inputs = {{"input_ids", ids},
                               {"decoder_input_ids", Tensor::of(Ids{2, 5, 9, 11, 4}, {1, 5})}};
  const Ids expected = new_ids(exported(config).generate_from(inputs, config_of(run)))[0];
  for (const Form& form : forms()) {
    Generator generator =
        exported({.ort_fusions = form.fusions, .graph_inputs = config.graph_inputs}, form.options);
    GenerationConfig chunked = config_of(run);
    chunked.prefill_chunk_size = 2;
    EXPECT_EQ(new_ids(generator.generate_from(inputs, chunked))[0], expected);
  }
}

TEST_F(TinyT5, the_decoder_may_be_given_a_beginning) {
  Generator generator = exported();
  const Json run = model_["runs"].back();
  const auto begun = run["decoder_input_ids"].get<std::vector<Ids>>();
  NamedTensors inputs = {{"input_ids", Tensor(DType::kI64, {3, 7})},
                         {"attention_mask", Tensor(DType::kI64, {3, 7})},
                         {"decoder_input_ids", Tensor(DType::kI64, {3, 2})}};
  for (size_t row = 0; row < 3; ++row) {
    const Ids prompt = run["prompts"][row].get<Ids>();
    for (size_t i = 0; i < 7; ++i) {
      inputs.at("input_ids").i64()[row * 7 + i] = i < prompt.size() ? prompt[i] : 2;
      inputs.at("attention_mask").i64()[row * 7 + i] = i < prompt.size() ? 1 : 0;
    }
    std::ranges::copy(begun[row], inputs.at("decoder_input_ids").i64().begin() + 2 * int64_t(row));
  }
  const auto expected = run["new_ids"].get<std::vector<Ids>>();
  EXPECT_EQ(new_ids(generator.generate_from(inputs, config_of(run))), expected)
      << "the start is put before it";
  inputs.at("decoder_input_ids").set(3, -1);
  EXPECT_THAT(error_of([&] { generator.generate_from(inputs, config_of(run)); }).what(),
              HasSubstr("decoder_input_ids has the id -1"));
  inputs.erase("decoder_input_ids");
  const auto plain = model_["runs"][0]["new_ids"].get<std::vector<Ids>>();
  EXPECT_EQ(new_ids(generator.generate_from(inputs, config_of(run))), plain);
  inputs.emplace("decoder_input_ids", Tensor(DType::kI64, {2, 2}));
  EXPECT_THAT(error_of([&] { generator.generate_from(inputs, config_of(run)); }).what(),
              HasSubstr("decoder_input_ids is [2, 2], expected a row of ids for each of 3"));
}

TEST_F(TinyT5, needs_to_know_what_its_decoder_begins_with) {
  Generator generator = exported();
  const std::vector<Ids> prompts = {{5, 6}};
  const Error error = error_of([&] { generator.generate(prompts, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("decoder_start_token_id"));
}

TEST_F(TinyT5, a_graph_without_attention_mask_takes_prompts_of_one_length_only) {
  OnnxConfig config;
  config.graph_inputs = std::vector<std::string>{"input_ids"};
  Generator generator = exported(config);
  const Json run = model_["runs"][0];
  const auto prompts = run["prompts"].get<std::vector<Ids>>();
  EXPECT_EQ(generator.generate(std::span(prompts).first(1), config_of(run)).sequences[0].new_ids,
            run["new_ids"][0].get<Ids>());
  const Error error = error_of([&] { generator.generate(prompts, config_of(run)); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("attention_mask"));
}

TEST_F(TinyT5, an_encoder_may_be_an_export_of_its_own) {
  exported();
  const fs::path manifest = folder_.path() / "export.json";
  Json json = parse_json("test", manifest.string(), read_text(manifest));
  json["components"].erase("encoder");
  json.erase("tranship");
  write_text(manifest, json.dump());
  const Error error = error_of([&] { Generator::open(folder_.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("has no component 'encoder'"), HasSubstr("model.get_encoder()")));

  OnnxExporter()
      .export_model(checkpoint(), OnnxConfig{.dynamic = true, .architecture = "T5EncoderModel"})
      .save_pretrained(folder_.path() / "encoder");
  Generator generator = Generator::open(folder_.path());
  const Json run = model_["runs"][0];
  EXPECT_EQ(new_ids(generator.generate(run["prompts"].get<std::vector<Ids>>(), config_of(run))),
            run["new_ids"].get<std::vector<Ids>>());
}

TEST_F(TinyT5, an_export_by_transformers_generates) {
  const fs::path cases = kTests / "cases" / "python_export";
  const Json golden =
      parse_json("test", "t5_generation.json", read_text(cases / "t5_generation.json"));
  Generator generator = Generator::open(cases / "t5_generation", {}, no_warnings());
  const Json run = golden["runs"][0];
  EXPECT_EQ(new_ids(generator.generate(run["prompts"].get<std::vector<Ids>>(),
                                       generator.generation_config())),
            run["new_ids"].get<std::vector<Ids>>());
}

TEST_F(TinyT5, makes_a_text_of_a_text) {
  const fs::path files = kTests / "cases" / "tokenizer" / "unigram";
  const Tokenizer tokenizer = Tokenizer::open(files);
  Json config = model_["config"];
  config["vocab_size"] = tokenizer.vocab_size();
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(config.dump()), {.dynamic = true})
      .save_pretrained(folder_.path());
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(files / name, folder_.path() / name);
  Generator generator = Generator::open(folder_.path());
  GenerationConfig generation = generator.generation_config();
  generation.max_new_tokens = 12;
  std::string streamed;
  const GeneratedText out =
      generator.generate_text("The quick brown fox", generation, [&](std::string_view piece) {
        streamed += piece;
        return true;
      });
  EXPECT_EQ(out.prompt_ids, tokenizer.encode("The quick brown fox"));
  const GenerationResult by_ids = generator.generate(std::span(&out.prompt_ids, 1), generation);
  EXPECT_EQ(out.new_ids, by_ids.sequences[0].new_ids);
  EXPECT_EQ(out.text, tokenizer.decode(out.new_ids));
  EXPECT_EQ(streamed, out.text);
  EXPECT_EQ(out.stats.prompt_tokens, std::ssize(out.prompt_ids) + 1) << "and the decoder's start";
}

TEST_F(TinyT5, a_model_without_an_encoder_continues_prompts_only) {
  OnnxExporter()
      .export_for_generation(Checkpoint::synthetic(sampling_golden()["config"].dump()),
                             {.dynamic = true})
      .save_pretrained(folder_.path());
  Generator generator = Generator::open(folder_.path());
  const Error error = error_of(
      [&] { generator.generate_from({{"input_features", Tensor(DType::kF32, {1, 8, 40})}}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("no encoder to read input_features"));
}

class TinyWhisper : public Tiny {
 protected:
  TinyWhisper() : Tiny("whisper") {}

  NamedTensors sounds() const {
    const Json& rows = model_["input_features"];
    const auto num_rows = std::ssize(rows), mel = std::ssize(rows[0]),
               frames = std::ssize(rows[0][0]);
    Tensor tensor(DType::kF32, {num_rows, mel, frames});
    int64_t i = 0;
    for (const Json& value : rows.flatten()) tensor.set(i++, value.get<double>());
    return {{"input_features", std::move(tensor)}};
  }
  static Tensor row_of(const Tensor& batch, int64_t row) {
    Tensor one(batch.dtype(), {1, batch.shape()[1], batch.shape()[2]});
    const int64_t size = one.num_elements();
    for (int64_t i = 0; i < size; ++i) one.set(i, batch.at(row * size + i));
    return one;
  }

  /// The artifact with that generation_config.json.
  Generator with_config(const Json& generation_config) const {
    write_text(folder_.path() / "generation_config.json", generation_config.dump());
    return Generator::open(folder_.path(), {}, no_warnings());
  }
};

TEST_F(TinyWhisper, sounds_give_the_tokens_of_transformers) {
  exported();
  const NamedTensors batch = sounds();
  for (const Json& run : model_["runs"]) {
    SCOPED_TRACE(run["generation_config"].dump());
    Generator generator = with_config(run["generation_config"]);
    const GenerationConfig config = generator.generation_config();
    const auto expected = run["new_ids"].get<std::vector<Ids>>();
    EXPECT_EQ(new_ids(generator.generate_from(batch, config)), expected);
    const NamedTensors alone = {{"input_features", row_of(batch.at("input_features"), 1)}};
    EXPECT_EQ(new_ids(generator.generate_from(alone, config))[0], expected[1]);
  }
}

TEST_F(TinyWhisper, every_form_of_its_cache_gives_the_tokens_of_transformers) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.fusions.value_or("plain") + " " + form.options.cache_implementation);
    exported({.ort_fusions = form.fusions}, form.options);
    const Json run = model_["runs"][0];
    Generator generator = with_config(run["generation_config"]);
    EXPECT_EQ(new_ids(generator.generate_from(sounds(), generator.generation_config())),
              run["new_ids"].get<std::vector<Ids>>());
  }
}

TEST_F(TinyWhisper, a_beginning_that_is_given_is_taken_as_it_is) {
  exported();
  const Json run = model_["runs"][1];
  Generator generator = with_config(run["generation_config"]);
  NamedTensors inputs = sounds();
  Tensor begun(DType::kI64, {3, 4});
  for (size_t row = 0; row < 3; ++row)
    std::ranges::copy(run["prompts"][row].get<Ids>(), begun.i64().begin() + 4 * int64_t(row));
  inputs.emplace("decoder_input_ids", std::move(begun));
  GenerationConfig config = generator.generation_config();
  config.language = "";
  config.max_new_tokens = 20;
  EXPECT_EQ(new_ids(generator.generate_from(inputs, config)),
            run["new_ids"].get<std::vector<Ids>>());
}

TEST_F(TinyWhisper, what_it_cannot_be_told_is_refused) {
  exported();
  Generator generator = with_config(model_["runs"][0]["generation_config"]);
  const auto error = [&](std::string language, std::string task, int64_t max_new_tokens) {
    GenerationConfig config = generator.generation_config();
    config.language = std::move(language);
    config.task = std::move(task);
    config.max_new_tokens = max_new_tokens;
    return std::string(error_of([&] { generator.generate_from(sounds(), config); }).what());
  };
  EXPECT_THAT(error("tlh", "", 5), AllOf(HasSubstr("language 'tlh'"), HasSubstr("<|haw|>")));
  EXPECT_THAT(error("de", "sing", 5), AllOf(HasSubstr("task 'sing'"), HasSubstr("translate")));
  EXPECT_THAT(error("de", "", 30), HasSubstr("over the model's 32 positions"));
  Generator english = with_config(model_["runs"].back()["generation_config"]);
  GenerationConfig told = english.generation_config();
  told.language = "en";
  EXPECT_THAT(error_of([&] { english.generate_from(sounds(), told); }).what(),
              HasSubstr("knows English only"));
  const std::vector<Ids> prompts = {{5}};
  EXPECT_THAT(error_of([&] { english.generate(prompts, told); }).what(),
              HasSubstr("reads 'input_features', not text"));
  Json timestamps = model_["runs"][0]["generation_config"];
  timestamps["return_timestamps"] = true;
  EXPECT_THAT(error_of([&] { with_config(timestamps).generation_config(); }).what(),
              HasSubstr("return_timestamps = true"));
}

TEST_F(TinyWhisper, sounds_of_another_length_are_refused) {
  Generator generator = exported();
  const Error error = error_of([&] {
    generator.generate_from({{"input_features", Tensor(DType::kF32, {1, 8, 38})}},
                            {.decoder_start_token_id = 3});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("input_features"), HasSubstr("40")));
}

}  // namespace
}  // namespace tranship::generation
