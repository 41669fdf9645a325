"""Any image that Pillow reads, as pixels of one shape."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def refuse_edge(image: int) -> None:
    """ValueError for an edge that no image is resized to."""
    if not 1 <= image <= 4096:
        raise ValueError(f"image={image}: must be 1 to 4096, the edge in pixels after the resize")


def decode(encoded: bytes, edge: int) -> NDArray[np.uint8]:
    """RGB, shape (edge, edge, 3); of an animation the first picture. Raises ValueError for what is no image, or is broken."""
    try:
        with Image.open(io.BytesIO(encoded)) as opened:
            small = _rgb(opened).resize((edge, edge), Image.Resampling.BILINEAR)
    except Exception as error:  # Pillow's readers raise what their format brings: SyntaxError, struct.error, IndexError, ...
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return np.array(small, dtype=np.uint8)  # a copy, since torch warns of an array that it must not write to


def _rgb(image: Image.Image) -> Image.Image:
    """Transparent parts lie on white. Of 16 bits the upper 8 count; Pillow itself would cut all above 255."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        values = np.asarray(image, dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        return Image.fromarray(((values - low) * (255 / max(1e-9, high - low))).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        above = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
    return image.convert("RGB")
