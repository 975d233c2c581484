#!/bin/sh
# Records what a DGX Spark runs, as plain text, in NODE.tar.gz in the current directory.
#   sh capture.sh [--files | --whole-files] [NODE]     NODE defaults to the host's name
# It changes nothing, contacts no other machine, and waits at most ten seconds for each answer. As root it can
# read more: netplan's files, and the processes of containers. CAPTURE_ROOT is where the system is mounted, if
# not at /. With --files, it also takes the files that a site carries to the node, such as templates and scripts of
# your own: their structure and what is known in them, with hashes in place of all else. With --whole-files, nothing in them is
# removed, so read them first: only a file in which a line looks like a key is handled as with --files.
#
# The lists of names below decide which values are kept, before anything is written: the values of all other
# names, and whatever looks like a key, become [removed], with a hash whose key, /etc/machine-id, is not taken. Of network files, only wired interfaces are kept;
# serial numbers and hardware addresses never are.
set -u
LC_ALL=C
export LC_ALL
umask 077

files=
case ${1:-} in --files | --whole-files) files=$1 && shift ;; *) ;; esac
root=${CAPTURE_ROOT:-}
host=$(uname -n)
node=$(printf '%s' "${1:-${host%%.*}}" | tr -c 'A-Za-z0-9.-' '-')
case $node in
  '' | .* | -*) echo "capture.sh: name the node: sh capture.sh NODE" >&2 && exit 2 ;;
  *) ;;
esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/$node"
key=$(cat "$root/etc/machine-id" 2>/dev/null)
scratch=$work/hashed

# The engines' flags whose values reveal nothing that could be used against the node.
flags='
model model-path served-model-name alias revision tokenizer tokenizer-mode tokenizer-revision skip-tokenizer-init
config load-format dtype quantization kv-cache-dtype kv-cache-memory-bytes max-model-len context-length max-num-seqs
max-running-requests max-num-batched-tokens max-num-tokens max-batch-size max-seq-len max-beam-width max-input-len
gpu-memory-utilization mem-fraction-static kv-cache-free-gpu-memory-fraction free-gpu-memory-fraction block-size
page-size swap-space cpu-offload-gb kv-offloading-size kv-offloading-backend num-gpu-blocks-override seed
tensor-parallel-size tp-size tp pipeline-parallel-size pp-size pp data-parallel-size dp-size dp expert-parallel-size
ep-size ep moe-dp-size data-parallel-rank data-parallel-size-local data-parallel-start-rank data-parallel-address
data-parallel-rpc-port data-parallel-backend decode-context-parallel-size prefill-context-parallel-size dcp-size
distributed-executor-backend nnodes node-rank master-addr master-port dist-init-addr host port api-server-count
attention-backend decode-attention-backend prefill-attention-backend sampling-backend grammar-backend moe-backend
moe-runner-backend moe-a2a-backend all2all-backend linear-backend fp8-gemm-backend fp4-gemm-backend mamba-backend
mm-attention-backend mm-encoder-attn-backend linear-attn-backend gdn-prefill-backend mamba-cache-dtype
mamba-cache-mode mamba-ssm-cache-dtype mamba-ssm-dtype mamba-radix-cache-strategy mamba-scheduler-strategy
max-mamba-cache-size mamba-full-memory-ratio mamba-track-interval compilation-config optimization-level
cuda-graph-max-bs cuda-graph-bs cuda-graph-sizes max-cudagraph-capture-size cudagraph-capture-sizes
torch-compile-max-bs num-continuous-decode-steps chunked-prefill-size max-prefill-tokens prefill-max-requests
max-total-tokens max-queued-requests schedule-policy schedule-conservativeness scheduling-policy stream-interval
hicache-ratio hicache-size hicache-host-memory-mode hicache-io-backend hicache-mem-layout hicache-write-policy
hicache-storage-backend hicache-storage-prefetch-policy watchdog-timeout dist-timeout reasoning-parser tool-call-parser tool-parser reasoning-parser-plugin
tool-parser-plugin chat-template chat-template-content-format generation-config override-generation-config
default-chat-template-kwargs speculative-config spec-method spec-model spec-tokens speculative-algorithm
speculative-draft-model-path speculative-draft-model-revision speculative-draft-model-quantization
speculative-num-steps speculative-eagle-topk speculative-num-draft-tokens speculative-attention-mode
speculative-token-map hf-overrides rope-scaling limit-mm-per-prompt mm-processor-kwargs mm-processor-cache-gb
mm-encoder-tp-mode allowed-local-media-path download-dir runner task model-impl prefix-caching-hash-algo
kv-transfer-config kv-events-config performance-mode runai-model-loader safetensors-load-strategy
model-loader-extra-config numa-bind-nodes device log-level uvicorn-log-level log-level-http max-log-len
max-logprobs long-prefill-token-threshold max-num-partial-prefills max-long-partial-prefills
backend extra-llm-api-options enable-chunked-prefill trust-remote-code num-postprocess-workers gpus-per-node
ctx-size n-gpu-layers gpu-layers parallel batch-size ubatch-size flash-attn cache-type-k cache-type-v split-mode
tensor-split main-gpu rpc threads threads-batch cache-ram cache-reuse fit fit-target load-mode reasoning-format
spec-draft-model spec-draft-hf moe-expert-parallel-size weight-version reasoning reasoning-budget jinja pooling mmproj model-draft draft-max draft-min spec-type spec-draft-n-max
hf-repo hf-file n-predict temp top-p top-k min-p repeat-penalty presence-penalty override-tensor n-cpu-moe
keep slots chat-template-file lora-modules max-loras max-lora-rank enable-prefix-caching disable-log-requests
num-cpus num-gpus object-store-memory node-ip-address dashboard-host dashboard-port include-dashboard block head
address num-prestart-python-workers'
# Those of them that take several words; of all others only the first word is kept.
lists='served-model-name cuda-graph-bs cuda-graph-sizes cudagraph-capture-sizes lora-modules mm-encoder-tp-mode'

# Options of docker run before the image, and those of them that take no value.
options='
name network net ipc gpus runtime shm-size memory memory-swap ulimit device restart env-file volume mount publish
cap-add cap-drop security-opt user pids-limit cpus cpuset-cpus entrypoint workdir pull
log-driver log-opt stop-timeout hostname platform group-add oom-score-adj'
bare='rm init privileged detach interactive tty read-only publish-all quiet no-healthcheck oom-kill-disable'

# Short forms of the engines' flags that take a value and those that take none, and likewise of docker run.
short='-tp -pp -dp -dpn -dpl -dpa -dpp -dcp -m -c -ngl -np -b -ub -fa -ctk -ctv -sm -ts -md -hf -hfr -hff -a -t -tb
-n -ot -ncmoe'
switches='-q -sc -cc'
options_short='-v -p -w -u'
options_bare='-d -i -t -it -ti -dit -itd -q'

