#!/bin/sh
# Records what a DGX Spark runs, as plain text, in NODE.tar.gz in the current directory.
#   sh capture.sh [NODE]     NODE defaults to the host's name
# It changes nothing, contacts no other machine, and waits at most ten seconds for each answer. As root it can
# read more: netplan's files, and the processes of containers. CAPTURE_ROOT is where the system is mounted, if
# not at /.
#
# The lists of names below decide which values are kept, before anything is written: the values of all other
# names, and whatever looks like a key, become [removed]. Of network files, only wired interfaces are kept;
# serial numbers and hardware addresses never are.
set -u
LC_ALL=C
export LC_ALL
umask 077

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

# Variables: NCCL's own, and those with the prefixes below, unless the name suggests a key.
families='NCCL_ UCX_ OMPI_MCA_ PMIX_MCA_ TORCH_NCCL_ OMP_ VLLM_USE_ VLLM_ENABLE_ VLLM_DISABLE_ VLLM_FLASHINFER_
VLLM_MARLIN_ VLLM_NVFP4_ VLLM_MXFP4_ VLLM_MOE_ VLLM_ATTENTION_ VLLM_CPU_ VLLM_TORCH_ VLLM_RPC_ VLLM_ALLREDUCE_
VLLM_SKIP_ VLLM_PP_ VLLM_DP_ VLLM_LOG_STATS_ VLLM_V1_ VLLM_EXECUTE_ VLLM_ALLOW_ VLLM_NCCL_ VLLM_WORKER_
VLLM_TEST_FORCE_ VLLM_DSV4 VLLM_FP8_ VLLM_MLA_ VLLM_MM_ SGLANG_ENABLE_ SGLANG_DISABLE_ SGLANG_USE_ SGLANG_SET_
SGLANG_HEALTH_ SGLANG_OPT_ SGLANG_PP_ SGLANG_SPEC SGLANG_ALLOW_ TRTLLM_ TLLM_ GGML_ TRITON_ CUTE_DSL_ FLASHINFER_ TORCHINDUCTOR_
TORCH_CUDA_ PYTORCH_ RAY_memory_ RAY_OVERRIDE_ RAY_ACCEL_ RAY_object_store_ LLAMA_ARG_'
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
PYTHONUNBUFFERED PYTHONHASHSEED SLURM_NNODES SLURM_NTASKS SLURM_PROCID SLURM_NODEID DG_JIT_CACHE_DIR SAFETENSORS_FAST_GPU MALLOC_ARENA_MAX IMAGE MODEL'

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
route-metric match driver name set-name wakeonlan lifetime label ipv6-privacy dhcp-identifier
receive-checksum-offload transmit-checksum-offload tcp-segmentation-offload generic-segmentation-offload
generic-receive-offload large-receive-offload virtual-function-count embedded-switch-mode'
unit='After Before Wants Requires BindsTo PartOf Conflicts Type Restart RestartSec RestartPreventExitStatus
TimeoutStartSec TimeoutStopSec TimeoutSec StartLimitBurst StartLimitIntervalSec RemainAfterExit KillMode KillSignal
WantedBy RequiredBy WorkingDirectory LimitMEMLOCK LimitNOFILE OOMScoreAdjust SuccessExitStatus EnvironmentFile
ConditionPathExists RequiresMountsFor'
ini='Name Address DHCP MTUBytes LinkLocalAddressing IPv6AcceptRA RequiredForOnline Gateway Destination Metric
type interface-name autoconnect autoconnect-priority method mtu never-default may-fail ignore-auto-dns'

