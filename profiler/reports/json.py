"""result.json: every number of the run and the findings, for other programs."""

from __future__ import annotations

import json

from ..result import Diagnosis, Result, to_json
from ..run import Run


def render(run: Run, result: Result, diagnosis: Diagnosis) -> str:
    """The schema is `result.Result`. null means not measured."""
    return json.dumps(to_json(result, diagnosis), indent=1, allow_nan=False) + "\n"
