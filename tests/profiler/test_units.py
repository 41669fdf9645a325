"""Text into numbers and back."""

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler import units

DURATIONS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "KiB": 1024, "MB": 10**6, "MiB": 1024**2, "GB": 10**9, "GiB": 1024**3}


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("8 ms", 8_000_000),
        ("20s", 20_000_000_000),
        ("  0.1 ms ", 100_000),
        (".5 us", 500),
        ("+3 ns", 3),
        ("1.5 ns", 2),
        ("0 s", 0),
        ("2 min", 120_000_000_000),
        ("1 h", 3_600_000_000_000),
        ("7 \u00b5s", 7_000),
        ("7 \u03bcs", 7_000),
    ],
)
def test_a_duration_becomes_whole_nanoseconds(text: str, ns: int) -> None:
    assert units.parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("64 KiB", 65_536),
        ("110 KB", 110_000),
        ("110kB", 110_000),
        ("2 GB", 2_000_000_000),
        ("0.5 MiB", 524_288),
        ("1 TB", 10**12),
    ],
)
def test_a_size_becomes_bytes(text: str, n_bytes: int) -> None:
    assert units.parse_bytes(text) == n_bytes


def test_a_rate_becomes_bytes_a_second() -> None:
    assert units.parse_rate("180 MB/s") == 180_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8", "'8' has no unit: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("8 sec", "'8 sec' has an unknown unit: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("8 MS", "'8 MS' has an unknown unit: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("", "'' is not a duration: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("ms", "'ms' is not a duration: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("nan s", "'nan s' is not a duration: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("inf s", "'inf s' is not a duration: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("1e3 s", "'1e3 s' has an unknown unit: write 1 ns, 1 us, 1 ms, 1 s, 1 min, 1 h"),
        ("-8 ms", "'-8 ms' is negative: a duration is 0 or more"),
        ("0.4 ns", "'0.4 ns' is less than 1 ns"),
        ("3000000 h", "'3000000 h' is too large: at most 9223372036854775807 ns"),
    ],
)
def test_a_bad_duration_is_refused_with_what_could_be_written(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        units.parse_duration(text)


def test_a_size_is_no_rate() -> None:
    with pytest.raises(ValueError, match=r"^'180 MB' has an unknown unit: write 180 B/s, 180 KB/s, 180 KiB/s, 180 MB/s, "):
        units.parse_rate("180 MB")
    with pytest.raises(ValueError, match=r"^'64' has no unit: write 64 B, 64 KB, 64 KiB, 64 MB, "):
        units.parse_bytes("64")


def test_an_endless_text_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match="has no unit") as refused:
        units.parse_duration("9" * 60_000)
    assert len(str(refused.value)) < 300


@given(st.integers(0, 10**6), st.sampled_from(sorted(DURATIONS)), st.sampled_from(["", " "]))
def test_every_whole_duration_is_read_exactly(n: int, unit: str, space: str) -> None:
    assert units.parse_duration(f"{n}{space}{unit}") == n * DURATIONS[unit]


@given(st.integers(0, 10**6), st.sampled_from(sorted(SIZES)))
def test_every_whole_size_and_rate_is_read_exactly(n: int, unit: str) -> None:
    assert units.parse_bytes(f"{n} {unit}") == units.parse_rate(f"{n} {unit}/s") == n * SIZES[unit]


@given(st.integers(0, 10**18))
def test_what_is_written_is_read_back_to_the_digits_shown(n: int) -> None:
    assert units.parse_duration(units.duration(n)) == pytest.approx(n, rel=0.05)
    assert units.parse_bytes(units.size(n)) == pytest.approx(n, rel=0.05)
    assert units.parse_rate(units.rate(n)) == pytest.approx(n, rel=0.05)


@settings(max_examples=50)
@given(st.text() | st.from_regex(r"[-+]?[0-9.]+ ?[a-zA-Z/]*"))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    for parse in (units.parse_duration, units.parse_bytes, units.parse_rate):
        with contextlib.suppress(ValueError):
            assert 0 <= parse(text) <= units.LARGEST


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (8, "8 ns"),
        (999, "999 ns"),
        (999_600, "1.0 ms"),
        (8_000_000, "8.0 ms"),
        (99_960_000, "100 ms"),
        (59_000_000_000, "59.0 s"),
        (90_000_000_000, "1.5 min"),
        (-8_000_000, "-8.0 ms"),
        (7_200_000_000_000, "2.0 h"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(ns: int, text: str) -> None:
    assert units.duration(ns) == text


def test_sizes_rates_shares_and_counts_are_written() -> None:
    assert units.size(132_000_000) == "132 MB"
    assert units.size(512) == "512 B"
    assert units.rate(180_000_000) == "180 MB/s"
    assert units.share(0.123) == "12.3 %"
    assert units.share(1) == "100.0 %"
    assert [units.count(n) for n in (0, 3, 3.27, 1200, 1234.6)] == ["0", "3", "3.3", "1,200", "1,235"]


def test_a_suffix_names_the_unit() -> None:
    assert units.split("seek_ns") == ("seek", units.DURATION)
    assert units.split("buffer_bytes") == ("buffer", units.SIZE)
    assert units.split("copy_bandwidth_bytes_per_s") == ("copy_bandwidth", units.RATE)
    assert units.split("columns") == ("columns", None)
