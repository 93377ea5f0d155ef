#include "text/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tranship::text {
namespace {

constexpr std::string_view kEnd = "<|endoftext|>";

// Source: the classes' __init__ and class attributes (transformers 5.23,
// models/*/tokenization_*.py).
constexpr auto kClasses = std::to_array<TokenizerClass>({
    {.name = ""},
    {.name = "BertTokenizer",
     .unk = "[UNK]",
     .sep = "[SEP]",
     .pad = "[PAD]",
     .cls = "[CLS]",
     .mask = "[MASK]",
     .token_types = true},
    {.name = "DistilBertTokenizer",
     .unk = "[UNK]",
     .sep = "[SEP]",
     .pad = "[PAD]",
     .cls = "[CLS]",
     .mask = "[MASK]"},
    {.name = "DebertaTokenizer",
     .bos = "[CLS]",
     .eos = "[SEP]",
     .unk = "[UNK]",
     .sep = "[SEP]",
     .pad = "[PAD]",
     .cls = "[CLS]",
     .mask = "[MASK]",
     .token_types = true},
    {.name = "DebertaV2Tokenizer",
     .bos = "[CLS]",
     .eos = "[SEP]",
     .unk = "[UNK]",
     .sep = "[SEP]",
     .pad = "[PAD]",
     .cls = "[CLS]",
     .mask = "[MASK]",
     .token_types = true},
    {.name = "RobertaTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .sep = "</s>",
     .pad = "<pad>",
     .cls = "<s>",
     .mask = "<mask>"},
    {.name = "XLMRobertaTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .sep = "</s>",
     .pad = "<pad>",
     .cls = "<s>",
     .mask = "<mask>"},
    {.name = "CamembertTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .sep = "</s>",
     .pad = "<pad>",
     .cls = "<s>",
     .mask = "<mask>"},
    {.name = "MPNetTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "[UNK]",
     .sep = "</s>",
     .pad = "<pad>",
     .cls = "<s>",
     .mask = "<mask>"},
    {.name = "AlbertTokenizer",
     .bos = "[CLS]",
     .eos = "[SEP]",
     .unk = "<unk>",
     .sep = "[SEP]",
     .pad = "<pad>",
     .cls = "[CLS]",
     .mask = "[MASK]"},
    {.name = "GPT2Tokenizer", .bos = kEnd, .eos = kEnd, .unk = kEnd},
    {.name = "GPTNeoXTokenizer", .bos = kEnd, .eos = kEnd, .unk = kEnd, .pad = "<|padding|>"},
    {.name = "Qwen2Tokenizer", .eos = kEnd, .unk = kEnd, .pad = kEnd},
    {.name = "LlamaTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .padding_side = Side::kLeft},
    {.name = "CodeLlamaTokenizer",
     .bos = "<s>",
     .eos = "</s>",
     .unk = "<unk>",
     .padding_side = Side::kLeft},
    {.name = "GemmaTokenizer",
     .bos = "<bos>",
     .eos = "<eos>",
     .unk = "<unk>",
     .pad = "<pad>",
     .mask = "<mask>",
     .padding_side = Side::kLeft},
    {.name = "CohereTokenizer",
     .bos = "<BOS_TOKEN>",
     .eos = "<|END_OF_TURN_TOKEN|>",
     .unk = "<UNK>",
     .sep = "<SEP>",
     .pad = "<PAD>",
     .cls = "<CLS>",
     .mask = "<MASK_TOKEN>",
     .padding_side = Side::kLeft},
    {.name = "T5Tokenizer", .eos = "</s>", .unk = "<unk>", .pad = "<pad>"},
    {.name = "CLIPTokenizer", .bos = "<|startoftext|>", .eos = kEnd, .unk = kEnd, .pad = kEnd},
});

// Older names of the same classes.
constexpr auto kAliases = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"BartTokenizer", "RobertaTokenizer"},
    {"ConvBertTokenizer", "BertTokenizer"},
    {"ElectraTokenizer", "BertTokenizer"},
    {"LayoutLMTokenizer", "BertTokenizer"},
    {"LongformerTokenizer", "RobertaTokenizer"},
    {"LxmertTokenizer", "BertTokenizer"},
    {"MobileBertTokenizer", "BertTokenizer"},
    {"SqueezeBertTokenizer", "BertTokenizer"},
});

// The class of a model type, for files that name none. A type that is not here has the general
// class.
constexpr auto kOfModel = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"albert", "AlbertTokenizer"},
    {"bart", "RobertaTokenizer"},
    {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"clip", "CLIPTokenizer"},
    {"code_llama", "CodeLlamaTokenizer"},
    {"cohere", "CohereTokenizer"},
    {"cohere2", "CohereTokenizer"},
    {"convbert", "BertTokenizer"},
    {"deberta", "DebertaTokenizer"},
    {"deberta-v2", "DebertaV2Tokenizer"},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_neo", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"gptj", "GPT2Tokenizer"},
    {"mobilebert", "BertTokenizer"},
    {"mpnet", "MPNetTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"olmo", "GPTNeoXTokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"phi", "GPT2Tokenizer"},
    {"qwen2", "Qwen2Tokenizer"},
    {"qwen2_moe", "Qwen2Tokenizer"},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"starcoder2", "GPT2Tokenizer"},
    {"t5", "T5Tokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
});

// Checkpoints of these types often declare another's class: the registered one counts.
constexpr auto kRegistered = std::to_array<std::string_view>({"qwen2"});

// Model types for which Transformers takes the general class whatever a file declares.
constexpr auto kGeneral =
    std::to_array<std::string_view>({"granite", "mistral", "mixtral", "ministral", "modernbert",
                                     "olmo2", "phi3", "phimoe", "nemotron", "jamba"});

std::string_view value_of(std::span<const std::pair<std::string_view, std::string_view>> table,
                          std::string_view key, std::string_view absent) {
  const auto found =
      std::ranges::find(table, key, &std::pair<std::string_view, std::string_view>::first);
  return found == table.end() ? absent : found->second;
}

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view class_name(std::string_view declared, std::string_view model_type,
                            bool byte_level) {
  const std::string_view registered = value_of(kOfModel, model_type, "");
  if (declared.empty() || is_in(kRegistered, model_type)) return registered;
  if (is_in(kGeneral, model_type)) return "";
  if (declared == "LlamaTokenizer" && byte_level) return "";
  return value_of(kAliases, declared, declared);
}

}  // namespace

const TokenizerClass& find_tokenizer_class(std::optional<std::string> declared,
                                           std::string_view model_type, bool byte_level) {
  std::string_view stem = declared ? std::string_view(*declared) : std::string_view();
  if (stem.ends_with("Fast")) stem.remove_suffix(4);
  const auto found =
      std::ranges::find(kClasses, class_name(stem, model_type, byte_level), &TokenizerClass::name);
  return found == kClasses.end() ? kClasses.front() : *found;
}

}  // namespace tranship::text
