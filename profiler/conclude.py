"""Run -> numbers -> findings, in one call: what every verb that reads a run does first."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import registry
from .comparison import Comparison
from .contracts import Rule
from .diagnosis import diagnose
from .errors import UserError
from .loops import chosen
from .measure import measure
from .result import Diagnosis, Finding, Result
from .rules import KINDS
from .run import Run
from .runfile import read_run, write_whole


@dataclass(frozen=True)
class Concluded:
    """What a report draws."""

    run: Run
    result: Result
    diagnosis: Diagnosis


def conclude(run: Run) -> Concluded:
    """Measures the run and asks every rule there is."""
    result = measure(run)
    return Concluded(chosen(run), result, diagnose(result, _rules()))


def _rules() -> list[Rule]:
    """Ours in the order of the closed list, then those that installed packages register; one that is broken, `list` names."""
    known = sorted(registry.kinds("rule"), key=lambda kind: KINDS.index(kind) if kind in KINDS else len(KINDS))
    ours = [registry.load("rule", kind) for kind in known if kind in KINDS]
    others = []
    for kind in known[len(ours) :]:
        with suppress(UserError):
            others.append(_Foreign(kind, registry.load("rule", kind)))
    return [*ours, *others]


@dataclass(frozen=True)
class _Foreign:
    """A rule that is not ours: it gives the fields of a finding, since it need not import anything of us."""

    kind: str
    rule: Any

    def judge(self, result: Result) -> Finding | None:
        """A rule that fails is a finding of its own: the report of a whole run must not be lost for it."""
        try:
            found = self.rule.judge(result)
            return None if found is None else Finding(**found)
        except Exception as error:
            because = f"{type(error).__name__}: {error}"
            return Finding(self.kind, "info", f"The rule '{self.kind}' failed: it was left out.", because, "Mend it.", {})


def keep(folder: Path) -> Concluded:
    """Reads a run back, as every later report will, and writes result.json and the pictures beside it. Raises OSError."""
    concluded = conclude(read_run(folder))
    write_whole(folder / "result.json", draw(concluded, "json"))
    write_whole(folder / "stalls.png", draw(concluded, "png"))
    write_whole(folder / "lanes.png", draw(concluded, "lanes"))
    return concluded


def draw_comparison(comparison: Comparison, format: str, **look: Any) -> str | bytes:
    """Several runs, side by side. Raises UserError for a format that is not there."""
    drawn: str | bytes = registry.load("comparison", format).render(comparison, **look)
    return drawn


def draw(concluded: Concluded, format: str) -> str | bytes:
    """One report of it. Raises UserError for a format that is not there."""
    drawn: str | bytes = registry.load("report", format).render(concluded.run, concluded.result, concluded.diagnosis)
    return drawn
