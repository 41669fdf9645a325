"""The hooks into DataLoader change nothing and record everything: each loop runs plain, and watched, and gives the same."""

import functools
import gc
import multiprocessing
import os
import pickle
import random
import re
import threading
import traceback
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")

import torch
from torch.utils.data import DataLoader

import profiler
from profiler import probe as probe_module
from profiler.events import Kind, Made, Row, Started
from profiler.instrument import watched
from profiler.probe import Probe, records, starts
from profiler.run import columns
from profiler.stamps import Watch
from tests.profiler.instrument import users
from tests.profiler.instrument.users import MS

OURS = str(Path(profiler.__file__).parent)


class Recording:
    """What was recorded of a loop."""

    def __init__(self, folder):
        self.folder, self.rows = folder, []
        self.probe, self.stamps = Probe(folder), Watch(self.rows.extend)

    def hooked(self, loader):
        return watched(loader, self.probe, self.stamps)

    def epoch(self, loader):
        """As the profiler's own loop does it."""
        sized = functools.partial(size, loader.batch_sampler is not None)
        return self.stamps.batches(self.hooked(loader), sized)

    @property
    def sizes(self):
        """Samples of each batch that was delivered."""
        self.stamps.flush()
        return [Row(*row).n_samples for row in self.rows if row[0] == Kind.WAIT]

    @property
    def made(self):
        return columns(Made, np.concatenate([np.empty((0, len(Made._fields)), np.int64), *records(self.folder)]))

    @property
    def started(self):
        return columns(Started, np.concatenate([np.empty((0, len(Started._fields)), np.int64), *starts(self.folder)]))

    @property
    def received(self):
        """Epoch and number of each batch that came in."""
        self.stamps.flush()
        rows = [Row(*row) for row in self.rows if row[0] == Kind.RECEIVE]
        assert all(row.start_ns <= row.end_ns for row in rows)
        return sorted((row.epoch, row.step) for row in rows)


@pytest.fixture
def recording(tmp_path):
    return Recording(tmp_path)


@pytest.fixture
def workers():
    """Asked for those that are there, with the garbage collector off: only references that are gone end any."""
    gc.collect()
    gc.disable()
    before = psutil.Process().children()
    yield lambda: [child for child in psutil.Process().children() if child not in before]
    gc.enable()


