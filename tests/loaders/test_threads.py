"""What is particular to threads: how far ahead they are, what an abandoned epoch leaves, where an error comes."""

import threading

import pytest

from loaders import threads


class Silent:
    def begin(self): ...
    def item(self, index): ...
    def items(self, n_items, n_skipped, bytes_asked): ...
    def end(self): ...


class Counting:
    """A source that counts what is read, and waits for a permit for each sample where one is asked for."""

    def __init__(self, permits=None):
        self.read_so_far, self._permits, self._lock = 0, permits, threading.Lock()

    def __len__(self):
        return 1000

    def read(self, index):
        if self._permits is not None:
            assert self._permits.acquire(timeout=10)
        with self._lock:
            self.read_so_far += 1
        if index == 13:
            raise KeyError("an error of the source's own")
        return bytes([index])

    def decode(self, encoded):
        import numpy as np

        return np.frombuffer(encoded, np.uint8)

    def label(self, index):
        return 0

    def name(self, index):
        return str(index)


def until(happens, seconds=10.0):
    event = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if happens():
            return True
        event.wait(0.005)
    return False


BATCHES = [[i] for i in range(13)]


@pytest.mark.parametrize(("num_threads", "buffer_batches"), [(1, 1), (2, 4), (3, 2)])
def test_no_more_batches_are_ahead_than_the_buffer_holds(num_threads, buffer_batches):
    source = Counting()
    loader = threads.build(source, Silent(), "fail", num_threads=num_threads, buffer_batches=buffer_batches)
    for taken, _ in enumerate(loader.epoch(BATCHES), 1):
        ahead = min(len(BATCHES), taken + buffer_batches)
        assert until(lambda ahead=ahead: source.read_so_far == ahead)
        assert not until(lambda ahead=ahead: source.read_so_far > ahead, 0.03)
    loader.close()


def test_an_abandoned_epoch_makes_nothing_more_and_the_next_one_is_whole():
    permits = threading.Semaphore(3)
    source = Counting(permits)
    loader = threads.build(source, Silent(), "fail", num_threads=1, buffer_batches=8)
    epoch = loader.epoch(BATCHES)
    next(epoch)
    epoch.close()
    permits.release(1000)
    assert [batch.index.tolist() for batch in loader.epoch(BATCHES)] == BATCHES
    assert source.read_so_far <= len(BATCHES) + 4
    loader.close()


def test_an_error_comes_where_its_batch_would_have_come_as_it_was_raised():
    loader = threads.build(Counting(), Silent(), "fail", num_threads=3, buffer_batches=6)
    epoch = loader.epoch([*BATCHES, [13], [14]])
    assert [next(epoch).index.tolist() for _ in BATCHES] == BATCHES
    with pytest.raises(KeyError, match="an error of the source's own"):
        next(epoch)
    loader.close()


def test_closing_does_not_wait_for_a_read_that_hangs():
    permits = threading.Semaphore(0)
    loader = threads.build(Counting(permits), Silent(), "fail", num_threads=2, buffer_batches=4)
    epoch = loader.epoch(BATCHES)
    threading.Timer(0.2, permits.release).start()
    next(epoch)
    loader.close()
    loader.close()
    permits.release(100)


@pytest.mark.parametrize("options", [{"num_threads": 0}, {"buffer_batches": 0}, {"num_threads": -3}, {"num_threads": 10**9}])
def test_none_of_them_and_far_too_many_are_refused(options):
    with pytest.raises(ValueError, match="must be 1 to "):
        threads.build(Counting(), Silent(), "fail", **options)
