"""torch's DataLoader: where its workers are, stage by stage, and what is on its way between them and the consumer.

Nothing of the user's is touched: not the dataset, the sampler, collate_fn, a batch or a random state. In a worker all hooks are
on objects that live in torch's own loop there, and no frame of ours stands between torch and the user's code:

    index_queue.get     returned an index batch: the first item is about to be read
    fetcher.collate_fn  is looked up: the items are made
    data_queue.put      is called: the batch is made

What goes wrong in a hook is not raised: then a batch has no record, and those without one are counted.

`worker_init_fn` is the way in: it is pickled to spawned workers, and called inside torch's loop. In the consumer the iterator's
own sampler and the queue of results are timed. What a version of torch names otherwise stays unhooked, and is not measured.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from ..attach import Loop, Recorder, replace, size_of, undo_all
from ..clocks import process_start_ns
from ..events import Kind
from ..probe import Maker, Probe
from ..stamps import Watch, since
from . import torch_cuda


class Watched:
    """A DataLoader, hooked when it is iterated. What iter() returns is torch's own iterator."""

    def __init__(self, loader: Any, probe: Probe, stamps: Watch) -> None:
        self._loader, self._probe, self._stamps = loader, probe, stamps

    def __iter__(self) -> Iterator[Any]:
        with _entering_workers(self._loader, self._probe):
            iterator: Iterator[Any] = iter(self._loader)
        if not isinstance(getattr(iterator, "_index_sampler", None), _Sampler):  # persistent workers: the same one again
            _hook_consumer(iterator, self._probe, self._stamps)
        return iterator


@contextmanager
def _entering_workers(loader: Any, probe: Probe) -> Iterator[None]:
    """Workers that start meanwhile call us first. The loader's own attribute is as it was afterwards."""
    if not loader.num_workers:
        yield
        return
    own = loader.worker_init_fn
    loader.worker_init_fn = _InWorker(probe, own)
    try:
        yield
    finally:
        loader.worker_init_fn = own


# In the consumer


def _hook_consumer(iterator: Any, probe: Probe, stamps: Watch) -> None:
    """On the iterator's own attributes. None of the hooks refers to the iterator: it must end with its last user."""
    _hook_sampler(iterator, stamps)
    with suppress(AttributeError):
        fetcher = iterator._dataset_fetcher  # without workers
        fetcher.__class__ = _fetching(type(fetcher), probe)
    with suppress(AttributeError):
        _hook_queue(iterator._worker_result_queue, stamps)


def _hook_sampler(iterator: Any, stamps: Watch, lengths: deque[int] | None = None) -> None:
    """lengths: takes the length of each batch that is asked for."""
    if not isinstance(getattr(iterator, "_index_sampler", None), _Sampler):
        with suppress(AttributeError):
            iterator._index_sampler = _Sampler(iterator._index_sampler, stamps, lengths)
            iterator._sampler_iter = _Drawing(iterator._sampler_iter, stamps, lengths)


def _hook_queue(queue: Any, stamps: Watch) -> None:
    """Records each batch that comes in through the result queue."""
    arrival = _Arrival(queue._recv_bytes)
    queue._recv_bytes = arrival
    queue.get = _Received(queue, arrival, stamps)


class _Sampler:
    """The index sampler, timed in every epoch."""

    def __init__(self, sampler: Any, stamps: Watch, lengths: deque[int] | None) -> None:
        self._sampler, self._stamps, self._lengths = sampler, stamps, lengths

    def __iter__(self) -> Iterator[Any]:
        if self._lengths is not None:
            self._lengths.clear()
        return _Drawing(iter(self._sampler), self._stamps, self._lengths)

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


class _Drawing:
    """One epoch's indices. Records what takes long enough to matter: an ordinary sampler needs a few microseconds."""

    LEAST_NS = 20_000

    def __init__(self, indices: Iterator[Any], stamps: Watch, lengths: deque[int] | None = None) -> None:
        self._indices, self._stamps, self._lengths = indices, stamps, lengths

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        started = time.perf_counter_ns()
        drawn = next(self._indices)
        ended = time.perf_counter_ns()
        if ended - started >= self.LEAST_NS:
            self._stamps.note(Kind.SAMPLER, self._stamps.steps, started, ended)
        if self._lengths is not None and isinstance(drawn, list | tuple):
            self._lengths.append(len(drawn))
        return drawn