# Variables whose values tell nothing, each by its exact name: those of NCCL, of the engines and of what these run on. A
# word that ends with '_' begins the names that follow it.
known='
CUTE_ DSL_ARCH
FLASHINFER_ CUDA_ARCH_LIST DISABLE_VERSION_CHECK MLA MLA_SPARSE MLA_SPARSE_DSV4 MLA_SPARSE_DSV41 MLA_SPARSE_SM120
MLA_SPARSE_SM90 NVCC_THREADS STAR_ATTENTION WORKSPACE_BASE
GGML_ CUDA_FA_ALL_QUANTS
LLAMA_ARG_ AGENT ALIAS API_PREFIX BACKEND_SAMPLING BATCH CACHE_IDLE_SLOTS CACHE_PROMPT CACHE_RAM CACHE_REUSE
CACHE_TYPE_K CACHE_TYPE_V CHAT_TEMPLATE CHAT_TEMPLATE_FILE CHAT_TEMPLATE_KWARGS CHECKPOINT_MIN_SPACING_NT
CONTEXT_SHIFT CONT_BATCHING CORS_HEADERS CORS_METHODS CORS_ORIGINS CPU_MOE CTX_CHECKPOINTS CTX_SIZE DEFRAG_THOLD
DEVICE DOCKER_REPO DRAFT_MAX DRAFT_MIN EMBEDDINGS ENDPOINT_METRICS ENDPOINT_PROPS ENDPOINT_SLOTS FIT FIT_CTX
FIT_TARGET FLASH_ATTN FREQUENCY_PENALTY HF_FILE HF_REPO HOST IMAGE_MAX_TOKENS IMAGE_MIN_TOKENS JINJA KV_OFFLOAD
KV_UNIFIED KV_UNIFIED_PER_SLOT LAZY_MODE LOAD_MODE LOG_COLORS LOG_FILE LOG_JSONL LOG_PREFIX LOG_TIMESTAMPS
LOG_VERBOSITY MAIN_GPU MCP_SERVERS_CONFIG MCP_SERVERS_JSON MIN_P MLOCK MMAP MMPROJ MMPROJ_AUTO MMPROJ_OFFLOAD
MMPROJ_URL MODEL MODELS_AUTOLOAD MODELS_DIR MODELS_MAX MODELS_PRESET MODEL_URL NO_HOST NO_MMAP NUMA N_CPU_FFN
N_CPU_MOE N_GPU_LAYERS N_GPU_LAYERS_DRAFT N_PARALLEL N_PREDICT OFFLINE OVERRIDE_TENSOR PERF POOLING PORT
PREFILL_ASSISTANT PRESENCE_PENALTY REASONING REASONING_EFFORT REASONING_PRESERVE REPACK REPEAT_PENALTY RERANKING
REUSE_PORT ROPE_FREQ_BASE ROPE_FREQ_SCALE ROPE_SCALE ROPE_SCALING_TYPE RPC SKIP_CHAT_PARSING
SPEC_DRAFT_BACKEND_SAMPLING SPEC_DRAFT_CACHE_TYPE_K SPEC_DRAFT_CACHE_TYPE_V SPEC_DRAFT_CPU_MOE SPEC_DRAFT_HF_REPO
SPEC_DRAFT_MODEL SPEC_DRAFT_N_CPU_MOE SPEC_DRAFT_N_MAX SPEC_DRAFT_N_MIN SPEC_DRAFT_P_MIN SPEC_DRAFT_P_SPLIT
SPEC_SYNTH_LEN SPEC_SYNTH_RATES SPEC_TYPE SPLIT_MODE SSE_PING_INTERVAL STATIC_PATH SWA_FULL TAGS TEMPERATURE
TENSOR_SPLIT THINK THINK_BUDGET THINK_BUDGET_MESSAGE THREADS THREADS_HTTP TIMEOUT TOOLS TOOLS_RUNTIME TOP_K TOP_P
UBATCH UI UI_CONFIG UI_CONFIG_FILE UI_MCP_PROXY VIDEO_FFMPEG_DIR VIDEO_FPS VIDEO_TIMESTAMP_INTERVAL YARN_ATTN_FACTOR
YARN_BETA_FAST YARN_BETA_SLOW YARN_EXT_FACTOR YARN_ORIG_CTX
NCCL_ AGG_ALLOC_MODE AGG_CHANNEL_SIZE ALGO ALGO_PLUGIN ALLGATHERV_ENABLE ALLOC_P2P_NET_LL_BUFFERS ASYNC_ERROR_HANDLING
BLOCKING_WAIT BUFFSIZE CE_CHUNK_SIZE CE_COLL_AG_MULTICAST_THRESHOLD CE_INTRA_GPU_MEMCPY_ENABLE CFT_ENABLE
CGA_CLUSTER_SIZE CHECKS_DISABLE CHECK_MODE CHECK_POINTERS CHUNK_SIZE COLLNET_ENABLE COLLNET_NODE_THRESHOLD
COMM_BLOCKING COMM_ID COMM_SHRINK_SHARE_RESOURCES COMM_SPLIT_SHARE_RESOURCES CONF CONF_FILE CONNECT_ROUND_MAX_PEERS
CREATE_THREAD_CONTEXT CROSS_NIC CTA_POLICY CUDA_PATH CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_LEVELS
DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS DESYNC_DEBUG DEV_API_JIT DIAGNOSTICS_ECC_THRESHOLD
DIAGNOSTICS_IB_BW_TIMEOUT DISABLE_MEM_MANAGER DMABUF_ENABLE ELASTIC_BUFFER_REGISTER ENABLE_VERSION_CHECK
ENQUEUE_REARCH_ENABLE ENV_PLUGIN GB_S GDAKI_FORCE_MCST GDAKI_USE_RELIABLE_DB GDRCOPY_ENABLE GDRCOPY_FIFO_ENABLE
GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GDRCOPY_TAIL_ENABLE GDRCOPY_USE_INTERNAL_DMABUF GDR_FLUSH_DISABLE
GIN_COUNTER_POOL_SIZE GIN_ENABLE GIN_ERROR_QUERY_SEC GIN_EXCLUSIVE_CONTEXTS GIN_GDAKI_LAG_AWARE_DISABLE
GIN_GDAKI_MAX_DEST_RD_ATOMIC GIN_GDAKI_MAX_QP_RD_ATOMIC GIN_GDAKI_NIC_HANDLER GIN_GDAKI_QP_DEPTH GIN_IB_OOO_OPT
GIN_IB_TC GIN_MAX_TYPES GIN_NCONNECTIONS GIN_NCONTEXTS GIN_PLUGIN GIN_PLUGIN_REF_COUNT GIN_PROXY_NTHREADS
GIN_PROXY_POLL_BATCH GIN_PROXY_QUEUE_SIZE GIN_SIGNAL_POOL_SIZE GIN_TYPE GRAPH_DUMP_FILE GRAPH_DUMP_FILE_RANK
GRAPH_FILE GRAPH_HELPER_DISABLE GRAPH_MIXING_SUPPORT GRAPH_REGISTER GRAPH_STREAM_ORDERING GROUP_CUDA_STREAM
HIER_CE_COLL_AG_RAIL_RING_ENABLE HIER_CE_COLL_NUM_CTX HOME HOSTID IBVERBS_LIB IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY
IB_ADDR_RANGE IB_AR_THRESHOLD IB_CUDA_SUPPORT IB_DATA_DIRECT IB_DEVICE_PCI_ORDER IB_DISABLE IB_ECE_ENABLE
IB_EVENT_BASED_LB IB_EVENT_BASED_LB_REMOTE IB_FIFO_TC IB_GID_INDEX IB_HCA IB_HCAS IB_MERGE_NICS IB_MERGE_VFS
IB_MQP_RETRY_ALL IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC IB_OOO_RQ IB_PCI_RELAXED_ORDERING IB_PKEY
IB_PREPOST_RECEIVE_WORK_REQUESTS IB_QPS_PER_CONNECTION IB_QUERY_PORT_SPEED IB_RAIL_POLICY
IB_RECEIVER_SIDE_MATCHING_SCHEME IB_RESILIENCY_PORT_FAILOVER IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS
IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY IB_RESILIENCY_PORT_RECOVERY IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT
IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX IB_RESILIENCY_PORT_RECOVERY_START_DELAY IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS
IB_ROCE_VERSION_NUM IB_ROUTABLE_FLID_GID_INDEX IB_SL IB_SORT_MERGE_NICS IB_SPLIT_DATA_ON_QPS IB_SUBNET_AWARE_ROUTING
IB_SUBNET_PREFIX_LEN IB_TC IB_TIMEOUT IB_TOS IB_USE_INLINE IB_WARN_RAIL_LOCAL IB_WQE_LATENCY_REPORT
IB_WQE_LATENCY_THRESHOLD_NS IGNORE_COLLNET_MISMATCH IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P IGNORE_NET_MISMATCH
IPC_USE_ABSTRACT_SOCKET L1_SHARED_MEMORY_CARVEOUT LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL
LEGACY_CUDA_REGISTER LL128_BUFFSIZE LL128_C2C LL128_NTHREADS LL_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER LSA_TEAM_SIZE
MAX_CTAS MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN MESH_DEBUG MESH_FAST_FAIL MESH_FATAL_ON_TIMEOUT
MESH_GID_INDEX MESH_HYBRID_TCP MESH_METRICS MESH_TIMEOUT_SEC MIN_CTAS MIN_NCHANNELS MIN_NRINGS MIN_P2P_NCHANNELS
MIN_TRAFFIC_PER_CHANNEL MLOPART_RDMA_ENABLE MNNVL MNNVL_CLIQUE_ID MNNVL_CROSS_CLIQUE MNNVL_ENABLE MNNVL_RAIL_PER_HOST
MNNVL_SCATTER_NETS_ENABLE MNNVL_UUID MULTI_RANK_GPU_ENABLE MULTI_SEGMENT_REGISTER NCCL_ALLOC_P2P_NET_LL_BUFFERS
NCHANNELS NCHANNELS_PER_NET_PEER NET NETDEVS_POLICY NET_DISABLE_INTRA NET_FORCE_FLUSH NET_FORCE_MERGE NET_GDR_C2C
NET_GDR_LEVEL NET_GDR_MLOPART NET_GDR_READ NET_MERGE_LEVEL NET_MERGE_POLICY NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD
NET_PLUGIN NET_PLUGIN_REF_COUNT NET_SHARED_BUFFERS NET_SHARED_COMMS NO_CACHE NSOCKS_PERTHREAD NTHREADS NUM_RMA_CTX
NUM_RMA_INT_CTX NVB_DISABLE NVB_PRECONNECT NVLINK_UTIL_CENTRIC_SCHED_ENABLE NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE
NVLS_ENABLE NVLS_NCHANNELS NVLS_UB_SIZE NVTX_DISABLE OOB_NET_ENABLE OOB_NET_IFNAME ORIGINS P2P_DIRECT_DISABLE
P2P_DISABLE P2P_EPOCH_ENABLE P2P_LEVEL P2P_LL_THRESHOLD P2P_MAX_PEERS P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE
P2P_PCI_CHUNKSIZE P2P_PER_CHANNEL_NET_BW P2P_PER_CHANNEL_REG_NET_BW P2P_PXN_LEVEL P2P_READ_ENABLE
P2P_SCHEDULE_GROUP_SIZE P2P_USE_CUDA_MEMCPY PARAM PARAM_DUMP_ALL PAT_ENABLE PAT_NDIMS PROFILER_PLUGIN
PROGRESS_APPENDOP_FREQ PROGRESS_COUNTERS PROGRESS_COUNTER_MONITOR_POLL_MS PROGRESS_COUNTER_MONITOR_STALE_MS
PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC PROTO PROXY_APPEND_BATCH_SIZE PROXY_CPUSET PROXY_DUMP_SIGNAL PROXY_PROFILE
PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR REPORT_CONNECT_PROGRESS RING_EDGE_DEVS RMA_DISABLE
RMA_EAGER_INIT RMA_IB_WR_BATCHSIZE RMA_MULTI_CTX_THRESHOLD RMA_PLUGIN RMA_PLUGIN_REF_COUNT RMA_PROXY_DUMP_SIGNAL
RMA_PROXY_QUEUE_SIZE RUNTIME_CONNECT RUN_DIAGNOSTICS RUN_RAS_DIAGNOSTICS SET_CPU_STACK_SIZE SET_STACK_SIZE
SET_THREAD_NAME SHADOW_MEMPOOL_MAX_SIZE SHM_DISABLE SHM_LOCALITY SHM_MEMCPY_MODE SHM_USE_CUDA_MEMCPY
SINGLE_PROC_MEM_REG_ENABLE SINGLE_RING_THRESHOLD SKIP_TREE_CONNECT SOCKET_FAMILY SOCKET_IFNAME SOCKET_INLINE
SOCKET_MAGIC SOCKET_MIN_TASKSIZE SOCKET_NTHREADS SOCKET_POLL_TIMEOUT_MSEC SOCKET_RCVBUF SOCKET_RETRY_CNT
SOCKET_RETRY_SLEEP_MSEC SOCKET_SNDBUF SWITCHLESS_RING_ONLY SYMMETRIC SYM_CE_THRESHOLD SYM_CTAS SYM_GIN_KERNELS_ENABLE
SYM_KERNEL SYM_NOWIN_ENABLE SYM_REUSE_SYSMEM_HANDLES SYM_RS_GIN_CHUNK_SIZE SYM_TMA_ENABLE THREAD_THRESHOLDS TIMEOUT
TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK TOPO_FILE TOPO_SCATTER_START_NET TOPO_SPLIT_MLOPART TREE_THRESHOLD TUNER_PLUGIN
TUNER_THRESHOLD UID_STAGGER_RATE UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS VERSION WARN_ENABLE_DEBUG_INFO
WIN_ENABLE WIN_STRIDE WORK_ARGS_BYTES WORK_FIFO_BYTES WORK_FIFO_DEPTH
OMPI_MCA_ btl_tcp_if_include plm_rsh_args
OMP_ NUM_THREADS PLACES PROC_BIND
PYTORCH_ ALLOC_CONF CUAD_ALLOC_CONF CUDA_ALLOC_CONF
RAY_ ACCEL_ENV_VAR_OVERRIDE_ON_ZERO ACCEL_ENV_VAR_OVERRIDE_ON_ZERO_ENV_VAR OVERRIDE_DASHBOARD_URL
OVERRIDE_JOB_RUNTIME_ENV OVERRIDE_LABELS OVERRIDE_NODE_IP_ADDRESS OVERRIDE_RESOURCES
OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES memory_monitor_refresh_ms
SGLANG_ ALLOW_OVERWRITE_LONGER_CONTEXT_LEN DISABLE_AITER_FUSED_FP8_DSA_INDEXER DISABLE_AITER_GREEDY_SAMPLE
DISABLE_CONSECUTIVE_PREFILL_OVERLAP DISABLE_CUDNN_CHECK DISABLE_DRAFT_EXTEND_CUDA_GRAPH DISABLE_DSA_INDEXER_FUSION
DISABLE_FUSED_AR_QUANT DISABLE_FUSED_MAMBA_SLOT_OPS DISABLE_GFX1250_FP8_GEMM DISABLE_HISPARSE_PREFETCH
DISABLE_KDA_PREFILL_GRAPH_EXTEND DISABLE_LAZY_COMPACTION DISABLE_LEAN_ATTENTION DISABLE_LFM_FUSED_CONV
DISABLE_M3_FP8_ATTN_GEMM DISABLE_MSA DISABLE_MSA_V1_Q8KV4 DISABLE_OUTLINES_DISK_CACHE DISABLE_REQUEST_LOGGING
DISABLE_SGL_KERNEL_FAKE_REGISTER DISABLE_SILU_FP4_QUANT_FUSION DISABLE_SM120_FP8_GEMV DISABLE_STATIC_WATERFILL
DISABLE_TP_MEMORY_INBALANCE_CHECK ENABLE_ASYNC_ASSERT ENABLE_BF16_SPLITK_GEMM ENABLE_COLOCATED_BATCH_GEN ENABLE_CP_V2
ENABLE_CUDA_GRAPH_CAPTURE_TRACE ENABLE_CUDA_GRAPH_DEDUP ENABLE_CUSTOM_ALL_REDUCE_V2_MULTINODE ENABLE_DELAY_SAMPLE
ENABLE_DETERMINISTIC_INFERENCE ENABLE_DISAGG_PREFILL_CONTINUOUS_INPUT_POLLING ENABLE_DISAGG_SAMPLING_MASK
ENABLE_DP_GATHER_FP8 ENABLE_DP_SPEC_PREFILL_COORDINATION ENABLE_DSA_Q8KV8_BORN_FP8_Q ENABLE_DSA_Q8KV8_KV_CAT_FUSION
ENABLE_DSA_Q8KV8_QPREP_OVERLAP ENABLE_DSA_Q8KV8_TOPK_LENGTH ENABLE_DSV41_ENGRAM_HOST_TABLE ENABLE_EMBED_REPLICATION
ENABLE_EPLB_BALANCEDNESS_METRIC ENABLE_FAST_INPUT_LOGPROBS ENABLE_FLASHINFER_FP8_GEMM ENABLE_FLASHINFER_GEMM
ENABLE_FLUX3_PRIMS_TS_AUTOTUNE ENABLE_FP8_GEMM_CONFIG_TUNE ENABLE_GDN_DECODE_FUSED_PROJ_CONV ENABLE_GRAPH_POOL_BORROW
ENABLE_GRAPH_POOL_PRECARVE ENABLE_GRPC ENABLE_HEALTH_ENDPOINT_GENERATION ENABLE_HICACHE_BUFFER_ANCHOR_LOCK
ENABLE_HICACHE_SWA_TAIL_ONLY_BACKUP ENABLE_JIT_DEEPGEMM ENABLE_KV_SHARD_ZERO_SM_GATHER ENABLE_LILICORR_SAMPLING
ENABLE_LOGITS_PROCESSER_CHUNK ENABLE_LOGPROB_CHUNK ENABLE_LORA_CSGMV_SPLIT_K ENABLE_LORA_MOE_GATEUP_GATED_SPLIT
ENABLE_LORA_SHRINK_SPLIT_K ENABLE_METADATA_GLUE_GRAPH ENABLE_METRICS_DEVICE_TIMER ENABLE_METRICS_DP_ATTENTION
ENABLE_MM_SPLITTING ENABLE_MOE_DEFERRED_FINALIZE ENABLE_MTP_BOUNDARY_KV_FIX ENABLE_MUSE_SPARK_AG_NORM_FUSION
ENABLE_MUSE_SPARK_FINALIZE_AR ENABLE_NAN_LOGITS_CHECK ENABLE_NVFP4_GEMM_SWIGLU_FUSION ENABLE_NVTX
ENABLE_NVTX_OPERATIONS ENABLE_NVTX_SCHEDULER ENABLE_OVERLAP_PLAN_STREAM ENABLE_PCG_DSV2_DUAL_STREAM
ENABLE_PCIE_IPC_ALLREDUCE ENABLE_POST_CAPTURE_KV_SIZING ENABLE_PP_SPEC ENABLE_PREFILL_WAR_READ_DONE
ENABLE_PRINT_TENSOR ENABLE_QWEN4_PLE_FUSION ENABLE_QWEN_DEEPEP_SHARED_OVERLAP ENABLE_RANK_CONSENSUS_CHECKER
ENABLE_REQUEST_DECOMPRESSION ENABLE_REQUEST_HEADER_OVERRIDES ENABLE_RESPONSE_TEMPLATE_TURN_GRAMMAR
ENABLE_RUNTIME_MEM_LEAK_CHECK ENABLE_SINGLE_CG_DRAFT ENABLE_SPEC_V2 ENABLE_SPLITKV_VERIFY
ENABLE_STRICT_MEM_CHECK_DURING_BUSY ENABLE_STRICT_MEM_CHECK_DURING_IDLE ENABLE_THINKING ENABLE_TORCH_COMPILE
ENABLE_TORCH_INFERENCE_MODE ENABLE_TP_MEMORY_INBALANCE_CHECK ENABLE_TREE_CACHE_SANITY_CHECK ENABLE_UNIFIED_RADIX_TREE
ENABLE_WAITING_PREFIX_REFRESH ENABLE_WAR_BARRIER ENABLE_WEIGHT_LOADER_V2 HEALTH_CHECK_TIMEOUT OPT_BEAM_DECODE_GEMV
OPT_BF16_FP32_GEMM_ALGO OPT_CACHE_SWA_TRANSLATION OPT_CUDA_GRAPH_FILL_FAST_PATH OPT_DEEPGEMM_HC_PRENORM
OPT_DEEPGEMM_MEGA_GATE OPT_DEEPGEMM_MEGA_MOE_FUSE_SHARED_EXPERTS OPT_DEEPGEMM_MEGA_MOE_RESERVED_SMS
OPT_DEEPGEMM_MEGA_MOE_USE_FP4_ACTS OPT_DEEPGEMM_MEGA_MOE_USE_MXF4_KIND OPT_DG_COMPACT_EAGER OPT_DG_MASKED_M_CAP
OPT_DPSK_V4_RADIX OPT_DSV41_BF16_INDEX_LOGITS OPT_DSV41_BLOCKWISE_REJECTION OPT_DSV41_DSPARK_DRAFT_PREP_FORK
OPT_DSV41_DSPARK_MID_FOLD OPT_DSV41_DSPARK_ONE_LAUNCH_COMMIT_STAGE OPT_DSV41_DSPARK_POST_FOLD
OPT_DSV41_DSPARK_PREPARE_INPUTS_ONCE OPT_DSV41_DSPARK_SIM_DRAW_AHEAD OPT_DSV41_DSPARK_SKIP_PREFILLED_INPUTS
OPT_DSV41_ENGRAM_HOST_STAGING OPT_DSV41_ENGRAM_PEER_SHARDS OPT_DSV41_MEGA_MHC_PREFILL
OPT_DSV41_POST_FORWARD_CUDA_GRAPH OPT_DSV41_SAMPLING_ACCEPT_GRAPH OPT_DSV41_TARGET_METADATA_EARLY
OPT_DSV41_TARGET_VERIFY_METADATA_GLUE OPT_DSV4_NONPAGED_INDEXER OPT_ENGRAM_EXTEND_HASH OPT_FIX_MEGA_MOE_MEMORY
OPT_FLASHINFER_DRAFT_HOST_INDPTR OPT_FLASHINFER_VERIFY_HOST_PLAN OPT_FLASHMLA_SPARSE_PREFILL
OPT_FLUX3_PRIMS_TS_TUNING_BUCKETS OPT_FP8_WO_A_FUSED_INVROPE OPT_FP8_WO_A_GEMM OPT_FUSED_KDA_VERIFY
OPT_FUSED_PERMUTE_QUANT OPT_FUSED_QK_NORM_ROPE_VERIFY OPT_FUSE_MHC_POST_PRE OPT_FUSE_SWIGLU_INTERLEAVED
OPT_FUSE_WQA_WKV OPT_GATE_GEMV_MODE OPT_HIP_FLYDSL_MXFP8 OPT_HIP_OPUS_SPARSE_PREFILL OPT_HOPPER_BLOCK_FP8_BF16
OPT_INKLING_MXFP8_FUSED_QUANT_STORE OPT_KIMI_GATE_BF16_INPUT OPT_LINEARIZED_SHARED_SINK OPT_LORA_CUBLAS
OPT_LORA_CUBLAS_A OPT_LORA_CUBLAS_B OPT_LORA_CUBLAS_GATE_UP OPT_LORA_CUBLAS_KV_B OPT_LORA_CUBLAS_QKV
OPT_LORA_FUSED_MERGED_ALIGN OPT_LORA_FUSED_TOPK_PACK OPT_LORA_OVERLAP_MAIN_ALLOC OPT_LORA_PREFILL_ROUTING_REUSE
OPT_LORA_QKV_B_STORE OPT_LORA_SHARED_ADD_OVERLAP OPT_LORA_SHRINK_TUNE OPT_MAMBA_SKIP_DECODE_LOCK OPT_MASK_DP_PAD_MOE
OPT_MINIMAX_M3_FP8_INDEX_CACHE OPT_MOE_QUANT_ONCE OPT_MXFP4_DEFERRED_FINALIZED_SHAPE OPT_NPU_BF16_WO_A_GEMM
OPT_Q8KV8_QPREP_VARIANT OPT_RELEASE_PREFILL_SWA OPT_SKIP_GLUED_REPLAY_VIEW OPT_SM120_DIRECT_SWA_KV
OPT_SM120_MTP_ROUTER_TOP22 OPT_SM120_NVFP4_PHASE_LAYOUT OPT_SWA_EVICT_DROP_PAGE_MARGIN OPT_SWA_RADIX_CACHE_COMPACT
OPT_SWA_RELEASE_LEAF_LOCK_AFTER_WINDOW OPT_SWA_SPLIT_LEAF_ON_INSERT OPT_SWIGLU_CLAMP_FUSION
OPT_UNIFIED_CACHE_FREE_OUT_OF_WINDOW_SLOTS OPT_USE_AITER_BATCHED_GEMM OPT_USE_AITER_INDEXER OPT_USE_AITER_MHC_POST
OPT_USE_AITER_MHC_PRE OPT_USE_AITER_SILU_MUL OPT_USE_BF16_ROUTER_GEMM OPT_USE_COMPRESSOR_V2 OPT_USE_CUDA_SCONV
OPT_USE_CUSTOM_ALL_REDUCE_V2 OPT_USE_DEEPGEMM_MEGA_MOE OPT_USE_FLASHINFER_MHC OPT_USE_FUSED_CLAMP_ACT_MUL
OPT_USE_FUSED_COMPRESS OPT_USE_FUSED_COMPRESS_TRITON OPT_USE_FUSED_GATE_TOPK OPT_USE_FUSED_HASH_TOPK
OPT_USE_FUSED_QK_NORM_ROPE OPT_USE_FUSED_STORE_CACHE OPT_USE_GATE_TOPK_JIT OPT_USE_GUMBEL_SAMPLE
OPT_USE_INKLING_CUSTOM_AR OPT_USE_INKLING_FUSED_AR_SCONV OPT_USE_INKLING_FUSED_AR_SCONV_NORM
OPT_USE_INKLING_FUSED_AR_SHARED OPT_USE_INKLING_FUSED_ATTN_PROLOGUE OPT_USE_INKLING_FUSED_LOG_TAU
OPT_USE_INKLING_MULTI_STREAM_OVERLAP OPT_USE_INKLING_REL_PROJ_DISPATCH OPT_USE_INKLING_SHARED_FUSED_MOE
OPT_USE_INKLING_SHEARED_BIAS OPT_USE_JIT_EP_ACTIVATION OPT_USE_JIT_INDEXER_METADATA OPT_USE_JIT_KERNEL_FUSED_TOPK
OPT_USE_JIT_KERNEL_GROUPED_TOPK OPT_USE_JIT_KERNEL_KIMI_GATE OPT_USE_JIT_KERNEL_MOE_ALIGN OPT_USE_JIT_NORM
OPT_USE_MINIMAX_DECODE_TOPK_RADIX OPT_USE_MINIMAX_DENSE_SPARSE_DECODE OPT_USE_MINIMAX_FP8_Q_EPILOGUE
OPT_USE_MINIMAX_FUSED_KV_INDEX_STORE OPT_USE_MINIMAX_GLUON_PREFILL OPT_USE_MSA_DECODE_UNDER_GRAPH
OPT_USE_MULTI_STREAM_OVERLAP OPT_USE_OLD_COMPRESSOR OPT_USE_ONLINE_COMPRESS OPT_USE_TILELANG_INDEXER
OPT_USE_TILELANG_MHC_POST OPT_USE_TILELANG_MHC_PRE OPT_USE_TOPK_V2 OPT_USE_TRITON_FUSED_MHC OPT_USE_TRITON_SWA_PREPARE
PP_COMM_OVERLAP PP_LAYER_PARTITION PP_PARALLEL_DEEPGEMM_WARMUP PP_SKIP_PURE_CHUNKED_OUTPUT_COMM SET_CPU_AFFINITY
SPEC_ENABLE_STRICT_FILTER_CHECK SPEC_EXPANSION_SAFETY_FACTOR SPEC_NAN_DETECTION SPEC_OOB_DETECTION
SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND SPEC_TP_SYNC USE_1STAGE_ALLREDUCE USE_AG_AFTER_QLORA USE_AITER USE_AITER_AG
USE_AITER_AR USE_AITER_MOE_GU_ITLV USE_AITER_UNIFIED_ATTN USE_ATTN_TP_NGRAM USE_BREAKABLE_CUDA_GRAPH USE_CPU_ENGINE
USE_CUDA_IPC_TRANSPORT USE_CUSTOM_ROUTER_SUM USE_CUSTOM_TRITON_KERNEL_CACHE USE_CUTEDSL_GDN_DECODE USE_DEEPGEMM_BMM
USE_DYNAMIC_MXFP4_LINEAR USE_FIA_NZ USE_FLASHINFER_MOE_FP4 USE_FUSED_METADATA_COPY USE_FUSED_PARALLEL_QKNORM
USE_HND_KVCACHE USE_IPC_POOL_HANDLE_CACHE USE_JIT_ALL_REDUCE USE_MESSAGE_QUEUE_BROADCASTER USE_MLX USE_MODELSCOPE
USE_PICKLE_IPC USE_ROCM700A USE_SAGE_ATTENTION_IMPL USE_SGL_FA3_KERNEL USE_SGL_XPU USE_TRITON_ROUTER_SUM
TLLM_ AUTOTUNER_CACHE_PATH DISABLE_ALLREDUCE_AUTOTUNE DISABLE_FP4_ALLGATHER DISABLE_MPI
EXECUTOR_PERIODICAL_RESP_IN_AWAIT LLMAPI_BUILD_CACHE LLMAPI_ENABLE_DEBUG LLMAPI_ENABLE_NVTX LLMAPI_ZMQ_PAIR
LLM_ENABLE_DEBUG LOG_FIRST_RANK_ONLY LOG_LEVEL MOE_A2A_COMBINE_BLOCK_SIZE MOE_A2A_DISPATCH_BLOCK_SIZE
MULTIMODAL_DISAGGREGATED NVTX_DEBUG PROFILE_RECORD_GC PROFILE_START_STOP SPAWN_PROXY_PROCESS
SPAWN_PROXY_PROCESS_IPC_ADDR TORCH_PROFILE_TRACE VIDEO_PRUNING_RATIO WORKER_USE_SINGLE_PROCESS
TORCHINDUCTOR_ CACHE_DIR
TORCH_ CUDA_ARCH_LIST NCCL_ASYNC_ERROR_HANDLING NCCL_BLOCKING_WAIT NCCL_DUMP_ON_TIMEOUT NCCL_ENABLE_MONITORING
NCCL_HEARTBEAT_TIMEOUT_SEC
TRITON_ ATTN ATTN_DIFFKV CACHE_DIR FLASHINFER FLASH_ATTN MLA MSA PTXAS_PATH
TRTLLM_ DISABLE_CHUNKED_ATTENTION_IN_GEN_PHASE DISABLE_KV_CACHE_TRANSFER_OVERLAP DISAGG_BENCHMARK_GEN_ONLY
DISAGG_LAYERWISE ENABLE_KVCACHE_RECEIVE_PARALLEL ENABLE_MMHA_MULTI_BLOCK_DEBUG ENABLE_PDL
ENABLE_TRTLLMGEN_MOE_ROUTING_RENORM_PDL ENABLE_XQA_JIT EPLB_FORCE_GDRCOPY FORCE_XQA GEN_ENABLE_TILE_SIZE_KV64
KVCACHE_POOL_USE_FABRIC_MEMORY KVCACHE_RECV_BUFFER_COUNT KVCACHE_SEND_MAX_CONCURRENCY_NUM KVCACHE_TIME_OUTPUT_PATH
KVCACHE_TRANSFER_ALL_BLOCKS_FOR_WINDOW KVCACHE_TRANSFER_BUFFER_SIZE KVCACHE_TRANSFER_USE_ASYNC_BUFFER
KVCACHE_TRANSFER_USE_SYNC_BUFFER MMHA_BLOCKS_PER_SEQUENCE MMHA_KERNEL_BLOCK_SIZE MOE_BACKEND
MOE_DISABLE_FINALIZE_FUSION MOONCAKE_INTERFACE NIXL_ENABLE_COALESCE NIXL_INTERFACE NIXL_KVCACHE_BACKEND NIXL_PORT
NO_USAGE_STATS PRINT_SKIP_SOFTMAX_STAT RAY_PER_WORKER_GPUS REQUEST_KV_CACHE_CONCURRENT TRY_ZCOPY_FOR_KVCACHE_TRANSFER
UCX_INTERFACE USE_MOONCAKE_KVCACHE USE_MPI_KVCACHE USE_NIXL_KVCACHE USE_UCX_KVCACHE WORKER_PRINT_STACKS_PERIOD
XQA_BLOCKS_PER_SEQUENCE
UCX_ IB_GID_INDEX NET_DEVICES TLS
VLLM_ ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE ALLOW_INSECURE_SERIALIZATION ALLOW_LONG_MAX_MODEL_LEN
ALLOW_RUNTIME_LORA_UPDATING ALLREDUCE_USE_FLASHINFER ALLREDUCE_USE_FLASHINFER_PCIE_IPC ALLREDUCE_USE_SYMM_MEM
ATTENTION_BACKEND CPU_ATTN_SPLIT_KV CPU_CI_ENV CPU_INT4_W4A8 CPU_KVCACHE_SPACE CPU_MOE_PREPACK CPU_NUM_OF_RESERVED_CPU
CPU_OMP_THREADS_BIND CPU_SGL_KERNEL DISABLE_COMPILE_CACHE DISABLE_DSV4_MEGAMOE_SHARED_EXPERT_FUSION DISABLE_LOG_LOGO
DISABLE_PYNCCL DISABLE_REQUEST_ID_RANDOMIZATION DISABLE_SHARED_EXPERTS_STREAM DP_MASTER_IP DP_MASTER_PORT DP_RANK
DP_RANK_LOCAL DP_SIZE DSV4_TP_PAD ENABLE_COHERE_API ENABLE_CUDAGRAPH_GC ENABLE_CUDA_COMPATIBILITY
ENABLE_FLA_PACKED_RECURRENT_DECODE ENABLE_GEMM_RS ENABLE_HPC_OPS ENABLE_INDUCTOR_COORDINATE_DESCENT_TUNING
ENABLE_INDUCTOR_MAX_AUTOTUNE ENABLE_MOE_DP_CHUNK ENABLE_PREGRAD_PASSES ENABLE_RESPONSES_API_STORE
ENABLE_ROCE_ALLREDUCE ENABLE_STARTUP_PLAN ENABLE_V1_MULTIPROCESSING EXECUTE_MODEL_TIMEOUT_SECONDS
FLASHINFER_ALLREDUCE_BACKEND FLASHINFER_ALLREDUCE_FUSION_THRESHOLDS_MB FLASHINFER_AUTOTUNE_CACHE_DIR
FLASHINFER_AUTOTUNE_SKIP_OPS FLASHINFER_MOE_A2A_LOW_PRECISION_COMBINE FLASHINFER_MOE_BACKEND
FLASHINFER_WORKSPACE_BUFFER_SIZE LOG_STATS_INTERVAL MARLIN_INPUT_DTYPE MARLIN_USE_ATOMIC_ADD MLA_DISABLE
MM_HASHER_ALGORITHM MOE_DP_CHUNK_SIZE MOE_ROUTING_SIMULATION_STRATEGY MOE_SKIP_PADDING MOE_USE_DEEP_GEMM MXFP4_BACKEND
MXFP4_EMULATION_DEQUANT_AT_LOAD MXFP4_USE_MARLIN NCCL_INCLUDE_PATH NCCL_SO_PATH NVFP4_GEMM_BACKEND PP_LAYER_PARTITION
RPC_BASE_PATH RPC_TIMEOUT SKIP_MODEL_NAME_VALIDATION SKIP_P2P_CHECK SKIP_PRECOMPILED_VERSION_SUFFIX
SKIP_VERSION_SUFFIX TEST_FORCE_FP8_MARLIN TEST_FORCE_LOAD_FORMAT USE_AOT_COMPILE USE_B12X_FP8_GEMM USE_B12X_MHC
USE_B12X_MOE USE_B12X_SPARSE_INDEXER USE_B12X_WO_PROJECTION USE_BREAKABLE_CUDAGRAPH USE_BYTECODE_HOOK USE_DEEP_GEMM
USE_DEEP_GEMM_E8M0 USE_DEEP_GEMM_TMA_ALIGNED_SCALES USE_DIRECT_DCP_A2A USE_DIRECT_DCP_KV_GATHER
USE_DIRECT_DCP_Q_GATHER USE_EXPERIMENTAL_PARSER_CONTEXT USE_FBGEMM USE_FLASHINFER_MOE_FP16 USE_FLASHINFER_MOE_FP4
USE_FLASHINFER_MOE_FP8 USE_FLASHINFER_MOE_INT4 USE_FLASHINFER_MOE_MXFP4_BF16 USE_FLASHINFER_MOE_MXFP4_MXFP8
USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS USE_FLASHINFER_SAMPLER USE_FUSED_MOE_GROUPED_TOPK USE_HW_AGNOSTIC USE_LAYERNAME
USE_MEGA_AOT_ARTIFACT USE_MODELSCOPE USE_NCCL_SYMM_MEM USE_NVFP4_CT_EMULATIONS USE_OINK_OPS USE_PRECOMPILED
USE_PRECOMPILED_RUST USE_RAY_COMPILED_DAG_CHANNEL_TYPE USE_RAY_COMPILED_DAG_OVERLAP_COMM USE_RAY_V2_EXECUTOR_BACKEND
USE_RAY_WRAPPED_PP_COMM USE_RUST_BENCH USE_RUST_FRONTEND USE_SIMPLE_KV_OFFLOAD USE_SPINLOOP_EXT USE_STANDALONE_COMPILE
USE_TRITON_AWQ USE_V1 USE_V2_MODEL_RUNNER V1_OUTPUT_PROC_CHUNK_SIZE V1_USE_OUTLINES_CACHE WORKER_MULTIPROC_METHOD
WORKER_SHUTDOWN_TIMEOUT_SECONDS'
variables='
VLLM_HOST_IP VLLM_PORT VLLM_CACHE_ROOT VLLM_CONFIG_ROOT VLLM_ENGINE_READY_TIMEOUT_S VLLM_LOGGING_LEVEL VLLM_VERSION
VLLM_BASE_DIR VLLM_PLUGINS VLLM_KV_CACHE_LAYOUT VLLM_RAY_DP_PACK_STRATEGY VLLM_SLEEP_WHEN_IDLE VLLM_NO_USAGE_STATS
VLLM_DO_NOT_TRACK SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE LMCACHE_LOCAL_CPU
LMCACHE_LOCAL_DISK LMCACHE_REMOTE_URL LMCACHE_CHUNK_SIZE LMCACHE_MAX_LOCAL_CPU_SIZE LMCACHE_MAX_LOCAL_DISK_SIZE
LMCACHE_TRACK_USAGE VLLM_TARGET_DEVICE VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS
SGLANG_HOST_IP SGLANG_VERSION SGLANG_LOCAL_IP_NIC SGLANG_IS_FLASHINFER_AVAILABLE HOST_IP
MASTER_ADDR MASTER_PORT NODE_RANK RANK WORLD_SIZE LOCAL_RANK NNODES NODE_IP HEAD_IP GLOO_SOCKET_IFNAME
TP_SOCKET_IFNAME RAY_AUTH_MODE MN_IF_NAME RAY_NODE_IP_ADDRESS RAY_USAGE_STATS_ENABLED RAY_num_prestart_python_workers
RAY_DEDUP_LOGS HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE HF_HUB_ENABLE_HF_TRANSFER HF_HUB_DISABLE_TELEMETRY
HF_HUB_DISABLE_XET LLAMA_CACHE SGLANG_CACHE_DIR SGLANG_JIT_CACHE_DIR TVM_FFI_CACHE_DIR TRANSFORMERS_OFFLINE TRANSFORMERS_CACHE XDG_CACHE_HOME TIKTOKEN_RS_CACHE_DIR
TIKTOKEN_ENCODINGS_BASE TOKENIZERS_PARALLELISM CUDA_VISIBLE_DEVICES CUDA_DEVICE_MAX_CONNECTIONS CUDA_LAUNCH_BLOCKING
CUDA_MODULE_LOADING CUDA_VERSION CUDA_CACHE_PATH NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES
NVIDIA_VLLM_VERSION NVIDIA_SGLANG_VERSION NVIDIA_BUILD_ID NV_LIBNCCL_PACKAGE_VERSION LD_PRELOAD LD_LIBRARY_PATH
PYTHONUNBUFFERED PYTHONHASHSEED SLURM_NNODES SLURM_NTASKS SLURM_PROCID SLURM_NODEID DG_JIT_CACHE_DIR SAFETENSORS_FAST_GPU MALLOC_ARENA_MAX IMAGE MODEL
HOST PORT OPENAI_API_BASE_URL DEFAULT_MODELS ENABLE_OLLAMA_API WEBUI_AUTH ENABLE_SIGNUP WEBUI_SECRET_KEY_FILE
WEBUI_URL WEBUI_SESSION_COOKIE_SECURE WEBUI_AUTH_COOKIE_SECURE
ENABLE_PERSISTENT_CONFIG ENABLE_VERSION_UPDATE_CHECK DCGM_EXPORTER_LISTEN OMPI_ALLOW_RUN_AS_ROOT
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM'

