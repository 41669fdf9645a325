import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler import intervals

LAST = 40
pairs = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=8)


def ticks(rows) -> set[int]:
    """The set as whole ticks: what every operation must agree with."""
    return {t for start, end in np.asarray(rows, dtype=int).reshape(-1, 2).tolist() for t in range(start, end)}


def is_canonical(rows) -> bool:
    flat = np.asarray(rows).ravel()
    return bool((np.diff(flat) > 0).all())


@given(pairs)
def test_union_covers_the_same_ticks_sorted_and_disjoint(rows):
    joined = intervals.union(rows)
    assert ticks(joined) == ticks(rows)
    assert is_canonical(joined)
    assert intervals.total(joined) == len(ticks(rows))


@given(pairs, pairs)
def test_set_operations_agree_with_sets_of_ticks(a, b):
    left, right = intervals.union(a), intervals.union(b)
    assert ticks(intervals.intersect(left, right)) == ticks(a) & ticks(b)
    assert ticks(intervals.subtract(left, right)) == ticks(a) - ticks(b)
    assert ticks(intervals.complement(left, 3, 30)) == set(range(3, 30)) - ticks(a)


@given(pairs, st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=5))
def test_overlap_counts_the_ticks_of_each_interval(a, queries):
    spans = np.array([(min(q), max(q)) for q in queries], dtype=np.int64).reshape(-1, 2)
    found = intervals.overlap(intervals.union(a), spans[:, 0], spans[:, 1])
    assert found.tolist() == [len(ticks(a) & set(range(start, end))) for start, end in spans.tolist()]


@given(pairs, st.integers(0, LAST))
def test_the_cut_clock_stands_still_during_what_is_removed(removed, t):
    assert int(intervals.cut(t, intervals.union(removed))) == t - len(ticks(removed) & set(range(t)))


def test_touching_intervals_become_one():
    assert intervals.union([[3, 5], [0, 3]]).tolist() == [[0, 5]]
