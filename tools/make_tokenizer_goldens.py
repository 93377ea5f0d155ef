#!/usr/bin/env python3
"""Writes what tests of src/text compare with, by Transformers 5.23.0 and its AutoTokenizer.

    python tools/make_tokenizer_goldens.py [--minilm FOLDER] [--train]

tests/golden/tokenizer/<name>.json: ids, batches and decoded text of the tokenizers in tests/cases/tokenizer/<name>/ and
of all-MiniLM-L6-v2. tests/golden/tokenizer/chat.json: conversations as the templates in tests/cases/chat/ write them.
--train makes the small tokenizers anew first.
"""

import argparse
import json
import pathlib
import random
import shutil

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
GOLDEN = ROOT / "tests" / "golden" / "tokenizer"

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A ship carries cargo from one port to another; a graph carries numbers from one node to another.",
    "Don't you think they've said it's what I'm after? We're sure: you won't.",
    "Der schnelle braune Fuchs springt \u00fcber den faulen Hund.",
    "\u0411\u044b\u0441\u0442\u0440\u0430\u044f \u043b\u0438\u0441\u0430 \u043f\u0440\u044b\u0433\u0430\u0435\u0442.",
    "def add(a, b):\n    return a + b\n\nprint(add(1, 2))",
    "\u4eca\u65e5\u306f\u4e16\u754c\u3002 \u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "In 1999 there were 12345 ships, 67 ports and 8 seas.",
]

TEXTS = [
    "",
    " ",
    "   ",
    "\n",
    "\n\n \t\n",
    "hello",
    " hello",
    "Hello, world!",
    "hello  world   again",
    "trailing spaces   ",
    "Don't they've we're I'm it's won't you'll he'd",
    "a . b , c ? d ! e ' f n't 's",
    "ALL CAPS AND CamelCase",
    "snake_case_name = other->member[3]",
    "1 12 123 1234 12345 1234567890",
    "3.14159e-10 0x1F 1,000,000",
    "def f(x):\n\treturn x ** 2  # square\r\n",
    "caf\u00e9 cafe\u0301 na\u00efve \u00fcber \u00c5ngstr\u00f6m",
    "\u00df \u017f \ufb01 \u2460 \u212b",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u4f60\u597d\u4e16\u754c\u3002\u4eca\u65e5\u306f",
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092a\u093e\u0920",
    "emoji \U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 done",
    "\u200bzero\u200dwidth\ufeff",
    "nul \x00 bell \x07 del \x7f",
    "nbsp\u00a0and\u2003em\u3000ideographic",
    "line\u2028sep\u2029par\x85nel\x0bvt",
    "\ufffd replacement \ufffd\ufffd",
    "<|im_start|>user\nhi<|im_end|>",
    "<s>[INST] hi [/INST]</s> bye</s>",
    "[CLS] mask [MASK] [SEP] [UNK]",
    "<|endoftext|>a <|endoftext|> b<|endoftext|>",
    "<|tool|><0xE2><0x82><0xAC> <unk>",
    "\u2581under\u2581score \u0120gpt",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    " " * 300 + "x",
    "\U00010348\U0001d54f\u0378 unassigned",
    "https://example.org/a?b=c&d=%20#frag user@host.tld",
    "\"quotes\" \u201cand\u201d \u2018more\u2019 \u2014 dashes \u2026",
    "The quick brown fox jumps over the lazy dog. " * 8,
]


def save(folder, tokenizer, config, model_type, **more):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    texts = {"tokenizer_config.json": config, "config.json": {"model_type": model_type}, **more}
    for name, content in texts.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / name).write_text(text)


def train_bytelevel():
    """As GPT-2's, with settings inside that must not act, a token that only the config knows, and a template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B:1", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8, direction="left", pad_id=2, pad_token="<|im_end|>")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|endoftext|>",
        "eos_token": {"__type": "AddedToken", "content": "<|im_end|>", "lstrip": False, "normalized": False},
        "unk_token": None,
        "additional_special_tokens": ["<|tool|>"],
        "image_token": "<|image|>",
        "add_bos_token": False,
        "clean_up_tokenization_spaces": True,
        "model_max_length": 1e30,
    }
    chat = (CASES / "chat" / "chatml.jinja").read_text()
    save(CASES / "tokenizer" / "bytelevel", tokenizer, config, "llama", **{"chat_template.jinja": chat})


def train_metaspace():
    """As Llama 2's: Transformers' LlamaTokenizer takes its vocabulary and makes the steps itself."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    words = [word + " " for line in CORPUS for word in line.split()]
    tokenizer.train_from_iterator(words, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    config = {"tokenizer_class": "LlamaTokenizer", "legacy": False, "pad_token": "</s>", "padding_side": "right"}
    save(CASES / "tokenizer" / "metaspace", tokenizer, config, "llama")


def train_wordpiece():
    """As BERT's: no class is named, tokens are in the older file, spaces are cleaned up."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = {"do_lower_case": True, "clean_up_tokenization_spaces": True}
    tokens = {"cls_token": "[CLS]", "mask_token": {"content": "[MASK]", "lstrip": True, "normalized": False}}
    save(CASES / "tokenizer" / "wordpiece", tokenizer, config, "bert", **{"special_tokens_map.json": tokens})


def train_unigram():
    """A model of pieces with a Metaspace decoder; names of its inputs and truncation from the left are set."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = [AddedToken("<pad>", special=True), AddedToken("</s>", special=True), AddedToken("<unk>", special=True)]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": True,
        "model_input_names": ["input_ids", "attention_mask", "token_type_ids"],
        "truncation_side": "left",
        "padding_side": "left",
    }
    save(CASES / "tokenizer" / "unigram", tokenizer, config, "t5")


