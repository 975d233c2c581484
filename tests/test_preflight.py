"""The scripts that ask an engine about its settings, with stand-ins for the engines' packages.

With a real vLLM, `pytest -n0 -m cluster tests/test_real_preflight.py` asks the same scripts.
"""

import importlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock, create_autospec

import pytest
from conftest import Command
from waiting import PATIENCE

from generator.resources import TEMPLATES

PREFLIGHT = TEMPLATES / "payload/node/opt/sparkgen/preflight"

# What the scripts use of each engine, in as few lines as possible.
VLLM = {
    "__init__.py": "# vLLM",
    "envs.py": """\
        import os
        environment_variables = {"VLLM_PORT": lambda: int(os.environ["VLLM_PORT"])}
        """,
    "engine/arg_utils.py": """\
        class EngineArgs:
            def __init__(self, words):
                self.words = words
            def create_engine_config(self):
                if "--max-num-seqs=0" in self.words:
                    raise ValueError("max_num_seqs must be\\n at least 1")
                if "--absent" in self.words:
                    import huggingface_hub
                    raise huggingface_hub.LocalEntryNotFoundError("no config.json")
                if "--unimported" in self.words:
                    raise ValueError("Model architectures ['X'] failed to be inspected.")
                if "--crash" in self.words:
                    import os
                    os._exit(139)
                for word in self.words:
                    if word.startswith("--does="):
                        exec(word.removeprefix("--does=").replace("~", " "))
                return self
        """,
    "v1/executor/abstract.py": """\
        class Executor:
            @staticmethod
            def get_class(config):
                raise SystemError("a worker would start")
        """,
    "utils/argparse_utils.py": "# its parser",
    "v1/executor/multiproc_executor.py": "class MultiprocExecutor: ...",
    "entrypoints/cli/main.py": """\
        import sys
        from argparse import ArgumentParser, ArgumentTypeError
        from vllm.utils import argparse_utils
        def read(text):
            wrong = "Input should be greater than 0 [type=greater_than, input_value=0]"
            more = "For further information visit https://errors.pydantic.dev/2.14/v/greater_than"
            raise ArgumentTypeError(f"1 validation error for C\\nsize\\n  {wrong}\\n    {more}")
        def main():
            print("INFO 01-01 what the engine itself prints")
            reader = ArgumentParser(prog="vllm serve")
            for flag in ("--max-num-seqs", "--host", "--tensor-parallel-size"):
                reader.add_argument(flag)
            for flag in ("--absent", "--unimported", "--crash"):
                reader.add_argument(flag, action="store_true")
            reader.add_argument("--broken", action="store_true", help="--broken is deprecated")
            reader.add_argument("--json", type=read)
            reader.add_argument("--does")
            reader.add_argument("model")
            asked = reader.parse_args(sys.argv[2:])
            if asked.broken:
                import no_such_package
            from vllm.engine.arg_utils import EngineArgs
            from vllm.v1.executor.abstract import Executor
            Executor.get_class(EngineArgs(sys.argv[2:]).create_engine_config())
        """,
}
SGLANG = {
    "srt/server_args.py": """\
        from argparse import ArgumentParser
        class ServerArgs:
            attention_backend = None
            def resolve_once(self):
                self.attention_backend = "triton"
            def check_server_args(self):
                assert self.max_running_requests != "0", "max_running_requests is 0"
            def resolved_dict(self):
                return vars(self)
        def prepare_server_args(words):
            reader = ArgumentParser(prog="sglang serve")
            reader.add_argument("--model-path", required=True)
            reader.add_argument("--max-running-requests")
            return reader.parse_args(words, ServerArgs())
        """,
    "srt/configs/model_config.py": """\
        class ModelConfig:
            context_len, dtype, hf_config = 4096, "torch.bfloat16", None
            @classmethod
            def from_server_args(cls, settings):
                return cls()
        """,
    "srt/managers/scheduler.py": "class Scheduler: ...",
}
TENSORRT_LLM = {
    "llmapi/llm_args.py": """\
        class TorchLlmArgs:
            def __init__(self, **settings):
                self.__dict__.update(settings)
                if self.max_batch_size < 1:
                    raise ValueError("max_batch_size must be positive")
        """,
    "commands/serve.py": """\
        import click
        def launch_server(host, port, llm_args):
            raise SystemError("a server would start")
        @click.group()
        def main(): ...
        @main.command()
        @click.argument("model")
        @click.option("--max_batch_size", type=int, default=8)
        def serve(model, max_batch_size):
            launch_server("", 0, {"model": model, "max_batch_size": max_batch_size})
        """,
}
SERVER = """\
#!/bin/sh
for word; do
  case $word in
    --help) echo "usage"; exit 0 ;;
    --no-library) echo "error while loading shared libraries: libcuda.so.1" >&2; exit 127 ;;
    --silent) exit 1 ;;
    --no-such) echo "some line" >&2; echo 'error: invalid argument: "--no-such"' >&2; exit 1 ;;
  esac
done
echo "it would start" >&2
exit 7
"""

