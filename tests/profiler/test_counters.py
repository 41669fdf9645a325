import json

import numpy as np
import pytest

from profiler import counters
from profiler.counters import MOST_PROCESSES, summary
from profiler.events import Count, Counter

S = 1_000_000_000
ROOT, WORKER = 10, 11


def of(*rows, end_s=10, cores=2.0):
    """The summary of the window from 0 s on. Rows are (second, counter, pid, value)."""
    table = np.array([(at_s * S, *rest) for at_s, *rest in rows], dtype=np.int64).reshape(-1, len(Count._fields))
    return summary({name: table[:, i] for i, name in enumerate(Count._fields)}, 0, end_s * S, cores)


def total(counter, *values, pid=0, every_s=10):
    """Readings of a total from 0 s on."""
    return [(i * every_s, counter, pid, value) for i, value in enumerate(values)]


def leaves(value):
    return [leaf for each in value.values() for leaf in leaves(each)] if isinstance(value, dict) else [value]


def test_nothing_measured_is_none_all_over():
    assert set(leaves(of())) == {None}
    assert (of()["processes"], of()["gpu"]) == ({}, {})


def test_one_reading_tells_levels_and_no_growth():
    said = of((1, Counter.RSS_BYTES, ROOT, 5), (1, Counter.CPU_PRESSURE_US, 0, 9))
    assert said["memory"]["rss_sum_bytes_max"] == 5
    assert said["pressure"]["cpu"] is None


def test_it_is_json():
    rows = [(i, counter, ROOT, 7 * i) for i in range(10) for counter in Counter]
    said = of(*rows)
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert None not in leaves(said)


def test_memory_of_the_tree_is_the_largest_sum_of_one_instant():
    rows = [(1, Counter.PSS_BYTES, ROOT, 100), (1, Counter.PSS_BYTES, WORKER, 1)]
    rows += [(2, Counter.PSS_BYTES, ROOT, 60), (2, Counter.PSS_BYTES, WORKER, 70)]
    said = of(*rows)
    assert said["memory"]["pss_bytes_max"] == 130
    assert said["memory"]["uss_sum_bytes_max"] is None


def test_what_lies_outside_of_the_window_is_no_level():
    assert of((9, Counter.SHM_BYTES, 0, 3), (11, Counter.SHM_BYTES, 0, 99))["memory"]["shm_bytes_max"] == 3


def test_rows_may_come_in_any_order():
    rows = [(i, counter, pid, i * pid) for i in range(12) for counter in Counter for pid in (ROOT, WORKER)]
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    assert of(*shuffled) == of(*rows)


def test_each_process_by_its_number():
    rows = [(1, Counter.RSS_BYTES, ROOT, 9), (1, Counter.THREADS, ROOT, 12), (1, Counter.AFFINITY_CORES, ROOT, 8)]
    rows += [(2, Counter.RSS_BYTES, WORKER, 5), (3, Counter.USS_BYTES, WORKER, 4), (3, Counter.PSS_BYTES, WORKER, 4)]
    rows += [(2, Counter.AFFINITY_CORES, ROOT, 2), (2, Counter.THREADS, WORKER, 3), (2, Counter.DESCRIPTORS, WORKER, 20)]
    none = dict.fromkeys(("uss_bytes_max", "pss_bytes_max", "uss_growth_bytes_per_s", "descriptors_max", "affinity_cores_min"))
    assert of(*rows)["processes"] == {
        "10": none | {"rss_bytes_max": 9, "threads_max": 12, "affinity_cores_min": 2},
        "11": none | {"rss_bytes_max": 5, "uss_bytes_max": 4, "pss_bytes_max": 4, "descriptors_max": 20, "threads_max": 3},
    }


def test_of_many_processes_the_largest_are_told():
    rows = [(1, Counter.RSS_BYTES, pid, 1000 - pid) for pid in range(1, MOST_PROCESSES + 50)]
    assert list(of(*rows)["processes"]) == [str(pid) for pid in range(1, MOST_PROCESSES + 1)]


def test_growth_is_the_slope_of_the_second_half():
    rows = [(i, Counter.PSS_BYTES, ROOT, 5000 if i < 5 else 100 * i) for i in range(11)]
    assert of(*rows)["memory"]["pss_growth_bytes_per_s"] == pytest.approx(100)


def test_a_few_readings_are_no_growth():
    rows = [(i, Counter.PSS_BYTES, ROOT, 100 * i) for i in range(6, 6 + counters.GROWTH_READINGS - 1)]
    assert of(*rows)["memory"]["pss_growth_bytes_per_s"] is None