class _Arrival:
    """Reads a message off the pipe, and keeps when that began."""

    started_ns = 0

    def __init__(self, read: Callable[..., bytes]) -> None:
        self._read = read

    def __call__(self, *arguments: Any) -> bytes:
        self.started_ns = time.perf_counter_ns()
        return self._read(*arguments)


def _is_batch(message: Any) -> bool:
    """Whether it came with a number, and is not an error or the end of a worker's data that is sent in place of a batch."""
    numbered = isinstance(message, tuple) and isinstance(message[0], int)
    return numbered and type(message[1]).__name__ not in ("ExceptionWrapper", "_IterableDatasetStopIteration")


class _Received:
    """In place of the result queue's `get`, in whatever thread calls it."""

    def __init__(self, queue: Any, arrival: _Arrival, stamps: Watch) -> None:
        self._queue, self._arrival, self._stamps = weakref.ref(queue), arrival, stamps

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        queue: Any = self._queue()
        message = type(queue).get(queue, *arguments, **named)
        if _is_batch(message):
            self._stamps.note(Kind.RECEIVE, message[0], self._arrival.started_ns, time.perf_counter_ns())
        return message


def _fetching(kind: type, probe: Probe) -> type:
    """Without workers: a fetcher that records, of this kind."""
    marked: Any = _marked(kind)

    class Fetching(marked):
        def fetch(self, index: Any) -> Any:
            with suppress(Exception):
                probe.begin()
                self.__dict__[_MAKER] = maker = probe.here()  # of whatever thread asks
                _ask(maker, index)
            batch = super().fetch(index)
            with suppress(Exception):
                probe.end()
            return batch

    return Fetching


_MAKER = "_stallscope_maker"
"""Of a fetcher that is marked: the record that it is at work on."""


def _marked(kind: type) -> type:
    """A fetcher that says what it is at: it looks up `dataset` or `dataset_iter` to make a sample, and when all are made
    `collate_fn`, to call it.

    Of a stream, how many were asked for is not how many there are: the last batch is as long as it gets.
    """

    class Marked(kind):
        @property
        def dataset(self) -> Any:
            _item(self)
            return self.__dict__["dataset"]

        @property
        def dataset_iter(self) -> Any:
            _item(self)
            return self.__dict__["dataset_iter"]

        @property
        def collate_fn(self) -> Any:
            with suppress(Exception):
                streamed = sys._getframe(1).f_locals.get("data") if "dataset_iter" in self.__dict__ else None
                maker = self.__dict__[_MAKER]
                maker.items(len(streamed) if self.auto_collation and isinstance(streamed, list) else maker.n_items)
            return self.__dict__["collate_fn"]

    return Marked


def _item(fetcher: Any) -> None:
    maker = fetcher.__dict__.get(_MAKER)
    if maker is not None and maker.stamps_items:
        with suppress(Exception):
            maker.item()


def _ask(maker: Maker, index: Any) -> None:
    """index: of a batch a list; without automatic batching one index is one whole batch, of unknown length."""
    maker.indices = index if isinstance(index, list | tuple) else None
    maker.n_items = 1 if maker.indices is None else len(maker.indices)


# In any program: the classes themselves


class _Iteration:
    """One iterator of a loader, from iter() to its end."""

    def __init__(self, loop: Loop, epoch: int, lengths: deque[int] | None, has_workers: bool = True) -> None:
        self.loop, self.epoch, self.lengths, self.has_workers = loop, epoch, lengths, has_workers
        self.is_recorded = False
        """Whether this epoch's iter() is."""

    def iterated(self, started_ns: int) -> None:
        self.is_recorded = True
        self.loop.stamps.iterated(self.epoch, started_ns)

    def passed_over(self, batch: Any) -> Any:
        """A batch that is not among those to be recorded."""
        self.loop.stamps.steps += 1
        self.size(batch)
        return batch

    def size(self, batch: Any) -> int:
        """Of the batch that has just come: what was asked for or, of a stream, what its first tensor says."""
        return self.lengths.popleft() if self.lengths else size_of(batch)


