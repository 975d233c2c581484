#!/bin/bash
docker run --rm -d --name rank0 \
  --privileged --gpus all --network host --ipc host \
  --shm-size 64g --ulimit memlock=-1:-1 \
  -e HF_HUB_OFFLINE=1 -e NODE_RANK=0 -e MASTER_ADDR=10.10.10.1 \
  -e VLLM_HOST_IP=10.10.10.1 -e HF_TOKEN=hf_abcabcabcabcabcabcabcabc \
  -e NCCL_NET=IB -e NCCL_IB_DISABLE=0 -e NCCL_IB_HCA=rocep1s0f0 \
  -e NCCL_IB_GID_INDEX=5 -e NCCL_SOCKET_IFNAME=enp1s0f0np0 \
  -v /models:/model:ro \
  vllm/vllm-openai:v0.33.0 \
  --model openai/gpt-oss-120b --tensor-parallel-size 2 --nnodes 2 --node-rank 0 \
  --master-addr 10.10.10.1 --max-model-len 131072 --max-num-seqs 8 --gpu-memory-utilization 0.9 \
  --enable-auto-tool-choice --tool-call-parser openai --host 0.0.0.0 --port 8000
