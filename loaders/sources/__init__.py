"""Places that samples come from, one file each."""
