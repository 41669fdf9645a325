"""One reported fault in one training loop, or its healthy twin: the same work with the fault mended.

python tests/cases/run.py late_sample bad     the last line is JSON, with the script's own clock
python tests/cases/run.py --list              all cases, as JSON lines

The step is a sleep on the main thread, which stands for an accelerator that is busy. stall_share is the time inside iter()
and next() over the time from the first iter() to the end of the loop; stall_share_after_warmup leaves out the first steps,
which start-up and the first buffer paid for. Exit status 77: the machine lacks what the case needs; the last line says what.
"""

import importlib
import json
import multiprocessing
import sys

from catalogue import VARIANTS, cases
from machine import Unavailable

SKIPPED = 77
OPTIONAL = {"torch", "tensorflow", "pandas", "h5py", "PIL"}


def list_cases():
    for case in cases().values():
        for variant in VARIANTS:
            row = {"case": case.name, "variant": variant, "theme": case.theme, "framework": case.framework}
            print(json.dumps({**row, "about": case.about}))


def run(name, variant):
    """Returns the script's own figures."""
    theme = importlib.import_module(cases()[name].theme)
    clock = getattr(theme, name)(bad=variant == "bad")
    return {"case": name, "variant": variant, **clock.figures()}


def skip(what):
    print(f"skipped: needs {what}", flush=True)
    return SKIPPED


def main(words):
    if words == ["--list"]:
        list_cases()
        return 0
    if len(words) != 2 or words[0] not in cases() or words[1] not in VARIANTS:
        sys.exit("usage: run.py CASE bad|good, or run.py --list for the cases")
    multiprocessing.set_start_method("fork", force=True)  # Python 3.14 would not, and the cases are full of local functions
    try:
        figures = run(*words)
    except Unavailable as reason:
        return skip(reason)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        return skip(f"the package {error.name}")
    print(json.dumps(figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
