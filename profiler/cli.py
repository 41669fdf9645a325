"""The command line: one verb a file in commands/. Errors become exit statuses here and nowhere else.

0 measured; 2 the user can mend it (the message says how); 130 interrupted, with what was measured kept.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any

import typer

from . import commands
from .commands.trace import prepared
from .errors import UserError

PROGRAM = "stallscope"
UsageError: Any = typer.BadParameter.__bases__[0]
"""Click's own, wherever this version of typer keeps it: newer ones bring their own click along."""


def application() -> typer.Typer:
    """Every verb, in the order of the alphabet. Their modules import nothing heavy before they are called."""
    app = typer.Typer(
        help="A profiler for the input pipeline of deep-learning training: is the device waiting for data, and why?",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for module in pkgutil.iter_modules(commands.__path__):
        if not module.name.startswith("_"):
            verb = importlib.import_module(f".{module.name}", commands.__name__)
            app.command(module.name, context_settings=getattr(verb, "CONTEXT", None))(verb.main)
    app.callback()(lambda: None)  # keeps the verb on the command line however many there are
    return app


def main(arguments: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Runs one command and returns its exit status."""
    _mend_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["trace"]:
        given[1:] = prepared(given[1:])
    else:  # a script under trace has the environment as it is
        os.environ.pop("MPLBACKEND", None)  # Jupyter sets one that need not be installed here; pictures are drawn into files
    status = _status(given, program)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough. Unmet here, the interpreter would complain of it at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _mend_streams() -> None:
    """A closed stream swallows what is written to it, and one of few letters gets `?` for the others: neither ends a run."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays open as long as the program)
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _status(arguments: Sequence[str] | None, program: str) -> int:
    try:
        status = application()(args=arguments, prog_name=program, standalone_mode=False)
    except UsageError as error:
        error.show()
        return 2
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        return 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return 0  # typer and rich would make it 1, which is the status of a failed gate
    return status if isinstance(status, int) else 0


def run() -> None:
    """The console script."""
    sys.exit(main())