FIT = """\
#!/bin/sh
echo "error loading model: unknown model architecture: '$(cat "$2")'" >&2
exit 1
"""


@pytest.fixture(autouse=True)
def without_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled scripts beside the payload would be copied to nodes."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the engines' packages, and their programs in `bin`."""
    folder = tmp_path_factory.mktemp("image")
    packages = {"vllm": VLLM, "sglang": SGLANG, "tensorrt_llm": TENSORRT_LLM}
    packages["huggingface_hub"] = {"__init__.py": "class LocalEntryNotFoundError(Exception): ..."}
    for package, files in packages.items():
        for name, text in files.items():
            file = folder / package / name
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = text.splitlines()
            indent = len(lines[0]) - len(lines[0].lstrip())
            file.write_text("".join(f"{line[indent:]}\n" for line in lines))
    (folder / "bin").mkdir()
    shebang = f"#!{sys.executable}\n"
    programs = {"vllm": shebang, "sglang": shebang, "trtllm-serve": shebang, "llama-server": SERVER}
    programs["llama-fit-params"] = FIT
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return folder


def ask(
    image: Path, engine: str, command: str, env: Mapping[str, str] = {}
) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the answers of ask.sh."""
    argv = ["bash", str(PREFLIGHT / "ask.sh"), engine, *command.split()]
    path = f"{image}/bin:{os.environ['PATH']}"
    given = {"PATH": path, "PYTHONPATH": str(image), "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run(argv, env=given, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


FRONT = "bash /opt/sparkgen/secrets.sh bash /opt/sparkgen/follow.sh"


@pytest.mark.parametrize(
    ("command", "stage", "message"),
    [
        ("vllm serve m --max-num-seqs=0", "configuration", "max_num_seqs must be at least 1"),
        (f"{FRONT} vllm serve m --max-num-seq", "arguments", "argument --max-num-seqs: expected"),
        ("/usr/bin/vllm serve m --hosts=a", "arguments", "unrecognized arguments: --hosts=a"),
        ("vllm serve", "arguments", "the following arguments are required: model"),
        (
            "vllm serve m --json={}",
            "arguments",
            "argument --json: size Input should be greater than 0",
        ),
    ],
)
def test_vllm_refuses(command: str, stage: str, message: str, image: Path) -> None:
    status, answers = ask(image, "vllm", command)
    assert status == 1
    assert (answers[-1]["stage"], answers[-1]["status"]) == (stage, "refused")
    assert message in answers[-1]["message"]


def test_vllm_refuses_a_variable(image: Path) -> None:
    status, answers = ask(image, "vllm", "vllm serve m", {"VLLM_PORT": "80a"})
    assert (status, answers[0]["stage"], answers[0]["variable"]) == (1, "variables", "VLLM_PORT")
    assert "invalid literal for int() with base 10: '80a'" in answers[0]["message"]


def test_vllm_accepts_up_to_its_workers(image: Path) -> None:
    """The stand-in has no layers, of which nothing is known then."""
    _, answers = ask(image, "vllm", "vllm serve m --host=10.0.0.1", {"VLLM_PORT": "80"})
    stages = [(answer["stage"], answer["status"]) for answer in answers]
    accepted = [(stage, "accepted") for stage in ("variables", "arguments", "configuration")]
    assert stages == [*accepted, ("layers", "could not ask")]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("vllm serve m --absent", "a file of the model is not here: models.sh --small fetches it"),
        ("vllm serve m --unimported", "the model's code can't be imported here"),
        ("vllm serve m --broken", "the error may come from the way of asking"),
        ("bash /opt/sparkgen/ray.sh", "this rank gets its settings from the head"),
    ],
)
def test_what_vllm_could_not_be_asked(command: str, why: str, image: Path) -> None:
    status, answers = ask(image, "vllm", command)
    assert (status, answers[-1]["status"]) == (3, "could not ask")
    assert answers[-1]["why"].startswith(why)


@pytest.fixture
def ask_vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """ask_vllm.py as a module, with stand-ins for what it imports of vLLM once it has layers."""
    calls: list[str] = []

    class EngineCore:
        def _initialize_kv_caches(self, _: object) -> object:
            return self.model_executor.get_kv_cache_specs()  # type: ignore[attr-defined]

    def specs(_: object) -> str:
        calls.append("specs")
        return "specs"

    platform = SimpleNamespace(update_block_size_for_backend=lambda _: calls.append("block size"))
    held: dict[str, dict[str, Any]] = {
        "config": {"set_current_vllm_config": lambda _: nullcontext()},
        "platforms": {"current_platform": platform},
        "v1.core.sched.output": {"SchedulerOutput": None},
        "v1.engine.core": {"EngineCore": EngineCore},
        "v1.worker.gpu.attn_utils": {"get_kv_cache_spec": specs},
    }
    for name, names in held.items():
        parts = f"vllm.{name}".split(".")
        for end in range(1, len(parts) + 1):
            package = ".".join(parts[:end])
            if package not in sys.modules:
                monkeypatch.setitem(sys.modules, package, ModuleType(package))
        vars(sys.modules[f"vllm.{name}"]).update(names)
    monkeypatch.syspath_prepend(str(PREFLIGHT))
    for name in ("answers", "layers", "ask_vllm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module: Any = importlib.import_module("ask_vllm")
    module.calls = calls
    return module


def test_blocks_have_their_size_before_the_cache_is_planned(ask_vllm: Any) -> None:
    """Layers of recurrent states make the blocks of attention larger."""
    assert ask_vllm.plan_cache(SimpleNamespace(), 1 << 30) == ["specs"]
    assert ask_vllm.calls == ["block size", "specs"]


def test_graphs_are_settled_for_all_sequences(ask_vllm: Any) -> None:
    """By the layers that support the least; vLLM compares the sequences with the blocks then."""

    def layer(name: str, support: int) -> SimpleNamespace:
        builder = SimpleNamespace(get_cudagraph_support=lambda *_: SimpleNamespace(value=support))
        backend = type(name, (), {"get_name": unnamed, "get_builder_cls": lambda: builder})
        return SimpleNamespace(get_attn_backend=lambda: backend)

    def unnamed() -> str:  # as those of recurrent layers in the releases to 0.14
        raise NotImplementedError

    settle = create_autospec(lambda support, name, tokens, kv_cache_config, max_num_reqs: None)
    compilation = SimpleNamespace(
        static_forward_context={"a": layer("FlashAttention", 3), "b": layer("GDNAttention", 1)},
        resolve_cudagraph_mode_and_sizes=settle,
    )
    config = SimpleNamespace(
        compilation_config=compilation,
        num_speculative_tokens=2,
        use_v2_model_runner=True,
        scheduler_config=SimpleNamespace(max_num_seqs=64),
    )
    groups = [SimpleNamespace(layer_names=[name], kv_cache_spec=None) for name in "ab"]
    planned = SimpleNamespace(kv_cache_groups=groups)
    ask_vllm.check_graphs(config, planned)
    (support, *rest), named = settle.call_args
    assert (support.value, *rest) == (1, "GDNAttention", 3)
    more = {"kv_cache_config": planned, "max_num_reqs": 64}
    assert named == more
    settle = create_autospec(lambda *_, kv_cache_config, max_num_reqs, use_v2_model_runner: None)
    compilation.resolve_cudagraph_mode_and_sizes = settle
    ask_vllm.check_graphs(config, planned)
    assert settle.call_args.kwargs == {**more, "use_v2_model_runner": True}


def test_plan_is_refused_for_more_sequences_than_blocks(
    ask_vllm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SimpleNamespace(lora_config=None)
    refusal = ValueError("max_num_seqs (64) exceeds the blocks (32)")
    answers = ask_with(ask_vllm, monkeypatch, config, check_graphs=refusal)
    assert [call.args[0] for call in answers.accepted.call_args_list][-1] == "layers"
    answers.failed.assert_called_once_with("plan", refusal, "vllm", by_engine=False)
    ask_vllm.check_graphs.assert_called_once_with(config, "planned")
    ask_vllm.serve.assert_not_called()


def ask_with(
    ask_vllm: Any, monkeypatch: pytest.MonkeyPatch, config: SimpleNamespace, **errors: Exception
) -> Mock:
    """What is answered for a configuration, if each stage succeeds but those with errors."""
    start = SimpleNamespace(
        run=lambda: config, config=config, read=SimpleNamespace(), is_alone=lambda *_: False
    )
    done: dict[str, Any] = {
        "Start": start,
        "check_variables": True,
        "create_layers": SimpleNamespace(parameters=list),
        "of_layers": {"parameter_bytes": 1},
        "room_for": 1,
        "plan_cache": "planned",
        "check_graphs": None,
        "add_layers": SimpleNamespace(),
        "serve": None,
    }
    for name, value in done.items():
        mock = Mock(return_value=value, side_effect=errors.get(name))
        monkeypatch.setattr(ask_vllm, name, mock)
    answers = Mock(status=0)

    def failed(_: str, error: Exception, *__: object, **___: object) -> None:
        answers.status = 3 if isinstance(error, AttributeError) else 1

    answers.failed.side_effect = failed
    ask_vllm.ask([], None, answers)
    return answers


def test_stage_that_could_not_be_asked_ends_nothing(
    ask_vllm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts whose layers could not be made are not in the plan, which is an upper limit."""
    drafts = SimpleNamespace(draft_model_config="draft")
    config = SimpleNamespace(lora_config=None, speculative_config=drafts, model_config="model")
    error = AttributeError("a stand-in lacks something")
    answers = ask_with(ask_vllm, monkeypatch, config, add_layers=error)
    answers.failed.assert_called_once_with("draft", error, "vllm", by_engine=False)
    said = [call.args[0] for call in answers.accepted.call_args_list]
    assert said == ["arguments", "configuration", "layers", "plan", "api"]


