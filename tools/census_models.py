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

KV_HEADS = r"num_key_value_heads|num_kv_heads|n_kv_heads|multi_query_group_num|attention_kv_heads|num_query_groups"
LAYERS = (r"(.*_)?(num_|n_)?(hidden_|encoder_|decoder_)?(layers?|blocks)|n_layers?|depth|num_hidden_groups"
          r"|num_layers_per_stack")
HEADS = r"(num_|n_)?(.*_)?(attention_)?heads?(_per_layer)?"
# Counts and sizes that do not come from a width.
COUNTS = [
    (r"num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts|num_selected_experts", lambda v: min(v, 2)),
    (r"(n_group|topk_group|num_expert_group)", lambda v: 1),
    (r"num_experts|num_local_experts|n_routed_experts|moe_num_experts|num_routed_experts", lambda v: min(v, 4)),
    (r"num_queries|num_query_tokens|index_topk|.*_top_k", lambda v: min(v, 16)),
    (r"num_labels|num_feature_levels|.*num_buckets", lambda v: v),
    (r".*_layer_period", lambda v: min(v, 2)),
    (r"depth", lambda v: min(v, 3)),
    (LAYERS, lambda v: min(v, 2)),
    (r"(.*_)?vocab(_size)?(_per_layer_input)?|codebook_size", lambda v: min(v, 128)),
    (r"max_position_embeddings|n_positions|n_ctx|max_source_positions|max_target_positions|max_seq_len|seq_length"
     r"|max_sequence_length|block_size|max_length", lambda v: min(v, 128)),
    (r"image_size|img_size", lambda v: min(v, 64)),
    (r"depths|num_blocks|layers_per_stage|stage_num_blocks", lambda v: min(v, 1)),
    (r"sliding_window|window_length|attention_window|local_attention_window_len", lambda v: min(v, 8)),
    (r"num_filters|base_channels", lambda v: min(v, 8)),
]
WIDTHS = [
    (KV_HEADS, lambda v: 1 if v == 1 else 2),
    (r"head_dim|d_kv|.*_head_dim|head_size|kv_channels|attention_key_size_per_head", lambda v: min(v, 8)),
    (r"(q|kv|o)_lora_rank", lambda v: min(v, 16)),
    (r"rotary_dim|first_k_dense_replace|mamba_d_head|mamba_d_state|state_size|ssm_state_size", lambda v: min(v, 8)),
    (r"(mamba_)?n_groups", lambda v: min(v, 1)),
    (HEADS, lambda v: min(v, 4)),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|inner_dim|mlp_dim|ffn_size|feed_forward.*size|d_inner|ff_dim"
     r"|hidden_dim_ff)", lambda v: min(v, 48)),
    (r"(.*_)?(hidden_size|d_model|n_embd|embed_dim|embedding_size|emb_dim|hidden_dim|dim|d_embed|embed_size"
     r"|word_embed_dim|embedding_dim|projection_dim|proj_dim|backbone_hidden_size)", lambda v: min(v, 32)),
]
# What scaling leaves: counts, sizes in pixels, samples and tokens, identifiers.
UNSCALED = (r"num_(?!filters).*|n_.*|.*(patch|window|chunk|stride|kernel|rate|length|ratio|mel|bins|period|offset"
            r"|_ids?|_id|factor|distance|position|frames?|seconds|threshold|step|resolution|image|vocab|labels?|classes"
            r"|max|min|layers?|heads).*")
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
# What some defaults leave open, though the model needs a number.
FILL = {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts": 4,
        "num_local_experts": 4, "vocab_size": 128, "top_k_experts": 2, "moe_intermediate_size": 16, "n_group": 1,
        "topk_group": 1, "indexer_budget": 16, "indexer_compress_ratio": 4}
NOT_ARGUMENTS = ("architectures", "transformers_version", "torch_dtype", "dtype", "stage_names", "out_features")


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def by_rules(rules, key, value):
    """What the first rule for that key makes of a number, or of each number of a list."""
    for pattern, change in rules:
        if re.fullmatch(pattern, key):
            if is_number(value):
                return change(value) if value > 0 else value
            if isinstance(value, list):
                return [by_rules([(pattern, change)], key, v) for v in value]
    return value


def has_rule(rules, key):
    return any(re.fullmatch(pattern, key) for pattern, _ in rules)


def scaled(value, factor):
    if isinstance(value, list):
        return [scaled(v, factor) for v in value]
    return value // factor if is_number(value) and value >= 2 * factor and value % factor == 0 else value


def shrink_value(key, value, factor):
    """`factor`: 0 for widths by the rules, 1 to keep them, else what divides them."""
    if re.fullmatch(r".*_token_ids?|.*_id", key):
        return value % 100 + 20 if is_number(value) and value >= 128 else value
    if has_rule(COUNTS, key) or factor == 0:
        return by_rules(COUNTS + WIDTHS if factor == 0 else COUNTS, key, value)
    return scaled(value, factor) if factor > 1 and not re.fullmatch(UNSCALED, key) else value


