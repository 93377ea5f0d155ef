"""Tiny models of Transformers' own classes for the census: a drawn list, a shrunken configuration, sample inputs.

The list is drawn once, by seed, and committed (tests/census/classes.txt); nothing here looks at what tranship can do.
"""

import inspect
import random
import re

import torch
import transformers
from transformers.models.auto import modeling_auto

SEED = 20261130
TASKS = {
    "text": ("CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION", "QUESTION_ANSWERING", "TOKEN_CLASSIFICATION"),
    "vision": ("IMAGE_CLASSIFICATION", "SEMANTIC_SEGMENTATION", "OBJECT_DETECTION", "DEPTH_ESTIMATION",
               "MASKED_IMAGE_MODELING", "BACKBONE"),
    "audio": ("AUDIO_CLASSIFICATION", "CTC", "AUDIO_FRAME_CLASSIFICATION", "AUDIO_XVECTOR"),
    "encoder-decoder": ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ"),
}


def draw(count):
    """`count` triples (kind, model_type, class): one class a model_type."""
    classes = {}
    for kind, tasks in TASKS.items():
        for task in tasks:
            for model_type, names in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").items():
                for name in [names] if isinstance(names, str) else names:
                    classes.setdefault(model_type, []).append((kind, model_type, name))
    generator = random.Random(SEED)
    types = sorted(classes)
    generator.shuffle(types)
    return sorted(generator.choice(classes[model_type]) for model_type in types[:count])


# ---- configurations: what a key is shrunk to. The first pattern that matches decides.

LAYERS = r"(.*_)?(num_|n_)?(hidden_|encoder_|decoder_)?(layers?|blocks)|n_layers?|depth|num_hidden_groups"
HEADS = r"(.*_)?(num_|n_)?(attention_|self_attention_)?heads?|num_attention_heads|n_head"
RULES = [
    (r"num_key_value_heads|num_kv_heads|n_kv_heads|multi_query_group_num|attention_kv_heads", lambda v: 1 if v == 1 else 2),
    (r"head_dim|d_kv|.*_head_dim|head_size|kv_channels|attention_key_size_per_head", lambda v: min(v, 8)),
    (r"(q|kv|o)_lora_rank", lambda v: min(v, 16)),
    (r"rotary_dim|first_k_dense_replace|mamba_d_head|mamba_d_state|state_size|ssm_state_size", lambda v: min(v, 8)),
    (r"num_experts_per_tok|moe_k|moe_topk|top_k_experts|num_selected_experts|num_experts_per_token", lambda v: min(v, 2)),
    (r"(n_group|topk_group|num_expert_group)", lambda v: 1),
    (r"(mamba_)?n_groups", lambda v: min(v, 1)),
    (r"num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts", lambda v: min(v, 4)),
    (r"num_labels|num_queries|num_feature_levels|num_buckets|.*num_buckets", lambda v: v),
    (LAYERS, lambda v: min(v, 2)),
    (r"(num_|n_)?(.*_)?(attention_)?heads?", lambda v: min(v, 4)),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|inner_dim|mlp_dim|ffn_size|feed_forward.*size|d_inner|ff_dim|hidden_dim_ff)",
     lambda v: min(v, 48)),
    (r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|embedding_size|emb_dim|hidden_dim|dim|d_embed|embed_size|word_embed_dim"
     r"|embedding_dim|projection_dim|proj_dim|backbone_hidden_size)", lambda v: min(v, 32)),
    (r"vocab_size|.*_vocab_size", lambda v: min(v, 128)),
    (r"max_position_embeddings|n_positions|n_ctx|max_source_positions|max_target_positions|max_seq_len|seq_length"
     r"|max_sequence_length|block_size", lambda v: min(v, 128)),
    (r"image_size|img_size", lambda v: min(v, 64) if isinstance(v, int) else v),
    (r"depths|num_blocks|layers_per_stage", lambda v: [min(d, 1) for d in v] if isinstance(v, list) else min(v, 1)),
    (r"sliding_window|window_length|attention_window", lambda v: [min(w, 8) for w in v] if isinstance(v, list) else min(v, 8)),
]
PER_LAYER = ("layer_types", "mlp_layer_types", "attention_types", "layers_block_type", "hybrid_layer_pattern")
NUM_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def shrink_value(key, value, gentle):
    if not (is_number(value) or isinstance(value, list)):
        return value
    if gentle:
        return min(value, 2) if is_number(value) and value > 2 and re.fullmatch(LAYERS, key) else value
    if re.fullmatch(r".*_token_ids?|.*_id", key) and is_number(value) and value >= 128:
        return value % 100 + 20
    for pattern, change in RULES:
        if re.fullmatch(pattern, key):
            if is_number(value) and value <= 0:
                return value
            try:
                return change(value)
            except TypeError:
                return value
    return value


