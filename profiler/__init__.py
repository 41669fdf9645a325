"""stallscope: is my GPU waiting for data, why, what should I change, how much faster will it get, and was that true?

    scenario.yaml --scenario--> Scenario --registry--> Source, Loader, Model
                                                           |
                                                       execute.py
                                                           v
                           Watch: the trainer's spans + the device's   Probe: what each batch cost where it was made
                                                           v
                     Run         what was measured, in one directory; never changed again        <- the waist
    -------------------------------------------------------+------------------- below: pure, no clock, no framework
                                                           v
                   timeline -> measure -> Result -> rules -> Diagnosis -> reports/<format>.render

Measuring code computes nothing; computing code has no clock, file or framework; rendering code decides nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recording import Recording, record, watch

__all__ = ["Recording", "record", "watch"]


def __getattr__(name: str) -> Any:
    """Public names, imported when they are asked for: `import stallscope` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(".recording", __name__), name)
