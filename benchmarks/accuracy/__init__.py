"""Injected causes against found stages: `make accuracy`."""