def batches_of(tokenizer, rng):
    for side in ["left", "right", None]:
        for max_length in [None, 6]:
            texts = rng.sample(TEXTS[5:], 3)
            more = {"padding_side": side} if side else {}
            out = tokenizer(
                texts,
                padding=True,
                truncation=max_length is not None,
                max_length=max_length,
                return_token_type_ids=True,
                return_attention_mask=True,
                **more,
            )
            yield {
                "texts": texts,
                "padding_side": side,
                "max_length": max_length,
                "ids": out["input_ids"],
                "type_ids": out["token_type_ids"],
                "attention_mask": out["attention_mask"],
            }


def golden_of(folder):
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    rng = random.Random(5)
    texts = []
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        texts.append(
            {
                "text": text,
                "ids": ids,
                "plain_ids": tokenizer(text, add_special_tokens=False)["input_ids"],
                "decoded": tokenizer.decode(ids, skip_special_tokens=True),
                "decoded_whole": tokenizer.decode(ids, skip_special_tokens=False),
            }
        )
    decodes = []
    for length in [1, 2, 3, 5, 8, 40, 40, 40, 40, 200]:
        ids = [rng.randrange(len(tokenizer) + 3) for _ in range(length)]
        for skip in [True, False]:
            text = tokenizer.decode(ids, skip_special_tokens=skip)
            decodes.append({"ids": ids, "skip_special_tokens": skip, "text": text})
    names = ["bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "image_token"]
    return {
        "special": {name: [getattr(tokenizer, name), getattr(tokenizer, name + "_id")]
                    for name in names if getattr(tokenizer, name, None) is not None},
        "vocab_size": len(tokenizer),
        "model_input_names": tokenizer.model_input_names,
        "padding_side": tokenizer.padding_side,
        "texts": texts,
        "decodes": decodes,
        "batches": list(batches_of(tokenizer, rng)),
    }


USER = {"role": "user", "content": "  What's 2 < 3 & \"x\"? \n"}
SYSTEM = {"role": "system", "content": "Be brief. \u00c9t\u00e9."}
ASSISTANT = {"role": "assistant", "content": " Yes.\n"}
THOUGHT = {"role": "assistant", "content": "<think>\nhm, <b>\n</think>\n\nSure."}
REASONED = {"role": "assistant", "content": "Sure.", "reasoning": "why not"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "abcdef123", "type": "function",
         "function": {"name": "weather", "arguments": {"city": "Z\u00fcrich", "days": 2, "exact": True, "at": None}}}
    ],
}
TEXT_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "search", "arguments": {"query": "a"}}}],
}
RESULT = {"role": "tool", "content": "{\"degrees\": 21.5}"}
MAPPED = {"role": "tool", "content": {"degrees": 21.5, "sunny": True}}
PARTS = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " what is it? "}]}
TOOLS = [
    {"type": "function",
     "function": {"name": "weather", "description": "The weather <now>",
                  "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                                 "required": ["city"]}}},
    {"type": "function", "function": {"name": "search", "description": "Finds \u00e9", "parameters": {}}},
]
CONVERSATIONS = [
    {"messages": [USER]},
    {"messages": [USER], "add_generation_prompt": False},
    {"messages": [SYSTEM, USER, ASSISTANT, USER]},
    {"messages": [USER, USER]},
    {"messages": [SYSTEM, USER, THOUGHT, USER, THOUGHT], "add_generation_prompt": False},
    {"messages": [USER, REASONED, USER], "variables": {"enable_thinking": False}},
    {"messages": [SYSTEM, USER, CALL, RESULT], "tools": TOOLS},
    {"messages": [USER, CALL, MAPPED, RESULT, ASSISTANT, USER], "tools": TOOLS[:1]},
    {"messages": [USER, TEXT_CALL, RESULT], "variables": {"builtin_tools": ["search", "code_interpreter"]}},
    {"messages": [SYSTEM, PARTS, ASSISTANT, PARTS]},
    {"messages": [{"role": "critic", "content": "hm"}]},
]


def chat_goldens():
    tokenizer = AutoTokenizer.from_pretrained(str(CASES / "tokenizer" / "bytelevel"), local_files_only=True)
    cases = []
    for path in sorted((CASES / "chat").glob("*.jinja")):
        for conversation in CONVERSATIONS:
            case = {"template": path.name, "messages": conversation["messages"],
                    "add_generation_prompt": conversation.get("add_generation_prompt", True),
                    "tools": conversation.get("tools"),
                    "variables": {"date_string": "01 Jan 2026", **conversation.get("variables", {})}}
            try:
                case["text"] = tokenizer.apply_chat_template(
                    case["messages"], tools=case["tools"], chat_template=path.read_text(), tokenize=False,
                    add_generation_prompt=case["add_generation_prompt"], **case["variables"])
            except Exception as error:  # noqa: BLE001 the template's own, of any kind
                case["error"] = f"{type(error).__name__}: {error}"
            cases.append(case)
    return cases


def write(name, golden):
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / f"{name}.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--train", action="store_true")
    arguments = parser.parse_args()
    if arguments.train:
        for train in [train_bytelevel, train_metaspace, train_wordpiece, train_unigram]:
            train()
    for folder in sorted((CASES / "tokenizer").iterdir()):
        write(folder.name, golden_of(folder))
    if arguments.minilm:
        write("minilm", golden_of(arguments.minilm))
    write("chat", chat_goldens())


if __name__ == "__main__":
    main()
