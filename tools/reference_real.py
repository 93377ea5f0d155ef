"""The two real checkpoints through Transformers: embeddings of MiniLM, greedy tokens of SmolLM2."""

import math

import numpy as np
import torch
import transformers

NEW_TOKENS = 64
WANTED_PROMPTS = 5
MARGIN = 20  # each step's gap between the two best logits is over MARGIN x the tolerance

SENTENCES = [
    "Yes.",
    "The cat sat on the mat.",
    "A man is playing a guitar on a crowded street corner in the rain.",
    "What time does the last train leave?",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "He sold the boat.",
    "The committee will publish its findings at the end of the month, once every member has had a chance to comment.",
    "I don't think that's what she meant.",
    "Prices rose by 3.7% in the first quarter of 2024, the fastest pace since 1992.",
    "Bake at 180 degrees for forty minutes, or until a knife comes out clean.",
    "Der Zug hat heute leider Versp\u00e4tung.",
    "The mitochondrion is the powerhouse of the cell.",
    "On the far side of the lake, beyond the reeds and the old jetty, there is a path that leads up through the pines "
    "to a hut where, in summer, a shepherd sells cheese and tells anyone who will listen about the winter of 1956.",
    "Stop!",
    "A neural network is trained by gradient descent on a loss function.",
    "The quick brown fox jumps over the lazy dog.",
    "Could you please send me the invoice again? The attachment was empty.",
    "Caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u2014 accents, dashes and \u201cquotes\u201d.",
    "def add(a, b): return a + b",
    "It was raining.",
]

# (name, chat?, text): tried in this order; the first five whose every gap is wide enough are kept, and the
# question about France in any case.
CANDIDATES = [
    ("france", True, "What is the capital of France?"),
    ("story", False, "Once upon a time, in a small village by the sea,"),
    ("python", True, "Write a Python function that reverses a string."),
    ("sky", True, "Why is the sky blue? Answer in one paragraph."),
    ("list", False, "The planets of the solar system, in order from the sun, are"),
    ("poem", True, "Write a short poem about autumn."),
    ("gravity", True, "Explain gravity to a child in simple words."),
    ("bread", False, "To make bread you need flour, water, yeast and salt. First,"),
    ("count", False, "one, two, three, four, five,"),
    ("history", True, "Tell me about the Roman Empire in a few sentences."),
    ("letter", False, "Dear Sir or Madam,\n\nI am writing to"),
    ("photosynthesis", True, "What is photosynthesis?"),
    ("moon", False, "The moon goes around the earth because"),
    ("rain", True, "Give me three tips for walking in the rain."),
    ("music", False, "Music has been a part of human life for"),
    ("ocean", True, "Describe the ocean in two sentences."),
    ("water", False, "Water boils at 100 degrees Celsius, and it freezes at"),
    ("trees", True, "How do trees grow?"),
]


def minilm(folder):
    """Mean-pooled, L2-normalized embeddings of SENTENCES in one padded batch."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].float()
    pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    embeddings = torch.nn.functional.normalize(pooled, dim=1).numpy()
    rows = zip(SENTENCES, batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], embeddings, strict=True)
    return {
        "shape": list(embeddings.shape),
        "sentences": [
            {
                "text": text,
                "input_ids": ids.tolist(),
                "attention_mask": mask.tolist(),
                "token_type_ids": types.tolist(),
                "embedding": [float(str(np.float32(value))) for value in embedding],
            }
            for text, ids, mask, types, embedding in rows
        ],
    }


def generate(model, inputs):
    """Greedy tokens, per step the gap of the two best logits of each row, and the largest logit seen."""
    result = model.generate(
        **inputs,
        do_sample=False,
        max_new_tokens=NEW_TOKENS,
        output_logits=True,
        return_dict_in_generate=True,
    )
    new_ids = result.sequences[:, inputs["input_ids"].shape[1] :]
    logits = torch.stack(result.logits, 1)
    best = logits.topk(2, -1).values
    return new_ids, best[..., 0] - best[..., 1], logits.abs().max().item()


def rounded(values):
    return [float(f"{value:.5g}") for value in values]


def smollm2(path):
    """Greedy continuations with the dequantized f32 weights, each prompt alone, and a left-padded batch of three."""
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
    model = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).eval()
    longest_sum = max(model.config.hidden_size, model.config.intermediate_size)

    def tolerance(largest):
        return 4 * 2.0**-23 * math.sqrt(longest_sum) * largest

    kept, num_wide = [], 0
    for name, chat, text in CANDIDATES:
        prompt = text
        if chat:
            messages = [{"role": "user", "content": text}]
            prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = tokenizer(prompt, return_tensors="pt")
        new_ids, gaps, largest = generate(model, dict(inputs))
        wide = new_ids.shape[1] == NEW_TOKENS and gaps.min().item() > MARGIN * tolerance(largest)
        print(name, new_ids.shape[1], "gap", gaps.min().item(), "needed", MARGIN * tolerance(largest), "" if wide else "no")
        if not (wide or name == "france"):
            continue
        num_wide += wide
        kept.append(
            {
                "name": name,
                "chat": chat,
                "message": text,
                "prompt": prompt,
                "wide": wide,
                "prompt_ids": inputs["input_ids"][0].tolist(),
                "new_ids": new_ids[0].tolist(),
                "text": tokenizer.decode(new_ids[0], skip_special_tokens=True),
                "gaps": rounded(gaps[0].tolist()),
                "max_logit": rounded([largest])[0],
                "tolerance": rounded([tolerance(largest)])[0],
            }
        )
        if num_wide == WANTED_PROMPTS:
            break
    if num_wide < WANTED_PROMPTS:
        raise ValueError("too few prompts with wide gaps: add candidates")
    batch = padded_batch(tokenizer, model, [entry for entry in kept if entry["wide"]], tolerance)
    return {"longest_sum": longest_sum, "margin": MARGIN, "prompts": kept, "batch": batch}


def padded_batch(tokenizer, model, entries, tolerance):
    """The first three kept prompts of different lengths, padded on the left, whose gaps stay wide in company."""
    by_length = {len(entry["prompt_ids"]): entry for entry in reversed(entries)}
    chosen = list(by_length.values())[:3]
    if len(chosen) < 3:
        raise ValueError("the kept prompts have fewer than three lengths")
    tokenizer.padding_side = "left"
    inputs = tokenizer([entry["prompt"] for entry in chosen], padding=True, return_tensors="pt")
    new_ids, gaps, largest = generate(model, dict(inputs))
    alone = [entry["new_ids"] for entry in chosen]
    print("batch", [entry["name"] for entry in chosen], "gap", gaps.min().item(), "as alone:", new_ids.tolist() == alone)
    if gaps.min().item() <= MARGIN * tolerance(largest):
        raise ValueError("a gap of the padded batch is too narrow")
    return {
        "names": [entry["name"] for entry in chosen],
        "input_ids": inputs["input_ids"].tolist(),
        "attention_mask": inputs["attention_mask"].tolist(),
        "new_ids": new_ids.tolist(),
        "gaps": [rounded(row) for row in gaps.tolist()],
        "max_logit": rounded([largest])[0],
        "tolerance": rounded([tolerance(largest)])[0],
    }