# Keys of JSON in a flag.
keys='method model num_speculative_tokens draft_tensor_parallel_size prompt_lookup_max prompt_lookup_min quantization
disable_padded_drafter_batch parallel_drafting attention_backend moe_backend speculative_token_tree enforce_eager
max_model_len rejection_sample_method draft_sample_method revision mode level cudagraph_mode cudagraph_capture_sizes
max_cudagraph_capture_size compile_sizes use_inductor custom_ops splitting_ops pass_config fuse_allreduce_rms
fuse_attn_quant enable_noop eliminate_noops fuse_norm_quant fuse_act_quant inductor_compile_config
temperature top_p top_k min_p repetition_penalty presence_penalty frequency_penalty max_new_tokens
enable_thinking thinking preserve_thinking clear_thinking reasoning_effort image video audio count width height
num_frames max_pixels min_pixels fps rope_type rope_theta factor original_max_position_embeddings rope_scaling
rope_parameters text_config mrope_section mrope_interleaved partial_rotary_factor architectures model_type
kv_connector kv_role kv_load_failure_policy kv_connector_extra_config cpu_bytes_to_use max_local_cache_size
spec_name secondary_tiers type root_dir max_bytes enable_multithread_load num_threads concurrency distributed free_gpu_memory_fraction dtype enable_block_reuse
use_flashinfer use_trtllm_attention backend'

