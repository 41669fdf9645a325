"""The work on each sample costs more CPU time than there is, or is done in the wrong place."""

import io

import numpy as np
import torch
from costs import compute
from items import Items, augmented, ready, thumbnails
from loop import train
from torch.utils.data import DataLoader


def main_process_loading(bad):
    """All samples are made in the training process, so loading and computing take turns.

    good: two workers make them while the accelerator computes.
    """
    loader = DataLoader(Items(12 * 120, thumbnails(3)), batch_size=12, num_workers=0 if bad else 2, collate_fn=np.stack)
    return train(loader, step_ms=36)


def costly_augmentation(bad):
    """Four workers fill both cores with augmentation and still fall behind: more workers would not help.

    good: a twentieth of the work is left, as after doing the costly part once, beforehand.
    """
    loader = DataLoader(Items(14 * 90, augmented(12 if bad else 0.5)), batch_size=14, num_workers=4)
    return train(loader, step_ms=45)


def oversized_jpegs(bad):
    """Every JPEG is decoded at a size far above what the network takes, and then shrunk.

    good: the files were shrunk to the input size once.
    """
    items = Items(8 * 95, _decoder(width=720 if bad else 224, height=540 if bad else 224))
    return train(DataLoader(items, batch_size=8, num_workers=2), step_ms=45)


def _decoder(width, height):
    from PIL import Image

    rows, columns = np.mgrid[:height, :width]
    grain = np.random.default_rng(0).integers(0, 50, (height, width, 3))
    pixels = (rows[..., None] // 2 + columns[..., None] // 3 + grain) % 256
    jpeg = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(jpeg, "JPEG", quality=88)

    def decode(_number):
        picture = Image.open(io.BytesIO(jpeg.getvalue())).resize((224, 224))
        return torch.from_numpy(np.array(picture))

    return decode


def data_frame_cells(bad):
    """Each item is put together from single cells of a pandas data frame.

    good: the frame was turned into one numpy array. Needs pandas.
    """
    import pandas

    frame = pandas.DataFrame(np.random.default_rng(0).random((12_000, 10)), columns=list("abcdefghij"))
    table = frame.to_numpy(copy=True)

    def cells(number):
        return torch.tensor([frame.iloc[number % len(frame)][column] for column in frame.columns])

    def row(number):
        return torch.from_numpy(table[number % len(table)])

    return train(DataLoader(Items(90 * 105, cells if bad else row), batch_size=90), step_ms=36)


def tiny_rows(bad):
    """Batches of thousands of tiny rows are fetched row by row and stacked, which costs more than all the rows hold.

    good: one indexing call fetches a batch.
    """
    torch.set_num_threads(1)  # with two, waking the second takes longer than its half of the work
    table = torch.randn(6000 * 15, 12)
    if bad:
        loader = DataLoader(Items(len(table), table.__getitem__), batch_size=6000, shuffle=True)
    else:
        batches = torch.randperm(len(table)).split(6000)
        loader = DataLoader(Items(len(batches), lambda number: table[batches[number]]), batch_size=None)
    return train(loader, step_ms=45, epochs=7)


def nested_lists(bad):
    """Samples are kept as nested Python lists and turned into tensors one number at a time.

    good: they are kept as numpy arrays.
    """
    pixels = np.random.default_rng(0).random((3, 72, 72)).astype(np.float32)
    numbers = pixels.tolist()

    def from_lists(_number):
        return torch.tensor(numbers)

    def from_array(_number):
        return torch.from_numpy(pixels.copy())

    return train(DataLoader(Items(24 * 95, from_lists if bad else from_array), batch_size=24, num_workers=1), step_ms=45)


class _CollatedHere:
    """Workers deliver lists of samples; whoever takes a batch stacks them."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        for samples in self._loader:
            yield _stack(samples)


def _stack(samples):
    compute(30)
    return torch.stack(samples)


def collate_in_the_loop(bad):
    """A generator in the training process collates each batch while the workers have nothing to do.

    good: the workers get the same function as collate_fn. The bad one's time lies between the loader and the loop: the
    script counts it as waiting, a profiler of the loader as the loop's own work.
    """
    loader = DataLoader(Items(14 * 95, ready), batch_size=14, num_workers=2, collate_fn=list if bad else _stack)
    return train(_CollatedHere(loader) if bad else loader, step_ms=48)


def growing_search(bad):
    """Every item is searched for among all items seen before, so each costs a little more than the last.

    good: only the last ten are remembered.
    """
    seen = []

    def unseen(number):
        seen.append(number)
        if not bad:
            del seen[:-10]
        compute(0.003 * len(seen))
        return ready(number)

    return train(DataLoader(Items(15 * 105, unseen), batch_size=15), step_ms=38)
