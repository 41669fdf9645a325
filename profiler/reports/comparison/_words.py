"""Words that the text and the picture of a comparison share."""

from __future__ import annotations

from collections.abc import Sequence

from ...comparison import Comparison, Setting
from ...result import NEIGHBOURS_SHARE
from ...units import count, duration, share, size

PRICES = ("memory", "cores", "start-up")
UNKNOWN = "?"
OVER = f"over {share(NEIGHBOURS_SHARE)} of the cores"


def heading(comparison: Comparison) -> str:
    each = "one run each" if comparison.repeats == 1 else f"{count(comparison.repeats)} runs each"
    return f"{comparison.name}: {count(len(comparison.settings))} settings, {each}"


def said_of_all(comparison: Comparison) -> list[str]:
    """What none of its figures must be quoted without."""
    return [*_shared(comparison), *([] if comparison.complete else ["incomplete: not all runs were made"])]


def said_of(setting: Setting, comparison: Comparison) -> list[str]:
    """What stands beside this one's name, because it does not hold for all."""
    return [*(label for label in setting.labels if label not in _shared(comparison)), *(["reference"] * setting.reference)]


def _shared(comparison: Comparison) -> Sequence[str]:
    measured = [setting.labels for setting in comparison.settings if setting.throughput_samples_per_s]
    return [label for label in measured[0] if all(label in labels for labels in measured)] if measured else []


def prices(setting: Setting) -> tuple[str, str, str]:
    """What it takes, in the order of PRICES."""
    return (
        UNKNOWN if setting.memory_bytes is None else size(setting.memory_bytes),
        UNKNOWN if setting.cpu_cores is None else f"{setting.cpu_cores:.1f}",
        UNKNOWN if setting.startup_s is None else duration(setting.startup_s * 1e9),
    )


def is_unknown(comparison: Comparison) -> bool:
    """Whether a price of something that was measured is not."""
    return any(UNKNOWN in prices(setting) for setting in comparison.settings if setting.throughput_samples_per_s)


def is_disturbed(comparison: Comparison) -> bool:
    return any(setting.noisy for setting in comparison.settings)


def between_what(comparison: Comparison) -> str:
    """What an interval is here."""
    if comparison.repeats > 1:
        return "the slowest and the fastest run"
    return "95 % interval over blocks of the one run; drift between runs is not in it"