# Keys of netplan under an interface or a route, of units, and of what networkd and NetworkManager read.
netplan='network version renderer ethernets addresses dhcp4 dhcp6 mtu link-local accept-ra optional
optional-addresses critical activation-mode ignore-carrier gateway4 gateway6 routes to via from metric table scope
on-link routing-policy priority nameservers dhcp4-overrides dhcp6-overrides use-dns use-routes use-domains
route-metric match driver name set-name wakeonlan lifetime ipv6-privacy dhcp-identifier
receive-checksum-offload transmit-checksum-offload tcp-segmentation-offload generic-segmentation-offload
generic-receive-offload large-receive-offload virtual-function-count embedded-switch-mode'
unit='After Before Wants Requires BindsTo PartOf Conflicts Type Restart RestartSec RestartPreventExitStatus
TimeoutStartSec TimeoutStopSec TimeoutSec StartLimitBurst StartLimitIntervalSec RemainAfterExit KillMode KillSignal
WantedBy RequiredBy WorkingDirectory LimitMEMLOCK LimitNOFILE OOMScoreAdjust SuccessExitStatus EnvironmentFile
ConditionPathExists RequiresMountsFor'
ini='Name OriginalName Address DHCP MTUBytes LinkLocalAddressing IPv6AcceptRA RequiredForOnline Gateway Destination Metric
type interface-name autoconnect autoconnect-priority method mtu never-default may-fail ignore-auto-dns'