def plain(value):
    """A batch to the last bit, of whatever it is made."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.is_shared(), value.numpy().tobytes()
    if isinstance(value, dict):
        return [(key, plain(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [plain(each) for each in value]
    return (type(value), plain(vars(value))) if hasattr(value, "__dict__") else (type(value), value)


def seed():
    for each in (torch.manual_seed, np.random.seed, random.seed):
        each(7)


def random_state(loader):
    own = None if loader.generator is None else loader.generator.get_state().tolist()
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate(), own


def epochs(build, number, of):
    """Batches of so many epochs, and the random states after each."""
    seed()
    loader = build()
    before = loader.worker_init_fn
    told = []
    for _ in range(number):
        told.append(([plain(batch) for batch in of(loader)], random_state(loader)))
        assert loader.worker_init_fn is before
    return told


def size(batched, batch):
    if not batched:
        return 1
    columns = batch.columns if isinstance(batch, users.Batch) else batch["drawn"] if isinstance(batch, dict) else batch
    return len(columns if columns == [] or isinstance(columns[0], tuple) else columns[0])


def itself(loader):
    return loader


def loader_of(dataset, /, **options):
    """How one is built, anew for each loop: by default with two forked workers."""
    options = {"batch_size": 3, "num_workers": 2, **options}
    if options["num_workers"] and options.get("multiprocessing_context") is None:
        options["multiprocessing_context"] = "fork"
    return lambda: DataLoader(dataset(), **options)


def shuffled(**options):
    """With a generator of its own, which every loader needs anew."""

    def build():
        generator = torch.Generator().manual_seed(5)
        return loader_of(users.Items, shuffle=True, generator=generator, **options)()

    return build


SETTINGS = {
    "no workers": (loader_of(users.Items, num_workers=0), 2),
    "one worker": (loader_of(users.Items, num_workers=1), 1),
    "two workers": (loader_of(users.Items), 2),
    "more workers than batches": (loader_of(users.Items, batch_size=20), 1),
    "spawned": (loader_of(users.Initialised, num_workers=1, multiprocessing_context="spawn", worker_init_fn=users.hello), 1),
    "spawned, a stream, persistent": (
        loader_of(users.Stream, num_workers=1, multiprocessing_context="spawn", persistent_workers=True),
        2,
    ),
    "persistent": (loader_of(users.Items, persistent_workers=True), 3),
    "a persistent stream": (loader_of(users.Stream, persistent_workers=True), 3),
    "a stream": (loader_of(users.Stream), 1),
    "a stream without workers": (loader_of(users.Stream, num_workers=0), 2),
    "a stream, last dropped": (loader_of(users.Stream, drop_last=True), 1),
    "at once": (loader_of(users.AtOnce), 1),
    "at once without workers": (loader_of(users.AtOnce, num_workers=0), 1),
    "own batch sampler": (loader_of(users.Items, batch_size=1, batch_sampler=users.Uneven(), collate_fn=list), 2),
    "samples as they are": (loader_of(users.Items, batch_size=None), 1),
    "samples as they are without workers": (loader_of(users.Items, batch_size=None, num_workers=0), 1),
    "a stream as it is": (loader_of(users.Stream, batch_size=None), 1),
    "dicts": (loader_of(users.Named), 1),
    "own class": (loader_of(users.Items, collate_fn=users.Batch), 1),
    "own class without workers": (loader_of(users.Items, collate_fn=users.Batch, num_workers=0), 1),
    "last dropped": (loader_of(users.Items, drop_last=True), 1),
    "shuffled": (shuffled(), 2),
    "shuffled without workers": (shuffled(num_workers=0), 2),
    "own init": (loader_of(users.Initialised, worker_init_fn=users.hello), 1),
    "partial init": (loader_of(users.Initialised, worker_init_fn=functools.partial(users.greet, "hi")), 1),
    "lambda init": (loader_of(users.Initialised, worker_init_fn=lambda worker_id: users.greet("ho", worker_id)), 1),
    "persistent init": (loader_of(users.Initialised, persistent_workers=True, worker_init_fn=users.hello), 2),
}


def skip_without(loader):
    context = loader.multiprocessing_context
    if context is not None and context.get_start_method() not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {context.get_start_method()}")


@pytest.fixture(scope="module", params=SETTINGS)
def loops(request, tmp_path_factory):
    """The loader, what the plain loops told, what the watched loops told, and what was recorded of these."""
    build, number = SETTINGS[request.param]
    skip_without(build())
    recording = Recording(tmp_path_factory.mktemp("making"))
    with warnings.catch_warnings(record=True) as plain_warnings:
        warnings.simplefilter("always")
        told = epochs(build, number, itself)
    with warnings.catch_warnings(record=True) as watched_warnings:
        warnings.simplefilter("always")
        told_watched = epochs(build, number, recording.epoch)
    recording.warned = [[str(each.message) for each in both] for both in (plain_warnings, watched_warnings)]
    return build(), told, told_watched, recording


class TestTheSameLoop:
    def test_yields_the_same_batches_in_the_same_order(self, loops):
        _, told, told_watched, _ = loops
        assert [batches for batches, _ in told_watched] == [batches for batches, _ in told]
        assert all(batches for batches, _ in told)

    def test_leaves_the_same_random_states(self, loops):
        _, told, told_watched, _ = loops
        assert [state for _, state in told_watched] == [state for _, state in told]

    def test_warns_the_same(self, loops):
        *_, recording = loops
        assert recording.warned[1] == recording.warned[0]

    def test_records_each_batch_once(self, loops):
        loader, told, _, recording = loops
        made = recording.made
        assert sorted(made["n_items"]) == sorted(recording.sizes)
        assert (made["begin_ns"] <= made["items_ns"]).all()
        assert (made["items_ns"] <= made["end_ns"]).all()
        if not loader.num_workers:
            assert set(made["batch"].tolist()) == {-1}
            assert recording.received == []
            return
        assert sorted(made["batch"].tolist()) == sorted(step for _, step in recording.received)
        if not isinstance(loader.dataset, users.Stream):  # ends of streams have numbers as well
            assert recording.received == [(epoch, step) for epoch, (all_, _) in enumerate(told) for step in range(len(all_))]

    def test_records_each_worker_once(self, loops):
        loader, told, _, recording = loops
        started = recording.started
        times = 1 if loader.persistent_workers else len(told)
        assert sorted(started["worker_id"].tolist()) == sorted(times * list(range(loader.num_workers)))
        assert len(set(started["pid"].tolist())) == len(started["pid"])
        spawned = loader.num_workers and loader.multiprocessing_context.get_start_method() == "spawn"
        assert ((started["unpickled_ns"] > 0) == bool(spawned)).all()
        assert (started["init_ns"] <= started["ready_ns"]).all()
        assert set(recording.made["pid"].tolist()) <= set(started["pid"].tolist() or [os.getpid()])


def both(loop, recording):
    """What a loop over loaders tells, plain and watched. It is handed what to iterate in place of a loader."""
    told = []
    for of in (itself, recording.hooked):
        seed()
        told.append([plain(loop(of)), *random_state(DataLoader([0]))])
    return told


def interleaved(of):
    return list(zip(of(loader_of(users.Items)()), of(loader_of(users.Named, num_workers=1)()), strict=True))


def nested(of):
    inner = loader_of(users.Items, num_workers=1, batch_size=5)()
    return [(outer, list(of(inner))) for outer in of(loader_of(users.Items, batch_size=5)())]


def twice_at_once(of):
    loader = loader_of(users.Items, num_workers=0)()
    return list(zip(of(loader), of(loader), strict=True))


def broken_off(options, of):
    loader = loader_of(users.Items, **options)()
    first = next(iter(of(loader)))
    return [first, list(of(loader)), len(loader), len(iter(of(loader)))]


def caught(of):
    """A batch that cannot be made is left out, by the user: the loop goes on."""
    loader = loader_of(users.Items, collate_fn=users.bad_collate, persistent_workers=True, num_workers=1)()
    told = []
    for _ in range(2):
        iterator = iter(of(loader))
        for _ in range(len(loader)):
            try:
                told.append(next(iterator))
            except users.OwnError as error:
                traceback.clear_frames(error.__traceback__)
    return told


class TestOtherLoops:
    @pytest.mark.parametrize("loop", [interleaved, nested, twice_at_once])
    def test_of_two_loaders_yield_the_same(self, recording, loop):
        told, told_watched = both(loop, recording)
        assert told_watched == told

    @pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"num_workers": 0}], ids=str)
    def test_broken_off_and_begun_again_yield_the_same(self, recording, options):
        told, told_watched = both(functools.partial(broken_off, options), recording)
        assert told_watched == told

    def test_that_go_on_after_an_error_yield_the_same_and_record_what_was_made(self, recording):
        told, told_watched = both(caught, recording)
        assert told_watched == told
        assert recording.made["batch"].tolist() == [0, 0]
        assert [step for _, step in recording.received] == [0, 0]

    def test_out_of_order_yield_the_same_batches(self, recording):
        build = loader_of(users.Named, in_order=False, batch_size=1)
        told, told_watched = ({batch["name"][0] for batch in of(build())} for of in (itself, recording.epoch))
        assert told_watched == told
        assert sorted(recording.made["batch"].tolist()) == list(range(10))
        assert recording.received == [(0, step) for step in range(10)]

    @pytest.mark.parametrize("num_workers", [0, 1])
    def test_go_on_where_nothing_can_be_recorded(self, tmp_path, num_workers):
        recording = Recording(tmp_path / "missing")
        build = loader_of(users.Items, num_workers=num_workers)
        assert epochs(build, 1, recording.epoch) == epochs(build, 1, itself)

    @pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="needs /proc/thread-self/schedstat")
    def test_go_on_in_a_thread_that_has_the_number_of_one_that_has_ended(self, recording):
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(probe_module.Maker, recording.folder).result()
        probe_module._makers[recording.folder, -1, threading.get_native_id()] = ended
        epochs(loader_of(users.Items, num_workers=0), 1, recording.epoch)
        assert len(recording.made["pid"]) == 4


# Errors

ERRORS = {
    "an item": loader_of(users.BadItems),
    "an item, in the first batch": loader_of(users.BadItems, batch_size=10),
    "an item without workers": loader_of(users.BadItems, num_workers=0),
    "items at once": loader_of(users.BadItemsAtOnce),
    "items at once without workers": loader_of(users.BadItemsAtOnce, num_workers=0),
    "collating": loader_of(users.Items, collate_fn=users.bad_collate),
    "collating without workers": loader_of(users.Items, collate_fn=users.bad_collate, num_workers=0),
    "default collating": loader_of(users.Uncollatable),
    "default collating without workers": loader_of(users.Uncollatable, num_workers=0),
    "the sampler": loader_of(users.Items, sampler=users.BadSampler()),
    "the sampler, read ahead": loader_of(users.Items, sampler=users.BadSampler(), prefetch_factor=9),
    "the sampler without workers": loader_of(users.Items, sampler=users.BadSampler(), num_workers=0),
    "the sampler's start": loader_of(users.Items, sampler=users.NoSampler()),
    "the sampler's start without workers": loader_of(users.Items, sampler=users.NoSampler(), num_workers=0),
    "a stream": loader_of(users.BadStream),
    "a stream without workers": loader_of(users.BadStream, num_workers=0),
    "a stream's start": loader_of(users.NoStream),
    "a stream's start without workers": loader_of(users.NoStream, num_workers=0),
}


def raised(build, of):
    """Type and text of what a loop raises, and its traceback but for frames that are ours. Lines only of the user's: which of
    torch's are taken depends on what comes first."""
    try:
        for _ in of(build()):
            pass
    except Exception as error:  # not pytest's way: what that keeps would keep the iterator until garbage is collected
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(OURS)]
        traceback.clear_frames(error.__traceback__)  # torch keeps the error in one of them
        lines = [(each.filename, each.name, each.lineno if each.filename == users.__file__ else None) for each in frames]
        return type(error), str(error), lines
    raise AssertionError("nothing was raised")


