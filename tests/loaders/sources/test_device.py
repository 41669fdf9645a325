"""A storage device that is only arithmetic on a clock: exact where the clock is fake, and alive after its users were killed."""

import multiprocessing
import os
import pickle
import signal
import threading
import time

import pytest

from loaders.sources import _device
from loaders.sources._device import Device, Speed
from tests.fakes import MS, FakeClock

HDD = Speed(latency_ns=12 * MS, bytes_per_s=100_000_000, requests_in_flight=1, readahead_bytes=200_000)
SSD = Speed(latency_ns=2 * MS, bytes_per_s=100_000_000, requests_in_flight=2)
BLOCK = 100_000  # 1 ms of these devices


def device(speed, clock):
    return Device(speed, 100, clock_ns=clock, sleep=clock.sleep)


def took_ms(clock, *reads):
    before = clock.now_ns
    for read in reads:
        read()
    return (clock.now_ns - before) / MS


def test_a_random_read_takes_seek_rotation_and_transfer():
    clock = FakeClock(10**9)
    disk = device(HDD, clock)
    assert took_ms(clock, lambda: disk.read(0, 5_000_000, BLOCK)) == 13
    assert took_ms(clock, lambda: disk.read(1, 9_000_000, BLOCK), lambda: disk.read(2, 0, BLOCK)) == 26


def test_a_read_that_follows_does_not_seek():
    clock = FakeClock(10**9)
    disk = device(HDD, clock)
    disk.read(0, 5_000_000, BLOCK)
    assert took_ms(clock, lambda: disk.read(1, 5_000_000 + BLOCK, BLOCK)) == 1


def test_it_reads_on_while_the_host_is_away_as_far_as_its_buffer_holds():
    clock = FakeClock(10**9)
    disk = device(HDD, clock)
    disk.read(0, 5_000_000, BLOCK)
    clock.advance(MS // 2)
    assert took_ms(clock, lambda: disk.read(1, 5_000_000 + BLOCK, BLOCK)) == 0.5
    clock.advance(100 * MS)
    assert took_ms(clock, lambda: disk.read(2, 5_000_000 + 2 * BLOCK, 4 * BLOCK)) == 2  # two of four were there


def test_two_readers_that_take_turns_come_in_any_order():
    clock = FakeClock(10**9)
    disk = device(HDD, clock)
    disk.read(0, 0, BLOCK)
    order = [2, 1, 3, 5, 4, 6]
    assert took_ms(clock, *(lambda i=i: disk.read(i, i * BLOCK, BLOCK) for i in order)) == 6


def test_a_device_without_a_head_pays_its_latency_in_any_order():
    clock = FakeClock(10**9)
    ssd = device(SSD, clock)
    assert took_ms(clock, lambda: ssd.read(0, 0, BLOCK), lambda: ssd.read(1, BLOCK, BLOCK)) == 6


def test_requests_in_flight_share_the_bandwidth_and_no_more_of_them_than_there_are_slots():
    clock = FakeClock(10**9)
    ssd = device(SSD, clock)
    ends = [(ssd._reserve(i, i * BLOCK, BLOCK, clock.now_ns) - clock.now_ns) / MS for i in range(4)]
    assert ends == [3, 4, 6, 7]


def test_what_was_read_is_remembered_until_it_is_forgotten():
    clock = FakeClock(10**9)
    ssd = device(SSD, clock)
    ssd.read(7, 0, 1)
    assert (ssd.was_read(7), ssd.was_read(8), ssd.read_share()) == (True, False, 0.01)
    ssd.forget()
    assert (ssd.was_read(7), ssd.read_share()) == (False, 0.0)


def test_a_pickled_copy_works_on_the_same_device():
    first = Device(HDD, 10)
    second = pickle.loads(pickle.dumps(first))
    first.read(3, 0, BLOCK)
    assert second.was_read(3)


def test_the_state_goes_with_the_process_that_made_it_and_left_overs_of_dead_ones_with_the_next():
    made = Device(SSD, 10)
    path = made._path
    left_over = os.path.join(os.path.dirname(path), f"{_device._PREFIX}999999999-x")
    open(left_over, "w").close()
    Device(SSD, 10)
    assert not os.path.exists(left_over)
    assert os.path.exists(path)
    del made
    assert not os.path.exists(path)


def reads(device, queue, seconds, start, together=None):
    """Random reads until the time is up; says how many."""
    if together is not None:
        together.wait(60)
    until, done = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        device.read(0, (start + 37 * done) % 97 * 1_000_000, BLOCK)
        done += 1
    queue.put(done)


def quick():
    return Device(Speed(MS, 1_000_000_000, 1, 1000), 10)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_all_processes_share_one_device(method):
    context, disk = multiprocessing.get_context(method), quick()
    queue, together = context.Queue(), context.Barrier(3)
    workers = [context.Process(target=reads, args=(disk, queue, 0.5, i, together)) for i in range(3)]
    for worker in workers:
        worker.start()
    total = sum(queue.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert total <= 0.5 / 0.0011 * 1.1 + 3, "three readers of a device of their own would have made three times as many"


def test_threads_of_a_process_share_it_too():
    disk, done = quick(), []
    threads = [
        threading.Thread(target=lambda i=i: [disk.read(0, (i + 1) * 9_000_000 * n, BLOCK) for n in range(20)]) for i in range(3)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.append(time.perf_counter() - started)
    assert done[0] >= 60 * 0.001


def test_killed_readers_leave_it_usable():
    """Each is killed at another moment: in its sleep, or while it holds the lock."""
    context, disk = multiprocessing.get_context("fork"), Device(Speed(1000, 10**12, 1, 0), 10)
    queue = context.Queue()
    for i in range(25):
        worker = context.Process(target=reads, args=(disk, queue, 60, i))
        worker.start()
        time.sleep(0.01 + i * 0.0007)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        before = time.perf_counter()
        disk.read(1, 0, 1)
        assert time.perf_counter() - before < 5


def test_a_fork_while_a_thread_reads_does_not_inherit_its_lock():
    disk = quick()
    with disk._lock:
        worker = multiprocessing.get_context("fork").Process(target=disk.read, args=(2, 0, 1))
        worker.start()
    worker.join(10)
    assert worker.exitcode == 0


def test_a_late_wake_up_is_taken_off_the_next_read_but_a_long_delay_is_not():
    clock, late_ns = FakeClock(10**9), iter([100_000, 0, 50 * MS, 0])

    def sleep(seconds):
        clock.sleep(seconds)
        clock.advance(next(late_ns))

    slow = Device(Speed(10 * MS, 100_000_000, 1), 4, clock, sleep)
    ends = []
    for i in range(4):
        slow.read(i, i * 5_000_000, 100_000)
        ends.append(clock() - 10**9)
    assert ends == [11 * MS + 100_000, 22 * MS, 83 * MS, 94 * MS - 200_000]


def test_a_copy_in_the_same_process_is_the_same_device():
    original = Device(Speed(1, 1, 1), 4)
    assert pickle.loads(pickle.dumps(original)) is original