redact='
function list(text, into, count, words, i) {
  count = split(text, words, /[ \n]+/)
  for (i = 1; i <= count; i++) if (words[i] != "") into[words[i]] = 1
}
BEGIN {
  REMOVED = "[removed]"; QUOTE = sprintf("%c", 39); BACK = "\\"
  list(ENVIRON["flags"], FLAGS); list(ENVIRON["lists"], LISTS); list(ENVIRON["short"], SHORT)
  list(ENVIRON["switches"], SWITCHES); list(ENVIRON["options"], OPTIONS); list(ENVIRON["bare"], BARE)
  list(ENVIRON["options_short"], OPTIONS_SHORT); list(ENVIRON["options_bare"], OPTIONS_BARE)
  list(ENVIRON["variables"], VARIABLES); list(ENVIRON["families"], FAMILIES); list(ENVIRON["keys"], KEYS)
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
  if (small ~ /passw|passphrase|bearer|basic |cookie|api[-_]?key|authorization|token[=:]|secret[=:]|begin [a-z ]*private/) return 0
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
function has_key(name) { return tolower(name) ~ /key|token|secret|passw|auth|cred|cert|cookie|session|private/ }
function json(text, rest) {
  rest = text
  if (text ~ /^[ ]*[{][{%]/) return 0
  while (match(rest, /"[^"]*"[ ]*:/)) {
    name = substr(rest, RSTART + 1); sub(/".*/, "", name)
    if (!(name in KEYS)) return 0
    rest = substr(rest, RSTART + RLENGTH)
  }
  return 1
}
function variable(text, name, known, prefix, plain) {
  name = text; sub(/=.*/, "", name)
  if (name !~ /^[A-Za-z_][A-Za-z0-9_]*$/ || length(name) > 80 || is_shaped(name)) return REMOVED
  if (text !~ /=/) return name
  known = name in VARIABLES
  plain = substr(text, length(name) + 2)
  # If only the prefix of a name is known, its value is kept if it is one word that does not look random.
  if (!known && !has_key(name) && plain !~ / / && !is_random(plain)) for (prefix in FAMILIES) if (index(name, prefix) == 1) known = 1
  return name "=" (known && harmless(plain) && (plain !~ /[{]/ || json(plain)) ? plain : REMOVED)
}
# If a shell expands a value, that fact is kept: the key is then read from elsewhere.
function value(flag, text, kept) {
  kept = plain_value(flag, text)
  return kept == REMOVED && EXPANDS && text ~ /^[$][({A-Za-z_]/ ? "$" REMOVED : kept
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

export flags lists short switches options bare options_short options_bare variables families keys netplan unit ini

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
      if (!(key in NAMES)) { print "# " REMOVED; next }
      rest = substr(rest, RSTART + RLENGTH)
    }
    gsub(/[A-Za-z0-9_-]+"?: /, " ", text)
    if (text !~ /^[][{}, "0-9a-fA-F.:\/-]*$/) {
      count = split(text, parts, /[][{}, "]+/)
      for (i = 1; i <= count; i++)
        if (parts[i] !~ /^(-|[0-9.:\/a-fA-F]*|yes|no|true|false|on|off|default|global|link|host|manual|ipv4|ipv6|mac|networkd|NetworkManager|mlx5_core|en[a-zA-Z0-9*]+)$/) { print "# " REMOVED; next }
    }
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
    print (kept ~ /\[removed\]$/) ? lead kept : $0
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
'{{println "id" (json .Id)}}{{println "started" (json .State.Status)}}{{println "started-at" (json .State.StartedAt)}}{{println "user" (json .Config.User)}}'\
'{{range .Config.Entrypoint}}{{println "entrypoint" (json .)}}{{end}}{{range .Config.Cmd}}{{println "cmd" (json .)}}{{end}}'\
'{{range .Config.Env}}{{println "env" (json .)}}{{end}}{{println "restart" (json .HostConfig.RestartPolicy.Name)}}'\
'{{println "privileged" (json .HostConfig.Privileged)}}{{println "network" (json .HostConfig.NetworkMode)}}'\
'{{println "ipc" (json .HostConfig.IpcMode)}}{{println "pid" (json .HostConfig.PidMode)}}{{println "shm-size" (json .HostConfig.ShmSize)}}'\
'{{println "memory" (json .HostConfig.Memory)}}{{println "init" (json .HostConfig.Init)}}'\
'{{range .HostConfig.CapAdd}}{{println "cap-add" (json .)}}{{end}}'\
'{{range .HostConfig.Devices}}{{println "device" (json .PathOnHost)}}{{end}}'\
'{{range .HostConfig.Ulimits}}{{println "ulimit" (json .Name) (json .Hard)}}{{end}}'\
'{{range .Mounts}}{{println "mount" (json .Source) (json .Destination) (json .RW)}}{{end}}'
image_format='{{println "image-id" (json .Id)}}{{range .RepoTags}}{{println "image-tag" (json .)}}{{end}}'\
'{{range .RepoDigests}}{{println "image-digest" (json .)}}{{end}}'\
'{{if .Config.Labels}}{{with index .Config.Labels "sparkgen.build"}}{{println "image-build" (json .)}}{{end}}{{end}}'\
'{{range .RootFS.Layers}}{{println "image-layer" (json .)}}{{end}}{{range .Config.Env}}{{println "image-env" (json .)}}{{end}}'\
'{{range .Config.Entrypoint}}{{println "image-entrypoint" (json .)}}{{end}}{{println "image-architecture" (json .Architecture)}}'

records() {
  awk "$redact"'
  BEGIN { fresh() }
  { label = $1; text = substr($0, length(label) + 2) }
  label ~ /^(image-)?env$/ { print label " " encoded(variable(decoded(text))); next }
  label ~ /^(cmd|entrypoint|image-entrypoint|arg)$/ {
    plain = decoded(text)
    if (before ~ /^-[a-z]*c$/ || (plain ~ / / && plain !~ /^[ ]*[{[]/ && plain ~ /serve|launch|server|ray start|export /)) {
      print label "-script"; script(plain, label)
    } else print label " " encoded(word(plain))
    before = plain; next
  }
  label ~ /^(id|name|image|image-id|started|started-at|user|restart|privileged|network|ipc|pid|shm-size|memory|init|cap-add|device|ulimit|mount|image-tag|image-digest|image-build|image-layer|image-architecture|program|library|container)$/ {
    print label " " (harmless(decoded(text)) ? text : "\"" REMOVED "\"")
  }'
}

as_json() { tr '\n\000' ' \n' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/.*/$1 \"&\"/"; }

containers() {
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
  other=$(sed -n 's/^HUB=//p' "$root"/etc/sparkgen/node.env "$root"/etc/sparkgen/groups/*.node.env 2>/dev/null | sort -u)
  # shellcheck disable=SC2086 # Each is a word.
  for hub in "$root"/home/*/.cache/huggingface/hub "$root"/root/.cache/huggingface/hub "$root"/var/cache/huggingface/hub \
    $(printf "$root%s\n" $other | grep -v '/.cache/huggingface/hub$'); do
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
  done | take commands/models.txt
}

network() {
  ask ip-addr.json ip -j address
  ask ip-route.json ip -j route
  ask ibdev2netdev.txt ibdev2netdev
  ask rdma-link.txt rdma link
  if command -v lldpcli >/dev/null 2>&1; then
    bounded lldpcli -f keyvalue show neighbors | grep -E '^lldp\.en[A-Za-z0-9]+\.(chassis\.name|port\.(ifname|descr|local))=[A-Za-z0-9._/-]*$' | take commands/lldp.txt
  fi
  for path in "$root"/sys/class/net/en*; do
    [ -e "$path" ] || continue
    name=${path##*/}
    command -v ethtool >/dev/null 2>&1 || break
    { bounded ethtool "$name" && bounded ethtool -i "$name"; } |
      sed -nE 's/^[[:space:]]*((Speed|Port|Link detected|driver|version|firmware-version): .*)/\1/p' | take "commands/ethtool-$name.txt"
  done
  take_files yaml_file "$root"/etc/netplan/*.yaml "$root"/run/netplan/*.yaml
  for file in "$root"/etc/NetworkManager/system-connections/* "$root"/etc/systemd/network/*.network; do
    readable "$file" && grep -Eq '^(interface-name|Name)=en[A-Za-z0-9*]+$' "$file" &&
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
    if awk "$redact"'is_shaped($0) { found = 1 } END { exit found }' "$file"; then
      base64 "$file" | take "files/etc/sparkgen/bundle/${file##*/}.base64"
    else
      echo "not taken, since there is a key in it: ${file#"$root"/}"
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
  sed -n '/^# begin sparkgen$/,/^# end sparkgen$/p' "$root/etc/hosts" 2>/dev/null | sed '1d;$d' | take commands/hosts.txt
  sed -n 's/^\([a-z][^ ]*\) *=.*/\1/p' "$root/etc/sysctl.d/90-sparkgen.conf" 2>/dev/null | tr . / | while read -r name; do
    [ -r "$root/proc/sys/$name" ] && printf '%s %s\n' "$name" "$(cat "$root/proc/sys/$name")"
  done | take commands/sysctl-own.txt
  user=$(sed -n 's/^USER=//p' "$root/etc/sparkgen/node.env" 2>/dev/null | head -n 1)
  [ -z "$user" ] || ask groups.txt id -nG "$user"
  if [ -e "$root/etc/sparkgen/firewall.rules" ] && command -v ufw >/dev/null 2>&1; then
    { bounded ufw status | head -n 1 && bounded ufw show added; } | sed -n -e '/^Status: [a-z]*$/p' -e "s/^ufw \([a-zA-Z0-9.:\/ ]*\)\( comment 'sparkgen'\)\{0,1\}$/\1/p" | take commands/ufw.txt
  fi
}

system() {
  uname -srm | take commands/uname.txt
  readable "$root/etc/dgx-release" &&
    grep -E '^DGX_(NAME|PRETTY_NAME|SWBUILD_VERSION|PLATFORM|OTA_VERSION)=' "$root/etc/dgx-release" | take commands/dgx-release.txt
  readable "$root/etc/os-release" && grep -E '^(ID|VERSION_ID)=' "$root/etc/os-release" | take commands/os-release.txt
  ask gpu.txt nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  readable "$root/proc/meminfo" && grep -E '^(MemTotal|MemAvailable|SwapTotal):' "$root/proc/meminfo" | take commands/meminfo.txt
  readable "$root/proc/cmdline" && tr ' ' '\n' <"$root/proc/cmdline" | grep -E '^(kho|iommu|iommu.passthrough|init_on_alloc|hugepages)(=[a-z0-9.]*)?$' | take commands/kernel-options.txt
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

# The same node always has the same archive, byte for byte.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar --mode=u=rwX,go=rX -C "$work" -cf "$work/tar" "$node" &&
  gzip -n <"$work/tar" >"$work/gz" && cp "$work/gz" "$node.tar.gz" || exit 1
echo "$node.tar.gz is written. Read it before you send it on: tar -xzOf $node.tar.gz | less"