class TestErrors:
    @pytest.mark.parametrize("what", ERRORS)
    def test_are_the_users_own_and_tell_nothing_of_us(self, recording, what):
        assert raised(ERRORS[what], recording.hooked) == raised(ERRORS[what], itself)

    def test_in_init_are_the_users_own_with_a_frame_of_ours_between(self, recording):
        told, told_watched = (
            raised(loader_of(users.Items, worker_init_fn=users.fail), of) for of in (itself, recording.hooked)
        )
        ours = rf'  File "{re.escape(OURS)}.*\n(    .*\n)+'
        assert re.sub(ours, "", told_watched[1]) == told[1]
        assert told_watched[::2] == told[::2]

    def test_leave_the_loader_as_it_was(self, recording):
        loader = loader_of(users.Items, sampler=users.NoSampler(), worker_init_fn=users.hello)()
        raised(lambda: loader, recording.hooked)
        assert loader.worker_init_fn is users.hello

    @pytest.mark.parametrize("what", ["an item", "an item without workers", "the sampler", "the sampler without workers"])
    def test_let_go_of_the_iterator(self, recording, workers, what):
        loaders = [ERRORS[what]()]
        end = weakref.ref(loaders[0].dataset)
        raised(loaders.pop, recording.hooked)
        assert workers() == []
        assert end() is None


