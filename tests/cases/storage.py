"""Where the samples lie: disks, networks, caches and containers, emulated by waits of the same length."""

import functools
import multiprocessing
import os
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from costs import wait
from items import Items, ready, remote
from loop import train
from machine import scratch_folder
from torch.utils.data import DataLoader, IterableDataset


def too_few_readers(bad):
    """Two workers wait for the network nearly all the time, and more would, without needing more cores.

    good: eight.
    """
    return train(DataLoader(Items(14 * 95, remote(12)), batch_size=14, num_workers=2 if bad else 8), step_ms=45)


def single_reader(bad):
    """One worker asks a network drive for one small file at a time; the drive could answer many.

    good: eight workers ask.
    """
    loader = DataLoader(Items(10 * 90, remote(10)), batch_size=10, num_workers=1 if bad else 8, shuffle=True)
    return train(loader, step_ms=45)


class _OneHead:
    """A device that serves one read after another, first come first served."""

    def __init__(self, read_ms):
        self._read_ns, self._free_at_ns = round(read_ms * 1e6), multiprocessing.Value("q", 0)

    def __call__(self, number):
        with self._free_at_ns.get_lock():  # only to take a place in the queue
            served_ns = self._free_at_ns.value = max(time.perf_counter_ns(), self._free_at_ns.value) + self._read_ns
        wait(max(0, served_ns - time.perf_counter_ns()) / 1e6)
        return ready(number)


def spinning_disk(bad):
    """Random reads seek on a disk with one head, and four workers only queue for it.

    good: a solid-state disk.
    """
    loader = DataLoader(Items(10 * 90, _OneHead(10 if bad else 0.25)), batch_size=10, num_workers=4, shuffle=True)
    return train(loader, step_ms=45)


def cold_first_epoch(bad):
    """The first of three epochs reads from a slow drive, the others from the page cache.

    good: all files were read once, before training.
    """
    count, folder = 14 * 36, scratch_folder("/var/tmp")  # /tmp may be memory
    in_cache = torch.zeros(count, dtype=torch.bool).share_memory_()
    for number in range(count):
        _write_past_the_cache(folder / str(number), os.urandom(100 * 1024))

    def read(number):
        if not in_cache[number]:
            wait(22)
            in_cache[number] = True
        return torch.frombuffer(bytearray((folder / str(number)).read_bytes()), dtype=torch.uint8)

    if not bad:
        in_cache.fill_(True)
        for number in range(count):
            read(number)
    loader = DataLoader(Items(count, read), batch_size=14, num_workers=2, shuffle=True, persistent_workers=True)
    return train(loader, step_ms=45, epochs=3)


def _write_past_the_cache(path, content):
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Shards(IterableDataset):
    """Five shards, each of which takes long to open and is then read quickly."""

    n_shards, shard_items = 5, 24 * 15

    def __init__(self, opens_ahead):
        self._opens_ahead = opens_ahead

    def __iter__(self):
        with ThreadPoolExecutor(1) as opener:
            following = opener.submit(self._open)
            for _ in range(self.n_shards):
                (following if self._opens_ahead else opener.submit(self._open)).result()
                if self._opens_ahead:
                    following = opener.submit(self._open)
                yield from map(self._read, range(self.shard_items))

    def _open(self):
        wait(650)

    def _read(self, number):
        wait(0.5)
        return ready(number)


def shard_opening(bad):
    """The stream stops at every shard boundary until the next shard is open.

    good: the next one is opened while the present one is read.
    """
    return train(DataLoader(_Shards(opens_ahead=not bad), batch_size=15, num_workers=1), step_ms=45)


def cache_too_small(bad):
    """A cache for half of the data drops what was used longest ago, which is always what comes next: never a hit.

    good: a cache for all of it. Both are filled before training.
    """
    count = 288

    @functools.lru_cache(count // 2 if bad else count)
    def fetch(number):
        wait(4)
        return ready(number)

    for number in range(count):
        fetch(number)
    return train(DataLoader(Items(count, fetch), batch_size=16), step_ms=40, epochs=6)


def whole_volume_for_a_patch(bad):
    """A whole compressed volume is inflated for each patch of 2 % of it.

    good: the patch is taken from a memory map of the uncompressed volume.
    """
    folder, shape, corner = scratch_folder(), (96, 128, 128), (slice(0, 32),) * 3
    volume = np.random.default_rng(0).integers(0, 18, shape, np.uint8)
    np.save(folder / "volume.npy", volume)
    (folder / "volume.z").write_bytes(zlib.compress(volume.tobytes()))

    def inflate(_number):
        whole = np.frombuffer(zlib.decompress((folder / "volume.z").read_bytes()), np.uint8).reshape(shape)
        return torch.from_numpy(whole[corner].copy())

    def look(_number):
        return torch.from_numpy(np.load(folder / "volume.npy", mmap_mode="r")[corner].copy())

    return train(DataLoader(Items(12 * 95, inflate if bad else look), batch_size=12, num_workers=2), step_ms=45)


def container_per_item(bad):
    """The HDF5 file is opened and closed for every item.

    good: once a worker. Needs h5py.
    """
    import h5py

    path, n_keys, opened = scratch_folder() / "items.h5", 500, {}
    with h5py.File(path, "w") as file:
        for number in range(n_keys):
            file[f"item{number}"] = np.zeros((24, 24), np.float32)

    def open_and_read(number):
        with h5py.File(path, "r") as file:
            return torch.from_numpy(file[f"item{number % n_keys}"][()])

    def only_read(number):
        file = opened.get("file") or opened.setdefault("file", h5py.File(path, "r"))
        return torch.from_numpy(file[f"item{number % n_keys}"][()])

    items = Items(120 * 95, open_and_read if bad else only_read)
    return train(DataLoader(items, batch_size=120, num_workers=1, shuffle=True), step_ms=45)
