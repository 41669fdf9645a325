"""summary.json: every setting, every run and what was concluded, for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from ...comparison import Comparison


def render(comparison: Comparison) -> str:
    """The schema is `comparison.Comparison`. null means not measured."""
    return json.dumps(asdict(comparison), indent=1, allow_nan=False) + "\n"
