from profiler.conclude import conclude
from profiler.events import Kind, Made, Row
from tests.fakes import MS, run_of

WORKERS = {"n_workers": 2, "prefetch_batches": 4}
TORCH = {"loader": {"kind": "torch_workers"}, "source": {"kind": "synthetic"}}


def through_the_pipe(steps=100, n_workers=2):
    """Batches are made in 1 ms and had 9 ms later; a step takes 2 ms, all of it on a simulated device."""
    rows, made = [Row(Kind.ITER, 0, 0, 0, 0, 0)], []
    for i in range(steps):
        at = 12 * i * MS
        rows.append(Row(Kind.WAIT, 0, i, at, at + 10 * MS, 8, 4 * MS, 0))
        rows.append(Row(Kind.RECEIVE, 0, i, at + 2 * MS, at + 10 * MS, 0))
        rows.append(Row(Kind.BUSY, 0, i, at + 10 * MS, at + 12 * MS, 0))
        made.append(Made(1, 1, 8, 0, at, at + MS, at + MS, MS, 0, 0, 0, 0, 0, batch=i))
    rows.append(Row(Kind.END, 0, steps, 12 * steps * MS, 12 * steps * MS, 0))
    return run_of(rows, made, loader={**WORKERS, "n_workers": n_workers}, scenario=TORCH)


def test_hand_off_is_told_and_more_workers_are_never_proposed():
    findings = conclude(through_the_pipe()).diagnosis.findings
    assert findings[0].kind == "handoff"
    assert "90.0 % of that stall is hand-off: " in findings[0].because
    assert "fewer workers (2 -> 1, or 0)" in findings[0].try_next
    for finding in findings:
        assert "num_workers: 2 ->" not in finding.try_next
        assert "ore workers" not in finding.try_next


def test_one_worker_is_told_to_go():
    assert "no workers (0)" in conclude(through_the_pipe(n_workers=1)).diagnosis.findings[0].try_next
