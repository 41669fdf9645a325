"""Consumers of batches: one file (or package) a kind. They import nothing of the profiler's."""