def representative(config, layers):
    """Places of the first layer of each kind, at least two, and of the last of each if it may share something."""
    per_layer = {str(int(place)): str(change) for place, change in (config.get("per_layer_config") or {}).items()}
    lists = [value for key, value in config.items()
             if isinstance(value, list) and len(value) == layers and isinstance(value[0], str)]
    kinds = [(*(values[i] for values in lists), per_layer.get(str(i))) for i in range(layers)]
    places = {kinds.index(kind) for kind in kinds} | set(range(min(2, layers)))
    if 0 < (config.get("num_kv_shared_layers") or 0) < layers or any("hybrid" in kind for kind in kinds):
        places |= {layers - 1 - kinds[::-1].index(kind) for kind in kinds}
    return sorted(places)


def shrink_layers(config, out):
    """`out` with only the layers that stand for the others, in each list that has an entry a layer."""
    key = next((key for key in LAYER_COUNTS if is_number(config.get(key)) and config[key] > 0), None)
    if key is None:
        return
    layers, indices = config[key], config.get("out_indices")
    places = representative(config, layers)
    if isinstance(indices, list) and len(indices) > 1 and all(is_number(i) and i >= 0 for i in indices):
        places = list(range(max(2, len(indices))))
        last = len(places) - (layers - max(indices))
        out["out_indices"] = list(range(last - len(indices) + 1, last + 1))
    elif indices is not None:
        out["out_indices"] = None
    out[key] = len(places)
    for other, value in config.items():
        if isinstance(value, list) and len(value) == layers and other != "out_indices":
            out[other] = [out[other][i] for i in places]
    for count in (k for k in config if re.fullmatch(LAYERS, k) and is_number(config[k])):
        if config[count] in (layers, 1):
            continue
        for other, value in config.items():
            if isinstance(value, list) and len(value) == config[count]:
                out[other] = out[other][:out[count]]
    if isinstance(config.get("attention_types"), list) and isinstance(config["attention_types"][0], list):
        kinds = config["attention_types"][0][0]
        out.update({key: len(kinds), "attention_types": [[kinds, 1]], "attention_layers": kinds})
    if config.get("per_layer_config"):
        changes = {int(place): change for place, change in out["per_layer_config"].items()}
        out["per_layer_config"] = {f"{i:02}": changes[place] for i, place in enumerate(places) if place in changes}
    shared = config.get("num_kv_shared_layers") or 0
    if shared:
        out["num_kv_shared_layers"] = len(places) if shared == layers else len(places) // 2


def shrink(config, factor, fill):
    """The configuration as a dict, smaller; `fill`: numbers for what the default leaves open."""
    out = {}
    for key, value in config.items():
        if isinstance(value, dict) and not re.match(r"rope|id2label|label2id", key):
            out[key] = shrink(value, factor, fill)
        else:
            out[key] = shrink_value(key, value, factor)
    shrink_layers(config, out)
    heads = next((config[k] for k in ("num_attention_heads", "n_head", "num_heads") if is_number(config.get(k))), None)
    for key in config:
        if re.fullmatch(KV_HEADS, key) and heads and config[key] == heads:  # each head has its own keys
            out[key] = min(heads, 4) if factor == 0 else heads
        if key.endswith("_layer_offset") and is_number(config[key]):
            out[key] = config[key] % out.get(key.replace("offset", "period"), 1)
    if "num_layers_per_stack" in out:
        out.pop("num_hidden_layers", None)
    if str((config.get("backbone_config") or {}).get("model_type", "")).startswith("timm"):
        out.update(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None)
        out["backbone_config"] = resnet(factor)
    if fill:
        fill_in(out)
    return {key: value for key, value in out.items() if key not in NOT_ARGUMENTS}


def resnet(factor):
    """In place of a backbone of the library timm, which is not there."""
    stages = ["stage2", "stage3", "stage4"]
    config = shrink(transformers.ResNetConfig(out_features=stages).to_dict(), factor or 8, False)
    return {**config, "out_features": stages, "hidden_sizes": [16, 32, 64, 128], "embedding_size": 16}


def fill_in(out):
    out.update({key: value for key, value in FILL.items() if key in out and out[key] in (None, 1)})
    heads = out.get("num_attention_heads")
    if is_number(heads):
        if out.get("num_key_value_heads") is None:
            out["num_key_value_heads"] = heads
        if "head_dim" in out and out["head_dim"] is None and is_number(out.get("hidden_size")):
            out["head_dim"] = out["hidden_size"] // heads
    if "conv_L_cache" in out and out.get("layer_types") is None:
        out["layer_types"] = ["conv", "full_attention"]
    if out.get("rope_parameters") == {}:
        rope = {"rope_type": "default", "rope_theta": 10000.0}
        out["rope_parameters"] = {kind: rope for kind in out["layer_types"]} if out.get("layer_types") else rope