def follow(recorder: Recorder) -> Callable[[], None]:
    """Records every DataLoader that this process iterates, and those that inherit from it. Returns what undoes it.

    Its iterators are followed rather than the loader: whatever wraps or overrides that ends at them.
    """
    module = sys.modules["torch.utils.data.dataloader"]
    undone = [
        replace(module._BaseDataLoaderIter, "__init__", functools.partial(_drawing, recorder)),
        replace(module._BaseDataLoaderIter, "__next__", functools.partial(_next, recorder)),
        replace(module._SingleProcessDataLoaderIter, "__init__", functools.partial(_beginning, recorder)),
        replace(module._MultiProcessingDataLoaderIter, "__init__", functools.partial(_beginning, recorder)),
        replace(module._MultiProcessingDataLoaderIter, "_reset", functools.partial(_again, recorder)),
    ]
    return lambda: undo_all(undone)


def _unread() -> tuple[int, int]:
    return -1, -1


_MARK = "_stallscope"
FIRST_LOOK_STEP = 2
"""A program may begin to use its device in its first step."""


def _begun(recorder: Recorder, loader: Any) -> _Iteration | None:
    with recorder.careful("DataLoader"):
        recorder.device = recorder.device or torch_cuda.begin(recorder)
        loop = recorder.loop(loader, _settings(loader), _like(loader))
        if loop is not None:
            streamed = loader._dataset_kind != 0 or not loader._auto_collation
            return _Iteration(loop, loop.stamps.iterating(), None if streamed else deque(), loader.num_workers > 0)
    return None