def test_major_faults_are_those_since_each_process_was_first_seen():
    rows = [(1, Counter.MAJOR_FAULTS, ROOT, 100), (9, Counter.MAJOR_FAULTS, ROOT, 103), (5, Counter.MAJOR_FAULTS, WORKER, 7)]
    assert of(*rows)["memory"]["major_faults"] == 3


def test_pressure_is_a_share_of_wall_time():
    rows = [*total(Counter.CPU_PRESSURE_US, 5_000_000, 7_500_000), *total(Counter.IO_PRESSURE_US, 3, 3)]
    assert of(*rows)["pressure"] == {"cpu": 0.25, "io": 0.0, "memory": None}


def test_a_total_is_read_off_between_readings_at_the_ends_of_the_window():
    rows = [
        (-5, Counter.CPU_PRESSURE_US, 0, 0),
        (5, Counter.CPU_PRESSURE_US, 0, 0),
        (15, Counter.CPU_PRESSURE_US, 0, 8_000_000),
    ]
    assert of(*rows)["pressure"]["cpu"] == pytest.approx(0.4)


def test_time_without_readings_is_in_no_share():
    rows = [(5, Counter.CPU_PRESSURE_US, 0, 0), (10, Counter.CPU_PRESSURE_US, 0, 2_500_000)]
    assert of(*rows, end_s=100)["pressure"]["cpu"] == 0.5


def test_readings_that_miss_the_window_say_nothing_of_it():
    rows = [(20, Counter.CPU_PRESSURE_US, 0, 0), (30, Counter.CPU_PRESSURE_US, 0, 2_500_000)]
    assert of(*rows)["pressure"]["cpu"] is None


def test_totals_since_boot_lose_nothing():
    rows = total(Counter.THROTTLED_PERIODS, 10**18 + 1, 10**18 + 2) + total(Counter.QUOTA_PERIODS, 10**18, 10**18 + 4)
    assert of(*rows)["throttled_periods_share"] == 0.25


def throttled(stopped_s, used_s):
    rows = total(Counter.THROTTLED_NS, 0, int(stopped_s * S)) + total(Counter.TREE_CPU_NS, 0, int(used_s * S))
    return of(*rows)["throttled_share"]


def test_one_thread_under_half_a_core_is_stopped_half_the_time():
    assert throttled(stopped_s=5, used_s=5) == 0.5


def test_eight_threads_under_two_cores_are_stopped_three_quarters_of_the_time():
    assert throttled(stopped_s=60, used_s=20) == 0.75


def test_a_quota_that_never_held_is_zero_and_no_quota_is_none():
    assert throttled(stopped_s=0, used_s=0) == 0.0
    assert of(*total(Counter.TREE_CPU_NS, 0, 5 * S))["throttled_share"] is None


def foreign(busy_s, own_s, cores=2.0):
    rows = total(Counter.BUSY_CPU_NS, 0, int(busy_s * S)) + total(Counter.TREE_CPU_NS, 0, int(own_s * S), pid=ROOT)
    return of(*rows, cores=cores)["foreign_cpu_share"]


def test_foreign_is_what_the_tree_did_not_use():
    assert foreign(busy_s=15, own_s=5) == 0.5


def test_foreign_is_clamped_and_needs_cores():
    assert foreign(busy_s=1, own_s=1.01) == 0.0
    assert foreign(busy_s=21, own_s=0) == 1.0
    assert foreign(busy_s=15, own_s=5, cores=None) is None


def test_the_device_beneath_the_samples():
    rows = total(Counter.DEVICE_READS, 5, 1005) + total(Counter.DEVICE_READ_NS, 0, 8 * S)
    rows += total(Counter.DEVICE_READ_BYTES, 0, 40_960_000) + total(Counter.DEVICE_IN_FLIGHT, 1, 4)
    expected = {"reads_per_s": 100.0, "read_bytes_per_s": 4_096_000.0, "read_ms_mean": 8.0, "in_flight_mean": 2.5}
    assert of(*rows)["device"] == expected


def test_a_device_that_read_nothing_has_no_time_of_a_read():
    rows = total(Counter.DEVICE_READS, 5, 5) + total(Counter.DEVICE_READ_NS, 7, 7)
    assert of(*rows)["device"]["read_ms_mean"] is None


def test_each_gpu_by_its_number():
    rows = total(Counter.GPU_UTILIZATION_PERCENT, 50, 90, pid=1) + total(Counter.GPU_MEMORY_BYTES, 5, 4, pid=0)
    assert of(*rows)["gpu"] == {
        "0": {"utilization_percent_mean": None, "memory_bytes_max": 5},
        "1": {"utilization_percent_mean": 70.0, "memory_bytes_max": None},
    }