class Mixin:
    """How vLLM's worker takes adapters."""

    supports_adapters = True

    def load_lora_model(self, model: object, *_: object) -> object:
        from vllm.lora.worker_manager import LRUCacheWorkerLoRAManager

        if not self.supports_adapters:
            raise ValueError("it does not support LoRA yet.")
        self.lora_manager = LRUCacheWorkerLoRAManager()
        return self.lora_manager.create_lora_manager(model, "settings")


class Manager:
    """vLLM's manager of adapters."""

    max_position_embeddings = 4096

    def create_lora_manager(self, *_: object) -> object:
        raise AssertionError("layers are not replaced")


class Helper:
    """vLLM's reader of what an adapter says of itself."""

    @classmethod
    def from_local_dir(cls, folder: str, _: int) -> "Helper":
        helper = cls()
        helper.rank = json.loads((Path(folder) / "adapter_config.json").read_text())["r"]
        return helper

    def validate_legal(self, settings: SimpleNamespace) -> None:
        if self.rank > settings.max_lora_rank:
            raise ValueError(f"LoRA rank {self.rank} is greater than max_lora_rank 16")

    rank = 0


class Runner:
    """vLLM's model runner, as far as a worker without weights uses it."""

    def __init__(self, config: Any, device: object) -> None:
        from vllm.v1.worker import gpu_model_runner

        self.config, self.drafter = config, SimpleNamespace(model=None)
        gpu_model_runner.InputBatch(device)
        raise AssertionError("buffers for requests are not made")

    def load_lora_model(self, *_: object) -> object:
        raise AssertionError("layers are not replaced")

    def load_model(self) -> None:
        from vllm.v1.worker import gpu_model_runner as module

        with module.DeviceMemoryProfiler(), self.jit_warmup_registry.activate():  # type: ignore[attr-defined]
            loader = module.get_model_loader(None)
            model = loader.load_model(self.config, model_config=self.config.model_config)
            if self.config.lora_config:
                model = self.load_lora_model(model, self.config, "cuda")
            if self.config.drafts:
                self.drafter.model = loader.load_model(self.config, model_config="draft")
        raise AssertionError("nothing follows")


