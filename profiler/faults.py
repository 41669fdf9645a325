"""What ended a run early, in words that say how to mend it; None for what is our bug and keeps its traceback."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import UserError


def in_words(error: BaseException) -> str | None:
    """The message for the user."""
    text = str(error)
    if isinstance(error, SystemExit):
        return f"a part ended the program: it called sys.exit({error.code!r})"
    if getattr(error, "user_can_mend", False):
        # A worker's error arrives with the worker's traceback around it; its own words come last.
        return text.rpartition(f"{type(error).__name__}: ")[2].strip()
    if isinstance(error, ConnectionError | EOFError):
        return f"a loader worker died: {type(error).__name__}: {text}. {WHY_IT_DIED}"
    if isinstance(error, OSError):
        return _os_error(error)
    return _of_workers(text) if isinstance(error, RuntimeError) else None


def _of_workers(text: str) -> str | None:
    """What DataLoader says of its own; None for any other RuntimeError."""
    if "worker" in text and ("killed" in text or "exited unexpectedly" in text):
        return f"a loader worker died: {text.rstrip(' .')}. {WHY_IT_DIED}"
    if "timed out after" in text:
        return f"no batch came in time: {text}. Give loader.timeout more, or leave it out"
    return None


@contextmanager
def told(what: str = "", advice: str = "") -> Iterator[None]:
    """What the system refuses inside is the user's to mend: said in words, between these."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}{in_words(error)}{advice}") from error


WHY_IT_DIED = "Out of memory, or killed by hand? The kernel's log (dmesg) may say"


def _os_error(error: OSError) -> str:
    place = f": {error.filename}" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"{error.strerror}{place}. Free space there, or name another place (--out for results, source.path for samples)"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{error.strerror}{place}. Change its permissions, or name another place"
    return f"{error.strerror or error}{place}"