# What is left behind


@pytest.mark.parametrize(
    "options", [{"num_workers": 0}, {}, {"persistent_workers": True}], ids=["no workers", "workers", "persistent"]
)
def test_an_iterator_ends_with_its_last_reference_and_its_workers_with_it(recording, workers, options):
    loader = loader_of(users.Items, **options)()
    iterator = iter(recording.hooked(loader))
    next(iterator)
    assert len(workers()) == loader.num_workers
    ends = [weakref.ref(iterator), weakref.ref(loader.dataset)]
    del iterator, loader
    assert [end() for end in ends] == [None, None]
    assert workers() == []


@pytest.mark.parametrize("num_workers", [0, 1])
def test_thirty_epochs_open_no_more_files_than_three(recording, workers, num_workers):
    loader = loader_of(users.Items, num_workers=num_workers)()
    opened = []
    for _ in range(30):
        for _ in recording.epoch(loader):
            pass
        opened.append(len(os.listdir("/proc/self/fd")))
    assert opened[-1] < opened[2] + 10  # torch closes some a moment later


def test_a_loader_is_pickled_as_before(recording):
    loader = loader_of(users.Items, worker_init_fn=users.hello, num_workers=0)()
    before = pickle.dumps(loader)
    for _ in recording.hooked(loader):
        assert pickle.dumps(loader) == before
    assert pickle.dumps(loader) == before


