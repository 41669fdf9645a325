"""Colours: each stands for one thing, and for the same thing in every report.

Chosen to stay apart in every kind of colour blindness (a test computes it), from the palettes of Okabe and Ito, and Tol. And
colour is never the only sign: what is drawn is named beside it.
"""

from __future__ import annotations

BUSY = "#34506b"
INPUT = "#d55e00"
OUTSIDE = "#6a3d9a"
UNEXPLAINED = "#c9c9c9"

PARTS = {"wait": INPUT, "step": "#8fb3d1", "outside_loop": OUTSIDE}
"""Where the host is. Waiting is the colour of input: the same thing seen from the other side."""

CAUSES = {
    "outside_loop": OUTSIDE,
    "input": INPUT,
    "copy": "#009e73",
    "sync": "#cc79a7",
    "host": "#f0d442",
    "unexplained": UNEXPLAINED,
}
"""Why the device idles."""

STAGES = {
    "startup": "#882255",
    "sampler": "#8c6d31",
    "fetch": "#0072b2",
    "decode": "#e69f00",
    "core_shortage": "#ee3377",
    "collate": "#f4e36a",
    "handoff": "#56b4e9",
    "unexplained": UNEXPLAINED,
}
"""Where a batch's time goes before the loop has it."""

INK, MUTED = "#1a1a1a", "#606060"


def ink_on(colour: str) -> str:
    """Black or white, whichever is read more easily on this colour (relative luminance as in WCAG)."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return INK if luminance > 0.2 else "white"
