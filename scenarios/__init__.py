"""Scenarios that ship with the profiler: the first comment of each says what it shows."""
