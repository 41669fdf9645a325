"""What a sample or a step may cost: time that somebody else works, time of the interpreter, time of native code."""

import time
import zlib

_BLOCK = bytes(1 << 16)


def wait(ms):
    """Waits without computing: for a disk, a network or an accelerator."""
    time.sleep(ms / 1e3)


def compute(ms):
    """Computes in Python for so much CPU time of this thread, and lets no other thread of the process run meanwhile."""
    until_ns = time.thread_time_ns() + round(ms * 1e6)
    while time.thread_time_ns() < until_ns:
        pass


def compute_natively(ms):
    """Computes in C, as decoders do: the interpreter is free for other threads."""
    until_ns = time.thread_time_ns() + round(ms * 1e6)
    while time.thread_time_ns() < until_ns:
        zlib.crc32(_BLOCK)
