"""What tranship makes of a GGUF against what Transformers makes of it: configuration, every weight, every token id.

Needs gguf_dump (a target of the build with tests; TRANSHIP_GGUF_DUMP, or looked for under build/). The real model is
tested if TRANSHIP_SMOLLM2 names SmolLM2-135M-Instruct.Q4_1.gguf.
"""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_gguf_fixtures  # noqa: E402

DIGITS_DECIDE = ["   5 spaces", "line\n  12 items", "\u00bd \u00b2 \u2167 \u0663\u0664"]
TEXTS = [
    "", " ", "  ", "a", "Hello world", " Hello", "Hello  world", "Hello   world   ", "Hello!", "\n", "\n\n", "a\nb\r\nc\td",
    "  indented\n    more\n\tand tabs", "trailing \n", "the the The THE", "it's we're I'LL they've 'S", "don't can\u2019t",
    "1", "12", "123", "1234567", "3.14159", "v2.5-rc1", "2024-05-17T12:34:56Z", "x=1;y = 22", "a1b22c333",
    *DIGITS_DECIDE, "caf\u00e9 cafe\u0301 \u212b", "\u00df \u0130 \u01c6", "\u65e5\u672c\u8a9e\u3067\u3059\u3002",
    "\u4f60\u597d\uff0c\u4e16\u754c", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7", "a\u00a0b\u2003c\u200bd",
    "\u2581low \u0120", "!!! ??? ... -- == ->", "((a)[b]{c})", "http://example.com/a?b=c&d=%20", "def f(x):\n    return x ** 2  # square",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>", "a<|im_end|>b", "<|im_start|", "<think>so</think>", "<|user|> Hello <|end|>",
    "<s>[INST] x [/INST]</s>", "\x00\x01\x7f", "z" * 100, " " * 33, "\U0010ffff",
]  # fmt: skip


def digits_then_gpt2(tokenizer):
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def nfc(tokenizer):
    tokenizer.normalizer = normalizers.NFC()


def whole_words(tokenizer):
    tokenizer.model.ignore_merges = True


# What the tokenizers that `pre` names do, by their own tokenizer.json, and Transformers' reading of a GGUF does not.
CORRECTIONS = {
    "smollm": [digits_then_gpt2],
    "starcoder": [digits_then_gpt2],
    "qwen2": [nfc],
    "llama-bpe": [whole_words],
    "tekken": [whole_words],
}


def find_dump():
    named = os.environ.get("TRANSHIP_GGUF_DUMP")
    found = [named] if named else sorted(glob.glob(str(ROOT / "build" / "*" / "gguf_dump")), key=os.path.getmtime)
    if not found:
        raise FileNotFoundError("gguf_dump is not built: build the tests, or set TRANSHIP_GGUF_DUMP")
    return found[-1]


class GgufCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        cls.dump_program = find_dump()
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.model = cls.folder / "model.gguf"
        cls.ours = cls.folder / "ours"

    @classmethod
    def dump(cls):
        shutil.rmtree(cls.ours, ignore_errors=True)
        subprocess.run([cls.dump_program, cls.model, cls.ours], check=True, capture_output=True)

    def check_config(self):
        theirs = transformers.AutoConfig.from_pretrained(self.folder, gguf_file="model.gguf").to_dict()
        ours = transformers.AutoConfig.from_pretrained(self.ours).to_dict()
        for config in theirs, ours:
            # A name, Transformers' class (it gives none), and an id that only a tokenizer uses.
            for key in ("_name_or_path", "_model_name_or_path", "architectures", "dtype", "unk_token_id"):
                config.pop(key, None)
        self.assertEqual(ours, theirs)

    def check_weights(self):
        theirs = transformers.AutoModelForCausalLM.from_pretrained(self.folder, gguf_file="model.gguf")
        ours = transformers.AutoModelForCausalLM.from_pretrained(self.ours)
        self.assertIs(type(ours), type(theirs))
        expected = theirs.state_dict()
        self.assertEqual(set(ours.state_dict()), set(expected))
        for name, tensor in ours.state_dict().items():
            self.assertEqual(tensor.dtype, torch.float32, name)
            self.assertTrue(torch.equal(tensor.view(torch.int32), expected[name].view(torch.int32)), name)
        ids = torch.arange(12).reshape(2, 6)
        with torch.no_grad():
            self.assertTrue(torch.equal(ours(ids).logits, theirs(ids).logits))
        stated = json.loads((self.ours / "generation_config.json").read_text())
        theirs = theirs.generation_config.to_dict()
        self.assertEqual(stated, {key: theirs[key] for key in stated})

    def check_tokens(self, texts, corrections=()):
        """Our file alone, in the tokenizers library and in Transformers, against Transformers' own reading."""
        theirs = transformers.AutoTokenizer.from_pretrained(self.folder, gguf_file="model.gguf")
        for correct in corrections:
            correct(theirs.backend_tokenizer)
        library = Tokenizer.from_file(str(self.ours / "tokenizer.json"))
        loaded = transformers.AutoTokenizer.from_pretrained(self.ours)
        for text in texts:
            for special in (False, True):
                expected = theirs(text, add_special_tokens=special).input_ids
                self.assertEqual(library.encode(text, add_special_tokens=special).ids, expected, repr(text))
                self.assertEqual(loaded(text, add_special_tokens=special).input_ids, expected, repr(text))
            ids = library.encode(text, add_special_tokens=False).ids
            self.assertEqual(
                library.decode(ids, skip_special_tokens=False), theirs.decode(ids, skip_special_tokens=False), repr(text)
            )
        for name in ("bos_token", "eos_token", "unk_token", "pad_token", "chat_template"):
            stated = getattr(theirs, name)
            if name == "unk_token" and loaded.unk_token is None:
                continue  # Transformers makes one up
            self.assertEqual(getattr(loaded, name), stated, name)


