import dataclasses
import re
from types import SimpleNamespace

import pytest

from profiler import registry
from profiler.conclude import conclude
from profiler.diagnosis import diagnose
from profiler.measure import measure
from profiler.result import Finding
from profiler.rules import KINDS
from tests.fakes import MS, FakeLoop

RULES = [registry.load("rule", kind) for kind in registry.kinds("rule")]

WORKERS = {"loader": {"n_workers": 2, "prefetch_batches": 4}}
HEALTHY = FakeLoop(load_ns=4 * MS, steps=200)
STARVED = FakeLoop(load_ns=20 * MS, steps=100)


def first(loop, **changes):
    return conclude(dataclasses.replace(loop, clock=type(loop.clock)()).run(**changes)).diagnosis.findings[0]


def kinds(loop, **changes):
    return [f.kind for f in conclude(dataclasses.replace(loop, clock=type(loop.clock)()).run(**changes)).diagnosis.findings]


def test_a_healthy_loop_is_told_what_faster_loading_could_gain():
    finding = first(HEALTHY)
    assert finding.kind == "not_input_bound"
    assert "at most +0.0 %" in finding.try_next
    assert "while the device still works" in finding.because  # 80 % waiting, nothing lost


def test_the_verdict_of_a_healthy_loop_points_at_what_idles_the_device():
    assert "validation" in first(FakeLoop(load_ns=1 * MS, epochs=3, between_ns=300 * MS)).try_next


def test_a_short_loop_is_told_how_many_steps_are_needed():
    finding = first(FakeLoop(load_ns=20 * MS, steps=20))
    assert finding.kind == "too_short"
    assert "--steps 40" in finding.try_next


def test_loading_in_the_training_thread_is_too_little_parallelism():
    finding = first(dataclasses.replace(STARVED, blocked_share=0.0))
    assert finding.kind == "too_little_parallelism"
    assert "loader.num_workers=2" in finding.try_next  # four are needed, two cores there are


def test_waiting_items_may_take_more_workers_than_cores():
    assert "loader.num_workers=4" in first(dataclasses.replace(STARVED, blocked_share=1.0)).try_next


def test_computing_items_on_all_cores_are_decode_and_never_more_workers():
    found = kinds(dataclasses.replace(STARVED, blocked_share=0.0), **WORKERS)
    assert found == ["decode_cpu"]
    assert "More workers cannot help" in first(dataclasses.replace(STARVED, blocked_share=0.0), **WORKERS).try_next


def test_waiting_items_behind_workers_are_latency():
    disk = {"source": {"medium": "disk", "emulated": False, "label": "files"}}
    loop = dataclasses.replace(STARVED, blocked_share=1.0, from_device=True)
    found = conclude(loop.run(**WORKERS, **disk)).diagnosis.findings
    assert "storage_latency" in [finding.kind for finding in found]


def test_blocked_time_is_not_storage_if_the_bytes_came_from_memory():
    disk = {"source": {"medium": "disk", "emulated": False, "label": "files"}}
    run = dataclasses.replace(STARVED, blocked_share=1.0).run(**WORKERS, **disk)
    assert measure(run).storage.cached_share == 1.0
    assert "storage_latency" not in [finding.kind for finding in conclude(run).diagnosis.findings]


def test_where_the_stages_are_unknown_the_cause_is_said_to_be_unsplit():
    run = dataclasses.replace(STARVED.run(), made=FakeLoop(steps=0).run().made)
    finding = conclude(run).diagnosis.findings[0]
    assert finding.kind == "input_bound"
    assert "cause is not split yet" in finding.verdict


def test_an_unwatched_device_is_said_to_be_unwatched():
    assert first(STARVED, device={"kind": "mps", "name": "mps", "simulated": False, "method": None}).kind == "not_measured"


def test_every_rule_is_of_a_kind_of_the_closed_list():
    assert set(registry.kinds("rule")) <= set(KINDS)


def test_what_costs_most_comes_first():
    def rule(kind, wall_share):
        return SimpleNamespace(judge=lambda result: Finding(kind, "info", "", "", "", {}, wall_share))

    found = diagnose(measure(HEALTHY.run()), [rule("a", 0.1), rule("b", 0.3), SimpleNamespace(judge=lambda result: None)])
    assert [finding.kind for finding in found.findings] == ["b", "a"]


@pytest.mark.parametrize("rule", RULES, ids=registry.kinds("rule"))
def test_rules_abstain_on_a_run_of_which_nothing_was_measured(rule):
    nothing = measure(FakeLoop(steps=0).run(device={"kind": "x", "name": "x", "simulated": False, "method": None}))
    finding = rule.judge(nothing)
    assert finding is None or finding.kind == "too_short"


LOOPS = {
    "healthy": (HEALTHY, {}),
    "computing": (dataclasses.replace(STARVED, blocked_share=0.2), {}),
    "waiting": (dataclasses.replace(STARVED, blocked_share=0.9), {}),
    "workers": (dataclasses.replace(STARVED, blocked_share=0.1), WORKERS),
    "short": (FakeLoop(steps=12), {}),
}


@pytest.mark.parametrize("name", LOOPS)
def test_every_number_of_a_finding_is_in_its_evidence(name):
    loop, changes = LOOPS[name]
    for finding in conclude(dataclasses.replace(loop, clock=type(loop.clock)()).run(**changes)).diagnosis.findings:
        known = [float(value) for value in numbers_in(finding.evidence)]
        for text in (finding.verdict, finding.because, finding.try_next):
            for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text):
                value = float(number.replace(",", ""))
                assert any(says(value, figure) for figure in known) or value == 95, (number, text)


def numbers_in(value):
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [] if isinstance(value, str) else [number for item in values for number in numbers_in(item)]


def says(written, figure):
    """Whether a text's number is this figure: as it is, as a percentage, or in a larger unit."""
    return any(abs(written - figure * factor) <= 0.051 * max(1, written / 100) for factor in (1, 100, 1e-3, 1e-6, 1e-9))
