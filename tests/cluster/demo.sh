#!/usr/bin/env bash
# A ring of three nodes on this machine, with llama.cpp on each, answers a question. Shows every
# command. Needs root, iproute2, netplan and curl; builds llama.cpp the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec env PYTHONPATH=.:tests "${PYTHON:-.venv/bin/python}" -m cluster.demo