@pytest.fixture
def worker(ask_vllm: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """ask_vllm.py with what it uses of vLLM's worker."""
    cuda = {"device": lambda name: name}
    managers = {"LRUCacheWorkerLoRAManager": Manager, "PEFTHelper": Helper}
    held: dict[str, dict[str, Any]] = {
        "torch": cuda,
        "vllm.utils.torch_utils": {"get_accelerator_view_from_cpu_tensor": None},
        "vllm.model_executor.model_loader": {"get_model_loader": Mock},
        "vllm.model_executor.model_loader.utils": {
            "initialize_model": lambda **given: f"layers of a {given['model_config']}"
        },
        "vllm.lora.worker_manager": {**managers, "get_adapter_absolute_path": str},
        "vllm.v1.worker.lora_model_runner_mixin": {"LoRAModelRunnerMixin": Mixin},
        "vllm.v1.worker.gpu_model_runner": {"GPUModelRunner": Runner, "get_model_loader": Mock},
    }
    for name, names in held.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            package = ".".join(parts[:end])
            if package not in sys.modules:
                monkeypatch.setitem(sys.modules, package, ModuleType(package))
                if end > 1:
                    above = sys.modules[".".join(parts[: end - 1])]
                    monkeypatch.setattr(above, parts[end - 1], sys.modules[package], raising=False)
        for key, value in names.items():
            monkeypatch.setattr(sys.modules[name], key, value, raising=False)

    monkeypatch.setattr(Manager, "create_lora_manager", Manager.create_lora_manager)
    return ask_vllm


def test_worker_makes_a_drafts_layers(worker: Any) -> None:
    config = SimpleNamespace(lora_config=True, drafts=True, model_config="model")
    assert worker.load(config, "layers").model == "layers of a draft"


@pytest.mark.parametrize(
    ("supported", "rank", "refusal"),
    [(False, 8, "does not support LoRA"), (True, 64, "rank 64"), (True, 8, "")],
)
def test_adapters_are_checked_without_weights(
    supported: bool,
    rank: int,
    refusal: str,
    worker: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Mixin, "supports_adapters", supported)
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": rank}))
    config = SimpleNamespace(lora_config=SimpleNamespace(max_lora_rank=16))
    with pytest.raises(ValueError, match=refusal) if refusal else nullcontext():
        worker.check_adapters(config, "layers", [SimpleNamespace(path=str(tmp_path))])


def test_ranks_are_on_nodes_of_their_own(ask_vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for modules that imported vLLM's function before, which would ask real groups."""
    for name in ("distributed", "distributed.parallel_state", "v1.attention"):
        module: Any = ModuleType(f"vllm.{name}")
        module.in_the_same_node_as = Mock
        monkeypatch.setitem(sys.modules, module.__name__, module)
    sys.modules["vllm.distributed"].parallel_state = module = sys.modules[
        "vllm.distributed.parallel_state"
    ]
    ask_vllm.set_ranks_apart()
    used = sys.modules["vllm.v1.attention"].in_the_same_node_as
    assert used is module.in_the_same_node_as
    assert used(sys.modules["layers"].Process(3, 1), source_rank=1) == [False, True, False]


def test_vllm_that_crashes_has_said_nothing(image: Path) -> None:
    status, answers = ask(image, "vllm", "vllm serve m --crash")
    assert (status, answers[-1]["why"]) == (3, "it ended with status 139")


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("import~os;os._exit(0)", "it ended with status 0"),
        ("import~os;os._exit(1)", "it ended with status 1"),
        ("raise~SystemExit(0)", "the engine ended by itself"),
        ("import~time;time.sleep(600)", "it had not answered after 3 seconds"),
        ("import~signal;signal.pause()", "it had not answered after 3 seconds"),
        ("raise~MemoryError('')", "no GPU with free memory"),
        ("raise~RuntimeError('Failed~to~infer~device~type')", "no GPU with free memory"),
        ("raise~RuntimeError('CUDA~out~of~memory.~Tried')", "no GPU with free memory"),
        ("raise~OSError('Can\\'t~load~image~processor~for~m')", "a file of the model is not here"),
        ("raise~OSError('Can\\'t~load~tokenizer~for~m')", "a file of the model is not here"),
        (
            "raise~TypeError('Invalid~type~of~HuggingFace~processor.~Expected~type:~<class~x.P>,'"
            "'~but~found~type:~<class~y.TokenizersBackend>')",
            "a file of the model is not here",
        ),
        (
            "raise~ValueError('Failed~to~load~LoRA~adapter~a:~outgoing~traffic~has~been~disabled')",
            "a file of the model is not here",
        ),
        (
            "raise~OSError('m~does~not~appear~to~have~a~file~named~x.py')",
            "a file of the model is not here",
        ),
    ],
)
def test_engine_that_ends_or_lacks_something_has_not_refused(
    does: str, why: str, image: Path
) -> None:
    env = {"SPARKGEN_ASK_SECONDS": "3"}
    status, answers = ask(image, "vllm", f"vllm serve m --does={does}", env)
    assert (status, answers[-1]["status"]) == (3, "could not ask")
    assert answers[-1]["why"].startswith(why)


