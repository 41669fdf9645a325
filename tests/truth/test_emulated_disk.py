"""Reads from an emulated disk on a real clock, against arithmetic. Others that take the cores may make readers late: then
it is said, and nothing is judged.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from loaders.sources._device import Device, Figures
from profiler.environment import affinity_cores, foreign_cpu_share, read_cpu

MS = 1_000_000
DISK = Figures(latency_ns=12_670_000, bandwidth_bytes_per_s=180_000_000, requests_in_flight=1, readahead_bytes=1_500_000)
FILE_BYTES = 110_000
READ_NS = DISK.latency_ns + FILE_BYTES / DISK.bandwidth_bytes_per_s * 1e9
N_READS = 60
REPEATS = 3
QUIET = 0.2
"""Readers sleep nearly all the time, and need little of a core; on a full machine they wake too late."""


def judge(once: Callable[[], float], low: float, high: float) -> None:
    """The median of several times lies between these. If not, only what was taken on a quiet machine counts."""
    times, foreign = [], []
    for _ in range(REPEATS):
        before = read_cpu(time.perf_counter_ns)
        times.append(once())
        foreign.append(foreign_cpu_share(before, read_cpu(time.perf_counter_ns), float(len(affinity_cores() or {0, 1}))) or 0.0)
    if low < statistics.median(times) < high:
        return
    quiet = [taken for taken, others in zip(times, foreign, strict=True) if others < QUIET]
    if not quiet:
        pytest.skip(f"readers wake in time on a quiet machine only; others took {[round(f, 2) for f in foreign]} of the cores")
    assert low < statistics.median(quiet) < high


def read_at(device: Device, blocks: list[int]) -> None:
    for block in blocks:
        device.read(block * FILE_BYTES, FILE_BYTES)


def random_reads_ns(n_readers: int) -> float:
    """The time a read, with so many processes that read blocks in a random order."""
    device = Device(DISK, 0)
    order = (2 * np.random.default_rng(0).permutation(N_READS)).tolist()  # even blocks: none follows on another by chance
    context = multiprocessing.get_context("fork")
    readers: list[Any] = [context.Process(target=read_at, args=(device, order[i::n_readers])) for i in range(n_readers)]
    start_ns = time.perf_counter_ns()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return (time.perf_counter_ns() - start_ns) / N_READS


@pytest.mark.parametrize("n_readers", [1, 2, 4])
def test_random_reads_take_seek_rotation_and_transfer_however_many_read(n_readers: int) -> None:
    judge(lambda: random_reads_ns(n_readers), 0.97 * READ_NS, 1.03 * READ_NS)


def test_sequential_reads_with_two_in_flight_reach_the_bandwidth() -> None:
    n_files = 1000

    def once() -> float:
        device, blocks, order = Device(DISK, 0), iter(range(n_files)), threading.Lock()

        def read_on() -> None:
            while True:
                with order:  # asked for in their order, and waited for side by side
                    block = next(blocks, None)
                    if block is None:
                        return
                    end_ns = device.book(block * FILE_BYTES, FILE_BYTES, time.perf_counter_ns())
                device.wait_until(end_ns)

        readers = [threading.Thread(target=read_on) for _ in range(2)]
        start_ns = time.perf_counter_ns()
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        return (time.perf_counter_ns() - start_ns - DISK.latency_ns) / n_files

    transfer_ns = READ_NS - DISK.latency_ns
    judge(once, 0.97 * transfer_ns, 1.03 * transfer_ns)


def test_a_killed_reader_costs_the_others_no_more_than_its_read() -> None:
    def once() -> float:
        device = Device(DISK, 0)
        doomed = multiprocessing.get_context("fork").Process(target=read_at, args=(device, list(range(0, 10_000, 7))))
        doomed.start()
        time.sleep(0.1)
        assert doomed.pid
        os.kill(doomed.pid, signal.SIGKILL)
        doomed.join()
        start_ns = time.perf_counter_ns()
        read_at(device, list(range(0, 300, 11)))
        return time.perf_counter_ns() - start_ns

    n_reads = len(range(0, 300, 11))
    judge(once, 0.97 * n_reads * READ_NS, 1.03 * (n_reads + 1) * READ_NS)
