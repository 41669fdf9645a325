"""Run -> numbers -> findings, in one call: what every verb that reads a run does first."""

from __future__ import annotations

from dataclasses import dataclass

from . import registry
from .diagnosis import diagnose
from .measure import measure
from .result import Diagnosis, Result
from .rules import KINDS
from .run import Run


@dataclass(frozen=True)
class Concluded:
    """What a report draws."""

    run: Run
    result: Result
    diagnosis: Diagnosis


def conclude(run: Run) -> Concluded:
    """Measures the run and asks every rule there is."""
    result = measure(run)
    rules = [registry.load("rule", kind) for kind in sorted(registry.kinds("rule"), key=KINDS.index)]
    return Concluded(run, result, diagnose(result, rules))


def draw(concluded: Concluded, format: str) -> str | bytes:
    """One report of it. Raises UserError for a format that is not there."""
    drawn: str | bytes = registry.load("report", format).render(concluded.run, concluded.result, concluded.diagnosis)
    return drawn
