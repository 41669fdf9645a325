"""The ways to draw what was concluded, one format a file."""
