"""Reports of several runs side by side, one file a format."""
