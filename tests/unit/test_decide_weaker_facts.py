"""Whatever reading is taken away, a session that was kept is never stopped for the lack of it."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from steps.contracts.decision import Verdict
from steps.contracts.document import Sample
from steps.contracts.traced import GpuClass, TracedGpu, TracedHolder, TracedNode
from tests.unit.judging import ACTING, Sweep, ago, gpu, holder, node, pod, session, waiter

STOPPING = {Verdict.RECLAIM, Verdict.DEFERRED}

ratios = st.sampled_from(
    [
        Sample.measured(0.0, taken_at=ago(seconds=20)),
        Sample.measured(0.0, taken_at=ago(seconds=20)),
        Sample.measured(0.7, taken_at=ago(seconds=20)),
        Sample[float].not_applicable("not on this GPU"),
        Sample[float].absent("no series"),
    ]
)
headlines = st.sampled_from(
    [GpuClass.IDLE_HOLDER, GpuClass.IDLE_HOLDER, GpuClass.BASELINE, GpuClass.PHANTOM_UTIL, GpuClass.ACTIVE, GpuClass.GPU_LOST]
)
counts = st.sampled_from([Sample.measured(0), Sample.measured(0), Sample.measured(1), Sample[int].error("EACCES")])
holder_lists = st.sampled_from([[holder()], [], [holder(gpu_class=GpuClass.ZOMBIE_BENIGN)], [holder("b-1", GpuClass.ACTIVE)]])


@st.composite
def gpus(draw: st.DrawFn, index: int, node_name: str, pod_name: str) -> TracedGpu:
    """A stuck counter is never called that beside a live holder: trace looks at holders first (facts/gpu-and-linux 8.5)."""
    to = draw(st.sampled_from([(pod_name,), (pod_name,), (pod_name, "other")]))
    headline = draw(headlines)
    holding = draw(holder_lists if headline is not GpuClass.PHANTOM_UTIL else st.just([]))
    return gpu(
        index,
        node=node_name,
        to=to,
        headline=headline,
        utilisation=draw(ratios),
        sm=draw(ratios),
        holders=holding,
    )


@st.composite
def sweeps(draw: st.DrawFn) -> Sweep:
    """A session of one or two replicas with one or two GPUs each, each on its own node, perhaps a waiting replica.

    Idle for no time at all is enough, so that the idle clock hides nothing."""
    names = draw(st.sampled_from([("a-1",), ("a-1", "a-2")]))
    amounts = [draw(st.integers(1, 2)) for _ in names]
    waiting = draw(st.booleans())
    nodes = []
    for name, amount in zip(names, amounts, strict=True):
        node_name = f"node-{name}"
        own = [draw(gpus(index, node_name, name)) for index in range(amount)]
        nodes.append(node(*own, name=node_name, connected={name: draw(counts)}))
    return Sweep(
        sessions=[session(pods=(*names, "a-9") if waiting else names, replicas=len(names))],
        pods=[pod(name, node=f"node-{name}", gpus=amount) for name, amount in zip(names, amounts, strict=True)],
        nodes=nodes,
        waiters=[waiter("a-9")] if waiting else [],
        policy=msgspec.structs.replace(ACTING, idle_after_s=0),
    )


def weaker_gpus(one: TracedGpu) -> Iterator[TracedGpu]:
    gone = Sample[float].error("taken away by the test")
    yield msgspec.structs.replace(one, utilisation_ratio=gone)
    yield msgspec.structs.replace(one, sm_active_ratio=gone)
    yield msgspec.structs.replace(one, allocated_to=Sample.error("taken away by the test"))
    yield msgspec.structs.replace(one, headline=GpuClass.UNKNOWN)
    for index, _ in enumerate(one.holders):
        kept: tuple[TracedHolder, ...] = (*one.holders[:index], *one.holders[index + 1 :])
        yield msgspec.structs.replace(one, holders=kept)


def weaker_nodes(one: TracedNode) -> Iterator[TracedNode]:
    yield msgspec.structs.replace(one, problem="it did not answer")
    yield msgspec.structs.replace(one, connections=Sample.error("taken away by the test"))
    yield msgspec.structs.replace(one, connections=Sample.measured(()))
    for index, own in enumerate(one.gpus):
        yield msgspec.structs.replace(one, gpus=(*one.gpus[:index], *one.gpus[index + 1 :]))
        for weak in weaker_gpus(own):
            yield msgspec.structs.replace(one, gpus=(*one.gpus[:index], weak, *one.gpus[index + 1 :]))


def weaker(sweep: Sweep) -> Iterator[Sweep]:
    """Every sweep that knows one thing less."""
    for index, one in enumerate(sweep.nodes):
        yield replace(sweep, nodes=[*sweep.nodes[:index], *sweep.nodes[index + 1 :]])
        for weak in weaker_nodes(one):
            yield replace(sweep, nodes=[*sweep.nodes[:index], weak, *sweep.nodes[index + 1 :]])
    for index, fact in enumerate(sweep.pods):
        others = [*sweep.pods[:index], *sweep.pods[index + 1 :]]
        yield replace(sweep, pods=others)
        yield replace(sweep, pods=[*others, msgspec.structs.replace(fact, started_at=None)])
        yield replace(sweep, pods=[*others, msgspec.structs.replace(fact, node=None)])
    yield replace(sweep, waiters=[])
    yield replace(sweep, idle_since=None)


@settings(max_examples=100, deadline=None)
@over(sweeps())
def test_taking_a_reading_away_never_turns_a_kept_session_into_a_stopped_one(sweep: Sweep) -> None:
    if sweep.decision().verdict in STOPPING:
        return
    for less in weaker(sweep):
        assert less.decision().verdict not in STOPPING, less


def test_the_ordinary_sweep_is_a_reclaim_and_each_reading_taken_away_ends_that() -> None:
    ordinary = Sweep()
    assert ordinary.decision().verdict in STOPPING
    kept = [less for less in weaker(ordinary) if less.decision().verdict in STOPPING]
    assert [len(less.waiters) for less in kept if less.nodes[0].gpus[0].holders] == [0]
    assert len(kept) == 2
