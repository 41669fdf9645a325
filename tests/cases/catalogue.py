"""Which cases there are, read from their source: listing them imports no framework."""

import ast
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
THEMES = (
    *("cpu", "startup", "order", "threads", "memory"),
    *("transport", "storage", "elsewhere", "tensorflow_"),
)
VARIANTS = ("bad", "good")
BETWEEN = "between the loader and the loop"
"""In the docstring of a case whose script counts as waiting what a profiler of the loader cannot."""


class Case(NamedTuple):
    """A function of a theme whose only argument is `bad`."""

    name: str
    theme: str
    about: str
    """Its whole docstring, on one line; the first sentence is the story."""

    @property
    def framework(self) -> str:
        return "tensorflow" if self.theme == "tensorflow_" else "torch"

    @property
    def story(self) -> str:
        return self.about.partition(" good: ")[0]

    @property
    def spends_between(self) -> bool:
        return BETWEEN in self.about


def cases() -> dict[str, Case]:
    """By name, in the order of the themes and of the functions in them."""
    found = {}
    for theme in THEMES:
        for node in ast.parse((HERE / f"{theme}.py").read_text()).body:
            if isinstance(node, ast.FunctionDef) and [each.arg for each in node.args.args] == ["bad"]:
                about = " ".join((ast.get_docstring(node) or "").split())
                found[node.name] = Case(node.name, theme, about)
    return found
