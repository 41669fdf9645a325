"""A two-layer fully connected ReLU network that really trains. One file here is one way of writing it."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def build(
    sample_shape: tuple[int, ...],
    n_classes: int,
    device: str,
    seed: int,
    *,
    implementation: str = "torch_nn",
    hidden: int = 256,
    learning_rate: float = 0.05,
) -> Any:
    """implementation: the file of this package to use. hidden: units of the first layer."""
    known = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    if implementation not in known:
        raise ValueError(f"implementation: no implementation '{implementation}'. It can be: {', '.join(known)}")
    if hidden < 1:
        raise ValueError(f"hidden={hidden}: must be at least 1")
    module = importlib.import_module(f".{implementation}", __name__)
    return module.build(sample_shape, n_classes, device, seed, hidden=hidden, learning_rate=learning_rate)
