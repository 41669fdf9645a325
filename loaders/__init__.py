"""Ways of feeding a model, one file each; `sources` holds the places that samples come from."""