def representative(layers):
    """Places of the first layer of each kind, at least two: a hybrid stays one."""
    places = [i for i, kind in enumerate(layers) if kind not in layers[:i]]
    return sorted(set(places) | set(range(min(2, len(layers)))))


def shrink(config, gentle):
    """The configuration as a dict, smaller; `gentle`: only fewer layers."""
    out = {}
    for key, value in config.items():
        if isinstance(value, dict) and not re.match(r"rope|id2label|label2id", key):
            out[key] = shrink(value, gentle)
        else:
            out[key] = shrink_value(key, value, gentle)
    kinds = next((config[key] for key in PER_LAYER if isinstance(config.get(key), list)), None)
    if kinds:
        places = representative(kinds)
        out.update({key: len(places) for key in NUM_LAYERS if key in out})
        out.update({key: [config[key][i] for i in places if i < len(config[key])]
                    for key in PER_LAYER if isinstance(config.get(key), list)})
    if not gentle and "kv_lora_rank" in out and "num_attention_heads" in out:
        out["num_key_value_heads"] = out["num_attention_heads"]  # latent attention has a key head for each query head
    return out


def tiny_configs(model_type):
    """From the smallest to the default with few layers: the first that makes a model that runs is taken."""
    config_class = transformers.CONFIG_MAPPING[model_type]
    for gentle in (False, True):
        values = shrink(config_class().to_dict(), gentle)
        values["pad_token_id"] = values.get("pad_token_id") or 0
        if values.get("vocab_size", 0) is None:
            values["vocab_size"] = 128
        for key in ("architectures", "transformers_version", "torch_dtype", "dtype"):
            values.pop(key, None)
        try:
            yield config_class.from_dict(values)
        except Exception:  # noqa: BLE001: a configuration that checks itself; the gentler one follows
            continue
    yield config_class()


# ---- inputs

def first(config, *names, default):
    for part in (config, *(getattr(config, name, None) for name in ("vision_config", "backbone_config", "encoder"))):
        for name in names:
            value = getattr(part, name, None) if part is not None else None
            if value is not None:
                return value
    return default


def image(config, batch, generator):
    size = first(config, "image_size", "img_size", "input_size", default=64)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return torch.randn(batch, first(config, "num_channels", "in_channels", default=3), height, width, generator=generator)


def sample_inputs(model, batch, length, seed=0):
    """What the class's forward needs, by the names of its signature. The last row is padded at its end."""
    config = model.config
    generator = torch.Generator().manual_seed(seed)
    names = inspect.signature(model.forward).parameters
    text = config.get_text_config()
    vocabulary = min(v for v in (getattr(text, "vocab_size", None), getattr(config, "vocab_size", None), 100) if v)

    def ids(count):
        return torch.randint(5, vocabulary, (batch, count), generator=generator)

    def mask():
        out = torch.ones(batch, length, dtype=torch.int64)
        out[-1, length - 2:] = 0
        return out

    inputs = {}
    main = getattr(model, "main_input_name", "input_ids")
    if "pixel_values" in names and main == "pixel_values":
        inputs["pixel_values"] = image(config, batch, generator)
    elif "input_values" in names and main == "input_values":
        inputs["input_values"] = torch.randn(batch, 4000 + 160 * length, generator=generator)
    elif "input_features" in names and main == "input_features":
        bins = first(config, "num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "input_dim",
                     "n_mels", default=80)
        frames = first(config, "max_source_positions", default=50) * 2 if config.model_type in ("whisper", "moonshine_streaming") \
            else 10 * length
        shape = (batch, bins, frames) if config.model_type == "whisper" else (batch, frames, bins)
        inputs["input_features"] = torch.randn(*shape, generator=generator)
    else:
        inputs["input_ids"] = ids(length)
        if "attention_mask" in names:
            inputs["attention_mask"] = mask()
        if "bbox" in names:
            corner = torch.randint(0, 50, (batch, length, 2), generator=generator)
            inputs["bbox"] = torch.cat([corner, corner + 5], dim=-1)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        inputs["decoder_input_ids"] = ids(5)
    return inputs