def test_engine_that_prints_and_forks_answers_once(image: Path) -> None:
    """Its processes are ended with it, and nothing of theirs is among the answers."""
    does = (
        "import~os;print('{}');os.write(1,b'{}');os.fork();os.fork()or~os.execlp('sleep','s','99')"
    )
    status, answers = ask(image, "vllm", f"vllm serve m --does={does}")
    assert status == 3
    stages = [answer["stage"] for answer in answers]
    assert stages == ["variables", "arguments", "configuration", "layers"]


def test_sockets_take_nothing_of_a_running_engine(
    ask_vllm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither its port nor, under `uds`, its file; the address need not be here."""
    monkeypatch.setattr(socket.socket, "bind", socket.socket.bind, raising=False)
    monkeypatch.setattr(os, "environ", {**os.environ})
    ask_vllm.prepare()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "vllm.sock"))
    assert list(tmp_path.iterdir()) == []
    with socket.socket(socket.AF_INET) as made:
        made.bind(("192.0.2.1", 1))
        assert made.getsockname()[1] > 0


@pytest.mark.parametrize(
    ("command", "status", "last"),
    [
        ("python3 /opt/sparkgen/serve.py serve --model-path=m", 0, ("configuration", "accepted")),
        ("sglang serve m", 0, ("configuration", "accepted")),
        (
            "sglang serve --model-path=m --max-running-requests=0",
            1,
            ("configuration", "refused", "max_running_requests is 0"),
        ),
        (
            "python3 -m sglang.launch_server --model-path m --attn=x",
            1,
            ("arguments", "refused", "unrecognized arguments: --attn=x"),
        ),
        ("sleep 1", 3, ("arguments", "could not ask")),
    ],
)
def test_sglang(command: str, status: int, last: tuple[str, ...], image: Path) -> None:
    found, answers = ask(image, "sglang", command)
    assert found == status
    shown = tuple(answers[-1].get(key, "") for key in ("stage", "status", "message"))
    assert shown[: len(last)] == last
    if status == 0:
        assert answers[-1]["found"]["attention_backend"] == "triton"
        assert answers[-1]["found"]["max_model_len"] == 4096


@pytest.fixture
def ask_sglang(monkeypatch: pytest.MonkeyPatch) -> Any:
    """ask_sglang.py as a module, with stand-ins for what it imports to create layers."""
    torch: Any = ModuleType("torch")
    torch.no_grad = nullcontext
    monkeypatch.setitem(sys.modules, "torch", torch)
    names = ("sglang", "sglang.srt", "sglang.srt.managers", "sglang.srt.managers.scheduler")
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.syspath_prepend(str(PREFLIGHT))
    for name in ("answers", "layers", "ask_sglang"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module: Any = importlib.import_module("ask_sglang")
    monkeypatch.setattr(module, "without_memory", nullcontext)
    monkeypatch.setattr(module.Rank, "prepare", lambda *_: None)
    return module


SIZES = {"tp_size": 4, "pp_size": 2, "nnodes": 8, "node_rank": 6, "ep_size": 2}


class SGLangScheduler:
    """Creates what it is told to, as the scheduler of a release."""

    done: ClassVar[list[str]] = []

    def __init__(self, server_args: object, tp_rank: int, pp_rank: int, moe_ep_rank: int) -> None:
        self.done.append(f"TP{tp_rank} PP{pp_rank} EP{moe_ep_rank}")
        self.init_model_worker()

    def init_model_worker(self) -> None:
        raise AssertionError("the GPU would be used")

    def init_tp_model_worker(self) -> None:
        self.done.append("model")

    def maybe_init_draft_worker(self) -> None:
        self.done.append("draft")

    def init_memory_pools(self) -> None:
        self.done.append("cache")


def test_sglang_begins_as_this_rank(ask_sglang: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And stops before it would use the GPU; each release has some of the steps."""
    monkeypatch.setattr(SGLangScheduler, "done", [])
    scheduler = type("Scheduler", (SGLangScheduler,), {})
    sys.modules["sglang.srt.managers.scheduler"].Scheduler = scheduler  # type: ignore[attr-defined]
    answers = Mock()
    ask_sglang.Rank(SimpleNamespace(**SIZES)).run(answers)
    assert scheduler.done == ["TP2 PP1 EP1", "model", "draft", "cache"]
    assert [call.args for call in answers.accepted.call_args_list] == [("layers",), ("plan",)]


def test_sglang_before_its_scheduler_had_these_steps(ask_sglang: Any) -> None:
    sys.modules["sglang.srt.managers.scheduler"].Scheduler = object  # type: ignore[attr-defined]
    answers = Mock()
    ask_sglang.Rank(SimpleNamespace()).run(answers)
    answers.accepted.assert_not_called()


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("raise ValueError('trtllm_mla is only for MLA')", True),
        ("assert False, 'PP is not compatible with this model'", True),
        ("assert (\n        not runner), 'PP is not compatible with this model'", True),
        ("raise OSError('a/b does not appear to have a file named x')", False),
        ("[][1]", False),
    ],
)
def test_a_step_that_can_not_be_done_here(
    line: str, is_refused: bool, ask_sglang: Any, tmp_path: Path
) -> None:
    """Only a statement of SGLang's own code refuses."""
    file = tmp_path / "sglang/srt/attention.py"
    file.parent.mkdir(parents=True)
    file.write_text(f"def attend(runner):\n    {line}\n")
    held: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), held)
    runner = type("Runner", (), {"init_attention_backend": held["attend"]})
    rank = ask_sglang.Rank(SimpleNamespace())
    rank.where_possible(runner, "init_attention_backend", ask_sglang.without_attention)
    rank.where_possible(runner, "of_another_release", ask_sglang.without_attention)
    refusal = pytest.raises(Exception, match=r"MLA|not compatible") if is_refused else nullcontext()
    with refusal:
        runner().init_attention_backend()  # type: ignore[attr-defined]
        assert list(rank.of_plan()["not_asked"]) == ["init_attention_backend"]


