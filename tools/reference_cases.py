"""The tiny models whose numbers are committed: one entry a case, in the spelling that config.json files have.

A forward case is (config, runs); a generation case is (config, prompts). `reference.py` runs them.
Configs are spelled as checkpoints in the wild spell them: old ones have `rope_scaling` and `rope_theta`,
new ones `rope_parameters`. All dtypes are float32.
"""

import math
from dataclasses import dataclass, field

VOCAB = 96
PAD = 2

DECODER = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "tie_word_embeddings": False,
    "dtype": "float32",
}

ENCODER = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": PAD,
    "dtype": "float32",
}

ENCODER_DECODER = {
    "t5": {
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": VOCAB,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
        "feed_forward_proj": "relu",
        "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-6,
        "n_positions": 64,
        "is_encoder_decoder": True,
        "pad_token_id": PAD,
        "eos_token_id": 1,
        "decoder_start_token_id": PAD,
        "dtype": "float32",
    },
    "whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "vocab_size": VOCAB,
        "num_mel_bins": 8,
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 48,
        "max_source_positions": 20,
        "max_target_positions": 32,
        "activation_function": "gelu",
        "dropout": 0.0,
        "scale_embedding": False,
        "is_encoder_decoder": True,
        "pad_token_id": PAD,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": PAD,
        "dtype": "float32",
    },
}

LABELS = {
    "id2label": {"0": "negative", "1": "neutral", "2": "positive"},
    "label2id": {"negative": 0, "neutral": 1, "positive": 2},
}


def token_ids(batch, length, salt=0):
    """Ids that neither repeat soon nor hit a special token."""
    return [[3 + (31 * i + 17 * i * i + 29 * row + 7 * salt) % (VOCAB - 3) for i in range(length)] for row in range(batch)]


@dataclass
class Run:
    """Inputs of one call. `positions`: the places along axis 1 whose outputs are kept; None keeps all."""

    inputs: dict
    positions: list | None = None


def padded(length, kept, side, salt=0, pad=PAD):
    """A batch with a full row and one of `kept` tokens, padded on a side."""
    ids = token_ids(2, length, salt)
    mask = [[1] * length, [1] * length]
    for i in range(length - kept):
        at = i if side == "left" else length - 1 - i
        ids[1][at], mask[1][at] = pad, 0
    return {"input_ids": ids, "attention_mask": mask}


def plain(length, salt=0):
    return {"input_ids": token_ids(1, length, salt), "attention_mask": [[1] * length]}


def one_row_masked():
    return {"input_ids": token_ids(2, 5, 3), "attention_mask": [[1] * 5, [0] * 5]}


def mask_positions(mask):
    """position_ids as generate() makes them: counted over the mask, 0 at padding."""
    rows = []
    for row in mask:
        seen, out = 0, []
        for bit in row:
            seen += bit
            out.append(seen - 1 if bit else 0)
        rows.append(out)
    return rows


def with_positions(inputs):
    return {**inputs, "position_ids": mask_positions(inputs["attention_mask"])}


