// Exports a made-up BERT and runs it: the whole public path, from outside.
#include <tranship/exporters.h>
#include <tranship/version.h>

#include <cstdio>
#include <vector>

int main(int, char** argv) {
  const tranship::Checkpoint checkpoint = tranship::Checkpoint::synthetic(
      R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48,
          "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64})");
  const tranship::ExportedModel exported =
      tranship::OnnxExporter().export_model(checkpoint, {.dynamic = true});
  exported.save_pretrained(argv[1]);
  const tranship::ExportedModel loaded = tranship::ExportedModel::from_pretrained(argv[1]);
  const std::vector<int64_t> ids = {2, 7, 9}, mask = {1, 1, 1};
  const tranship::NamedTensors outputs =
      loaded({{"input_ids", tranship::Tensor::of(ids, {1, 3})},
              {"attention_mask", tranship::Tensor::of(mask, {1, 3})}});
  std::printf("tranship %s: last_hidden_state has %lld numbers\n", tranship::version().data(),
              static_cast<long long>(outputs.at("last_hidden_state").num_elements()));
  return outputs.at("last_hidden_state").num_elements() == 96 ? 0 : 1;
}
