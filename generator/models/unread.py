"""Keys of a config.json that affect memory but that nothing here reads.

Listed are those that are read and those that don't affect memory; all others are reported. A new
architecture reveals by its keys what is new about it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Config = Mapping[str, Any]

# Read by huggingface.py and layer_kinds.py.
_READ = """
    num_hidden_layers n_layer num_layers num_attention_heads n_head num_key_value_heads num_kv_heads
    hidden_size n_embd vocab_size max_position_embeddings n_positions max_seq_len head_dim
    n_routed_experts num_experts num_local_experts num_experts_per_tok num_experts_per_token
    top_k_experts moe_intermediate_size expert_intermediate_size moe_latent_size intermediate_size
    intermediate_size_mlp moe_shared_expert_intermediate_size shared_expert_intermediate_size
    shared_intermediate_size n_shared_experts first_k_dense_replace experts_per_token
    moe_topk num_shared_expert interleave_moe_layer_step decoder_sparse_step mlp_only_layers
    moe_layer_freq enable_moe_block
    kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim index_head_dim
    index_n_heads index_topk index_kpool linear_num_key_heads linear_key_head_dim
    linear_num_value_heads linear_value_head_dim linear_attn_config full_attention_interval
    mamba_num_heads mamba_head_dim ssm_state_size n_groups mamba_n_heads mamba_d_head mamba_d_state
    mamba_n_groups mamba_ssm_dtype mamba_ssm_cache_dtype hybrid_override_pattern layers_block_type
    layer_types attention_types hybrid_layer_pattern attn_type_list attn_layer_indices
    no_rope_layers attention_chunk_size sliding_window sliding_window_size sliding_window_pattern
    use_sliding_window global_head_dim num_global_key_value_heads attention_k_eq_v
    swa_num_key_value_heads block_configs hidden_size_per_layer_input num_nextn_predict_layers
    mtp_num_hidden_layers num_mtp_modules dense_intermediate_size share_expert_dim
    num_shared_experts routed_expert_hidden_size indexer_types mlp_layer_types attention_head_dim
    o_groups o_lora_rank no_rope_layer_interval num_attention_heads_per_layer tie_word_embeddings
    attn_output_gate quantization_config model_type sparse_attention_config per_layer_config
    multi_query kv_channels moe_num_experts moe_k moe_num_shared_experts moe_layer_start_index
    vision_config audio_config indexer_head_dim indexer_n_heads indexer_compress_ratio
    num_attention_groups multi_query_attention multi_query_group_num max_position_embedding
    moe_num_primary_experts moe_top_k moe_num_active_primary_experts moe_ffn_hidden_size
    expert_ffn_hidden_size ffn_hidden_size n_inner is_moe_layer moe_layers_enum num_dense_layers
    sliding_window_layout gqa_layers gqa_interval use_gqa_gate local_layer_ids dense_mlp_idx
    sconv_kernel_size use_sconv prefix_dense_intermediate_size swa_head_dim
    prefix_dense_sliding_window_pattern swa_num_attention_heads mtp_config is_moe linear_num_heads
    linear_head_dim
"""

# No effect on memory, or a small one, or a repetition of another key.
_NO_PART = """
    qk_head_dim max_window_layers mamba_expand mamba_d_conv mamba_d_ssm mamba_chunk_size chunk_size
    conv_kernel conv_kernel_size linear_conv_kernel_dim expand d_conv time_step_rank n_group
    topk_group topk_method num_experts_group routed_scaling_factor norm_topk_prob scoring_func
    moe_router_topk vocab_size_per_layer_input ep_size pretraining_tp
    shared_expert_gate initial_context_length max_model_len model_max_length
    original_max_position_embeddings
    router_aux_loss_coef num_labels no_rope_layer_interval max_target_positions seq_length
    attn_layer_period attn_layer_offset expert_layer_period
    expert_layer_offset use_mamba_kernels mamba_hidden_act num_logits_to_keep
    use_cache seed tensor_parallel_size num_hidden_groups interleave_moe_layer_step
    swa_v_head_dim hc_mult hc_sinkhorn_iters num_hash_layers seq_aux max_length min_length top_k
    top_p num_beams num_return_sequences rescale_prenorm_residual index_skip_topk_offset
    index_share_for_mtp_iteration moe_shared_expert_overlap mtp_layers_block_type moe_renormalize
    attn_res_block_size gating gating_types mamba_rms_norm mamba_norm_before_gate
    mamba_use_mlp projectors_bias bf16 fp16 fp32 rmsnorm attention_softmax_in_fp32 padded_vocab_size
    post_layer_norm apply_residual_connection_post_layernorm global_attn_every_n_layers
    moe_layer_end_index moe_enable_early_router share_expert_dims d_rel rel_extent
    unpadded_vocab_size shared_expert_sink kda_use_full_proj kda_allow_neg_eigval type_vocab_size
    qk_layernorm query_pre_attn_scalar _sliding_window_pattern summary_proj_to_labels moe_layers
    enable_moe_fp32_combine enable_lm_head_fp32 router_fp32 mtp_hidden_states_first learnable_sink
    enable_sink_attention number_of_conv_states index_block_size index_topk_blocks parallel_attn
    linear_allow_neg_eigval dim_model_base mamba_intermediate mamba_intermediate_size
    inference_moe_w13_interleaved zero_centered first_layers_types hybrid_layers_types_block
    num_hybrid_layers_block last_layers_types share_q_dim short_conv_kernel_size
