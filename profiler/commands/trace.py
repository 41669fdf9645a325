"""`trace`: measures a training script of anyone's, unchanged."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..gate import Gate, parse
from ..units import parse_bytes, parse_duration

if TYPE_CHECKING:
    from ..conclude import Concluded
    from ..supervise import Ended

CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": False}
"""From the script on, everything on the command line is the script's."""


def main(
    context: typer.Context,
    program: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]...", help="The script and its arguments.")
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="A module to run in place of a script, as `python -m`.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; must not exist. [default: runs/NAME-TIME]")] = None,
    steps: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Records these steps of each loop, from 0, without the last one.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Records so long from the first batch on, e.g. 60s.")
    ] = None,
    loader: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The loop to report on, as train.py:42. [default: the busiest]"),
    ] = None,
    deep: Annotated[bool, typer.Option(help="Looks at stacks all the time, and not now and then: costs some percent.")] = False,
    max_disk: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Keeps fewer steps of a long run: about so much, e.g. 20MB."),
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Turns exit status 0 into 1, e.g. 'input_stall_share > 0.1'.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Prints no report.")] = False,
) -> int:
    """Measures any training script, unchanged: what waits, why, and what to do.

    The script's output, its exit status, its signals and its results are its own. The report goes to stderr when it has ended,
    and to the run directory. Exit status: the script's.
    """
    from .. import faults
    from ..places import fresh

    words = _words(program or [], module)
    gate = None if fail_on is None else parse(fail_on)
    limits = {"steps": _range(steps), "for_ns": None if duration is None else _quantity("--for", duration, parse_duration)}
    most_bytes = None if max_disk is None else _quantity("--max-disk", max_disk, parse_bytes)
    if out is not None and os.path.lexists(out):
        raise UserError(f"{out} exists, and a run never overwrites another: choose another --out, or remove it")
    name = (module or Path(words[0]).stem).rpartition(".")[2] or "script"
    folder = out or fresh(Path("runs"), name)
    with faults.told():
        from ..supervise import Asked, supervise

        ended = supervise(
            words,
            module=module is not None,
            name=name,
            folder=folder,
            command=sys.argv,
            asked=Asked(limits, loader, most_bytes, deep),
        )
    concluded = _conclude(folder, ended, quiet, context.find_root().info_name or "stallscope")
    return _gated(gate, concluded) if gate and ended.status == 0 else _leave(ended.status)


WITH_VALUE = ("--out", "--steps", "--for", "--loader", "--max-disk", "--fail-on")


def prepared(arguments: list[str]) -> list[str]:
    """Arguments of trace, with a mark after `-m MODULE`: what follows is the module's, options and all."""
    i = 0
    while i < len(arguments) and arguments[i].startswith("-") and arguments[i] != "--":
        if arguments[i] == "-m":
            return [*arguments[: i + 2], "--", *arguments[i + 2 :]]
        i += 2 if arguments[i] in WITH_VALUE else 1
    return arguments


def _words(program: list[str], module: str | None) -> list[str]:
    """What to run, and its arguments. Raises UserError for what no Python can run."""
    if module is not None:
        return [module, *program]
    if not program:
        raise UserError("trace: no script is named: trace train.py --epochs 3, or trace -m package.train")
    script = Path(program[0])
    if script.exists():
        _check_python(script)
        return program
    if script.name.startswith("python"):
        raise UserError(f"trace: '{script}' is the interpreter, which is chosen already: leave it out, as in trace train.py")
    raise UserError(f"trace: {script}: there is no such file. After -m goes a module; options of trace stand before the script")


def _check_python(script: Path) -> None:
    """A file of another kind is refused; Python with a mistake in it says so itself, as it does without us."""
    if script.is_dir():
        if not (script / "__main__.py").is_file():
            raise UserError(f"trace: {script} is a folder without a __main__.py: name the script in it")
        return
    try:
        content = script.read_bytes()
    except OSError as error:
        raise UserError(f"trace: {script} cannot be read: {error.strerror}") from None
    if script.suffix in (".py", ".pyw") or content.startswith(b"PK"):
        return
    try:
        compile(content, str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"trace: {script} is no Python: {error}. Name the Python script that it starts") from None


def _range(text: str | None) -> tuple[int, int | None] | None:
    """`100:400`, `100:` and `:400`."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon or not all(part == "" or part.isdecimal() for part in (first, last)):
        raise UserError(f"trace: --steps {text!r}: two numbers with a colon between them, as 100:400")
    begin, end = int(first or 0), int(last) if last else None
    if end is not None and end <= begin:
        raise UserError(f"trace: --steps {text!r}: holds no step: the second number has to be the larger one")
    return begin, end


def _quantity(option: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(f"trace: {option}: {error}") from None


def _gated(gate: Gate, concluded: Concluded | None) -> int:
    from ..result import to_json

    why = "nothing was recorded" if concluded is None else gate.failed(to_json(concluded.result, concluded.diagnosis))
    if why is not None:
        print(f"stallscope: --fail-on: {why}", file=sys.stderr)
    return 0 if why is None else 1


def _conclude(folder: Path, ended: Ended, quiet: bool, program: str) -> Concluded | None:
    """The report, on stderr. Whatever goes wrong in it, the script's exit status stays the script's."""
    from .. import faults, registry
    from ..conclude import keep

    os.environ.pop("MPLBACKEND", None)  # was the script's; see cli.main
    if ended.trouble is not None:
        print(f"stallscope: not recorded to its end: {faults.in_words(ended.trouble)}", file=sys.stderr)
    try:
        with faults.told(advice=f". The recorded run is whole: `{program} report {folder}` draws it"):
            concluded = keep(folder)
    except UserError as error:
        print(f"stallscope: {error}", file=sys.stderr)
        return None
    asked, loops = concluded.run.header.asked_loop, [str(loop["name"]) for loop in concluded.result.loops]
    if asked is not None and asked not in loops:
        there = ", ".join(dict.fromkeys(loops)) or "none"
        print(f"stallscope: --loader {asked}: no loader was iterated there; where some were: {there}", file=sys.stderr)
    if not quiet:
        text = registry.load("report", "text")
        print(text.render(concluded.run, concluded.result, concluded.diagnosis, colour=sys.stderr.isatty()), file=sys.stderr)
        print(text.footer(str(folder), program), file=sys.stderr)
    return concluded


def _leave(status: int) -> int:
    """The script's exit status; killed by a signal, we die of the same one, without a core of ours."""
    if status >= 0:
        return status
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(OSError, ValueError):  # SIGKILL has no handler to be put back
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
