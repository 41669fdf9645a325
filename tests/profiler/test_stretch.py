from profiler.events import Kind
from profiler.stretch import typical
from profiler.timeline import timeline
from tests.fakes import MS, FakeLoop, run_of


def waiting(*waits_ms, step_ms=10, epoch_of=lambda i: 0, gap_before=None):
    """Steps of so many ms after waits of so many; a gap of 1 s lies before one of them."""
    spans, now = [(Kind.ITER, 0, 0, 0, 0, 0)], 0
    for i, wait in enumerate(waits_ms):
        if i and epoch_of(i) != epoch_of(i - 1):
            spans.append((Kind.END, epoch_of(i - 1), i, now * MS, now * MS, 0))
            spans.append((Kind.ITER, epoch_of(i), i, now * MS, now * MS, 0))
        if i == gap_before:
            spans.append((Kind.GAP, 0, i, now * MS, (now + 1000) * MS, 8))
            now += 1000
        spans.append((Kind.WAIT, epoch_of(i), i, now * MS, (now + wait) * MS, 8))
        now += wait + step_ms
    spans.append((Kind.END, epoch_of(len(waits_ms) - 1), len(waits_ms), now * MS, now * MS, 0))
    return timeline(run_of(spans))


def test_a_stretch_has_the_median_share_of_waiting():
    line = waiting(0, 0, 0, 90, 90, 10, 10, 0, 0)
    # in pairs: 0, 0, 0.82, 0.9, 0.83, 0.5, 0.33, 0
    assert typical(line, skipped=0, width=2) == slice(6, 8)


def test_of_equal_stretches_the_first_after_the_warm_up_is_taken():
    assert typical(waiting(*[5] * 100), skipped=14) == slice(14, 54)


def test_of_a_short_run_the_last_steps_are_taken_or_all():
    line = waiting(*[5] * 45)
    assert typical(line, skipped=10) == slice(5, 45)
    assert typical(line, skipped=10, width=60) == slice(0, 45)


def test_a_stretch_lies_within_one_epoch():
    line = waiting(*[5] * 30, epoch_of=lambda i: int(i >= 8))
    assert typical(line, skipped=6, width=10) == slice(8, 18)
    assert typical(waiting(*[5] * 30, epoch_of=lambda i: i // 5), skipped=6, width=10) == slice(6, 16)


def test_a_stretch_lies_within_what_was_kept():
    line = waiting(*[5] * 30, gap_before=12)
    assert typical(line, skipped=5, width=10) == slice(12, 22)
    assert typical(line, skipped=2, width=10) == slice(2, 12)


def test_a_run_without_any_wait_has_one_as_well():
    assert typical(timeline(FakeLoop(load_ns=0, step_ns=0, steps=50).run()), skipped=0) == slice(0, 40)