def _beginning(recorder: Recorder, own: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(own)
    def __init__(self: Any, loader: Any, *arguments: Any, **named: Any) -> None:
        started = time.perf_counter_ns()
        iteration = _begun(recorder, loader)
        if iteration is None:
            return own(self, loader, *arguments, **named)
        self.__dict__[_MARK] = iteration
        with _entering_workers(loader, iteration.loop.probe):
            own(self, loader, *arguments, **named)
        with recorder.careful("DataLoader"):
            _hook_consumer(self, iteration.loop.probe, iteration.loop.stamps)
            if recorder.wants(iteration.loop):
                iteration.iterated(started)
        return None

    return __init__


def _drawing(recorder: Recorder, own: Callable[..., None]) -> Callable[..., None]:
    """Also of iterators that others derive: they are recorded, their workers are not."""

    @functools.wraps(own)
    def __init__(self: Any, loader: Any, *arguments: Any, **named: Any) -> None:
        started = time.perf_counter_ns()
        own(self, loader, *arguments, **named)
        iteration = self.__dict__.get(_MARK)
        if iteration is None and (iteration := _begun(recorder, loader)) is not None:
            self.__dict__[_MARK] = iteration
            if recorder.wants(iteration.loop):
                iteration.iterated(started)
        if iteration is not None:
            _hook_sampler(self, iteration.loop.stamps, iteration.lengths)

    return __init__


def _again(recorder: Recorder, own: Callable[..., None]) -> Callable[..., None]:
    """Persistent workers: the same iterator begins another epoch."""

    @functools.wraps(own)
    def _reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        iteration = self.__dict__.get(_MARK)
        if first_iter or iteration is None or not recorder.on:
            return own(self, loader, first_iter)
        started = time.perf_counter_ns()
        iteration.epoch, iteration.is_recorded = iteration.loop.stamps.iterating(), False
        own(self, loader, first_iter)
        if recorder.wants(iteration.loop):
            iteration.iterated(started)
        return None

    return _reset


def _next(recorder: Recorder, own: Callable[[Any], Any]) -> Callable[[Any], Any]:
    thread, clock = recorder.threads.read, time.perf_counter_ns

    @functools.wraps(own)
    def __next__(self: Any) -> Any:
        iteration = self.__dict__.get(_MARK)
        if iteration is None or not recorder.on:
            return own(self)
        if recorder.limited and not recorder.wants(iteration.loop):
            return iteration.passed_over(own(self))
        if recorder.device is not None:
            with recorder.careful("device"):
                recorder.device.ended()
        read = thread if iteration.has_workers else _unread  # else the record of the batch, of the same thread, knows
        cpu, runq = read()
        asked = clock()
        if not iteration.is_recorded:  # it begins in the middle of an epoch
            iteration.iterated(asked)
        try:
            batch = own(self)
        except BaseException:
            iteration.loop.stamps.raised(iteration.epoch, asked, clock(), *since(cpu, runq, read()))
            raise
        got = clock()
        with recorder.careful("DataLoader"):
            spent = since(cpu, runq, read())
            iteration.loop.stamps.returned(iteration.epoch, asked, got, iteration.size(batch), *spent)
            recorder.in_step(iteration.loop)
            if recorder.device is not None:
                recorder.device.began(iteration.loop)
            elif iteration.loop.stamps.steps == FIRST_LOOK_STEP:
                recorder.device = torch_cuda.begin(recorder)
        return batch

    return __next__


def _settings(loader: Any) -> dict[str, Any]:
    """What is known of a loader, as JSON values under torch's own names."""
    context = loader.multiprocessing_context
    prefetch = loader.prefetch_factor if loader.num_workers else None
    return {
        "kind": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "dataset": f"{type(loader.dataset).__module__}.{type(loader.dataset).__qualname__}",
        "dataset_samples": _length(loader.dataset),
        "n_workers": int(loader.num_workers),
        "prefetch_batches": int(loader.num_workers * (prefetch or 0)),
        "batch_size": loader.batch_size or getattr(loader.batch_sampler, "batch_size", None),
        "prefetch_factor": prefetch,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "in_order": bool(getattr(loader, "in_order", True)),
        "multiprocessing_context": context if context is None else context.get_start_method(),
        "sampler": type(loader.sampler).__qualname__,
    }


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None


def _like(loader: Any) -> tuple[Any, ...]:
    """What two loaders have in common of which one takes the other's place."""
    return type(loader.dataset), loader.num_workers, loader.batch_size, type(loader.sampler)


# In a worker


_PLACE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_UNPICKLED = """(
    (importlib := __import__("importlib.util")) and (sys := __import__("sys"))
    and (name in sys.modules or [
        spec := importlib.util.spec_from_file_location(name, place + "/__init__.py", submodule_search_locations=[place]),
        sys.modules.__setitem__(name, importlib.util.module_from_spec(spec)),
        spec.loader.exec_module(sys.modules[name]),
    ])
    and importlib.import_module(name + ".instrument.torch_dataloader")._InWorker.unpickled(probe, own)
)"""


class _InWorker:
    """The user's `worker_init_fn`, and then the hooks. Picklable where the user's own is."""

    _unpickled_ns = -1

    def __init__(self, probe: Probe, own: Callable[[int], None] | None) -> None:
        self._probe, self._own = probe, own

    def __reduce__(self) -> tuple[Any, ...]:
        """Found by where it lies: a spawned worker knows the program's own path, and we need not be on it."""
        package = __name__.rpartition(".instrument.")[0]
        return eval, (_UNPICKLED, {"name": package, "place": _PLACE, "probe": self._probe, "own": self._own})

    @classmethod
    def unpickled(cls, probe: Probe, own: Callable[[int], None] | None) -> _InWorker:
        made = cls(probe, own)
        made._unpickled_ns = time.perf_counter_ns()
        return made

    def __call__(self, worker_id: int) -> None:
        called = time.perf_counter_ns()
        if self._own is not None:
            self._own(worker_id)
        with suppress(Exception):  # a worker works without us: then there are no records of it, which is counted
            _hook_worker(self._probe.here(), sys._getframe(1))
            born = process_start_ns()
            self._probe.started(worker_id, -1 if born is None else born, self._unpickled_ns, called, time.perf_counter_ns())


def _hook_worker(maker: Maker, frame: FrameType | None) -> None:
    """frame: of whoever called `worker_init_fn`; torch's loop is it, or above it."""
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    if frame is None:
        return
    loop = frame.f_locals
    maker.alone = True
    index_queue, data_queue = loop["index_queue"], loop["data_queue"]
    index_queue.get, data_queue.put = _Get(index_queue.get, maker), _Put(data_queue.put, maker)


class _Get:
    """In place of the index queue's `get` in a worker."""

    def __init__(self, get: Callable[..., Any], maker: Maker) -> None:
        self._get, self._maker = get, maker
        self._fetcher_is_new = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._fetcher_is_new:  # torch makes one after `worker_init_fn`, and one for each further epoch
            self._mark(sys._getframe(1).f_locals.get("fetcher"))
        task = self._get(*arguments, **named)
        if isinstance(task, tuple):
            with suppress(Exception):
                self._maker.begin()
                self._maker.batch = task[0]
                _ask(self._maker, task[1])
        else:
            self._fetcher_is_new = True
        return task

    def _mark(self, fetcher: Any) -> None:
        self._fetcher_is_new = False
        if fetcher is not None:
            with suppress(TypeError):
                fetcher.__class__ = _marked(type(fetcher))
                fetcher.__dict__[_MAKER] = self._maker


class _Put:
    """In place of the result queue's `put` in a worker."""

    def __init__(self, put: Callable[..., None], maker: Maker) -> None:
        self._put, self._maker = put, maker

    def __call__(self, message: Any, *arguments: Any, **named: Any) -> None:
        with suppress(Exception):
            if self._maker.has_items and _is_batch(message):
                self._maker.end()
        self._put(message, *arguments, **named)


# What it costs


class _Endless:
    """A result queue that has a message at all times, and the indices of a batch."""

    def get(self) -> tuple[int, None]:
        self._recv_bytes()
        return 0, None

    def _recv_bytes(self) -> bytes:
        return b""

    def __iter__(self) -> Iterator[None]:
        return self

    def __next__(self) -> None:
        return None


def us_per_step(steps: int = 2000, repeats: int = 5) -> float:
    """Direct cost of following one empty step of any program, in microseconds: best of `repeats`, the bare loop taken off."""
    from ..ring import RingReader, RingWriter, create

    class Batches:
        def __next__(self) -> list[int]:
            return [0]

    file = create()
    reader = RingReader(file)
    recorder = Recorder(RingWriter(file), Path(os.devnull), lambda said: None)
    os.close(file)
    loop = Loop(0, Watch(rows=recorder.rows, loop=0), Probe(Path(os.devnull)))
    hooked = type("Hooked", (Batches,), {"__next__": _next(recorder, Batches.__next__)})

    def once(batches: Any) -> int:
        batches.__dict__[_MARK] = iteration = _Iteration(loop, 0, None)
        iteration.is_recorded = True
        started = time.perf_counter_ns()
        for _ in range(steps):
            next(batches)
        ended = time.perf_counter_ns()
        reader.take(last=True)
        return ended - started

    bare, followed = (min(once(kind()) for _ in range(repeats)) for kind in (Batches, hooked))
    recorder.stop()
    return max(0.0, (followed - bare) / steps / 1e3)


def us_per_batch(batches: int = 2000, repeats: int = 5) -> float:
    """Direct cost of the hooks in the consumer, in microseconds: indices drawn, a message received. Best of `repeats`."""

    def once(hooked: bool) -> int:
        rows: list[Any] = []
        stamps, queue = Watch(rows.extend), _Endless()
        indices: Iterator[None] = queue
        if hooked:
            _hook_queue(queue, stamps)
            indices = _Drawing(queue, stamps)
        started = time.perf_counter_ns()
        for _ in range(batches):
            next(indices)
            queue.get()
        return time.perf_counter_ns() - started

    hooked, bare = (min(once(each) for _ in range(repeats)) for each in (True, False))
    return max(0.0, (hooked - bare) / batches / 1e3)