class GgufTest(GgufCase):
    def test_small_models_have_the_same_configuration_and_weights(self):
        # Transformers takes 128 for qwen3's head_dim, whatever the file says.
        for architecture, head_dim in (("llama", 4), ("qwen2", 4), ("qwen3", 128)):
            with self.subTest(architecture):
                make_gguf_fixtures.write_byte_level(self.model, "gpt-2", architecture, head_dim)
                self.dump()
                self.check_config()
                self.check_weights()

    def test_every_known_split_gives_the_same_ids(self):
        for pre in ("default", "gpt-2", "smollm", "starcoder", "llama-bpe", "tekken", "qwen2", "deepseek-r1-qwen"):
            with self.subTest(pre):
                make_gguf_fixtures.write_byte_level(self.model, pre, add_add_bos_token=pre == "tekken", add_add_eos_token=True)
                self.dump()
                self.check_tokens(TEXTS, CORRECTIONS.get(pre, ()))

    def test_splits_are_those_of_transformers(self):
        for pre in ("llama-bpe", "llama3", "llama-v3", "falcon3", "tekken", "qwen2", "deepseek-r1-qwen"):
            make_gguf_fixtures.write_byte_level(self.model, pre)
            self.dump()
            written = json.loads((self.ours / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"][0]
            self.assertEqual(written["pattern"]["Regex"], GGUF_PRE_TOKENIZER_SPLITS[pre])
            Regex(written["pattern"]["Regex"])

    def test_llama3_gets_its_bos_if_the_file_does_not_say(self):
        make_gguf_fixtures.write_byte_level(self.model, "llama-bpe")
        self.dump()
        self.assertEqual(Tokenizer.from_file(str(self.ours / "tokenizer.json")).encode("a").ids[0], 1)

    def test_sentencepiece_gives_the_same_ids(self):
        for flags in ({}, {"add_add_bos_token": False, "add_add_eos_token": True}, {"add_pad_token_id": 2}):
            with self.subTest(flags):
                make_gguf_fixtures.write_sentencepiece(self.model, **flags)
                self.dump()
                self.check_tokens(TEXTS)
                theirs = transformers.AutoTokenizer.from_pretrained(self.folder, gguf_file="model.gguf")
                written = json.loads((self.ours / "tokenizer.json").read_text())["model"]["merges"]
                self.assertEqual(written, json.loads(theirs.backend_tokenizer.to_str())["model"]["merges"])

    def test_sentencepiece_without_a_prefix_space_adds_none(self):
        make_gguf_fixtures.write_sentencepiece(self.model, add_add_space_prefix=False)
        self.dump()
        library = Tokenizer.from_file(str(self.ours / "tokenizer.json"))
        self.assertEqual(library.encode("Hello", add_special_tokens=False).tokens, ["Hello"])
        self.assertEqual(library.decode(library.encode(" Hello").ids), " Hello")


@unittest.skipUnless(os.path.isfile(os.environ.get("TRANSHIP_SMOLLM2", "")), "TRANSHIP_SMOLLM2 names no GGUF file")
class SmolLm2Test(GgufCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model.symlink_to(os.environ["TRANSHIP_SMOLLM2"])
        cls.dump()

    def test_configuration_and_every_weight_are_the_same(self):
        self.check_config()
        self.check_weights()

    def test_every_text_gives_the_same_ids(self):
        self.check_tokens(TEXTS, CORRECTIONS["smollm"])
        # Only spaces before a digit, and digits that are not ASCII, tell Transformers' split from SmolLM2's own.
        self.check_tokens([text for text in TEXTS if text not in DIGITS_DECIDE])


if __name__ == "__main__":
    unittest.main(verbosity=2)
