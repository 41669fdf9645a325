"""Data that published programs can train on, made here: nothing is downloaded, and the same each time."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

WORDS = 200
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def mnist(folder: Path, train: int = 6000, test: int = 1000) -> None:
    """MNIST's own files, with blurred blots for digits."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    random = np.random.default_rng(1)
    for part, n in (("train", train), ("t10k", test)):
        labels = random.integers(0, 10, n, dtype=np.uint8)
        across = np.exp(-(((np.arange(28) - 4 - 2 * labels[:, None]) / 4.0) ** 2))
        pictures = (across[:, :, None] * across[:, None, :] * random.uniform(100, 255, (n, 1, 1))).astype(np.uint8)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 2051, n, 28, 28) + pictures.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, n) + labels.tobytes())


def pictures(folder: Path, train: int = 240, val: int = 32) -> None:
    """A folder of JPEGs for each class, as torchvision's ImageFolder wants it."""
    from PIL import Image

    random = np.random.default_rng(2)
    for part, n in (("train", train), ("val", val)):
        for i in range(n):
            path = folder / part / f"class{i % 4}" / f"{i:04}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
            coarse.resize((500, 375), Image.Resampling.BICUBIC).save(path, quality=90)


def sentences(n: int, seed: int) -> list[str]:
    """Of words as unevenly frequent as a language's."""
    random = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, WORDS + 1)
    drawn = random.choice(WORDS, (n, 12), p=frequency / frequency.sum())
    return [" ".join(f"w{word}" for word in row) for row in drawn]


def corpus(folder: Path) -> None:
    folder.mkdir(parents=True)
    for seed, (part, n) in enumerate({"train": 4000, "valid": 400, "test": 400}.items()):
        (folder / f"{part}.txt").write_text("".join(f" {line} \n" for line in sentences(n, seed)))


def pairs(folder: Path) -> None:
    """Pairs of sentences that say the same or not, as the task of that name has them; and a measure of that name."""
    task = folder / "nyu-mll" / "glue" / "mrpc"
    task.mkdir(parents=True)
    for seed, (part, n) in enumerate({"train": 320, "validation": 64, "test": 64}.items()):
        rows = [
            {"sentence1": first, "sentence2": second, "label": i % 2, "idx": i}
            for i, (first, second) in enumerate(zip(sentences(n, seed), sentences(n, seed + 10), strict=True))
        ]
        (task / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = "".join(f"      - split: {part}\n        path: mrpc/{part}.jsonl\n" for part in ("train", "validation", "test"))
    (task.parent / "README.md").write_text(f"---\nconfigs:\n  - config_name: mrpc\n    data_files:\n{files}---\n")
    (folder / "glue").mkdir()
    (folder / "glue" / "glue.py").write_text(MEASURE)


MEASURE = '''\
"""Stands in for the measure that would be downloaded."""
import datasets
import evaluate

class Glue(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")})
        return evaluate.MetricInfo(description="accuracy", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        return {"accuracy": sum(a == b for a, b in zip(predictions, references)) / len(predictions)}
'''


def _tokenizer() -> object:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[EOS]"]
    words = {word: i for i, word in enumerate([*special, *(f"w{i}" for i in range(WORDS))])}
    inner = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", eos_token="[EOS]")


def tiny_bert(folder: Path) -> None:
    """Random weights under the name that the program asks for."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    _tokenizer().save_pretrained(folder)  # type: ignore[attr-defined]
    BertForSequenceClassification(BertConfig(vocab_size=WORDS + 3, max_position_embeddings=64, **TINY)).save_pretrained(folder)


def tiny_llama(folder: Path) -> None:
    """Random weights of a language model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(4)
    _tokenizer().save_pretrained(folder)  # type: ignore[attr-defined]
    LlamaForCausalLM(LlamaConfig(vocab_size=WORDS + 3, max_position_embeddings=64, **TINY)).save_pretrained(folder)


def texts(folder: Path) -> None:
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in sentences(400, 20)))
