from profiler import repeats
from profiler.measure import measure
from tests.fakes import MS, FakeLoop

RESULTS = [measure(FakeLoop(load_ns=load * MS).run()) for load in (8, 20, 10)]


def test_the_middle_is_the_run_of_median_throughput():
    assert repeats.middle(RESULTS) == 2
    assert repeats.middle(RESULTS[:2]) == 1
    assert repeats.middle(RESULTS[:1]) == 0


def test_the_summary_has_every_run_and_how_far_apart_they_lie():
    summary = repeats.summary("it", ["run-000", "run-001", "run-002"], RESULTS)
    assert summary["throughput_samples_per_s"] == {"median": 800.0, "min": 400.0, "max": 1000.0}
    assert [run["run"] for run in summary["runs"]] == ["run-000", "run-001", "run-002"]


def test_the_table_has_a_line_a_run():
    assert len(repeats.table(["run-000", "run-001"], RESULTS[:2]).splitlines()) == 3