def test_the_iterator_is_torchs_own_and_its_sampler_answers_as_the_users(recording):
    loader = loader_of(users.Items, num_workers=0, sampler=users.Resumable())()
    iterators = [iter(of(loader)) for of in (itself, recording.hooked)]
    for iterator in iterators:
        next(iterator)
    plain_type, watched_type = map(type, iterators)
    assert watched_type is plain_type
    asked = [(each._index_sampler.sampler.state_dict(), len(each)) for each in iterators]
    assert asked[0] == asked[1]


def test_memory_is_asked_to_be_pinned_and_is_not_without_an_accelerator(recording):
    if torch.accelerator.is_available():
        pytest.skip("there is an accelerator here")
    loops = []
    for of in (itself, recording.epoch):
        with pytest.warns(UserWarning, match="no accelerator is found") as warned:
            told = epochs(loader_of(users.Items, pin_memory=True), 1, of)
        loops.append((told, [str(each.message) for each in warned]))
    assert loops[0] == loops[1]
    assert len(recording.made["pid"]) == 4


# What batches cost


@pytest.mark.parametrize("num_workers", [0, 1])
def test_sleeping_is_blocked_and_spinning_is_computing(recording, num_workers):
    build = loader_of(functools.partial(users.Busy, 80, 40), num_workers=num_workers, batch_size=1)
    epochs(build, 1, recording.epoch)
    made = recording.made
    cpu, runq = made["items_cpu_ns"], made["items_runq_ns"]
    assert min(cpu) == pytest.approx(40 * MS, rel=0.1)
    if (runq < 0).any():
        pytest.skip("this kernel keeps no schedstat: run-queue delay cannot be told from blocked time")
    blocked = made["items_ns"] - made["begin_ns"] - cpu - runq
    assert 76 * MS <= min(blocked) <= 120 * MS


@pytest.mark.parametrize("num_workers", [0, 1])
def test_collating_is_told_from_making_items(recording, num_workers):
    options = {"num_workers": num_workers, "batch_size": 2, "collate_fn": users.slow_collate}
    epochs(loader_of(functools.partial(users.Busy, 0, 0), **options), 1, recording.epoch)
    (made,) = zip(*recording.made.values(), strict=True)
    made = Made(*map(int, made))
    assert made.collate_cpu_ns == pytest.approx(20 * MS, rel=0.2)
    assert made.items_cpu_ns < 5 * MS