redact='
function list(text, into, count, words, i) {
  count = split(text, words, /[ \n]+/)
  for (i = 1; i <= count; i++) if (words[i] != "") into[words[i]] = 1
}
function prefixed(text, count, words, i, start) {
  count = split(text, words, /[ \n]+/)
  for (i = 1; i <= count; i++) if (words[i] ~ /_$/) start = words[i]; else if (words[i] != "") VARIABLES[start words[i]] = 1
}
# What takes the place of a value: its hash with a key that stays on the node, so that a change shows and nobody
# elsewhere can try likely values.
function hashed(text, sum, command) {
  if (ENVIRON["key"] == "" || text == "") return REMOVED
  print ENVIRON["key"] text >ENVIRON["scratch"]; close(ENVIRON["scratch"])
  command = "sha256sum <" ENVIRON["scratch"]; command | getline sum; close(command)
  return sum == "" ? REMOVED : "[removed:" substr(sum, 1, 16) "]"
}
BEGIN {
  REMOVED = "[removed]"; QUOTE = sprintf("%c", 39); BACK = "\\"
  list(ENVIRON["flags"], FLAGS); list(ENVIRON["lists"], LISTS); list(ENVIRON["short"], SHORT)
  list(ENVIRON["switches"], SWITCHES); list(ENVIRON["options"], OPTIONS); list(ENVIRON["bare"], BARE)
  list(ENVIRON["options_short"], OPTIONS_SHORT); list(ENVIRON["options_bare"], OPTIONS_BARE)
  list(ENVIRON["variables"], VARIABLES); prefixed(ENVIRON["known"]); list(ENVIRON["keys"], KEYS)
  list("vllm serve sglang sglang.launch_server vllm.entrypoints.openai.api_server llama-server rpc-server " \
    "ggml-rpc-server llama-rpc-server trtllm-serve trtllm-llmapi-launch mpirun ray", ENGINES)
  list("python python3 -m start bash sh -c -lc -ec env exec nohup sudo docker run compose up down stop restart sleep " \
    "infinity true -- \\ engine", PROGRAMS)
}
# Whether a text looks like a key: it has a prefix that issuers of keys use.
function is_shaped(text) {
  if (match(text, /hf_[A-Za-z0-9]+/) && RLENGTH > 22) return 1
  return text ~ /(^|[^A-Za-z0-9])(hf_|nvapi-|sk-|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|eyJ|dckr_pat_|npm_|pypi-|ya29\.|SG\.|AGE-SECRET|tskey-|hvs\.|[rs]k_live_|[rs]k_test_|whsec_|dop_v1_|glsa_|shpat_|xapp-|gsk_|r8_|pplx-|tvly-|lin_api_)[A-Za-z0-9]/
}
# Whether a text does not mention a key either, and has no URL with a login or a query.
function harmless(text, small) {
  small = tolower(text)
  if (length(text) > 400 || text ~ /[^ -~]/ || text ~ /:\/\/[^ ]*[@?#]/ || is_shaped(text)) return 0
  if (text ~ /:[^ \/:@]*@/ && text !~ /@sha256:/) return 0
  if (match(text, /[A-Za-z0-9+\/]+==?$/) && RLENGTH > 19) return 0
  if (small ~ /passw|passphrase|bearer|basic |cookie|api[-_]?key|authorization|token[=:]|secret[=:]|(^|[^a-z])(pass|pwd|pw|sig|psk)[=:]|begin [a-z ]*private/) return 0
  return 1
}
# Whether part of a text is long, and neither a word nor a number, as keys without a prefix are.
function is_random(text, parts, count, i) {
  count = split(text, parts, /[^A-Za-z0-9]+/)
  for (i = 1; i <= count; i++) {
    if (length(parts[i]) > 31 && parts[i] ~ /^[0-9a-f]+$/) return 1
    if (length(parts[i]) > 19 && parts[i] ~ /[0-9]/ && parts[i] ~ /[a-z]/ && parts[i] ~ /[A-Z]/) return 1
  }
  return 0
}
# Whether a line of a text that is taken whole gives somebody a key: it sets one, or has a login.
function gives_key(text, small) {
  small = tolower(text)
  gsub(/["\047]/, "", small)
  gsub(/[:=] *(true|false|yes|no|null|none|empty|auto|[0-9][0-9]?[0-9]?)([ ,}]|$)/, " ", small)
  if (is_shaped(text) || small ~ /:\/\/[^ \/@:]*:[^ \/@$]+@/ || small ~ /begin [a-z ]*private/) return 1
  if (small ~ /(bearer|basic) +[a-z0-9]/ || small ~ /(machine|login) .*password +[^ ]/) return 1
  if (small ~ /(^| )(-u|--user)[ =]*[^ :]+:[^ $]/ || small ~ /--[a-z-]*(password|secret|token|key)[ =][^ $-]/) return 1
  if (small ~ /(sshpass|login|mysql[a-z]*|psql|redis-cli|ldap[a-z]*)( .*)? -[apw] *[^ $-]/) return 1
  if (small ~ /(^|[^a-z])(pass|passcode|pw|pin|pin_?code) *[:=] *[^][ {}$<\/&*|>,#:=]/ || text ~ /(^|[^A-Za-z_.])[Kk][Ee][Yy] *[:=] *["\047][^"\047{]/) return 1
  return small ~ /(passw(or)?d|passphrase|pwd|secret|token|psk|cookie|credentials?|(api|access|secret|private|auth|encryption|license|admin|account)[-_]?key) *[:=] *[^][ {}$<\/&*|>,#:=]/
}
function has_key(name) { return tolower(name) ~ /key|token|secret|passw|auth|cred|cert|cookie|session|private/ }
function json(text, rest) {
  rest = text
  # Without a name it is a template, or another text of its owner.
  if (text !~ /"[^"]*"[ ]*:/ && text !~ /^[ ]*[{][ ]*[}]$/) return 0
  while (match(rest, /"[^"]*"[ ]*:/)) {
    name = substr(rest, RSTART + 1); sub(/".*/, "", name)
    if (!(name in KEYS)) return 0
    rest = substr(rest, RSTART + RLENGTH)
  }
  return 1
}
function variable(text, name, plain) {
  name = text; sub(/=.*/, "", name)
  if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/ || length(name) > 80 || is_shaped(name)) return REMOVED
  if (text !~ /=/) return name
  plain = substr(text, length(name) + 2)
  return name "=" (name in VARIABLES && harmless(plain) && !is_random(plain) && (plain !~ /[{]/ || json(plain)) ? plain : hashed(plain))
}
# If a shell expands a value, that fact is kept: the key is then read from elsewhere.
function value(flag, text, kept) {
  kept = plain_value(flag, text)
  if (kept == REMOVED) kept = EXPANDS && text ~ /^[$][({A-Za-z_]/ ? "$" REMOVED : hashed(text)
  return kept
}
function plain_value(flag, text) {
  sub(/^--/, "", flag); gsub(/_/, "-", flag)
  if (!(flag in FLAGS || flag in SHORT) || !harmless(text) || (text ~ /[{]/ && !json(text))) return REMOVED
  # Text with spaces that is not JSON was written by its owner.
  if (text ~ / / && text !~ /^[ ]*[[{]/) return REMOVED
  return flag !~ /model|revision|tokenizer|hf-repo|^-m/ && is_random(text) ? REMOVED : text
}
function option(name, text) {
  if (name == "-e" || name == "--env") return variable(text)
  sub(/^--/, "", name)
  return (name in OPTIONS || name in OPTIONS_SHORT) && harmless(text) ? text : REMOVED
}
function fresh() { taking = ""; last = ""; is_docker = 0; image = 0; serving = 0; named = 0 }
# A word of a command line as it may be kept; after an unknown program no value is.
function word(text, kept) {
  if (text ~ /^(;|&&|\|\||\||&)$/) { fresh(); return text }
  kept = is_docker && !image ? docker_word(text) : engine_word(text)
  if (text ~ /;$/) fresh()
  return kept
}
function flag_name(text, name) {
  name = text; sub(/=.*/, "", name)
  return length(name) > 60 || is_shaped(substr(name, 3)) ? "" : name
}
function docker_word(text, name) {
  if (taking != "") { name = taking; taking = ""; return option(name, text) }
  if (text ~ /^--[A-Za-z][A-Za-z0-9_.-]*(=.*)?$/) {
    if ((name = flag_name(text)) == "") { taking = REMOVED; return REMOVED }
    if (text ~ /=/) return name "=" option(name, substr(text, length(name) + 2))
    if (!(substr(name, 3) in BARE)) taking = name
    return name
  }
  if (text in OPTIONS_BARE || text == "\\") return text
  if (text == "-e" || text in OPTIONS_SHORT) { taking = text; return text }
  if (text ~ /^-/) { taking = REMOVED; return REMOVED }
  image = 1; serving = 1
  return text ~ /^[a-z0-9][a-z0-9._:\/-]*(:[A-Za-z0-9._-]+)?(@sha256:[0-9a-f]+)?$/ && harmless(text) ? text : REMOVED
}
function engine_word(text, name, base) {
  if (text ~ /^--[A-Za-z][A-Za-z0-9_.-]*(=.*)?$/) {
    last = ""; taking = REMOVED
    if ((name = flag_name(text)) == "") return REMOVED
    if (text ~ /=/) { taking = ""; return name "=" (serving ? value(name, substr(text, length(name) + 2)) : REMOVED) }
    taking = name; return name
  }
  base = text; sub(/.*\//, "", base)
  if ((base in ENGINES || base in PROGRAMS) && text ~ /^[A-Za-z0-9._\/\\-]+$/ && harmless(text)) {
    if (base in ENGINES) serving = 1
    is_docker = base == "run" && last == "docker"; image = 0
    named = base ~ /^(start|stop|restart)$/ && last == "docker"
    taking = base == "-m" && serving ? base : ""
    last = base; return text
  }
  if (serving && text in SHORT) { taking = text; return text }
  if (serving && text in SWITCHES) { taking = ""; return text }
  # Commands of docker for an existing container name it.
  if (named && (text == "-a" || text ~ /^[A-Za-z0-9][A-Za-z0-9_.-]*$/) && !is_random(text)) return text
  if (text ~ /^-[A-Za-z]/) { taking = REMOVED; return REMOVED }
  if (taking != "") {
    name = taking
    if (!(name ~ /^--/ && substr(name, 3) in LISTS)) taking = ""
    return serving ? value(name, text) : REMOVED
  }
  if (text ~ /^[A-Za-z_][A-Za-z0-9_]*=/) return variable(text)
  name = last; last = ""
  if (!harmless(text)) return REMOVED
  if (text ~ /^\/[A-Za-z0-9._\/-]*\.(sh|py|yaml|gguf)$/) { last = name; serving = 1; return text }
  if (name ~ /serve$|^-m$/ && serving && text ~ /^(\/[A-Za-z0-9._\/-]+|[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+)$/) return text
  return REMOVED
}
# The words of a line of a shell, without their quotes.
function split_words(line, words, count, i, c, quote, current, begun) {
  count = 0; quote = ""; current = ""; begun = 0
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (quote != "") {
      if (c == quote) quote = ""
      else { if (c == BACK && quote == "\"") c = substr(line, ++i, 1); current = current c }
    }
    else if (c == QUOTE || c == "\"") { quote = c; begun = 1 }
    else if (c == " " || c == "\t" || c == "\n") {
      if (begun) { words[++count] = current; current = ""; begun = 0 }
    }
    else {
      if (c == BACK && i < length(line)) c = substr(line, ++i, 1)
      current = current c; begun = 1
    }
  }
  if (begun) words[++count] = current
  return count
}
function encoded(text) { gsub(/\\/, "\\\\&", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
function decoded(text) {
  text = substr(text, 2, length(text) - 2)
  gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text); gsub(/\\[ntr]/, " ", text)
  gsub(/\\"/, "\"", text); gsub(/\\\\/, "\\", text)
  return text
}
# A word that is a script itself is handled word by word.
function script(text, label, words, count, i, held, was) {
  was = taking; count = split_words(text, words); fresh()
  for (i = 1; i <= count; i++) print label " " encoded(word(words[i]))
  fresh()
}
'

export flags lists short switches options bare options_short options_bare variables known keys netplan unit ini key scratch

# take FILE: keeps standard input, unless it is empty.
take() {
  place=$work/$node/$1
  [ -d "${place%/*}" ] || mkdir -p "${place%/*}"
  tr -cd '\011\012\040-\176' |
    sed -E -e 's/"ifalias": ?"([^"\\]|\\.)*"/"ifalias":"[removed]"/g' -e 's/([0-9A-Fa-f]{2}:){5,}[0-9A-Fa-f]{2}/[removed]/g' -e 's/fe80:[0-9a-f:]+/[removed]/g' |
    head -c 1000000 >"$place"
  if [ -s "$place" ]; then echo "took $1"; else rm -f "$place"; fi
}

bounded() { timeout -k 1 10 "$@" 2>/dev/null </dev/null; }

# ask NAME COMMAND...: keeps what a program prints.
ask() {
  name=$1
  shift
  if command -v "$1" >/dev/null 2>&1; then bounded "$@" | take "commands/$name"; else echo "no $1 here"; fi
}

readable() {
  [ -f "$1" ] || return 1
  [ -r "$1" ] || { echo "can't be read without root: ${1#"$root"}" && return 1; }
}

# Lines keep their numbers, so that findings have their place in the file.
yaml_file() {
  awk "$redact"'
  BEGIN { list(ENVIRON["netplan"], NAMES); cut = -1 }
  { line = $0
    sub(/[ \t]#.*$/, "", line); sub(/^#.*$/, "", line); sub(/[ \t]+$/, "", line)
    match(line, /^ */); depth = RLENGTH
    if (line == "") { print ""; next }
    if (cut >= 0 && depth > cut) { print "# " REMOVED; next }
    cut = -1
    text = line; sub(/^ *(- +)*/, "", text)
    if (text ~ /^["]?[A-Za-z0-9_-]+["]?:( |$)/) {
      key = text; sub(/:.*/, "", key); gsub(/"/, "", key)
      if (depth <= section) inside = 0
      known = key in NAMES || (inside && depth == inside && key ~ /^en[a-zA-Z0-9]+$/)
      if (!inside && key == "ethernets") { section = depth; inside = -1 }
      else if (inside == -1) { inside = depth; known = key ~ /^en[a-zA-Z0-9]+$/ }
      if (!known) { cut = depth; print "# " REMOVED; next }
      text = substr(text, index(text, ":") + 1)
    }
    rest = text
    while (match(rest, /[A-Za-z0-9_-]+"?: /)) {
      key = substr(rest, RSTART, RLENGTH); gsub(/[": ]/, "", key)
      if (!(key in NAMES) && key !~ /^en[a-zA-Z0-9]+$/) { print "# " REMOVED; next }
      rest = substr(rest, RSTART + RLENGTH)
    }
    gsub(/[A-Za-z0-9_-]+"?: /, " ", text)
    count = split(text, parts, /[][{}, "]+/)
    for (i = 1; i <= count; i++)
      if (parts[i] !~ /^(-|[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?|[0-9a-fA-F]*[.:][0-9a-fA-F.:]*(\/[0-9]+)?|yes|no|true|false|on|off|default|global|link|host|manual|ipv4|ipv6|mac|networkd|NetworkManager|mlx5_core|en[a-zA-Z0-9*]+)$/) { print "# " REMOVED; next }
    print line
  }' "$1"
}

# A file of NAME=VALUE lines, where how a line is written matters.
env_file() {
  awk "$redact"'
  /^[ \t]*#/ || /^[ \t]*$/ { print /#/ ? "#" : ""; next }
  { text = $0; lead = ""
    if (match(text, /^[ \t]*(export[ \t]+)?/)) { lead = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1) }
    name = text; sub(/[ \t]*=.*/, "", name)
    plain = name "=" substr(text, index(text, "=") + 1); sub(/^[^=]*=[ \t]*/, name "=", plain)
    if (text !~ /=/) { print "# " REMOVED; next }
    # What follows a space is a comment to people, and part of the value to NCCL.
    sub(/[ \t]+$/, "", plain)
    kept = plain ~ /[ \t#]/ ? name "=" REMOVED : variable(plain)
    print (kept ~ /\[removed[:0-9a-f]*\]$/) ? lead kept : $0
  }' "$1"
}

ini_file() {
  awk "$redact"'
  BEGIN { list(ENVIRON["ini"], NAMES) }
  /^\[[A-Za-z0-9-]+\]$/ { print; next }
  /^[A-Za-z0-9-]+=/ { key = $0; sub(/=.*/, "", key); text = substr($0, length(key) + 2)
    plain = key ~ /^(address|addresses|route|routes)[0-9]*$/ ? text ~ /^[0-9a-fA-F.:\/,;]*$/ : key in NAMES
    print plain && harmless($0) && !is_random(text) ? $0 : key "=" REMOVED; next }
  { print "" }' "$1"
}

unit_file() {
  awk "$redact"'
  BEGIN { list(ENVIRON["unit"], NAMES); EXPANDS = 1 }
  /^[ \t]*[#;]/ || /^[ \t]*$/ { print ""; next }
  /^\[[A-Za-z]+\]$/ { print; next }
  { line = $0; head = ""; more = line ~ /\\$/; sub(/\\$/, "", line)
    if (!held && match(line, /^[A-Za-z][A-Za-z0-9-]*=/)) {
      key = substr(line, 1, RLENGTH - 1); head = key "="; line = substr(line, RLENGTH + 1); fresh()
      kind = key ~ /^Exec/ ? "exec" : key == "Environment" ? "env" : key in NAMES ? "plain" : "none"
      if (kind == "exec" && match(line, /^[-@:+!]+/)) { head = head substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1) }
    }
    else if (!held) kind = "none"
    held = more
    if (kind == "plain") out = harmless(line) ? line : REMOVED
    else if (kind == "none") out = REMOVED
    else {
      # A quote that a later line closes is opened here: the script between them is words all the same.
      if (kind == "exec") gsub(QUOTE, " ", line)
      count = split_words(line, words); out = ""
      for (i = 1; i <= count; i++) {
        kept = kind != "env" ? word(words[i]) : words[i] ~ /=/ ? variable(words[i]) : REMOVED
        out = out (i > 1 ? " " : "") (kept ~ /[ {]/ ? QUOTE kept QUOTE : kept)
      }
    }
    print head out (more ? " " BACK : "") }' "$1"
}

# A file of any kind, of which only known names stay, and after one of these a number, a device or a common setting. One
# hash takes the place of other words in a row: what is a name or a value in such a file, only its owner knows.
own_file() {
  awk "$redact"'
  function is_known(name) {
    sub(/^--?/, "", name)
    if (name in VARIABLES || name in KEYS || name in NAMES || name in WORDS) return 1
    gsub(/_/, "-", name)
    return name in FLAGS || name in OPTIONS
  }
  function is_plain(text) {
    return text in VALUES || text ~ /^[0-9][0-9]?[0-9]?[0-9]?[0-9]?[0-9]?$|^0\.[0-9][0-9]?$|^(roce|en)[pP][0-9]+(p[0-9])?s[0-9]f[0-9](np[0-9])?$/
  }
  function hidden(text) { return text == "" ? "" : ++HIDDEN > 500 ? REMOVED : hashed(text) }
  BEGIN {
    list(ENVIRON["unit"], NAMES)
    list("if then else elif fi for in do done while case esac set def class return import from and or not endif endfor " \
      "export Service Unit Install services engine environment command", WORDS)
    list("true false yes no on off null none True False None always auto host INFO WARN VERSION TRACE", VALUES)
  }
  {
    out = run = ""; rest = $0; is_named = 0
    while (match(rest, /[^][ \t"=:,;{}()\047]+/)) {
      between = substr(rest, 1, RSTART - 1); text = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
      was_named = is_named; is_named = is_known(text)
      if (is_named || text ~ /^[^A-Za-z0-9][^A-Za-z0-9]?$/ || (was_named && is_plain(text))) {
        out = out hidden(run) between text; run = ""
      } else if (run != "" && between ~ /^[ \t]+$/) run = run between text
      else { out = out hidden(run) between; run = text }
    }
    print out hidden(run) rest
  }' "$1"
}

take_files() {
  reader=$1
  shift
  for file in "$@"; do
    readable "$file" && "$reader" "$file" | take "files/${file#"$root"/}"
  done
  return 0
}

# What a container was started with: lines of a name and JSON, of which awk keeps what may be kept.
container_format='{{println "name" (json .Name)}}{{println "image" (json .Config.Image)}}{{println "image-id" (json .Image)}}'\
'{{println "id" (json .ID)}}{{println "started" (json .State.Status)}}{{println "started-at" (json .State.StartedAt)}}{{println "user" (json .Config.User)}}'\
'{{range .Config.Entrypoint}}{{println "entrypoint" (json .)}}{{end}}{{range .Config.Cmd}}{{println "cmd" (json .)}}{{end}}'\
'{{range .Config.Env}}{{println "env" (json .)}}{{end}}{{println "restart" (json .HostConfig.RestartPolicy.Name)}}'\
'{{println "privileged" (json .HostConfig.Privileged)}}{{println "network" (json .HostConfig.NetworkMode)}}'\
'{{println "ipc" (json .HostConfig.IpcMode)}}{{println "pid" (json .HostConfig.PidMode)}}{{println "shm-size" (json .HostConfig.ShmSize)}}'\
'{{println "memory" (json .HostConfig.Memory)}}{{println "cpus" (json .HostConfig.CpusetCpus)}}{{println "init" (json .HostConfig.Init)}}'\
'{{range .HostConfig.CapAdd}}{{println "cap-add" (json .)}}{{end}}{{range .HostConfig.CapDrop}}{{println "cap-drop" (json .)}}{{end}}'\
'{{range .HostConfig.Devices}}{{println "device" (json .PathOnHost)}}{{end}}'\
'{{range .HostConfig.Ulimits}}{{println "ulimit" (json .Name) (json .Hard)}}{{end}}'\
'{{range .HostConfig.SecurityOpt}}{{println "security-opt" (json .)}}{{end}}{{println "read-only" (json .HostConfig.ReadonlyRootfs)}}'\
'{{println "pids-limit" (json .HostConfig.PidsLimit)}}'\
'{{range .Mounts}}{{println "mount" (json .Source) (json .Destination) (json .RW)}}{{end}}'
image_format='{{println "image-id" (json .ID)}}{{range .RepoTags}}{{println "image-tag" (json .)}}{{end}}'\
'{{range .RepoDigests}}{{println "image-digest" (json .)}}{{end}}'\
'{{if .Config.Labels}}{{with index .Config.Labels "sparkgen.build"}}{{println "image-build" (json .)}}{{end}}{{end}}'\
'{{range .RootFS.Layers}}{{println "image-layer" (json .)}}{{end}}{{range .Config.Env}}{{println "image-env" (json .)}}{{end}}'\
'{{range .Config.Entrypoint}}{{println "image-entrypoint" (json .)}}{{end}}'\
'{{range .Config.Cmd}}{{println "image-cmd" (json .)}}{{end}}{{println "image-user" (json .Config.User)}}{{println "image-architecture" (json .Architecture)}}'

records() {
  awk "$redact"'
  BEGIN { fresh(); count = split(ENVIRON["own_words"], words, "\n"); for (i = 1; i <= count; i++) OWN[words[i]] = 1 }
  { label = $1; text = substr($0, length(label) + 2) }
  label ~ /^(image-)?env$/ { print label " " encoded(variable(decoded(text))); next }
  label ~ /^(image-)?(cmd|entrypoint)$|^arg$/ {
    plain = decoded(text)
    if (label !~ /^image-/ && plain in OWN && harmless(plain)) { word(plain); print label " " encoded(plain); before = plain; next }
    if (before ~ /^-[a-z]*c$/ || (plain ~ / / && plain !~ /^[ ]*[{[]/ && plain ~ /serve|launch|server|ray start|export /)) {
      print label "-script"; script(plain, label)
    } else print label " " encoded(word(plain))
    before = plain; next
  }
  label ~ /^(id|name|image|image-id|started|started-at|user|restart|privileged|network|ipc|pid|shm-size|memory|cpus|init|cap-add|cap-drop|device|ulimit|security-opt|read-only|pids-limit|mount|image-user|image-tag|image-digest|image-build|image-layer|image-architecture|program|library|container)$/ {
    print label " " (harmless(decoded(text)) ? text : "\"" REMOVED "\"")
  }'
}

as_json() { tr '\n\000' ' \n' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/.*/$1 \"&\"/"; }

# The arguments in the Compose files that sparkgen has installed, and nobody has edited: no secrets.
words_of_bundle() {
  sums=$root/etc/sparkgen/bundle/SHA256SUMS
  sed -n 's/^[0-9a-f]*  \(opt\/sparkgen\/.*\.yaml\)$/\1/p' "$sums" 2>/dev/null | while read -r file; do
    grep -F "  $file" "$sums" | (cd "$root/" && sha256sum --check --status 2>/dev/null) &&
      sed -n -e 's/[$][$]/$/g' -e 's/^ *- "\(.*\)"$/\1/p' -e 's/^ *- \(-.*\)$/\1/p' -e 's/^ *- \([A-Za-z0-9/].*\)$/\1/p' "$root/$file"
  done
}

containers() {
  own_words=$(words_of_bundle)
  export own_words
  if ! command -v docker >/dev/null 2>&1; then echo "no docker here" && return; fi
  bounded docker info --format '{{json .ServerVersion}} {{json .Driver}}' | take commands/docker-info.txt
  count=0
  images=$(sed -n -e 's/^IMAGE=//p' -e 's/^IMAGE_BASE=//p' "$root"/etc/sparkgen/node.env "$root"/etc/sparkgen/groups/*.node.env 2>/dev/null | sort -u)
  for image in $images; do
    count=$((count + 1))
    { echo "image \"$image\"" && bounded docker image inspect --format "$image_format" "$image"; } |
      records | take "images/$count.txt"
  done
  count=0
  for id in $(bounded docker ps --quiet --no-trunc); do
    count=$((count + 1))
    [ "$count" -le 30 ] || break
    bounded docker inspect --format "$container_format" "$id" >"$work/container"
    image=$(sed -n 's/^image-id "\(sha256:[0-9a-f]*\)"$/\1/p' "$work/container")
    { cat "$work/container" && bounded docker image inspect --format "$image_format" "$image"; } |
      records >"$work/record"
    name=$(sed -n 's/^name "\/\(.*\)"$/\1/p' "$work/record" | tr -c 'A-Za-z0-9_.\n-' '-')
    take "containers/${name:-$count}.txt" <"$work/record"
    rm -f "$work/container" "$work/record"
  done
}

# What computes on the GPU: each process by its name, and the container or the unit that it is of.
on_gpu() {
  command -v nvidia-smi >/dev/null 2>&1 || return 0
  bounded nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader | while IFS=', ' read -r pid name; do
    owner=$(sed -nE 's/.*(docker[-\/]|libpod-)([0-9a-f]{64}).*/\2/p; s/.*\/([A-Za-z0-9@_.-]+\.service)$/\1/p' "$root/proc/$pid/cgroup" 2>/dev/null | head -n 1)
    name=${name%% *}
    printf '%s %s\n' "$(printf '%s' "${name##*/}" | tr -cd 'A-Za-z0-9._:-')" "${owner:--}"
  done | take commands/gpu-processes.txt
}

processes() {
  count=0
  for folder in "$root"/proc/[0-9]*; do
    [ -r "$folder/cmdline" ] || continue
    case $(tr '\000' ' ' <"$folder/cmdline" 2>/dev/null | cut -c1-300) in
      *vllm*serve* | *vllm.entrypoints* | *sglang*serve* | *sglang.launch* | *llama-server* | *rpc-server* | *trtllm-serve*) ;;
      *) continue ;;
    esac
    count=$((count + 1))
    [ "$count" -le 20 ] || break
    pid=${folder##*/}
    {
      as_json arg <"$folder/cmdline"
      as_json env <"$folder/environ"
      # The kernel counts a hundred a second from its start (proc_pid_stat(5), field 22).
      since=$(sed -n 's/^btime //p' "$root/proc/stat") ticks=$(sed 's/.*) //' "$folder/stat" | cut -d ' ' -f 20)
      [ -z "$since" ] || [ -z "$ticks" ] || echo "started-at \"@$((since + ticks / 100))\""
      sed -n 's/.*docker[-\/]\([0-9a-f]*\).*/container "\1"/p' "$folder/cgroup" | head -n 1
      sed -n 's/.* \(\/[^ ]*libnccl\.so[^ ]*\)$/library "\1"/p' "$folder/maps" | sort -u
      for place in "$folder"/root/usr/local/lib/python3*/*-packages "$folder"/root/opt/*/lib/python3*/site-packages; do
        for found in "$place"/vllm-*.dist-info "$place"/sglang-*.dist-info "$place"/tensorrt_llm-*.dist-info \
          "$place"/nvidia_nccl_cu*.dist-info; do
          [ -d "$found" ] && echo "program \"${found##*/}\""
        done
      done
    } 2>/dev/null | records | take "processes/$pid.txt"
  done
}

services() {
  found=
  for file in "$root"/etc/systemd/system/*.service "$root"/etc/systemd/system/sparkgen-*.timer "$root"/home/*/.config/systemd/user/*.service; do
    readable "$file" >/dev/null || continue
    grep -Eq 'docker|vllm|sglang|llama|trtllm|sparkgen' "$file" || continue
    unit_file "$file" | take "files/${file#"$root"/}"
    found="$found ${file##*/}"
  done
  command -v systemctl >/dev/null 2>&1 || return 0
  # shellcheck disable=SC2086 # Each is a word.
  bounded systemctl show --property=Id,ActiveState,SubState,UnitFileState,NRestarts,DropInPaths,NeedDaemonReload $found docker.service \
    NetworkManager.service systemd-networkd.service earlyoom.service | take commands/units.txt
}

models() {
  # Of an installed site, of running containers, and the usual places.
  {
    sed -n "s|^HUB=|$root|p" "$root"/etc/sparkgen/node.env "$root"/etc/sparkgen/groups/*.node.env 2>/dev/null
    sed -n "s|^mount \"\(/[^\" ]*\)\" \"[^\" ]*/huggingface\".*|$root\1/hub|p" "$work/$node"/containers/*.txt 2>/dev/null
    for folder in "$root"/home/*/.cache/huggingface "$root"/root/.cache/huggingface "$root"/var/cache/huggingface \
      "$root"/srv "$root"/srv/* "$root"/data "$root"/data/* "$root"/mnt/* "$root"/opt/* "$root"/models; do
      printf '%s\n' "$folder" "$folder/hub"
    done
  } | sort -u | while read -r hub; do
    for folder in "$hub"/models--*; do
      [ -d "$folder/snapshots" ] || continue
      name=$(printf '%s' "${folder##*/}" | sed -e 's/^models--//' -e 's/--/\//')
      printf 'cache %s %s\n' "$name" "${hub#"$root"}"
      printf 'size %s\n' "$(bounded du -sk "$folder" | cut -f1)"
      for file in "$folder"/refs/*; do
        [ -f "$file" ] && printf 'ref %s %s\n' "${file##*/}" "$(head -c 80 "$file" | tr -cd '0-9a-f')"
      done
      for snapshot in "$folder"/snapshots/*; do
        [ -d "$snapshot" ] && printf 'snapshot %s %s\n' "${snapshot##*/}" "$(find "$snapshot/" | grep -c .)"
      done
    done
  done >"$work/models"
  # What is read outside of the hub's folders.
  sed -n -e 's/^MODEL=[a-z-]* \(\/[^ ]*\).*/\1/p' -e 's/^MODEL_FILE=//p' "$root"/etc/sparkgen/node.env "$root"/etc/sparkgen/groups/*.node.env 2>/dev/null |
    sort -u | while read -r path; do
    size=0 folder=${path%/*}
    while [ ! -e "$root$folder" ] && [ "$folder" ]; do folder=${folder%/*}; done
    if [ -e "$root$path" ]; then size=$(bounded du -skL "$root$path" | cut -f1); elif [ ! -x "$root$folder/" ]; then size=; fi
    [ -z "$size" ] || printf 'path %s %s\n' "$path" "$size"
  done >>"$work/models"
  take commands/models.txt <"$work/models"
  rm -f "$work/models"
}

network() {
  ask ip-addr.json ip -j address
  ask ip-route.json ip -j route
  ask ibdev2netdev.txt ibdev2netdev
  ask rdma-link.txt rdma link
  if command -v lldpcli >/dev/null 2>&1; then
    bounded lldpcli -f keyvalue show neighbors | grep -E '^lldp\.en[A-Za-z0-9]+\.(chassis\.name=[A-Za-z0-9._-]*|port\.(ifname|descr)=e[A-Za-z0-9]*)$' | take commands/lldp.txt
  fi
  for path in "$root"/sys/class/net/en*; do
    [ -e "$path" ] || continue
    name=${path##*/}
    command -v ethtool >/dev/null 2>&1 || break
    { bounded ethtool "$name" && bounded ethtool -i "$name"; } |
      sed -nE 's/^[[:space:]]*((Speed|Port|Link detected|driver|version|firmware-version): .*)/\1/p' | take "commands/ethtool-$name.txt"
  done
  take_files yaml_file "$root"/etc/netplan/*.yaml "$root"/run/netplan/*.yaml
  for file in "$root"/etc/NetworkManager/system-connections/* "$root"/etc/systemd/network/*.network \
    "$root"/etc/systemd/network/*.link "$root"/etc/systemd/network/*.network.d/*.conf; do
    readable "$file" && { grep -Eq '^(interface-name|Name|OriginalName)=en[A-Za-z0-9*]+$' "$file" || [ "$file" != "${file%.conf}" ]; } &&
      ! grep -Eq '^type=(wifi|vpn|wireguard|gsm)|^\[(wifi|vpn|wireguard|802-1x|WireGuard)' "$file" &&
      ini_file "$file" | take "files/$(printf '%s' "${file#"$root"/}" | tr -c 'A-Za-z0-9_./\n-' '-')"
  done
  return 0
}

# What sparkgen has installed here: how each of its files is now, what they set, and the site's text.
installed() {
  own=$root/etc/sparkgen/bundle
  readable "$own/SHA256SUMS" || return 0
  grep -E '^[0-9a-f]{64}  [A-Za-z0-9._@+:/-]+$' "$own/SHA256SUMS" | take files/etc/sparkgen/bundle/SHA256SUMS
  for file in "$own"/site.yaml "$own"/base.yaml "$own"/lock.yaml; do
    readable "$file" || continue
    # In base64 it stays as it is: this archive has plain ASCII.
    if awk "$redact"'gives_key($0) { found = 1 } END { exit found }' "$file"; then
      base64 "$file" | take "files/etc/sparkgen/bundle/${file##*/}.base64"
    else
      echo "not taken, since there is a key in it: ${file#"$root"/}"
    fi
  done
  # The site's own files, each of at most 64 KiB.
  sed -n 's/^[0-9a-f]*  \(opt\/sparkgen\/files\/[A-Za-z0-9._@+\/-]*\)$/\1/p' "$own/SHA256SUMS" | while read -r file; do
    if [ -z "$files" ]; then echo "not taken without --files: $file" && continue; fi
    if [ ! -r "$root/$file" ] || [ "$(head -c 65537 "$root/$file" | wc -c)" -gt 65536 ]; then
      echo "not taken, since it is larger than 64 KiB or can't be read: $file" && continue
    fi
    own_file "$root/$file" >"$work/own"
    if cmp -s "$work/own" "$root/$file" || { [ "$files" = --whole-files ] &&
      awk "$redact"'gives_key($0) { found = 1 } END { exit found }' "$root/$file"; }; then
      [ -x "$root/$file" ] && kind=.run || kind=
      { base64 "$root/$file" && echo; } | take "files/$file$kind.base64"
    else
      take "files/opt/sparkgen/shown/${file#opt/sparkgen/files/}" <"$work/own"
      echo "taken without its values: $file"
    fi
  done
  sed -n 's/^[0-9a-f]*  \(\(etc\|opt\)\/.*\)/\1/p' "$own/SHA256SUMS" | while read -r file; do
    folder=${file%/*}
    while [ ! -e "$root/$folder" ] && [ "$folder" != "${folder%/*}" ]; do folder=${folder%/*}; done
    if [ ! -e "$root/$file" ] && [ -x "$root/$folder" ]; then echo "missing $file"; continue; fi
    if [ ! -r "$root/$file" ]; then echo "unreadable $file"; continue; fi
    grep -F "  $file" "$own/SHA256SUMS" | (cd "$root/" && sha256sum --check --status 2>/dev/null) && same=same || same=edited
    echo "$same $file $(stat -c '%a %Y' "$root/$file")"
  done | take commands/installed.txt
  # The names of nodes, and the other addresses that the system finds for these names first.
  own='/^# begin sparkgen$/,/^# end sparkgen$/'
  sed -n "${own}p" "$root/etc/hosts" 2>/dev/null | sed -e 's/[[:space:]]*#.*//' -e '/^$/d' | take commands/hosts.txt
  sed "${own}d" "$root/etc/hosts" 2>/dev/null | awk -v own="$work/$node/commands/hosts.txt" '
    BEGIN { while ((getline line <own) > 0) { split(line, words); names[words[2]] = 1 } }
    !/^[ \t]*(#|127[.]|::1[ \t])/ { for (i = 2; i <= NF && $i !~ /^#/; i++) if ($i in names) print $1, $i }' | take commands/hosts-others.txt
  sed -n 's/^\([a-z][^ ]*\) *=.*/\1/p' "$root/etc/sysctl.d/90-sparkgen.conf" 2>/dev/null | tr . / | while read -r name; do
    [ -r "$root/proc/sys/$name" ] && printf '%s %s\n' "$name" "$(cat "$root/proc/sys/$name")"
  done | take commands/sysctl-own.txt
  user=$(sed -n 's/^USER=//p' "$root/etc/sparkgen/node.env" 2>/dev/null | head -n 1)
  [ -z "$user" ] || ask groups.txt id -nG "$user"
  if [ -e "$root/etc/sparkgen/firewall.rules" ] && command -v ufw >/dev/null 2>&1; then
    { bounded ufw status verbose | head -n 4 && bounded ufw show added; } |
      sed -n -e '/^Status: [a-z]*$/p' -e '/^Default: [a-z]* (incoming)/p' -e "s/^ufw \([a-zA-Z0-9.:\/ ]*\)\( comment 'sparkgen'\)\{0,1\}$/\1/p" | take commands/ufw.txt
  fi
}

system() {
  uname -srm | take commands/uname.txt
  readable "$root/etc/dgx-release" &&
    grep -E '^DGX_(NAME|PRETTY_NAME|SWBUILD_VERSION|PLATFORM|OTA_VERSION)=' "$root/etc/dgx-release" | take commands/dgx-release.txt
  readable "$root/etc/os-release" && grep -E '^(ID|VERSION_ID)=' "$root/etc/os-release" | take commands/os-release.txt
  ask gpu.txt nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  readable "$root/proc/meminfo" && grep -E '^(MemTotal|MemAvailable|SwapTotal):' "$root/proc/meminfo" | take commands/meminfo.txt
  readable "$root/proc/cmdline" && { tr ' ' '\n' <"$root/proc/cmdline" | grep -E '^(kho|iommu|iommu.passthrough|init_on_alloc|hugepages)(=[a-z0-9.]*)?$' || echo none; } | take commands/kernel-options.txt
  for name in net/core/rmem_max net/core/wmem_max vm/swappiness vm/overcommit_memory vm/min_free_kbytes net/ipv4/conf/all/rp_filter; do
    [ -r "$root/proc/sys/$name" ] && printf '%s %s\n' "$name" "$(cat "$root/proc/sys/$name")"
  done | take commands/sysctl.txt
  take_files env_file "$root"/etc/nccl.conf "$root"/root/.nccl.conf "$root"/home/*/.nccl.conf \
    "$root"/etc/sparkgen/engine.env
}

echo "# sparkgen capture 1" >"$work/$node/capture.txt"
{
  network
  system
  installed
  services
  containers
  processes
  on_gpu
  models
} | tee "$work/took"
sort -u "$work/took" >>"$work/$node/capture.txt"
# The names whose values are in the archive, and those whose values are not.
find "$work/$node" -type f ! -name capture.txt -exec cat {} + | LC_ALL=C awk '
  { line = $0; sub(/^(env|image-env) "/, "", line); sub(/^export /, "", line) }
  match(line, /^[A-Za-z_][A-Za-z0-9_]*=/) {
    name = substr(line, 1, RLENGTH - 1); rest = substr(line, RLENGTH + 1)
    kept[name] = rest ~ /^[$]?\[removed/ ? kept[name] : "kept the value of "; all[name] = 1
  }
  END { for (name in all) print (kept[name] ? kept[name] : "left out the value of ") name }' | sort | tee -a "$work/$node/capture.txt"

# The same node always has the same archive, byte for byte.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar --mode=u=rwX,go=rX -C "$work" -cf "$work/tar" "$node" &&
  gzip -n <"$work/tar" >"$work/gz" && cp "$work/gz" "$node.tar.gz" || exit 1
echo "$node.tar.gz is written. Read it before you send it on: tar -xzOf $node.tar.gz | less"
