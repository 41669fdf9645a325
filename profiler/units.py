"""Text into numbers and numbers into text. Nothing else does either: elsewhere a number is an integer of ns or of bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

LARGEST = 2**63 - 1
"""What fits the int64 columns of a run."""

_NUMBER_AND_UNIT = re.compile(r"([-+]?)([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(.*)", re.DOTALL)

_DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_SIZES = {"B": 1, "KB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12, "TiB": 2**40}
_MICRO = {"\u00b5s": 10**3, "\u03bcs": 10**3}  # the micro sign and the Greek letter: keyboards have either


def quote(text: str) -> str:
    """Text as a message shows it: in quotes, on one line, not endless."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


@dataclass(frozen=True)
class Quantity:
    """Something counted in whole base units, and written with a unit."""

    name: str
    """As in "not a duration"."""
    suffix: str
    """What names of numbers of it end in: says the base unit."""
    units: Mapping[str, int]
    """Unit -> base units. These are what a message offers."""
    also: Mapping[str, int]
    """Other spellings that are understood."""

    def parse(self, text: str) -> int:
        """Base units, rounded to a whole number. ValueError says what could have been written."""
        match = _NUMBER_AND_UNIT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{quote(text)} is not a {self.name}: {self._offer('8')}")
        sign, number, unit = match.groups()
        if sign == "-":
            raise ValueError(f"{quote(text)} is negative: a {self.name} is 0 or more")
        if not unit:
            raise ValueError(f"{quote(text)} has no unit: {self._offer(number)}")
        factor = self.units.get(unit) or self.also.get(unit)
        if factor is None:
            raise ValueError(f"{quote(text)} has an unknown unit: {self._offer(number)}")
        return self._whole(Decimal(number) * factor, text)

    def text(self, value: float) -> str:
        """In the largest decimal unit that leaves 1 or more, to two or three digits."""
        decimal = [item for item in self.units.items() if "iB" not in item[0]]
        # From 0.9995 of a unit on, the one below would print 1000.
        unit, factor = next((item for item in reversed(decimal) if abs(value) >= 0.9995 * item[1]), decimal[0])
        digits = 0 if factor == 1 or abs(value) >= 99.95 * factor else 1
        return f"{value / factor:.{digits}f} {unit}"

    def _offer(self, number: str) -> str:
        return "write " + ", ".join(f"{number[:20]} {unit}" for unit in self.units)

    def _whole(self, value: Decimal, text: str) -> int:
        base = next(iter(self.units))
        if value > LARGEST:
            raise ValueError(f"{quote(text)} is too large: at most {LARGEST} {base}")
        if 0 < value < 1:
            raise ValueError(f"{quote(text)} is less than 1 {base}")
        return round(value)


DURATION = Quantity("duration", "_ns", _DURATIONS, _MICRO)
SIZE = Quantity("size", "_bytes", _SIZES, {"kB": 10**3})
RATE = Quantity("rate", "_bytes_per_s", {f"{unit}/s": n for unit, n in _SIZES.items()}, {"kB/s": 10**3})

parse_duration = DURATION.parse
parse_bytes = SIZE.parse
parse_rate = RATE.parse

duration = DURATION.text
"""8000000 -> "8.0 ms"."""
size = SIZE.text
"""132000000 -> "132 MB": powers of ten, as disks and networks are sold."""
rate = RATE.text
"""180000000 -> "180 MB/s"."""


def split(name: str) -> tuple[str, Quantity | None]:
    """A name without its unit, and what it counts: `seek_ns` is a duration called `seek`."""
    for quantity in (DURATION, SIZE, RATE):
        if name.endswith(quantity.suffix):
            return name.removesuffix(quantity.suffix), quantity
    return name, None


def share(part: float) -> str:
    """0.123 -> "12.3 %"."""
    return f"{100 * part:.1f} %"


def count(n: float) -> str:
    """1200 -> "1,200"; below 100, what is not whole keeps one digit: 3.27 -> "3.3"."""
    return f"{n:,.0f}" if n == int(n) or abs(n) >= 99.95 else f"{n:.1f}"


def speedup(times: float) -> str:
    """1.6 -> "1.6x"; where that would read 1.0x, 1.04 -> "+4.0 %"."""
    return f"{count(round(times, 1))}x" if times >= 1.1 else f"+{share(max(0.0, times - 1))}"
