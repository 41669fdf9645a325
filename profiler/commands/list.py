"""`list`: what there is to run."""

from __future__ import annotations


def main() -> None:
    """Lists scenarios, and the sources, loaders and models that a scenario can pair, with their options and defaults."""
    from rich.console import Console
    from rich.table import Table

    from .. import plugins, registry, scenario
    from ..settings import FAMILIES

    console = Console(highlight=False)
    table = Table("scenario", "what it shows", box=None, title_justify="left", pad_edge=False)
    for name, path in scenario.shipped().items():
        table.add_row(name, path.read_text().partition("\n")[0].lstrip("# "))
    console.print(table)
    for family in FAMILIES:
        table = Table(family, "what it is", "options and their defaults", box=None, pad_edge=False)
        for kind in registry.kinds(family):
            part = registry.describe(family, kind)
            options = ", ".join(name if default is None else f"{name}: {default}" for name, default in part.options.items())
            table.add_row(kind, part.summary, options or "none")
        console.print()
        console.print(table)
    for problem in plugins.registered(registry.ours).problems:
        console.print(f"\nleft out: {problem}", markup=False)
