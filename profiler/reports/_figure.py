"""What the pictures of a run have in common: the page, its head, headings with a legend, and labels that fit their place."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from ..result import Diagnosis, Result
from ..run import Run
from . import _palette as palette
from ._words import labels, setup, share_or_not, throughput

DPI = 100
PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
"""Behind words that lie on a drawing."""


def blank(width_in: float, height_in: float) -> Figure:
    """A white page. Nothing of matplotlib's global state is touched."""
    figure = Figure(figsize=(width_in, height_in), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def to_png(figure: Figure) -> bytes:
    png = io.BytesIO()
    figure.canvas.print_png(png)  # type: ignore[attr-defined]
    return png.getvalue()


def header(figure: Figure, run: Run, result: Result, diagnosis: Diagnosis) -> float:
    """Title and what to know beside it; returns where it ends, as a share of the page."""
    facts = [*labels(run, result), f"throughput {throughput(result.throughput_samples_per_s.epoch)}"]
    facts.append(f"device idle {share_or_not(result.device_idle_share)}")
    title = _lines(diagnosis.findings[0].verdict, 84, 3)
    below = _lines(" | ".join(facts), 150, 2) + _lines(f"{result.name}: {setup(run, result)}", 150, 1)
    look: dict[str, Any] = {"va": "top", "color": palette.INK, "linespacing": 1.3}
    inch = 1 / figure.get_figheight()
    figure.text(0.02, 1 - 0.15 * inch, "\n".join(title), fontsize=15, fontweight="bold", parse_math=False, **look)
    end = 1 - (0.15 + 0.29 * len(title)) * inch
    figure.text(0.02, end, "\n".join(below), fontsize=10, parse_math=False, **look)
    return end - 0.2 * inch * len(below)


def _lines(text: str, width: int, most: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=most, placeholder=" ...")


def heading(axes: Axes, title: str, entries: Iterable[tuple[str, str]] = (), note: str = "", *, rise_pt: float = 9) -> None:
    """A panel's title, and beside it what its colours mean."""
    offset = 6 + width_pt(write(axes, title, (0, 1), (0, rise_pt), weight="bold", size=11))
    offset = in_line(axes, entries, (0, 1), (offset + 8, rise_pt))
    write(axes, note, (0, 1), (offset, rise_pt), colour=palette.MUTED)


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset_pt: tuple[float, float],
    *,
    coords: str = "axes fraction",
    colour: str = palette.INK,
    size: float = 9,
    weight: str = "normal",
) -> Annotation:
    return axes.annotate(
        text,
        at,
        xycoords=coords,
        xytext=offset_pt,
        textcoords="offset points",
        annotation_clip=False,
        color=colour,
        fontsize=size,
        fontweight=weight,
        va="center",
    )


def in_line(
    axes: Axes,
    entries: Iterable[tuple[str, str]],
    at: tuple[float, float],
    offset_pt: tuple[float, float],
    coords: str = "axes fraction",
) -> float:
    """Texts beside each other, a square of its colour before each. Returns where the next would begin, in points."""
    x, y = offset_pt
    for text, colour in entries:
        x += width_pt(write(axes, "■", at, (x, y), coords=coords, colour=colour)) + 3
        x += width_pt(write(axes, text, at, (x, y), coords=coords)) + 11
    return x


def width_pt(text: Annotation) -> float:
    return float(text.get_window_extent().width) * 72 / DPI


def say(axes: Axes, text: str) -> None:
    """Words in place of a panel that there is nothing to draw in."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=palette.MUTED, fontsize=11)


def fitted(axes: Axes, centre: tuple[float, float], room_px: tuple[float, float], spellings: Iterable[str], on: str) -> bool:
    """Writes the first spelling that fits into width and height, on a colour; False if none does."""
    for spelling in spellings:
        text = axes.text(*centre, spelling, ha="center", va="center", fontsize=9.5, color=palette.ink_on(on))
        box = text.get_window_extent()
        if box.width <= room_px[0] and box.height <= room_px[1]:
            return True
        text.remove()
    return False
