"""Runs a user's program as `python` would, recorded. Started by `trace`, by its path: never imported.

Until the program's first line runs nothing but the standard library is imported, and `sys.path`, `sys.argv` and `__main__` are
what the program would find without us. Our frames are taken out of the traceback that ends it.
"""

import builtins
import importlib.util
import json
import os
import runpy
import sys
import types
import zipimport
from collections.abc import Callable
from importlib.machinery import PathFinder, SourceFileLoader
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "stallscope"
_keep: list[types.ModuleType] = []
"""The module that is running: without a reference to it, its names would be cleared."""


def main() -> None:
    _off_path(HERE)
    asked, sys.argv[:] = json.loads(sys.argv[1]), sys.argv[2:]
    name = sys.argv[0]
    run, first_on_path = _module(name) if asked["module"] else _script(name)
    _record(asked, first_on_path)
    _keep.append(sys.modules["__main__"])
    sys.modules["__main__"] = program = types.ModuleType("__main__")
    try:
        run(program)
    except BaseException:
        own = sys.excepthook
        sys.excepthook = lambda kind, error, trace: own(kind, error, _without_us(error))
        raise


def _off_path(folder: str) -> None:
    """The interpreter puts the folder of what it is started with first, unless it is told not to."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.realpath(folder):
        del sys.path[0]


def _first(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _module(name: str) -> tuple[Callable[[types.ModuleType], None], str]:
    """`python -m name`."""
    folder = os.getcwd()
    _first(folder)
    return lambda program: _as_main(name, True), folder


def _script(path: str) -> tuple[Callable[[types.ModuleType], None], str]:
    """`python path`: of a file, or of a folder or archive that holds a __main__.py."""
    if os.path.isdir(path) or _is_archive(path):
        place = os.path.abspath(path)
        sys.path.insert(0, place)
        return lambda program: _as_main("__main__", False), place
    folder = os.path.dirname(os.path.realpath(path))
    _first(folder)
    return lambda program: _execute(path, program), folder


def _execute(path: str, program: types.ModuleType) -> None:
    path = os.path.abspath(path)
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    program.__dict__.update(
        __annotations__={},
        __builtins__=builtins,
        __cached__=None,
        __file__=path,
        __loader__=SourceFileLoader("__main__", path),
        __package__=None,
        __spec__=None,
    )
    exec(code, program.__dict__)


def _is_archive(path: str) -> bool:
    try:
        zipimport.zipimporter(path)
    except zipimport.ZipImportError:
        return False
    return True


def _as_main(name: str, is_module: bool) -> None:
    """What the interpreter itself calls for -m, and for a folder."""
    runpy._run_module_as_main(name, is_module)  # type: ignore[attr-defined]


# Recording


def _record(asked: dict[str, Any], first_on_path: str) -> None:
    """Puts the hooks in place. A program that cannot be recorded runs all the same."""
    try:
        name = _our_name(first_on_path)
        spec = importlib.util.spec_from_file_location(name, f"{HERE}/__init__.py", submodule_search_locations=[HERE])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        importlib.import_module(f"{name}.following").begin(asked)
    except Exception as error:
        print(f"stallscope: this is not recorded: {type(error).__name__}: {error}", file=sys.stderr)


def _our_name(first_on_path: str) -> str:
    """A program that brings a module of our name keeps it: then we go by another one."""
    found = PathFinder.find_spec(PACKAGE, [first_on_path])
    return PACKAGE if found is None or os.path.dirname(found.origin or "") == HERE else f"_{PACKAGE}"


# Errors


def _without_us(error: BaseException) -> types.TracebackType | None:
    """The traceback without our frames, and those of the errors that led to it."""
    pending: list[BaseException | None] = [error]
    seen = set()
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = _users_frames(each.__traceback__)
            pending += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return error.__traceback__


def _users_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    kept: list[types.TracebackType] = []
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(HERE + os.sep) and not (not kept and file == runpy.__file__):
            kept.append(trace)
        trace = trace.tb_next
    if not kept:
        return None
    for this, following in zip(kept, [*kept[1:], None], strict=True):
        this.tb_next = following
    return kept[0]


if __name__ == "__main__":
    main()
