"""Real processes read an emulated disk on a real clock: the rates are those of its numbers, however many they are."""

import multiprocessing
import statistics
import time

import pytest

from loaders.sources._device import Device, Speed
from profiler.environment import affinity_cores, foreign_cpu_share, read_cpu

MS = 1_000_000
SPEED = Speed(latency_ns=8 * MS, bytes_per_s=100_000_000, requests_in_flight=1, readahead_bytes=256_000)
BLOCK = 110_000
RANDOM_S = (SPEED.latency_ns + BLOCK * 10**9 / SPEED.bytes_per_s) / 1e9
QUIET = 0.05


def read_random(device, until, worker, done):
    n = 0
    while time.perf_counter() < until:
        device.read(0, (7_919 * (n * 8 + worker)) % 100_003 * 10_000_000, BLOCK)
        n += 1
    done.put(n)


def read_in_sequence(device, until, following, done):
    n = 0
    while time.perf_counter() < until:
        with following.get_lock():
            block, following.value = following.value, following.value + 1
        device.read(0, block * BLOCK, BLOCK)
        n += 1
    done.put(n)


def rate(work, n_workers, *arguments, seconds=2.0):
    """Reads a second of all workers together, and the share of the cores that others took meanwhile."""
    context, device = multiprocessing.get_context("fork"), Device(SPEED, 1)
    done, before, started = context.Queue(), read_cpu(time.perf_counter_ns), time.perf_counter() + 0.1
    workers = []
    for i in range(n_workers):
        extra = arguments or (i,)
        workers.append(context.Process(target=work, args=(device, started + seconds, *extra, done)))
        workers[-1].start()
    total = sum(done.get(timeout=60) for _ in workers)
    took = time.perf_counter() - started + 0.1
    foreign = foreign_cpu_share(before, read_cpu(time.perf_counter_ns), float(len(affinity_cores() or {0, 1})))
    for worker in workers:
        worker.join()
    return total / took, foreign or 0.0


def quiet(measured):
    """The rates, if the machine was this test's alone."""
    rates, foreign = zip(*measured, strict=True)
    if max(foreign) > QUIET:
        pytest.skip(f"needs a quiet machine: others took {max(foreign):.0%} of the cores")
    return rates


def test_random_reads_take_seek_rotation_and_transfer_within_3_percent():
    found = statistics.median(quiet([rate(read_random, 1) for _ in range(3)]))
    assert found == pytest.approx(1 / RANDOM_S, rel=0.03)


def test_more_workers_do_not_make_one_head_faster():
    found = {n: [] for n in (1, 2, 4)}
    for _ in range(2):
        for n, rates in found.items():
            rates.append(rate(read_random, n, seconds=1.5))
    medians = [statistics.mean(quiet(rates)) for rates in found.values()]
    assert max(medians) / min(medians) < 1.05


def test_two_readers_in_sequence_reach_the_bandwidth_within_3_percent():
    following = multiprocessing.get_context("fork").Value("q", 1)
    found = statistics.median(quiet([rate(read_in_sequence, 2, following) for _ in range(3)]))
    assert found * BLOCK == pytest.approx(SPEED.bytes_per_s, rel=0.03)
