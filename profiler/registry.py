"""kind -> module -> build(**options). The only place where packages meet.

A kind is the name of a file, or of a package, that does not begin with `_`. Kinds are found without importing them, so that
listing them costs no framework. Adding a part edits nothing here.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from . import plugins
from .errors import NotInstalled, UserError
from .units import Quantity, quote, split

# A checkout has loaders/, models/ and scenarios/ beside profiler/. The wheel has them inside, where no directory of the
# user's own can be mistaken for them.
_ROOT = "" if __package__ == "profiler" else f"{__package__}."

PACKAGES: Mapping[str, str] = {
    "source": f"{_ROOT}loaders.sources",
    "loader": f"{_ROOT}loaders",
    "model": f"{_ROOT}models",
    "rule": f"{__package__}.rules",
    "report": f"{__package__}.reports",
    "comparison": f"{__package__}.reports.comparison",
}
"""Family -> the package that its parts are modules of."""

SCENARIOS = f"{_ROOT}scenarios"
"""The package that the shipped scenarios lie in."""

EXTRAS: Mapping[str, str] = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "keras": "tensorflow",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "pynvml": "gpu",
}
"""Framework, as it is imported -> the extra that installs it."""

REQUIRED = inspect.Parameter.empty
"""The default of an option that has none."""

_BOOL_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class Refused(UserError):
    """An option that a part cannot take as it is given."""

    def __init__(self, message: str, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option
        """Which one, as it was spelled; None: one that is not there."""


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter of a `build`."""

    parameter: str
    """The name that `build` takes, with the unit as its suffix."""
    type: Any
    default: Any
    """In the unit of the suffix. REQUIRED: there is none."""

    @property
    def name(self) -> str:
        """The name that a scenario writes: no suffix."""
        return split(self.parameter)[0]

    @property
    def quantity(self) -> Quantity | None:
        """What the suffix counts. None: a plain value."""
        return split(self.parameter)[1]


@dataclass(frozen=True)
class Description:
    """What `list` prints of a part."""

    kind: str
    summary: str
    """First line of its docstring."""
    options: Mapping[str, str | None]
    """Name -> default, both as a scenario writes them. None: there is no default."""


def folders(package: str) -> list[str]:
    """Where a package's files lie; none if it is not there."""
    spec = find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def kinds(family: str) -> tuple[str, ...]:
    """The kinds of a family, importing none: ours by file name, and those that installed packages register."""
    return tuple(sorted({*ours(family), *(kind for name, kind in plugins.registered(ours).modules if name == family)}))


def ours(family: str) -> tuple[str, ...]:
    """Our own kinds of a family, by file name."""
    package = PACKAGES[family]
    names = (module.name for module in pkgutil.iter_modules(folders(package)))
    return tuple(sorted(n for n in names if not n.startswith("_") and f"{package}.{n}" not in PACKAGES.values()))


def closest(name: str, known: Iterable[str]) -> str:
    """A question that ends a message, or nothing if no known name is close."""
    return "".join(f" Did you mean {match}?" for match in difflib.get_close_matches(name, list(known), n=1))


def _module(family: str, kind: str) -> str:
    """The module of a kind. The one place to teach a new spelling of kinds."""
    if kind in ours(family):
        return f"{PACKAGES[family]}.{kind}"
    if registered := plugins.registered(ours).modules.get((family, kind)):
        return registered
    if all(part.isidentifier() for part in kind.split(".")) and "." in kind:
        return kind
    known = kinds(family)
    raise UserError(f"{family}: no kind {quote(kind)}.{closest(kind, known)} It can be: {', '.join(known)}")


@contextmanager
def _naming_what_is_missing(family: str, kind: str) -> Iterator[None]:
    """A framework that is not installed is the user's to mend; any other failing import is our bug."""
    try:
        yield
    except ModuleNotFoundError as error:
        framework = (error.name or "").partition(".")[0]
        if framework not in EXTRAS or find_spec(framework):
            raise
        extra = EXTRAS[framework]
        raise NotInstalled(f"{family} {kind!r} needs {framework}: pip install 'stallscope[{extra}]'") from error


def load(family: str, kind: str) -> ModuleType:
    """The module of a kind, imported with all that it needs."""
    module = _module(family, kind)
    with _naming_what_is_missing(family, kind):
        if kind in ours(family):
            return importlib.import_module(module)
        return plugins.load(family, kind, module, importlib.import_module)


def build(family: str, kind: str, /, *handed_in: Any, **options: Any) -> Any:
    """The part itself. A ValueError of its `build` names an option that the user can mend."""
    module = load(family, kind)
    with _naming_what_is_missing(family, kind):
        try:
            part = module.build(*handed_in, **options)
        except ValueError as error:
            named = _OPTION.match(str(error))
            raise Refused(f"{family}.{kind}: {error}", named[0] if named else None) from error
        except SystemExit as error:
            raise UserError(f"{family}.{kind}: its build ended the program: it called sys.exit({error.code!r})") from error
    if kind not in ours(family):
        plugins.refuse_incomplete(family, kind, part)
    return part


