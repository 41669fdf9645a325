"""How long finished batches were on their way from the worker that made them to the consumer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .timeline import Columns


def latencies_ns(received: Columns, made: Columns) -> NDArray[np.int64]:
    """From made to unpickled, a batch received, in any order; batches whose making is not on record are left out.

    Batches are counted anew in each epoch, so a message belongs to the last batch of its number that was made before it came.
    """
    numbered = made["batch"] >= 0
    batch = np.concatenate((made["batch"][numbered], received["step"]))
    at = np.concatenate((made["end_ns"][numbered], received["end_ns"]))
    is_message = np.arange(len(batch)) >= int(numbered.sum())
    order = np.lexsort((is_message, at, batch))
    batch, at, is_message = batch[order], at[order], is_message[order]
    here = is_message[1:] & ~is_message[:-1] & (batch[1:] == batch[:-1])
    latencies: NDArray[np.int64] = (at[1:] - at[:-1])[here]
    return latencies
