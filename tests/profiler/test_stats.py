import numpy as np
import pytest

from profiler import stats


def test_spread_of_known_durations():
    spread = stats.spread_ms(np.arange(1, 101) * 1_000_000)
    assert (spread.mean, spread.p50, spread.max) == (50.5, 50.5, 100.0)
    assert stats.spread_ms(np.array([], dtype=np.int64)) is None


def test_blocks_are_whole_periods_and_lose_nothing():
    values = np.arange(17)
    summed = stats.blocks(values, period=4)
    assert summed.tolist() == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9 + 10 + 11, 12 + 13 + 14 + 15 + 16]
    assert stats.blocks(np.ones(1_000_000, dtype=np.int64), period=3).sum() == 1_000_000
    assert len(stats.blocks(np.ones(1_000_000, dtype=np.int64), period=3)) <= stats.MOST_BLOCKS + 1


def test_fewer_steps_than_a_period_are_one_block():
    assert stats.blocks(np.array([1, 2]), period=4).tolist() == [3]


def test_a_steady_ratio_has_an_interval_of_no_width_and_a_bursty_one_has_not():
    ones = np.ones(100, dtype=np.int64)
    assert stats.ratio_ci95(ones, ones * 4, period=1) == (0.25, 0.25)
    bursts = np.tile(np.array([0, 0, 0, 4]), 25)
    assert stats.ratio_ci95(bursts, ones * 4, period=4) == (0.25, 0.25)  # whole periods are all alike
    low, high = stats.ratio_ci95(bursts, ones * 4, period=1)
    assert low < 0.25 < high


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        waits = rng.exponential(10, size=200).astype(np.int64)
        low, high = stats.ratio_ci95(waits, np.full(200, 100), period=1)
        hits += low <= 0.095 <= high  # truncation to whole ns takes half off the mean of 10
    assert hits / 200 == pytest.approx(0.95, abs=0.05)