def test_other_ranks_are_not_connected(ask_sglang: Any) -> None:
    class Group:
        def __init__(self, ranks: list[int], use_nccl: bool, use_shared: bool = True) -> None:
            self.given = ranks, use_nccl, use_shared

    ask_sglang.without_communicators(Group)
    assert Group([0, 1], True).given == ([0, 1], False, False)


@pytest.mark.parametrize(
    ("command", "status", "last"),
    [
        ("serve m --max_batch_size=4", 0, ("configuration", "accepted")),
        (
            "serve m --max_batch_size=0",
            1,
            ("configuration", "refused", "max_batch_size must be positive"),
        ),
        (
            "serve m --max_batch_size=x",
            1,
            ("arguments", "refused", "'x' is not a valid integer."),
        ),
    ],
)
def test_tensorrt_llm(command: str, status: int, last: tuple[str, ...], image: Path) -> None:
    argv = f"/opt/sparkgen/rank.sh trtllm-llmapi-launch trtllm-serve {command}"
    found, answers = ask(image, "tensorrt-llm", argv)
    shown = tuple(answers[-1].get(key, "") for key in ("stage", "status", "message"))
    assert (found, shown[: len(last)]) == (status, last)


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("bash /opt/sparkgen/llama.sh llama-server --model m.gguf", 0, {}),
        (
            "llama-server --model m.gguf --no-such",
            1,
            {"message": 'error: invalid argument: "--no-such"'},
        ),
        ("ggml-rpc-server --port 1", 3, {"why": "there is no ggml-rpc-server here"}),
        ("sleep 1", 3, {"why": "its command has no llama-server"}),
        ("llama-server --no-library", 3, {"why": "it ended with status 127"}),
        ("llama-server --silent", 3, {"why": "it ended with status 1"}),
    ],
)
def test_llama_cpp(command: str, status: int, said: Mapping[str, str], image: Path) -> None:
    found, (answer,) = ask(image, "llama.cpp", command)
    assert found == status
    assert answer["stage"] == "arguments"
    assert said.items() <= answer.items()