def runs(*lengths, extra=()):
    """Length 1, a left- and a right-padded batch, then one row of each length."""
    out = [
        Run(plain(1)),
        Run(padded(7, 4, "left"), [0, 3, 6]),
        Run(padded(7, 5, "right", 1), [0, 4, 6]),
    ]
    out += [Run(plain(n, 2), sorted({0, n // 2, n - 2, n - 1})) for n in lengths or (33,)]
    return out + list(extra)


@dataclass
class Forward:
    config: dict
    runs: list = field(default_factory=runs)
    # Arguments of the call besides the inputs.
    call: dict = field(default_factory=dict)
    # Arguments of the class besides the config, and the tensors which a checkpoint then lacks.
    arguments: dict = field(default_factory=dict)
    absent_tensors: list = field(default_factory=list)
    # Weights that the class ties and this checkpoint does not.
    own_tensors: list = field(default_factory=list)


@dataclass
class Generation:
    """Prefill over `inputs`, then a cached step for each list in `next_ids` (a token a row)."""

    config: dict
    prompts: list
    num_steps: int = 6


def decoder(family, kind="ForCausalLM", **changes):
    names = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "qwen3_moe": "Qwen3Moe"}
    name = names[family]
    own = {
        "llama": {"attention_bias": False, "mlp_bias": False, "rope_theta": 10000.0, "rope_scaling": None},
        "mistral": {"sliding_window": None, "rope_theta": 10000.0},
        "qwen2": {"use_sliding_window": False, "sliding_window": 8, "max_window_layers": 2, "rope_theta": 1000000.0},
        "qwen3": {
            "head_dim": 16,
            "attention_bias": False,
            "use_sliding_window": False,
            "sliding_window": None,
            "max_window_layers": 2,
            "rope_theta": 1000000.0,
            "rope_scaling": None,
        },
        "qwen3_moe": {
            "head_dim": 16,
            "attention_bias": False,
            "use_sliding_window": False,
            "sliding_window": None,
            "max_window_layers": 2,
            "rope_theta": 1000000.0,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "output_router_logits": False,
            "router_aux_loss_coef": 0.001,
        },
    }[family]
    config = {"architectures": [name + kind], "model_type": family, **DECODER, **own, **changes}
    return {key: value for key, value in config.items() if value is not ...}  # ... removes a key


def bert(kind, **changes):
    return {"architectures": ["Bert" + kind], "model_type": "bert", **ENCODER, **changes}


SHORT_FACTOR = [1.0, 1.1, 1.3, 1.8]
LONG_FACTOR = [1.0, 2.5, 6.0, 12.0]

# Old spelling of each rope type: (rope_scaling, other keys). Heads have 8 numbers, so 4 frequencies.
ROPES = {
    "linear": ({"type": "linear", "factor": 4.0}, {}),
    "dynamic": ({"type": "dynamic", "factor": 2.0}, {"max_position_embeddings": 16}),
    "yarn": ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}, {}),
    "yarn_attention_factor": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 0.8},
        {},
    ),
    "yarn_mscale": (
        {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.7, "mscale_all_dim": 1.3},
        {},
    ),
    "yarn_mscale_alone": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.7},
        {},
    ),
    "yarn_beta": (
        {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32,
            "beta_fast": 6.0,
            "beta_slow": 0.4,
        },
        {},
    ),
    "yarn_no_truncate": (
        {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32,
            "beta_fast": 6,
            "beta_slow": 0.4,
            "truncate": False,
        },
        {},
    ),
    # Kimi K2.5's numbers.
    "yarn_factor_64": (
        {
            "rope_type": "yarn",
            "factor": 64.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        {"max_position_embeddings": 262144},
    ),
    "yarn_original_from_max": ({"rope_type": "yarn", "factor": 2.0}, {"max_position_embeddings": 32}),
    "longrope": (
        {"type": "longrope", "short_factor": SHORT_FACTOR, "long_factor": LONG_FACTOR},
        {"original_max_position_embeddings": 16},
    ),
    "longrope_factor": (
        {
            "rope_type": "longrope",
            "short_factor": SHORT_FACTOR,
            "long_factor": LONG_FACTOR,
            "factor": 8.0,
            "original_max_position_embeddings": 16,
        },
        {},
    ),
    "longrope_attention_factor": (
        {
            "rope_type": "longrope",
            "short_factor": SHORT_FACTOR,
            "long_factor": LONG_FACTOR,
            "attention_factor": 1.25,
            "original_max_position_embeddings": 16,
        },
        {},
    ),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
        {},
    ),
}
# Within the original length (the padded batches are too), just on the border, and beyond it.
ROPE_LENGTHS = (16, 17, 40)


def new_spelling(scaling, theta):
    """rope_parameters, as Transformers 5 writes them."""
    out = {("rope_type" if key == "type" else key): value for key, value in scaling.items()}
    return {"rope_parameters": {**out, "rope_theta": theta}, "rope_theta": ..., "rope_scaling": ...}


