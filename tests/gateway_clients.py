"""Official clients through the gateway: `PYTHONPATH=.:tests python tests/gateway_clients.py ENV`.

`openai` and `anthropic` are installed in the environment. The engines behind the gateway are
llama.cpp, or with `--engine vllm` vLLM for the CPU, with models of random weights, so the same
requests are also sent to an engine itself: what a client gets through the gateway has to be what it
gets there.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import gateway_node
from bundles import BUILT
from cluster import vllm_cpu
from cluster.llama_cpp import cache, llama_cpp
from cluster.tiny_model import write
from gateway_node import PROXY, ROUTES, Node, started
from proxied import entering

KEY = "secret-vllm_api_key"

# In place of the fake engine: they get the same arguments.
LLAMA_CPP = """\
import os, sys
address, port, name = sys.argv[1:]
more = ["--embeddings", "--pooling", "mean"] if "embed" in name else ["--jinja", "--api-key", KEY]
os.execv(PROGRAM, [PROGRAM, "--model", MODEL, "--host", address, "--port", port, "--alias", name,
                   "--threads", "1", "--parallel", "4", "--ctx-size", "8192", *more])
"""
VLLM = """\
import os, sys
address, port, name = sys.argv[1:]
words = "--enable-auto-tool-choice --tool-call-parser hermes --api-key " + KEY
# Random weights would write spaces without an end where they are allowed.
words += ' --structured-outputs-config {"disable_any_whitespace":true}'
model, more = ("embedding", "--runner pooling") if "embed" in name else ("vision", words)
own = {"HOME": "/tmp", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1",
       "VLLM_HOST_IP": "127.0.0.1", "VLLM_CPU_KVCACHE_SPACE": "1",
       "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_ENABLE_RESPONSES_API_STORE": "1"}
os.execve(PROGRAM, [PROGRAM, "serve", MODEL + model, "--served-model-name", name, "--host", address,
                    "--port", port, "--enforce-eager", "--max-num-seqs", "4", *more.split()],
          {**os.environ, **own})
"""

# Each prints what a client saw, without what differs from request to request.
CLIENT = """\
import base64, json, sys, anthropic, openai
url, key, model, of_embeddings, embedding = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
other = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
messages = [{"role": "user", "content": "Count: one two three"}]
fixed = {"model": model, "messages": messages, "max_tokens": 24}
seeded = fixed | {"temperature": 0, "seed": 7}
tool = {"name": "weather", "description": "here", "parameters": {
    "type": "object", "properties": {}, "additionalProperties": False}}
tools = [{"type": "function", "function": tool}]
pixel = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
         "DwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
