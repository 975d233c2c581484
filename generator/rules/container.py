"""Rules about the resources of the engine's container."""

from generator.catalogs.engines import ENGINE_TRAITS
from generator.diagnostics import Severity, listed
from generator.fabric.addressing import Fabric
from generator.rules.nodes import Nodes
from generator.rules.registry import Fault, Faults, rule, to_remove
from generator.sitefile.declaration import DeclaredEngine, DeclaredModel


@rule("SG685")
def pinned_memory(engine: DeclaredEngine, fabric: Fabric) -> Faults:
    """The memory that RDMA pins is not limited."""
    limit = engine.container.ulimits.get("memlock", -1)
    if limit != -1 and fabric.cables:
        yield to_remove(
            f"NCCL would fail: RDMA pins more memory than {limit} bytes",
            ("engine", "container", "ulimits", "memlock"),
            "remove it: sparkgen sets none",
        )


@rule("SG617", Severity.WARNING, unless="SG615")
def more_than_a_node_has(engine: DeclaredEngine, nodes: Nodes) -> Faults:
    """A memory limit is below the node's memory."""
    least = min(nodes, key=lambda node: node.visible_gib)
    bounds = {"memory": engine.container.memory_gib, "shm": engine.container.shm_gib}
    for key, gib in bounds.items():
        if gib and gib > least.memory_gb:
            yield Fault(
                f"a limit of {gib} GiB is more than the {least.memory_gb} GB of {least.name}",
                ("engine", "container", key),
                "write less, or remove it",
                nodes=(least.name,),
            )


@rule("SG684", unless="SG602")
def container_limits_under_slurm(engine: DeclaredEngine) -> Faults:
    """Containers that pyxis starts are limited by Slurm."""
    if engine.launcher != "slurm" or not ENGINE_TRAITS[engine.name].needs_pmix:
        return
    own = engine.container
    given: dict[str, object] = {"memory": own.memory_gib, "cpus": own.cpus}
    given |= {"shm": own.shm_gib, "ulimits": own.ulimits}
    for key in (key for key, value in given.items() if value):
        yield to_remove(
            f"'{key}' has no effect on a container that pyxis starts",
            ("engine", "container", key),
            "remove it, and set the limit in slurm.conf",
            at_key=True,
        )


@rule("SG686", unless="SG602 SG603 SG652")
def experts_over_ranks(engine: DeclaredEngine) -> Faults:
    """Experts are spread over a number of ranks that the engine supports."""
    sizes = engine.parallel
    over = sizes.experts_over
    if over is None or over == 1:
        return
    traits = ENGINE_TRAITS[engine.name]
    path = ("engine", "parallel", "expert")
    if traits.shares_experts and over != sizes.tensor * sizes.data:
        every = sizes.tensor * sizes.data
        yield Fault(
            f"{traits.title} spreads experts over all {every} ranks that share a layer, "
            f"not over {over}",
            path,
            "write true",
        )
    elif not traits.shares_experts and sizes.tensor % over:
        fitting = [n for n in range(2, sizes.tensor + 1) if sizes.tensor % n == 0]
        yield Fault(
            f"experts over {over} ranks do not divide tensor size {sizes.tensor}",
            path,
            f"write {listed(map(str, fitting))}" if fitting else "remove it",
        )


@rule("SG687")
def folder_of_one_node(model: DeclaredModel, nodes: Nodes) -> Faults:
    """A node's own model path replaces a folder given as `model.source`."""
    if model.source and model.source.startswith("/"):
        return
    for node in nodes:
        if node.model_path:
            yield Fault(
                "'model_path' replaces a model's folder, and this model comes from the hub",
                (*node.path, "model_path"),
                "write 'source: /srv/models/NAME' under 'model', where the other nodes have it",
            )
            return