def tiny_configs(model_type, name):
    """Smaller and smaller changes of the default; the first that makes a model that runs is taken."""
    config_class = getattr(transformers, name).config_class or transformers.CONFIG_MAPPING[model_type]
    default = config_class()
    for factor in (0, 32, 16, 8, 4, 2, 1):
        for fill in (False, True):
            values = shrink(default.to_dict(), factor, fill)
            if default.pad_token_id is None if hasattr(default, "pad_token_id") else False:
                values["pad_token_id"] = 0
            try:
                yield config_class.from_dict(values)
            except Exception as error:  # noqa: BLE001: a configuration that checks itself; the next one follows
                yield error


# ---- inputs

def first(config, *names, default):
    parts = ("vision_config", "backbone_config", "encoder", "encoder_config", "audio_config")
    for part in (config, *(getattr(config, name, None) for name in parts)):
        for name in names:
            value = getattr(part, name, None) if part is not None else None
            if value is not None:
                return value
    return default


def image(config, batch, generator):
    size = first(config, "image_size", "img_size", "input_size", default=64)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    channels = first(config, "num_channels", "in_channels", default=3)
    return torch.randn(batch, channels, height, width, generator=generator)


def audio(config, batch, length, generator):
    """input_values: samples, or for spectrogram transformers frames of bins."""
    if hasattr(config, "max_length") and hasattr(config, "num_mel_bins"):
        return torch.randn(batch, config.max_length, config.num_mel_bins, generator=generator)
    return torch.randn(batch, 4000 + 160 * length, generator=generator)


def features(config, batch, length, generator):
    """input_features: frames of bins, or for Whisper bins of frames."""
    bins = first(config, "num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "input_dim",
                 "n_mels", default=80)
    if config.model_type == "whisper":
        return torch.randn(batch, bins, 2 * config.max_source_positions, generator=generator)
    return torch.randn(batch, 10 * length, bins, generator=generator)


def ends_in_end(ids, config):
    """The same ids with the end's as the last of each row: where a classifier looks for it."""
    end = getattr(config, "eos_token_id", None)
    if is_number(end):
        ids[ids == end] = end + 1
        ids[:, -1] = end
    return ids


def codebooks(model, config):
    """How many tokens there are at a place: more than one for codecs of audio."""
    if config.model_type == "kyutai_speech_to_text":
        return config.num_codebooks + 1
    return 1


def sample_inputs(model, batch, length, seed=0):
    """What the class's forward needs, by the names of its signature. The last row is padded at its end."""
    config = model.config
    generator = torch.Generator().manual_seed(seed)
    names = inspect.signature(model.forward).parameters
    text = config.get_text_config()
    vocabulary = min(v for v in (getattr(text, "vocab_size", None), getattr(config, "vocab_size", None), 100) if v)
    tasks = ("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification")
    classifies = type(model).__name__.endswith(tasks)

    def ids(count, *more):
        return torch.randint(5, vocabulary, (batch, count, *more), generator=generator)

    def mask():
        out = torch.ones(batch, length, dtype=torch.int64)
        out[-1, length - 2:] = 0
        return out

    inputs = {}
    main = getattr(model, "main_input_name", "input_ids")
    if "input_values" in names and main == "inputs":
        inputs["input_values"] = audio(config, batch, length, generator)
    elif "pixel_values" in names and main == "pixel_values":
        inputs["pixel_values"] = image(config, batch, generator)
    elif "input_values" in names and main == "input_values":
        inputs["input_values"] = audio(config, batch, length, generator)
    elif "input_features" in names and main == "input_features":
        inputs["input_features"] = features(config, batch, length, generator)
    else:
        places = codebooks(model, config)
        inputs["input_ids"] = ids(length, places) if places > 1 else ids(length)
        if "attention_mask" in names:
            inputs["attention_mask"] = mask()
        if config.model_type == "voxtral_realtime":  # audio and text go together, token by token
            inputs["input_features"] = features(config, batch, length, generator).transpose(1, 2)[..., :8 * length]
        if "bbox" in names:
            corner = torch.randint(0, 50, (batch, length, 2), generator=generator)
            inputs["bbox"] = torch.cat([corner, corner + 5], dim=-1)
        if "global_attention_mask" in names:
            inputs["global_attention_mask"] = (torch.arange(length) < 2).to(torch.int64).repeat(batch, 1)
        if "visual_feats" in names:
            inputs["visual_feats"] = torch.randn(batch, 5, config.visual_feat_dim, generator=generator)
            inputs["visual_pos"] = torch.rand(batch, 5, config.visual_pos_dim, generator=generator)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        if classifies:
            inputs["input_ids"] = ends_in_end(inputs["input_ids"], config)
        elif config.model_type == "dia":
            inputs["decoder_input_ids"] = ids(5, config.decoder_config.num_channels)
        else:
            inputs["decoder_input_ids"] = ids(5)
    return inputs
