import errno

import pytest

from loaders._batch import UnreadableSample
from profiler import faults


def test_a_samples_error_is_said_in_its_own_words_even_from_a_worker():
    own = UnreadableSample("sample a.jpg cannot be used: truncated. Mend it")
    wrapped = UnreadableSample(f"Caught UnreadableSample in worker 0.\nTraceback ...\nloaders._batch.UnreadableSample: {own}\n")
    assert faults.in_words(own) == faults.in_words(wrapped) == str(own)


@pytest.mark.parametrize(
    ("number", "way_out"),
    [(errno.ENOSPC, "Free space there"), (errno.EACCES, "Change its permissions"), (errno.EROFS, "name another")],
)
def test_what_the_disk_refuses_is_said_with_the_way_out(number, way_out):
    words = faults.in_words(OSError(number, "Refused", "/some/file"))
    assert "/some/file" in words
    assert way_out in words


def test_a_dead_worker_keeps_the_loaders_own_words():
    own = "DataLoader worker (pid 7) is killed by signal: Killed. "
    assert own in faults.in_words(RuntimeError(own))


def test_a_worker_that_dies_while_it_hands_over_a_batch_is_named_as_such():
    for error in (ConnectionResetError(104, "Connection reset by peer"), EOFError("")):
        assert faults.in_words(error).startswith(f"a loader worker died: {type(error).__name__}")


def test_a_batch_that_does_not_come_in_time_is_named_with_the_setting():
    words = faults.in_words(RuntimeError("DataLoader timed out after 0.001 seconds"))
    assert words.startswith("no batch came in time: DataLoader timed out after 0.001 seconds")
    assert "loader.timeout" in words


def test_our_own_bug_has_no_words():
    assert faults.in_words(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None
    assert faults.in_words(KeyError("x")) is None


def test_a_part_that_ends_the_program_is_named_as_that():
    assert faults.in_words(SystemExit(0)) == "a part ended the program: it called sys.exit(0)"
