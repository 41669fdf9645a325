"""Parts that are not ours: a user's own module, named with a dot, and what installed packages register as an entry point."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from . import contracts
from .errors import UserError

GROUP = "stallscope.parts"
"""An entry point of this group is called FAMILY.KIND and names a module: `source.lmdb = "mylab.feeds.lmdb"`."""

HANDED_IN: Mapping[str, tuple[str, ...]] = {
    "source": ("cache_dir",),
    "loader": ("source", "probe", "on_error"),
    "model": ("sample_shape", "n_classes", "device", "seed"),
    "rule": ("result",),
    "report": ("run", "result", "diagnosis"),
    "comparison": ("comparison",),
}
"""What a part's function is called with, before its options."""

FUNCTION: Mapping[str, str] = {"rule": "judge", "report": "render", "comparison": "render"}
"""What a part's function is called; of all others `build`."""

PROTOCOLS: Mapping[str, type] = {"source": contracts.Source, "loader": contracts.Loader, "model": contracts.Model}


@dataclass
class Registered:
    """What installed packages offer."""

    modules: dict[tuple[str, str], str] = field(default_factory=dict)
    """(family, kind) -> module."""
    problems: list[str] = field(default_factory=list)
    """Entry points that cannot be used, and why: said by `list`, and in nobody's way."""


@functools.cache
def registered(ours: Callable[[str], Sequence[str]]) -> Registered:
    """Read once a process: looking through all installed packages takes some milliseconds. ours: our kinds of a family."""
    found = Registered()
    for entry in importlib.metadata.entry_points(group=GROUP):
        family, _, kind = entry.name.partition(".")
        try:
            module, attribute = entry.module, entry.attr
        except AttributeError:  # what it names is no module
            module, attribute = "", entry.value
        package = entry.dist.name if entry.dist else "a package"
        if family not in HANDED_IN or not kind.isidentifier() or attribute:
            found.problems.append(
                f"{package}: entry point '{entry.name} = {entry.value}' must be like source.lmdb = mylab.lmdb"
            )
        elif kind in ours(family):
            found.problems.append(f"{package}: entry point '{entry.name} = {entry.value}': {family} '{kind}' is one of ours")
        elif (family, kind) in found.modules:
            found.problems.append(f"{package}: {family} '{kind}' is registered already, by {found.modules[family, kind]}")
        else:
            found.modules[family, kind] = module
    return found


def see_current_folder() -> None:
    """A user's module may lie in the folder where the program was started. Last on the path, so that it hides nothing."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)


def load(family: str, kind: str, module: str, load_module: Callable[[str], ModuleType]) -> ModuleType:
    """A module that is not ours, with the function that its family needs. UserError says what is wrong with it."""
    see_current_folder()
    try:
        loaded = load_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            where = "the current folder and the environment"
            raise UserError(f"{family} '{kind}': there is no module '{error.name}' in {where}") from None
        raise UserError(_own_mistake(family, kind, error)) from error
    except (Exception, SystemExit) as error:
        raise UserError(_own_mistake(family, kind, error)) from error
    _refuse_function(family, kind, loaded)
    return loaded


def _own_mistake(family: str, kind: str, error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"{family} '{kind}' cannot be imported: {text} ({place[0]}:{place[1]})"


def _refuse_function(family: str, kind: str, module: ModuleType) -> None:
    """It must be there, and take what it will be called with."""
    name, handed_in = FUNCTION.get(family, "build"), HANDED_IN[family]
    function = getattr(module, name, None)
    wanted = f"{name}({', '.join(handed_in)}{', *, ...' if name == 'build' else ''})"
    if not callable(function):
        raise UserError(f"{family} '{kind}': {module.__file__} has no function {wanted}")
    parameters = inspect.signature(function).parameters.values()
    options = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY and name == "build"}
    try:
        inspect.signature(function).bind(*handed_in, **options)
    except TypeError as error:
        raise UserError(f"{family} '{kind}': {name} of {module.__file__} must be {wanted}: {error}") from None


def refuse_incomplete(family: str, kind: str, part: Any) -> None:
    """Names what a part lacks of its contract, before it is missed in the middle of a run."""
    protocol = PROTOCOLS.get(family)
    missing = [name for name in _promised(protocol) if not hasattr(part, name)] if protocol else []
    if missing:
        what = f"what build returned ({type(part).__name__})"
        raise UserError(
            f"{family} '{kind}': {what} has no {', '.join(missing)}: a {family} needs {', '.join(_promised(protocol))}"
        )


def _promised(protocol: type | None) -> Sequence[str]:
    """The names in a protocol, in the order in which it states them."""
    own = [*getattr(protocol, "__annotations__", ()), *(vars(protocol) if protocol else ())]
    return [name for name in own if name == "__len__" or not name.startswith("_")]
