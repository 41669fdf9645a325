"""How long finished batches were on their way from the worker that made them to the consumer."""

from __future__ import annotations

import numpy as np

from .intervals import Times
from .timeline import Columns


def arrivals_ns(received: Columns, made: Columns) -> Times:
    """When each batch had been read and unpickled by the consumer; -1: there is no record of that.

    Batches are counted anew in each epoch, so a message belongs to the last batch of its number that was made before it came.
    """
    numbered = np.flatnonzero(made["batch"] >= 0)
    batch = np.concatenate((made["batch"][numbered], received["step"]))
    at = np.concatenate((made["end_ns"][numbered], received["end_ns"]))
    is_message = np.arange(len(batch)) >= len(numbered)
    order = np.lexsort((is_message, at, batch))
    batch, at, is_message = batch[order], at[order], is_message[order]
    here = is_message[1:] & ~is_message[:-1] & (batch[1:] == batch[:-1])
    arrived = np.full(len(made["batch"]), -1, dtype=np.int64)
    arrived[numbered[order[:-1][here]]] = at[1:][here]
    return arrived


def latencies_ns(received: Columns, made: Columns) -> Times:
    """From made to unpickled, a batch received; batches whose making is not on record are left out."""
    arrived = arrivals_ns(received, made)
    return (arrived - made["end_ns"])[arrived >= 0]