def causal_cases():
    cases = {}
    for family in ("llama", "mistral", "qwen2", "qwen3"):
        default_extra = [
            Run(one_row_masked()),
            Run(with_positions(padded(7, 4, "left")), [0, 3, 6]),
        ]
        cases[f"{family}_default"] = Forward(decoder(family), runs(extra=default_extra))
        cases[f"{family}_tied"] = Forward(decoder(family, tie_word_embeddings=True))
        cases[f"{family}_rope_parameters"] = Forward(decoder(family, **new_spelling({"rope_type": "default"}, 5000.0)))
        cases[f"{family}_model"] = Forward(decoder(family, "Model", pad_token_id=PAD))
        rows = [
            Run(plain(1, 3)),
            Run(padded(7, 4, "left")),
            Run(padded(7, 5, "right", 1)),
            Run(plain(33, 2)),
            Run({"input_ids": [[PAD] * 4, token_ids(1, 4)[0]], "attention_mask": [[0] * 4, [1] * 4]}),
            Run({"input_ids": [[9, PAD, 11, PAD], [9, 10, PAD, 12]], "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1]]}),
        ]
        cases[f"{family}_sequence_classification"] = Forward(
            decoder(family, "ForSequenceClassification", pad_token_id=PAD, **LABELS), rows
        )
    cases["llama_sequence_classification_no_pad_token"] = Forward(
        decoder("llama", "ForSequenceClassification", **LABELS), [Run(plain(1, 3)), Run(plain(7)), Run(plain(33, 2))]
    )

    cases["llama_attention_bias"] = Forward(decoder("llama", attention_bias=True))
    cases["llama_mlp_bias"] = Forward(decoder("llama", mlp_bias=True))
    cases["llama_both_biases"] = Forward(decoder("llama", attention_bias=True, mlp_bias=True))
    cases["llama_both_biases_tied"] = Forward(
        decoder("llama", attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
    )
    cases["llama_head_dim"] = Forward(decoder("llama", head_dim=12))
    cases["llama_multi_head"] = Forward(decoder("llama", num_key_value_heads=4))
    cases["llama_multi_query"] = Forward(decoder("llama", num_key_value_heads=1))
    cases["llama_no_key_value_heads"] = Forward(decoder("llama", num_key_value_heads=...))
    cases["llama_rope_theta"] = Forward(decoder("llama", rope_theta=500000.0, rms_norm_eps=1e-5))
    cases["llama_rope_theta_absent"] = Forward(decoder("llama", rope_theta=..., rope_scaling=...))
    for act in ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu"):
        cases[f"llama_{act}"] = Forward(decoder("llama", hidden_act=act), runs()[:2])
    for rope, (scaling, others) in ROPES.items():
        lengths = (32, 33, 48) if scaling.get("original_max_position_embeddings") == 32 else ROPE_LENGTHS
        rows = runs(*lengths)
        cases[f"llama_{rope}"] = Forward(decoder("llama", rope_theta=1000.0, rope_scaling=scaling, **others), rows)
        cases[f"llama_{rope}_rope_parameters"] = Forward(
            decoder("llama", **new_spelling(scaling, 1000.0), **others), rows[1:2] + rows[-1:]
        )
    for rope in ("linear", "dynamic", "yarn", "longrope", "llama3"):
        scaling, others = ROPES[rope]
        for family in ("mistral", "qwen2", "qwen3"):
            heads = {"head_dim": 8} if family == "qwen3" else {}
            cases[f"{family}_{rope}"] = Forward(
                decoder(family, rope_theta=1000.0, rope_scaling=scaling, **others, **heads), runs(16, 40)
            )
    scaling, others = ROPES["longrope_factor"]
    cases["llama_longrope_left_padded"] = Forward(
        decoder("llama", rope_theta=1000.0, rope_scaling=scaling, **others),
        [Run(with_positions(padded(20, 12, "left")), [0, 8, 19]), Run(padded(20, 12, "left"), [0, 8, 19])],
    )

    window = (33, 8, 9)
    cases["mistral_sliding_window"] = Forward(
        decoder("mistral", sliding_window=8), runs(*window, extra=[Run(padded(20, 11, "left"), [0, 9, 12, 19])])
    )
    cases["mistral_sliding_window_tied_head_dim"] = Forward(
        decoder("mistral", sliding_window=4, head_dim=12, tie_word_embeddings=True)
    )
    cases["mistral_sliding_window_model"] = Forward(decoder("mistral", "Model", sliding_window=8), runs(*window))
    cases["mistral_sliding_window_absent"] = Forward(decoder("mistral", sliding_window=...))
    cases["mistral_head_dim"] = Forward(decoder("mistral", head_dim=12))

    left = [Run(padded(20, 11, "left"), [0, 9, 12, 19])]
    for family in ("qwen2", "qwen3"):
        sliding = {"use_sliding_window": True, "sliding_window": 8}
        cases[f"{family}_sliding_window"] = Forward(
            decoder(family, **sliding, max_window_layers=1), runs(*window, extra=left)
        )
        cases[f"{family}_sliding_window_all"] = Forward(decoder(family, **sliding, max_window_layers=0), runs(*window))
        cases[f"{family}_sliding_window_none"] = Forward(decoder(family, **sliding, max_window_layers=2), runs(*window))
        cases[f"{family}_layer_types"] = Forward(
            decoder(family, **sliding, layer_types=["sliding_attention", "full_attention"]), runs(*window, extra=left)
        )
        cases[f"{family}_layer_types_model"] = Forward(
            decoder(family, "Model", **sliding, layer_types=["sliding_attention", "full_attention"]), runs(*window)
        )
    cases["qwen3_attention_bias"] = Forward(decoder("qwen3", attention_bias=True))
    cases["qwen3_head_dim_absent"] = Forward(decoder("qwen3", head_dim=...))
    return cases


def bert_cases():
    types = {"token_type_ids": [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]]}
    positions = {"position_ids": [[0, 1, 2, 3, 4, 5, 6], [3, 9, 8, 7, 2, 40, 63]]}
    rows = [
        *runs(),
        Run({**padded(7, 5, "right"), **types}, [0, 4, 6]),
        Run({**padded(7, 5, "right"), **types, **positions}, [0, 4, 6]),
    ]
    whole = [Run(run.inputs) for run in rows]
    masked = [Run(one_row_masked())]
    no_pooler = Forward(bert("Model"), rows, {"add_pooling_layer": False}, ["pooler.dense.weight", "pooler.dense.bias"])
    cases = {
        "bert_model": Forward(bert("Model"), rows + masked),
        "bert_model_no_pooler": no_pooler,
        "bert_model_gelu_new": Forward(bert("Model", hidden_act="gelu_new")),
        "bert_model_relu": Forward(bert("Model", hidden_act="relu", layer_norm_eps=1e-5)),
        "bert_model_one_token_type": Forward(bert("Model", type_vocab_size=1)),
        "bert_model_four_token_types": Forward(
            bert("Model", type_vocab_size=4),
            [Run({**plain(7), "token_type_ids": [[0, 1, 2, 3, 3, 1, 0]]}, [0, 3, 6])],
        ),
        "bert_model_three_heads": Forward(bert("Model", hidden_size=24, num_attention_heads=3)),
        "bert_masked_lm": Forward(bert("ForMaskedLM", position_embedding_type="absolute", use_cache=True), rows),
        "bert_masked_lm_untied": Forward(bert("ForMaskedLM", tie_word_embeddings=False)),
        "bert_masked_lm_relu": Forward(bert("ForMaskedLM", hidden_act="relu"), runs()[:2]),
        "bert_sequence_classification": Forward(bert("ForSequenceClassification"), whole),
        "bert_sequence_classification_labels": Forward(
            bert("ForSequenceClassification", problem_type="single_label_classification", **LABELS), whole[:3]
        ),
        "bert_token_classification": Forward(
            bert("ForTokenClassification", classifier_dropout=0.2, **LABELS), [Run(run.inputs) for run in rows]
        ),
        "bert_question_answering": Forward(bert("ForQuestionAnswering"), whole),
    }
    return cases


def moe_cases():
    def case(kind="ForCausalLM", more=(), **changes):
        wide = {"input_ids": token_ids(2, 33, 7), "attention_mask": [[1] * 33] * 2}  # each expert has a token
        return Forward(decoder("qwen3_moe", kind, **changes), runs(9, extra=[Run(wide, [0, 31, 32])]), **dict(more))

    saved_rope = {"rope_theta": 10000.0, "rope_type": "default"}
    stacked = [f"model.layers.{i}.mlp.experts.{name}" for i in range(2) for name in ("gate_up_proj", "down_proj")]
    return {
        "qwen3_moe_default": case(),
        "qwen3_moe_model": case("Model"),
        "qwen3_moe_raw_probabilities": case(norm_topk_prob=False, num_experts_per_tok=3, tie_word_embeddings=True),
        "qwen3_moe_mlp_only_layers": case(mlp_only_layers=[0], attention_bias=True),
        "qwen3_moe_decoder_sparse_step": case(decoder_sparse_step=2),
        "qwen3_moe_saved_again": case(num_experts=..., num_local_experts=4, rope_parameters=saved_rope, rope_theta=...),
        "qwen3_moe_sliding_window": case(use_sliding_window=True, sliding_window=8),
        "qwen3_moe_stacked": case(more={"own_tensors": stacked}),
    }


MAMBA = {
    "architectures": ["MambaForCausalLM"],
    "model_type": "mamba",
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "state_size": 8,
    "num_hidden_layers": 2,
    "conv_kernel": 4,
    "expand": 2,
    "time_step_rank": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "hidden_act": "silu",
    "layer_norm_epsilon": 1e-5,
    "residual_in_fp32": True,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "tie_word_embeddings": True,
    "dtype": "float32",
}

MAMBA_KINDS = {
    "mamba_default": {},
    "mamba_biases": {"use_bias": True, "use_conv_bias": False, "tie_word_embeddings": False, "num_hidden_layers": 3},
    "mamba_sizes": {"conv_kernel": 3, "expand": 1, "state_size": 5, "time_step_rank": "auto", "residual_in_fp32": False},
}


def mamba_cases():
    longer = Run(plain(64, 2), [0, 1, 31, 62, 63])
    cases = {name: Forward({**MAMBA, **changes}, runs(7, extra=[longer])) for name, changes in MAMBA_KINDS.items()}
    unmasked = Run({"input_ids": token_ids(2, 7, 3)}, [0, 3, 6])
    cases["mamba_default"].runs.append(unmasked)
    return {**cases, "mamba_model": Forward({**MAMBA, "architectures": ["MambaModel"]}, runs(7))}


def state_cases():
    prompts = [plain(n, 4) for n in (1, 2, 7, 64)] + [padded(7, 4, "left", 5), padded(5, 1, "left", 6)]
    return {name: Generation({**MAMBA, **changes}, prompts) for name, changes in MAMBA_KINDS.items()}


def token_cases():
    moe = decoder("qwen3_moe", decoder_sparse_step=2)
    return {"mamba": Forward({**MAMBA, "use_bias": True}), "qwen3_moe": Forward(moe)}


def images(batch, height, width, salt=0):
    return {"pixel_values": {"numbers": f"image {salt}", "shape": [batch, 3, height, width]}}


VIT = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "num_channels": 3,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "qkv_bias": True,
    "encoder_stride": 8,
    "dtype": "float32",
    **LABELS,
}


def vit_cases():
    def case(rows, interpolates=True, **changes):
        config = {key: value for key, value in {**VIT, **changes}.items() if value is not ...}
        return Forward(config, rows, call={"interpolate_pos_encoding": interpolates})

    sizes = [(1, 32, 32), (2, 64, 32), (1, 8, 24), (1, 37, 50)]
    small = [Run(images(*size, salt), [0]) for salt, size in enumerate(sizes)]
    ends = [Run(images(*size, salt), [0, 1, -1]) for salt, size in enumerate(sizes)]
    for run, (_, height, width) in zip(ends, sizes):
        run.positions[-1] = (height // 8) * (width // 8)
    model = {"architectures": ["ViTModel"], "id2label": ..., "label2id": ...}
    return {
        "vit_default": case(small),
        "vit_224": case([Run(images(1, 224, 224, 4)), Run(images(1, 448, 224, 5))], image_size=224, patch_size=16),
        "vit_model": case(ends, **model),
        "vit_model_pooler": case(ends[:2], **model, pooler_act="relu", pooler_output_size=20, qkv_bias=False, hidden_act="gelu_new"),
        "vit_wide": case([Run(images(2, 16, 40, 6))], False, image_size=[16, 40], patch_size=[8, 10]),
    }


def encoder_decoder(family, **changes):
    config = {"model_type": family, **ENCODER_DECODER[family], **changes}
    return {key: value for key, value in config.items() if value is not ...}  # ... removes a key


def beside(inputs, length, salt=3):
    """The same with tokens for the decoder."""
    return {**inputs, "decoder_input_ids": token_ids(len(inputs["input_ids"]), length, salt)}


def t5_cases():
    left, right = padded(7, 4, "left"), padded(7, 5, "right", 1)
    decoder_left = padded(4, 3, "left", 3)
    rows = [
        Run(beside(plain(1), 1)),
        Run(beside(left, 4)),
        Run(beside(right, 3)),
        Run(beside(plain(33, 2), 25), [0, 16, 31, 32]),
        Run(
            {
                **left,
                "decoder_input_ids": decoder_left["input_ids"],
                "decoder_attention_mask": [[1] * 4, [1] * 4],
            }
        ),
    ]
    gated = {"feed_forward_proj": "gated-gelu"}
    saved = {"dense_act_fn": "gelu_new", "is_gated_act": True, "scale_decoder_outputs": False, "classifier_dropout": 0.0}
    wide = {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}
    long = [Run(beside(plain(150, 2), 150), [0, 75, 149])]
    encoder_rows = [Run({key: run.inputs[key] for key in ("input_ids", "attention_mask")}, run.positions) for run in rows[:4]]
    return {
        "t5_default": Forward(encoder_decoder("t5"), rows),
        "t5_buckets": Forward(encoder_decoder("t5", num_layers=1, **wide), long),
        "t5_buckets_absent": Forward(
            encoder_decoder("t5", relative_attention_num_buckets=..., relative_attention_max_distance=...), rows[1:3]
        ),
        "t5_d_kv": Forward(encoder_decoder("t5", d_kv=12, num_heads=3), rows[:3]),
        "t5_num_decoder_layers": Forward(encoder_decoder("t5", num_decoder_layers=1), rows[:3]),
        "t5_gated_gelu": Forward(
            encoder_decoder("t5", **gated, tie_word_embeddings=False), rows[:4], own_tensors=["lm_head.weight"]
        ),
        "t5_gated_gelu_saved_again": Forward(
            encoder_decoder("t5", **gated, tie_word_embeddings=True, **saved), rows[:3], own_tensors=["lm_head.weight"]
        ),
        "t5_gated_gelu_no_head": Forward(encoder_decoder("t5", **gated, tie_word_embeddings=False), rows[:3]),
        "t5_gated_silu": Forward(encoder_decoder("t5", feed_forward_proj="gated-silu"), rows[:3]),
        "t5_gelu": Forward(encoder_decoder("t5", feed_forward_proj="gelu"), rows[:3]),
        "t5_model": Forward(encoder_decoder("t5", architectures=["T5Model"]), rows),
        "t5_encoder_model": Forward(
            encoder_decoder("t5", architectures=["T5EncoderModel"], is_encoder_decoder=False, use_cache=False), encoder_rows
        ),
    }


def sounds(batch, mel=8, frames=40, salt=0):
    """Something like a spectrogram, in two digits."""
    return {
        "input_features": [
            [[round(math.sin(0.37 * (i + 1) * (j + 2) + 1.3 * row + salt), 2) for i in range(frames)] for j in range(mel)]
            for row in range(batch)
        ]
    }


def whisper_cases():
    rows = [
        Run({**sounds(1), "decoder_input_ids": token_ids(1, 1, 3)}),
        Run({**sounds(2, salt=1), "decoder_input_ids": token_ids(2, 5, 4)}),
        Run({**sounds(1, salt=2), "decoder_input_ids": token_ids(1, 32, 5)}),
        Run(
            {
                **sounds(2, salt=3),
                "decoder_input_ids": padded(4, 3, "left", 3)["input_ids"],
                "decoder_attention_mask": [[1] * 4, [1] * 4],
            }
        ),
    ]
    sizes = {"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 24}
    other = {**sizes, "num_hidden_layers": 1, "decoder_attention_heads": 8, "activation_function": "relu"}
    mel = [Run({**sounds(1, 5, 24), "decoder_input_ids": token_ids(1, 3, 3)})]
    return {
        "whisper_default": Forward(encoder_decoder("whisper"), rows),
        "whisper_sizes": Forward(encoder_decoder("whisper", **other), rows[:2]),
        "whisper_mel": Forward(encoder_decoder("whisper", num_mel_bins=5, max_source_positions=12), mel),
        "whisper_untied": Forward(encoder_decoder("whisper", tie_word_embeddings=False), rows[:2]),
        "whisper_model": Forward(encoder_decoder("whisper", architectures=["WhisperModel"]), rows[:2]),
    }


@dataclass
class EncoderDecoder:
    """The encoder over `inputs`, prefill over so many tokens of the decoder, then cached steps."""

    config: dict
    prompts: list  # (inputs of the encoder, tokens of the decoder)
    num_steps: int = 5


def encoder_decoder_cases():
    left, right = padded(7, 4, "left", 5), padded(9, 5, "right", 1)
    return {
        "t5_default": EncoderDecoder(encoder_decoder("t5"), [(plain(7, 4), 1), (left, 3), (right, 1), (plain(1, 4), 1)]),
        "t5_long": EncoderDecoder(encoder_decoder("t5", num_decoder_layers=1), [(plain(33, 4), 1)], 24),
        "t5_gated_gelu": EncoderDecoder(
            encoder_decoder("t5", feed_forward_proj="gated-gelu", tie_word_embeddings=False), [(right, 2)]
        ),
        "whisper_default": EncoderDecoder(encoder_decoder("whisper"), [(sounds(1), 1), (sounds(2, salt=1), 4)]),
    }


def generation_cases():
    """Prompts within and across the borders that matter, one row and a left-padded batch."""

    def prompts(*lengths, kept=4):
        return [plain(n, 4) for n in lengths] + [padded(lengths[0], kept, "left", 5)]

    def rope(name, family="llama", **changes):
        scaling, others = ROPES[name]
        return decoder(family, rope_theta=1000.0, rope_scaling=scaling, **others, **changes)

    sliding = {"use_sliding_window": True, "sliding_window": 8}
    mixed = {**sliding, "layer_types": ["sliding_attention", "full_attention"]}
    return {
        "llama_default": Generation(decoder("llama"), prompts(7, 1)),
        "llama_tied_biases": Generation(
            decoder("llama", attention_bias=True, mlp_bias=True, tie_word_embeddings=True), prompts(7)
        ),
        "llama_linear": Generation(rope("linear"), prompts(7)),
        "llama_yarn": Generation(rope("yarn"), prompts(13)),
        "llama_llama3": Generation(rope("llama3"), prompts(30)),
        # The original length of these is 16: within it, crossing it, beyond it.
        "llama_dynamic": Generation(rope("dynamic"), prompts(7, 13, 20)),
        "llama_dynamic_left_padded_across": Generation(rope("dynamic"), [padded(14, 9, "left", 5)]),
        "llama_longrope": Generation(rope("longrope"), prompts(7, 13, 20)),
        "llama_longrope_left_padded_across": Generation(rope("longrope"), [padded(14, 9, "left", 5)]),
        "qwen2_dynamic": Generation(rope("dynamic", "qwen2"), prompts(13)),
        "mistral_default": Generation(decoder("mistral"), prompts(7)),
        # The window is 8: filled while decoding, and overfull already after prefill.
        "mistral_sliding_window": Generation(decoder("mistral", sliding_window=8), prompts(5, 20, kept=3)),
        "mistral_sliding_window_left_padded": Generation(
            decoder("mistral", sliding_window=8), [padded(20, 11, "left", 5)]
        ),
        "qwen2_default": Generation(decoder("qwen2"), prompts(7)),
        "qwen2_layer_types": Generation(decoder("qwen2", **mixed), prompts(5, 20, kept=3)),
        "qwen3_default": Generation(decoder("qwen3"), prompts(7)),
        "qwen3_layer_types": Generation(decoder("qwen3", **mixed), [padded(20, 11, "left", 5)]),
        "qwen3_moe_default": Generation(decoder("qwen3_moe", decoder_sparse_step=2), prompts(7, 1)),
    }
