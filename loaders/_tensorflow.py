"""TensorFlow, imported without its lines of greeting about devices that it has not found."""

from __future__ import annotations

import os
from typing import Any


def import_tensorflow() -> Any:
    """The greeting goes straight to file descriptor 2, whatever is set. Who sets TF_CPP_MIN_LOG_LEVEL wants to see it."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return _imported()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    told, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return _imported()
    finally:
        os.dup2(told, 2)
        os.close(told)
        os.close(nowhere)


def _imported() -> Any:
    import tensorflow

    for gpu in tensorflow.config.list_physical_devices("GPU"):  # else the first tensor takes all of its memory
        tensorflow.config.experimental.set_memory_growth(gpu, True)
    return tensorflow