"""
_NO_PART_NAMES = re.compile(
    r"(^|_)(rope|rotary|yarn|norm|eps|epsilon|dropout|act|activation|token|tokens|ids?|bias|theta|"
    r"scal(e|es|ing)|scaled|factor|initializer|std|init|dtype|version|name|path|map|loss|coef|"
    r"multipliers?|softcap(ping)?|label2id|id2label|architectures|method|func|temperature|jitter|"
    r"alpha|beta|gamma|limit|floor|attn_implementation|processor|pad|bos|eos|output|return|"
    r"problem|task|transformers|torch|prefix|tie|tied|freq|mode|strategy|use|is|mscale|clamp)(_|$)"
)

# Affects memory in a way that is not modelled here; each with a value that enables it.
# Source: the configurations of transformers, and the models of vLLM that allocate by these keys.
_NOT_MODELLED: Mapping[str, str] = {
    "compress_ratios": "attention over compressed entries",
    "compress_ratio": "attention over compressed entries",
    "num_kv_shared_layers": "layers that cache nothing of their own",
    "cla_share_factor": "layers that cache nothing of their own",
    "kv_share_layers": "layers that cache nothing of their own",
    "engram_layers": "tables beside the layers",
    "engram_config": "tables beside the layers",
    "ngram_vocab_size": "tables beside the layers",
    "ple_layers": "tables beside the layers",
    "ple_layer_ids": "tables beside the layers",
    "conv_L_cache": "short convolutions in place of attention",
    "is_encoder_decoder": "an encoder",
    "dt_rank": "Mamba 1",
    "mb_per_layer": "Mamba 1",
    "mamba_dt_rank": "Mamba 1",
    "rwkv_version": "RWKV",
    "lightning_attention": "lightning attention",
    "layer_group_size": "linear attention in groups of layers",
    "zero_expert_num": "two layers of attention in one",
    "cross_attention_layers": "attention to what is seen",
    "mixer_types": "linear attention in layers that a list names",
    "num_loops": "layers that are passed several times",
    "cca_time0": "convolutions over latent keys",
    "lru_width": "recurrent blocks",
}


_KNOWN = frozenset((_READ + _NO_PART).split()) | set(_NOT_MODELLED)


def not_modelled(config: Config, sizes: Config) -> str:
    """The first key that affects memory but is not modelled or covered by `sizes`, or nothing."""
    modelled = {"compress_ratios"} if "layers_by_4" in sizes else set()
    if config.get("use_cla") is False:
        modelled.add("cla_share_factor")
    names = (name for name in _NOT_MODELLED if name not in modelled)
    return next((name for name in names if _is_enabled(config.get(name))), "")


def unread(config: Config) -> Iterator[str]:
    """A remark for each key that may affect memory and isn't read."""
    for name, value in config.items():
        if (
            name in _KNOWN
            or not _is_enabled(value)
            or _NO_PART_NAMES.search(str(name))
            or _is_words(value)
        ):
            continue
        yield f"{name}: it is not read; if it adds weights or cache, the fit is too good"


def _is_enabled(value: object) -> bool:
    """Whether a value enables anything."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Mapping) and False in (value.get("enable"), value.get("is_enabled")):
        return False
    return bool(value) and value != 1


def _is_words(value: object) -> bool:
    return isinstance(value, str | float)
