from profiler.replay import MOST_BATCHES, Replay


class Loader:
    n_workers, prefetch_batches = 3, 6

    def __init__(self):
        self.made = []
        self.closed = False

    def epoch(self, batches):
        for batch in batches:
            self.made.append(batch)
            yield tuple(batch)

    def close(self):
        self.closed = True


def test_a_few_batches_are_made_before_and_given_over_and_over():
    loader = Loader()
    batches = [[i, i + 1] for i in range(0, 100, 2)] + [[100]]
    replay = Replay(loader, batches)
    assert len(loader.made) == MOST_BATCHES
    assert loader.closed
    given = list(replay.epoch(batches))
    assert len(given) == len(batches)
    assert set(given) == {(i, i + 1) for i in range(0, 2 * MOST_BATCHES, 2)}
    assert len(loader.made) == MOST_BATCHES


def test_the_shorter_last_batch_is_left_out():
    assert list(Replay(Loader(), [[1, 2], [3]]).epoch([[1, 2], [3]])) == [(1, 2), (1, 2)]
