"""Small training loops as a user would write them, alone or under a profiler. One run a process: overhead.py starts it.

python benchmarks/_loops.py LOOP WORKERS ARM BATCHES WARM_UP_S     (says "at work", reads a line, says the seconds)
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).parents[1]))

END = 10**9
"""Items of each data set: a loop is left before it runs out of them, so that its workers are busy up to the last batch."""


class Tiny(Dataset):
    """1 KB from memory."""

    def __init__(self) -> None:
        self.items = torch.zeros(64, 256)

    def __len__(self) -> int:
        return END

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.items[index % len(self.items)]


class Waiting(Dataset):
    """Waits 1 ms, as for a disk, and computes a little."""

    def __init__(self) -> None:
        self.items = np.random.default_rng(0).random((64, 32, 32, 3), dtype=np.float32)

    def __len__(self) -> int:
        return END

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(1e-3)
        item = self.items[index % len(self.items)]
        return torch.from_numpy((item - item.mean()) / item.std())


class Jpegs(Dataset):
    """Decodes a JPEG of 128 x 128 pixels, about 5 KB."""

    def __init__(self) -> None:
        small = np.random.default_rng(0).integers(0, 256, (64, 16, 16, 3), dtype=np.uint8)
        self.items = [self._jpeg(pixels) for pixels in small]

    @staticmethod
    def _jpeg(pixels: np.ndarray) -> bytes:
        file = io.BytesIO()
        Image.fromarray(pixels).resize((128, 128)).save(file, "JPEG", quality=85)
        return file.getvalue()

    def __len__(self) -> int:
        return END

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(io.BytesIO(self.items[index % len(self.items)])) as image:
            return torch.from_numpy(np.array(image.convert("RGB")))


LOOPS: dict[str, tuple[type[Dataset], int]] = {"tiny": (Tiny, 32), "waiting": (Waiting, 16), "jpeg": (Jpegs, 32)}
"""Name to data set and batch size."""

Arm = Callable[[Iterable[torch.Tensor]], AbstractContextManager[tuple[Iterable[torch.Tensor], Callable[[], Any]]]]
"""Takes the loader; gives the batches to loop over, and what the loop calls at the end of each step."""


@contextmanager
def bare(loader: Iterable[torch.Tensor]) -> Iterator[tuple[Iterable[torch.Tensor], Callable[[], Any]]]:
    yield loader, lambda: None


@contextmanager
def stallscope(loader: Iterable[torch.Tensor]) -> Iterator[tuple[Iterable[torch.Tensor], Callable[[], Any]]]:
    from _recorded import recorded

    with tempfile.TemporaryDirectory() as folder, recorded(loader, Path(folder) / "run") as batches:
        yield batches, lambda: None


@contextmanager
def torch_scheduled(loader: Iterable[torch.Tensor]) -> Iterator[tuple[Iterable[torch.Tensor], Callable[[], Any]]]:
    """5 of 12 steps are recorded; traces are thrown away, not written."""
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=5, warmup=2, active=5)) as profiler:
        yield loader, profiler.step


@contextmanager
def torch_always(loader: Iterable[torch.Tensor]) -> Iterator[tuple[Iterable[torch.Tensor], Callable[[], Any]]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]):
        yield loader, lambda: None


ARMS: dict[str, Arm] = {
    "bare": bare,
    "bare again": bare,
    "stallscope": stallscope,
    "torch.profiler 5 of 12": torch_scheduled,
    "torch.profiler always": torch_always,
    "py-spy": bare,  # overhead.py attaches it from outside
}


def step(batch: torch.Tensor) -> float:
    return float(batch[0].float().mean())


def seconds(loop: str, workers: int, arm: str, n_batches: int, warm_up_s: float, started: Callable[[], None]) -> float:
    """Of `n_batches` steps, after a warm-up. started: called after the first step, when all processes are there."""
    dataset, batch_size = LOOPS[loop]
    loader = DataLoader(dataset(), batch_size=batch_size, num_workers=workers)
    with ARMS[arm](loader) as (batches, end_step):
        n_left, warm_at, began = n_batches, 0.0, 0.0
        for batch in batches:
            step(batch)
            end_step()
            if not warm_at:
                started()
                warm_at = time.perf_counter() + warm_up_s
            elif not began:
                now = time.perf_counter()
                began = now if now >= warm_at else 0.0
            else:
                n_left -= 1
                if not n_left:
                    return time.perf_counter() - began
    raise AssertionError("the loop ended by itself")


def main() -> None:
    loop, workers, arm, n_batches, warm_up_s = sys.argv[1:]
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    # Threads of a pool spin for each other: stacking 32 images then takes 1 ms, or 100 ms where others use the cores.
    torch.set_num_threads(1)

    def started() -> None:
        print("at work", flush=True)
        sys.stdin.readline()

    print(seconds(loop, int(workers), arm, int(n_batches), float(warm_up_s), started), flush=True)


if __name__ == "__main__":
    main()
