"""Which setting is best, which is enough, and in what words: exact, from made-up runs."""

from dataclasses import replace

import pytest

from profiler.comparison import Comparison, Interval, Measured, Setting, compare, measured
from profiler.measure import measure
from tests.fakes import MS, FakeLoop

RUN = Measured("run-000", 0, 100.0, (95.0, 105.0), 0.5, 0.5, 200.0, 0.1, 0.5, 100_000_000, 0.0, "input_bound")


def settings(*names: str) -> list[Setting]:
    return [Setting("", name, {}, {}) for name in names]


def run(setting: int | None, rate: float, **changes) -> Measured:
    return replace(RUN, setting=setting, throughput_samples_per_s=rate, **changes)


def compared(runs, names=("a", "b", "c"), repeats=1) -> Comparison:
    numbered = [replace(each, run=f"run-{i:03d}") for i, each in enumerate(runs)]
    return compare("it", settings(*names), numbered, repeats, complete=True)


def test_a_single_run_has_the_interval_over_its_blocks():
    assert compared([run(0, 100.0)]).settings[0].throughput_samples_per_s == Interval(100.0, 95.0, 105.0)


def test_of_several_runs_the_middle_one_stands_for_the_setting_between_slowest_and_fastest():
    runs = [run(0, rate, device_idle_share=rate / 1000) for rate in (300.0, 100.0, 200.0)]
    [setting] = compared(runs, ("a",), repeats=3).settings
    assert setting.throughput_samples_per_s == Interval(200.0, 100.0, 300.0)
    assert setting.device_idle_share == 0.2
    assert setting.runs == ["run-000", "run-001", "run-002"]


def test_a_disturbed_run_counts_only_where_there_is_no_other():
    disturbed = {"foreign_cpu_share": 0.4}
    both = compared([run(0, 50.0, **disturbed), run(0, 100.0), run(1, 70.0, **disturbed)])
    assert [s.throughput_samples_per_s and s.throughput_samples_per_s.median for s in both.settings] == [100.0, 70.0, None]
    assert [s.noisy for s in both.settings] == [False, True, False]
    assert both.settings[0].runs == ["run-001"]


def test_a_run_that_was_broken_off_does_not_count():
    assert compared([run(0, 50.0, complete=False)]).settings[0].throughput_samples_per_s is None


class TestWhichToTake:
    def test_the_cheapest_of_those_that_reach_97_percent_of_the_best(self):
        runs = [run(0, 96.0, memory_bytes=1), run(1, 97.5, memory_bytes=300), run(2, 100.0, memory_bytes=900)]
        comparison = compared(runs)
        assert (comparison.best, comparison.enough) == (2, 1)
        assert "Take b: 97.5 samples/s" in comparison.conclusion
        assert "The fastest, c, gains 2.6 % more." in comparison.cost

    def test_of_equal_memory_the_one_with_the_fewest_cores(self):
        runs = [run(0, 100.0, memory_bytes=1000, cpu_cores=1.5), run(1, 99.0, memory_bytes=1020, cpu_cores=0.7)]
        assert compared(runs).enough == 1

    def test_what_was_not_measured_counts_as_dear(self):
        runs = [run(0, 100.0, memory_bytes=None), run(1, 99.0, memory_bytes=10**12)]
        assert compared(runs).enough == 1

    def test_it_says_whether_the_device_is_fed(self):
        starved = compared([run(0, 100.0, device_idle_share=0.4, input_stall_share=0.3), run(1, 50.0)])
        assert starved.conclusion.startswith("Take a: 100 samples/s, 2x the slowest. The device still idles 40.0 %")
        fed = compared([run(0, 100.0, device_idle_share=0.4, input_stall_share=0.01), run(1, 50.0)])
        assert "faster loading would gain next to nothing" in fed.conclusion
        unknown = compared([run(0, 100.0, device_idle_share=None, input_stall_share=None), run(1, 50.0)])
        assert "was not measured" in unknown.conclusion

    def test_the_price_is_set_beside_the_least(self):
        runs = [run(0, 100.0, memory_bytes=300_000_000, cpu_cores=1.0), run(1, 50.0, memory_bytes=100_000_000, cpu_cores=0.95)]
        assert compared(runs).cost == "It takes 300 MB of memory (the least here: 100 MB) and 1.0 cores."

    def test_one_setting_alone_is_no_choice(self):
        comparison = compared([run(0, 100.0)], ("a",))
        assert comparison.conclusion == ""
        assert comparison.throughput_samples_per_s == {"median": 100.0, "min": 95.0, "max": 105.0}

    def test_nothing_measured_concludes_nothing(self):
        comparison = compared([])
        assert (comparison.best, comparison.conclusion) == (None, "")


def test_samples_that_are_made_up_are_a_reference_among_real_ones_and_nothing_to_take():
    kinds = [Setting("", kind, {}, {"source": {"kind": kind}}) for kind in ("ssd", "synthetic")]
    runs = [run(0, 100.0), run(1, 900.0)]
    both = compare("it", kinds, runs, 1, complete=True)
    assert [setting.reference for setting in both.settings] == [False, True]
    assert (both.best, both.enough) == (0, 0)
    alone = compare("it", kinds[1:], [run(0, 900.0)], 1, complete=True)
    assert (alone.best, alone.settings[0].reference) == (0, False)


def test_the_ceiling_is_the_run_without_loading_and_no_setting():
    comparison = compared([run(None, 400.0), run(0, 100.0), run(1, 90.0, demand_samples_per_s=300.0)])
    assert comparison.ceiling_samples_per_s == 400.0
    assert comparison.demand_samples_per_s == 200.0
    assert comparison.best == 0


@pytest.mark.parametrize("emulated", [True, False])
def test_a_run_is_taken_with_what_its_figures_must_not_be_quoted_without(emulated):
    result = measure(FakeLoop(load_ns=8 * MS).run(source={"medium": "disk", "emulated": emulated}))
    taken = measured("run-007", 3, result, 5)
    assert (taken.run, taken.setting, taken.memory_bytes) == ("run-007", 3, 5)
    assert taken.throughput_samples_per_s == pytest.approx(1000)
    assert taken.labels == ["simulated device", *(["emulated storage"] if emulated else [])]