picture = [{"role": "user", "content": [
    {"type": "text", "text": "What is it?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + pixel}}]}]

def chat(): return client.chat.completions.create(**seeded).choices[0].message.content
def stream():
    with client.chat.completions.create(**seeded, stream=True) as parts:
        return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
def usage():
    options = {"include_usage": True}
    *_, last = client.chat.completions.create(**seeded, stream=True, stream_options=options)
    return last.usage.completion_tokens
def tool_call():
    asked = seeded | {"max_tokens": 200}
    done = client.chat.completions.create(**asked, tools=tools, tool_choice="required")
    return [call.function.name for call in done.choices[0].message.tool_calls or ()]
def named_tool():
    chosen = {"type": "function", "function": {"name": "weather"}}
    done = client.chat.completions.create(**seeded, tools=tools, tool_choice=chosen)
    calls = done.choices[0].message.tool_calls or ()
    return [(call.function.name, call.function.arguments) for call in calls]
def streamed_tool():
    chosen = {"type": "function", "function": {"name": "weather"}}
    with client.chat.completions.create(**seeded, tools=tools, tool_choice=chosen,
                                        stream=True) as parts:
        return [call.function.name for part in parts for choice in part.choices
                for call in choice.delta.tool_calls or () if call.function.name]
def shape():
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {
        "type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"],
        "additionalProperties": False}}}
    return client.chat.completions.create(**seeded, response_format=form).choices[0].message.content
def image(): return client.chat.completions.create(model=model, messages=picture).id != ""
def text(): return client.completions.create(
    model=model, prompt="one two", max_tokens=8, temperature=0).choices[0].text
def embeddings():
    own = client.with_options(base_url=of_embeddings + "/v1")
    found = own.embeddings.create(model=embedding, input=["one", "two"], encoding_format="float")
    return [round(sum(each.embedding), 3) for each in found.data]
def models(): return sorted(each.id for each in client.models.list() if each.id == model)
def response():
    return client.responses.create(
        model=model, input="one two", max_output_tokens=16, temperature=0).output_text
def response_stream():
    with client.responses.create(model=model, input="one two", max_output_tokens=16,
                                 temperature=0, stream=True) as events:
        return [event.type for event in events][-1]
def retrieved():
    made = client.responses.create(model=model, input="one two", max_output_tokens=16)
    return client.responses.retrieve(made.id).id == made.id
def continued():
    made = client.responses.create(model=model, input="one two", max_output_tokens=16)
    return client.responses.create(model=model, input="three", max_output_tokens=16,
                                   previous_response_id=made.id).status
def long_prompt():
    asked = seeded | {"messages": [{"role": "user", "content": "one two " * 150}]}
    return client.chat.completions.create(**asked).usage.prompt_tokens
def too_long():
    asked = seeded | {"messages": [{"role": "user", "content": "one two " * 20000}]}
    return client.chat.completions.create(**asked).usage.prompt_tokens
def left():
    parts = client.chat.completions.create(**fixed | {"max_tokens": 2000}, stream=True)
    next(iter(parts)); parts.close()
    return chat()
def message():
    return other.messages.create(**fixed, extra_body={"temperature": 0}).content[0].text
def message_stream():
    with other.messages.stream(**fixed, extra_body={"temperature": 0}) as events:
        return "".join(events.text_stream)
def message_tools():
    own = [{"name": "weather", "input_schema": tool["parameters"]}]
    asked = fixed | {"max_tokens": 200}
    done = other.messages.create(**asked, tools=own, tool_choice={"type": "any"})
    return [part.name for part in done.content if part.type == "tool_use"]
def counted(): return other.messages.count_tokens(model=model, messages=messages).input_tokens
def wrong_model():
    return client.chat.completions.create(**seeded | {"model": "nobody"}).id != ""

found = {}
for ask in (chat, stream, usage, tool_call, named_tool, streamed_tool, shape, image, text,
            embeddings, models, response, response_stream, retrieved, continued, long_prompt,
            too_long, left, message, message_stream, message_tools, counted, wrong_model):
    try:
        found[ask.__name__] = repr(ask())
    except (openai.APIError, anthropic.APIError) as error:
        found[ask.__name__] = f"{type(error).__name__}: {getattr(error, 'status_code', '')}"
print(json.dumps(found))
"""


def seen(node: Node, python: Path, *words: str) -> dict[str, str]:
    """What the clients saw at a URL."""
    argv = [*entering(node.holder), str(python), "-c", CLIENT, *words]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def of_llama_cpp() -> str:
    """The program of llama.cpp's engines; the node has a /tmp of its own."""
    model = llama_cpp() / "tiny.gguf"
    write(model)
    return _named(llama_cpp() / "llama-server", str(model)) + LLAMA_CPP


def of_vllm() -> str:
    """The program of vLLM's engines."""
    kinds = ("vision", "embedding")
    with TemporaryDirectory() as folder:
        for kind in kinds:
            vllm_cpu.write(Path(folder) / kind, kind)
    return _named(vllm_cpu.vllm_cpu() / "vllm", f"{cache()}/tiny-") + VLLM


def _named(program: Path, model: str) -> str:
    return f"PROGRAM, MODEL, KEY = {str(program)!r}, {model!r}, {KEY!r}\n"


def main() -> None:
    """Print what the clients saw, and where that differs from an engine itself."""
    engines = {"llama.cpp": of_llama_cpp, "vllm": of_vllm}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--engine", choices=engines, default="llama.cpp")
    asked = parser.parse_args()
    python = asked.environment.absolute() / "bin/python"
    with TemporaryDirectory() as folder:
        os.environ[BUILT] = folder
        gateway_node.ACTIVE = ["chat", "embed"]
        gateway_node.ENGINE = engines[asked.engine]()
        (Path(folder) / "node").mkdir()
        with started(Path(folder) / "node") as node:
            chat, embed = ROUTES["chat"], ROUTES["embed"]
            names = ("assistant", PROXY.url, embed.names[0])
            through = seen(node, python, PROXY.url, node.key, *names)
            engine = seen(node, python, chat.url, KEY, "assistant", embed.url, embed.names[0])
    for name, result in through.items():
        own = engine[name]
        print(f"{name}: {result}" + ("" if own == result else f" (the engine itself: {own})"))


if __name__ == "__main__":
    main()