_OPTION = re.compile(r"[a-z_]+(?=[=:])")
"""How a ValueError of `build` begins, by convention: with the option that it is about."""


def options(build: Callable[..., Any]) -> dict[str, Option]:
    """The schema of a part: its build's keyword-only parameters, by the names that a scenario writes."""
    try:
        types = get_type_hints(build)
    except Exception as error:
        raise UserError(f"{build.__module__}: the types of its build cannot be read: {error}") from error
    parameters = inspect.signature(build).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    found = [Option(p.name, types.get(p.name, Any), p.default) for p in keywords]
    return {option.name: option for option in found}


def check(schema: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """What `build` is called with: the given options, in the units of their suffixes, and the defaults of all others."""
    for name in given:
        if name not in schema:
            takes = f"It takes: {', '.join(schema)}." if schema else "It takes no options."
            raise Refused(f"no option {quote(name)}. {takes}{closest(name, schema)}", name)
    values = {name: _value(schema[name], value) for name, value in given.items()}
    for name, option in schema.items():
        if name not in given and option.default is REQUIRED:
            raise Refused(f"needs {name}: {_spell(option)}")
    return {option.parameter: values.get(name, option.default) for name, option in schema.items()}


def _value(option: Option, value: Any) -> Any:
    quantity = option.quantity
    return _typed(option, value) if quantity is None else _with_unit(option, quantity, value)


def _with_unit(option: Option, quantity: Quantity, value: Any) -> int | None:
    if value is None and NoneType in get_args(option.type):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Refused(f"{option.name} must be {_spell(option)}, not {_shown(value)}", option.name)
    try:
        return quantity.parse(str(value))
    except ValueError as error:
        raise Refused(f"{option.name}: {error}", option.name) from None


def _typed(option: Option, value: Any) -> Any:
    if isinstance(value, str) and bool in (option.type, *get_args(option.type)):
        value = _BOOL_WORDS.get(value.lower(), value)
    try:
        return _fitted(option.type, value)
    except ValidationError:
        hint = _quotes(option.type, value)
        raise Refused(f"{option.name} must be {_spell(option)}, not {_shown(value)}{hint}", option.name) from None


def _fitted(type_: Any, value: Any) -> Any:
    """The value as the type. Strict, but as JSON is: a list fits a tuple, and a whole number fits a float."""
    adapter = TypeAdapter[Any](type_, config=ConfigDict(strict=True, allow_inf_nan=False))
    return adapter.validate_json(json.dumps(value))


def _quotes(type_: Any, value: Any) -> str:
    """The way out for a number in quotes, or for a text without them."""
    try:
        if isinstance(value, str) and len(value) <= 20:
            _fitted(type_, json.loads(value))
            return f". Write {value} without quotes"
        if isinstance(value, int | float):
            _fitted(type_, str(value))
            return f'. Write "{value}" in quotes'
    except ValueError:  # both a text that is no JSON and a value that still does not fit
        pass
    return ""


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null", Any: "anything"}


def _spell(option: Option) -> str:
    """The type in words."""
    if option.quantity is None:
        return _spell_type(option.type)
    text = f"a {option.quantity.name} such as 8 {list(option.quantity.units)[2]}"
    return f"{text} or null" if NoneType in get_args(option.type) else text


def _spell_type(type_: Any) -> str:
    origin, inner = get_origin(type_), get_args(type_)
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin in (Union, UnionType):
        return " or ".join(map(_spell_type, inner))
    if origin in (tuple, list):
        return "a list, each " + _spell_type(inner[0])
    return _WORDS.get(type_, str(type_))


def _shown(value: Any) -> str:
    """The value as a scenario writes it, cut to what a line bears."""
    if isinstance(value, str):
        return f"the text {quote(value)}"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe(family: str, kind: str) -> Description:
    """A part as its source text shows it. Imports nothing: the framework may be missing, or slow to import."""
    try:
        spec = find_spec(_module(family, kind))  # of a registered module this imports the packages that it lies in
        tree = ast.parse(Path((spec and spec.origin) or "").read_bytes())
    except (Exception, SystemExit) as error:  # whatever the packages of others do while they are imported
        if kind in ours(family):
            raise
        return Description(kind, f"cannot be read: {error}", {})
    builds = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]
    arguments = [pair for node in builds for pair in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    defaults = {split(argument.arg)[0]: _default(argument.arg, default) for argument, default in arguments}
    return Description(kind, (ast.get_docstring(tree) or "").partition("\n")[0], defaults)


def _default(parameter: str, default: ast.expr | None) -> str | None:
    if default is None:
        return None
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return ast.unparse(default)
    quantity = split(parameter)[1]
    if quantity and value is not None:
        return quantity.text(value)
    return value if isinstance(value, str) else json.dumps(value)