def test_llama_cpp_does_not_know_the_model(image: Path, tmp_path: Path) -> None:
    """Its other program says so, which reads no weights."""
    (tmp_path / "m.gguf").write_text("spark2_5")
    status, (arguments, model) = ask(image, "llama.cpp", f"llama-server --model {tmp_path}/m.gguf")
    assert (status, arguments["status"], model["stage"]) == (1, "accepted", "configuration")
    assert model["message"] == "unknown model architecture: 'spark2_5'"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/opt/vllm/lib/python3.12/site-packages/torch/nn.py", False),
        ("/opt/vllm/lib/python3.12/json/decoder.py", False),
        ("/usr/local/lib/python3.12/dist-packages/vllm/config/model.py", True),
        ("/opt/vllm/vllm/config/model.py", True),
    ],
)
def test_error_of_a_library_is_not_the_engines(path: str, own: bool) -> None:
    """Whatever the environment is called."""
    spec = importlib.util.spec_from_file_location("answers", PREFLIGHT / "answers.py")
    assert spec
    assert spec.loader
    answers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(answers)
    assert answers._is_of("vllm", traceback.FrameSummary(path, 1, "f")) is own


def test_assertion_of_several_lines_is_the_engines(
    ask_vllm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vllm"
    folder.mkdir()
    (folder / "groups.py").write_text(
        "def check(found):\n"
        "    assert (\n"
        "        len(\n"
        "            found\n"
        "        )\n"
        "        == 1\n"
        '    ), "one group"\n'
    )
    monkeypatch.syspath_prepend(str(folder))
    said = Mock()
    answers = importlib.import_module("answers")
    monkeypatch.setattr(answers.Answers, "say", said)
    try:
        importlib.import_module("groups").check([1, 2])
    except AssertionError as error:
        answers.Answers.failed(answers.Answers, "plan", error, "vllm", by_engine=False)
    assert said.call_args.args == ("plan", answers.REFUSED)


def test_assertion_without_words_is_told_by_its_line(
    ask_vllm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vllm"
    folder.mkdir()
    (folder / "pages.py").write_text("def check(padded):\n    assert padded >= 2\n")
    monkeypatch.syspath_prepend(str(folder))
    said = Mock()
    answers = importlib.import_module("answers")
    monkeypatch.setattr(answers.Answers, "say", said)
    try:
        importlib.import_module("pages").check(1)
    except AssertionError as error:
        answers.Answers.failed(answers.Answers, "plan", error, "vllm", by_engine=False)
    assert said.call_args.args == ("plan", answers.REFUSED)
    assert said.call_args.kwargs["message"] == "assert padded >= 2"


def test_check_within_an_error_of_pydantic_is_the_engines(ask_vllm: Any, tmp_path: Path) -> None:
    class InvalidError(ValueError):
        def __init__(self, error: Exception) -> None:
            self._error = error

        def errors(self) -> list[dict[str, Any]]:
            return [{"ctx": {"error": self._error}}]

    answers = importlib.import_module("answers")
    for folder in ("vllm", "torch"):
        path = tmp_path / folder / "config.py"
        path.parent.mkdir()
        path.write_text("raise ValueError('no experts')\n")
        with pytest.raises(ValueError, match="no experts") as caught:
            exec(compile(path.read_text(), path, "exec"), {})
        said = answers.is_said_by(InvalidError(caught.value), "vllm")
        assert said is (folder == "vllm")


def test_unknown_engine_is_not_refused(image: Path) -> None:
    status, (answer,) = ask(image, "own", "serve")
    assert (status, answer["status"]) == (3, "could not ask")


def test_engine_describes_itself(image: Path, tmp_path: Path, sparkgen: Command) -> None:
    """The description is kept, and sites with its image are checked by it."""
    argv = ["bash", str(PREFLIGHT / "ask.sh"), "--describe", "vllm"]
    path = f"{image}/bin:{os.environ['PATH']}"
    env = {"PATH": path, "PYTHONPATH": str(image)}
    facts = ("version=9.9.9", f"image={NIGHTLY}", "digest=sha256:12")
    done = subprocess.run([*argv, *facts], env=env, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    (tmp_path / "nightly.json").write_bytes(done.stdout)
    (tmp_path / "sites").mkdir()
    outcome = sparkgen("catalog", "add", "nightly.json", cwd=tmp_path)
    written = "sites/catalogs/example.org-vllm-nightly.tsv"
    line = f"vllm 9.9.9, 9 flags, 1 variables, {NIGHTLY}@sha256:12\n"
    assert (outcome.code, outcome.out) == (0, f"{written} is written: {line}")
    assert sparkgen("catalog", "list", cwd=tmp_path).out == f"{written}: {line}"
    lines = (tmp_path / written).read_text().splitlines()
    assert "--absent\tswitch" in lines
    assert [line.split("\t")[0] for line in lines if "deprecated=" in line] == ["--broken"]
    # An earlier parser says more of this flag, but not what its type is here.
    assert "--max-num-seqs\ttext" in {"\t".join(line.split("\t")[:2]) for line in lines}
    assert lines[-1] == "VLLM_PORT\t\tint"


NIGHTLY = "example.org/vllm:nightly"
