"""`--fail-on "input_stall_share > 0.1"`: a condition on result.json, which an automatic check can fail on."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .errors import UserError
from .result import Result

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
FORM = re.compile(r"\s*([a-z]\w*(?:\.\w+)*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*")
EXAMPLE = "--fail-on 'input_stall_share > 0.1', or 'throughput_samples_per_s.steady < 500', or 'verdict == input_bound'"


@dataclass(frozen=True)
class Gate:
    """One condition. What it names is a key of result.json, a key within it after a dot."""

    key: str
    operator: str
    limit: float | str

    def failed(self, result: Mapping[str, Any]) -> str | None:
        """Why it fails, in words; None: it does not. What was not measured fails: it could not be ruled out."""
        value: Any = result
        for part in self.key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            return f"{self.key} was not measured, so that {self.operator} {self.limit} cannot be ruled out"
        if not isinstance(value, type(self.limit) if isinstance(self.limit, str) else int | float):
            return f"{self.key} is {value!r}, which cannot be compared with {self.limit!r}"
        return f"{self.key} is {value}: {self.operator} {self.limit}" if OPERATORS[self.operator](value, self.limit) else None


def parse(text: str) -> Gate:
    """Raises UserError for what is no condition, or names what no result has."""
    match = FORM.fullmatch(text)
    if match is None:
        raise UserError(f"--fail-on {text!r}: no condition. It is a key of result.json, a comparison and a value: {EXAMPLE}")
    key, compare, limit = match.groups()
    known = [field.name for field in fields(Result)]
    if key.partition(".")[0] not in known:
        raise UserError(f"--fail-on {text!r}: result.json has no key {key.partition('.')[0]!r}. It has: {', '.join(known)}")
    try:
        return Gate(key, compare, float(limit))
    except ValueError:
        if compare not in ("==", "!="):
            raise UserError(f"--fail-on {text!r}: {limit!r} is no number, and {compare} needs one") from None
        return Gate(key, compare, limit)
