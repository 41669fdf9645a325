"""A device that is arithmetic: exact on a fake clock, and unharmed by whoever dies while using it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loaders.sources import _device
from loaders.sources._device import Device, Figures
from tests.fakes import MS, FakeClock

DISK = Figures(10 * MS, 100_000_000, 1, 1_000_000)  # 100 KB take 1 ms
FLASH = Figures(2 * MS, 100_000_000, 4)
KB_100 = 100_000


def device_of(figures: Figures, blocks: int = 0) -> tuple[Device, FakeClock]:
    clock = FakeClock(5 * MS)
    return Device(figures, blocks, clock, clock.sleep), clock


def taken(device: Device, clock: FakeClock, position: int, n_bytes: int = KB_100) -> int:
    start_ns = clock()
    device.read(position, n_bytes)
    return clock() - start_ns


def test_a_random_read_takes_latency_and_transfer() -> None:
    device, clock = device_of(DISK)
    assert [taken(device, clock, position) for position in (0, 7_000_000, 3_000_000)] == [11 * MS] * 3


def test_what_follows_on_the_last_read_needs_no_latency() -> None:
    device, clock = device_of(DISK)
    assert [taken(device, clock, i * KB_100) for i in range(4)] == [11 * MS, MS, MS, MS]


def test_what_was_read_ahead_is_there_at_once_up_to_the_buffer() -> None:
    device, clock = device_of(DISK)
    taken(device, clock, 0)
    clock.advance(1000 * MS)
    assert [taken(device, clock, i * KB_100) for i in range(1, 14)] == [0] * 10 + [MS] * 3


def test_a_device_without_readahead_always_has_its_latency() -> None:
    device, clock = device_of(FLASH)
    assert [taken(device, clock, i * KB_100) for i in range(3)] == [3 * MS] * 3


def test_one_at_a_time_queues_the_others() -> None:
    device, _ = device_of(DISK)
    assert [device.book(position, KB_100, 0) for position in (0, 5_000_000, 9_000_000)] == [11 * MS, 22 * MS, 33 * MS]


def test_requests_in_flight_share_the_bandwidth_and_overlap_their_latency() -> None:
    device, _ = device_of(FLASH)
    ends = [device.book(i * 1_000_000, KB_100, 0) for i in range(5)]
    assert ends == [
        3 * MS,
        4 * MS,
        5 * MS,
        6 * MS,
        7 * MS,
    ]  # the fifth waits 3 ms for a place, 2 of latency, and the pipe is free
    assert device.book(0, KB_100, 4 * MS) == 8 * MS


def test_a_late_wake_up_is_taken_off_the_next_read_but_a_long_delay_is_not() -> None:
    clock = FakeClock()
    late_ns = iter([100_000, 0, 50 * MS, 0])

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        clock.advance(next(late_ns))

    device = Device(DISK, 0, clock, sleep)
    ends = []
    for position in (0, 5_000_000, 1_000_000, 7_000_000):
        device.read(position, KB_100)
        ends.append(clock())
    assert ends == [11 * MS + 100_000, 22 * MS, 83 * MS, 94 * MS - 200_000]


def test_a_copy_in_the_same_process_is_the_same_device() -> None:
    device, _ = device_of(DISK)
    plain = Device(DISK, 8)
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert device.path != plain.path


def book_many(device: Device, n: int) -> None:
    for i in range(n):
        device.book(i * 7_000_000, KB_100, 0)
    if device.in_memory.size:
        device.in_memory[n % device.in_memory.size] = 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_and_threads_share_one_device(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {method}")
    device = Device(DISK, 1000)
    context: Any = multiprocessing.get_context(method)
    readers: list[Any] = [context.Process(target=book_many, args=(device, 400 + i)) for i in range(2)]
    readers += [threading.Thread(target=book_many, args=(device, 402 + i)) for i in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert device.book(0, 0, 0) == (400 + 401 + 402 + 403) * 11 * MS + 10 * MS
    assert device.in_memory.nonzero()[0].tolist() == [400, 401, 402, 403]


def test_a_fork_while_a_thread_holds_the_lock_leaves_the_child_free() -> None:
    device = Device(DISK, 0)
    with device._alone():
        child = multiprocessing.get_context("fork").Process(target=book_many, args=(device, 1))
        child.start()
        child.join(0.2)
        assert child.is_alive(), "the parent holds the device"
    child.join(10)
    assert child.exitcode == 0


def book_for_ever(device: Device) -> None:
    while True:
        device.book(random.randrange(10**9), KB_100, time.perf_counter_ns())


def test_readers_killed_at_any_moment_leave_the_device_usable() -> None:
    device = Device(FLASH, 0)
    context = multiprocessing.get_context("fork")
    for _ in range(40):
        readers = [context.Process(target=book_for_ever, args=(device,)) for _ in range(2)]
        for reader in readers:
            reader.start()
        time.sleep(random.uniform(0.001, 0.02))
        for reader in readers:
            assert reader.pid
            os.kill(reader.pid, signal.SIGKILL)
            reader.join()
    free_ns = max(device._times[_device._SLOTS :].tolist())
    asked_ns = max(free_ns, time.perf_counter_ns())
    assert device.book(0, KB_100, asked_ns) <= asked_ns + 4 * MS


def test_a_reader_killed_while_it_holds_the_device_lets_go() -> None:
    device = Device(DISK, 0)

    def hold() -> None:
        with device._alone():
            ready.set()
            time.sleep(60)

    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=hold)
    holder.start()
    assert ready.wait(10)
    assert holder.pid
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert device.book(0, KB_100, 0) == 11 * MS


class TestStateFile:
    def test_goes_with_the_device(self) -> None:
        device = Device(DISK, 0)
        path = Path(device.path)
        assert path.exists()
        del device
        gc.collect()
        assert not path.exists()

    def test_stays_when_a_child_ends(self) -> None:
        device = Device(DISK, 0)
        pid = os.fork()
        if not pid:
            device = None  # type: ignore[assignment]
            gc.collect()
            os._exit(0)
        os.waitpid(pid, 0)
        assert Path(device.path).exists()

    @pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), 9)"])
    def test_is_gone_after_its_process_and_the_next_device_at_the_latest(self, end: str) -> None:
        program = f"""
import os, sys
from loaders.sources._device import Device, Figures
device = Device(Figures(1, 1, 1), 0)
print(device.path, flush=True)
{end}
"""
        path = Path(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout.strip())
        assert path.name.startswith("stallscope-device-")
        other = Device(DISK, 0)
        assert not path.exists()
        assert Path(other.path).exists()
