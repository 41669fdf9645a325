"""Rules that name the one stage which carries the stall."""

import pytest

from profiler.conclude import conclude
from profiler.events import Kind, Made, Row
from tests.fakes import MS, run_of

TORCH = {"loader": {"kind": "torch_workers"}, "source": {"kind": "synthetic"}}


def run(steps=100, *, collate_ms=0, drawing_ms=0):
    """Each wait of 10 ms is drawing indices and collating; a step takes 2 ms on a simulated device."""
    rows, made = [Row(Kind.ITER, 0, 0, 0, 0, 0)], []
    for i in range(steps):
        at = 12 * i * MS
        rows += [Row(Kind.WAIT, 0, i, at, at + 10 * MS, 8), Row(Kind.BUSY, 0, i, at + 10 * MS, at + 12 * MS, 0)]
        rows += [Row(Kind.SAMPLER, 0, i, at, at + drawing_ms * MS, 0)] if drawing_ms else []
        items = at + (10 - collate_ms) * MS
        made.append(Made(1, 1, 8, 0, at, items, at + 10 * MS, 0, 0, collate_ms * MS, 0, 0, 0, batch=i))
    rows.append(Row(Kind.END, 0, steps, 12 * steps * MS, 12 * steps * MS, 0))
    return run_of(rows, made, loader={"n_workers": 1, "prefetch_batches": 2}, scenario=TORCH)


@pytest.mark.parametrize(
    ("kind", "stages", "said"),
    [
        ("sampler", {"drawing_ms": 8}, "80.0 % of that stall is drawing indices, 8.0 ms a batch"),
        ("collate", {"collate_ms": 8}, "80.0 % of that stall is collate, 8.0 ms a batch"),
    ],
)
def test_the_stage_is_named(kind, stages, said):
    findings = {finding.kind: finding for finding in conclude(run(**stages)).diagnosis.findings}
    assert kind in findings
    assert said in findings[kind].because


def test_another_stage_is_another_matter():
    assert not {"sampler", "collate"} & {finding.kind for finding in conclude(run()).diagnosis.findings}


def test_where_no_rule_knows_the_cause_the_largest_stage_is_named():
    finding = conclude(run(collate_ms=3, drawing_ms=3)).diagnosis.findings[-1]
    assert "the cause is not split" not in finding.verdict
