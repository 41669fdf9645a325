"""Training programs that others published, each with the data that it wants and the files that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import data

MADE = Callable[[Path], None]


class Program(NamedTuple):
    """One published program, run as its authors wrote it."""

    name: str
    what: str
    source: str
    """The checkout it comes from, or the installed package."""
    command: Sequence[str]
    """After `python` or `stallscope trace`, in folder."""
    folder: str = ""
    """Of the checkout: copied, and run in. Empty for an installed package."""
    made: Sequence[tuple[str, MADE]] = ()
    """Where, from the working folder, data is made, and by what."""
    results: Sequence[str] = ()
    """Patterns of files whose content must not depend on being traced: final weights, pictures."""


EXAMPLES, ACCELERATE, LIGHTNING = "pytorch/examples", "huggingface/accelerate", "Lightning-AI/pytorch-lightning"

PROGRAMS = (
    Program(
        "mnist",
        "image classifier, loaded in the loop",
        EXAMPLES,
        ("main.py", "--epochs", "2", "--save-model"),
        "mnist",
        [("../data", data.mnist)],
        ["mnist_cnn.pt"],
    ),
    Program(
        "imagenet",
        "ResNet-18 on a folder of JPEGs, 2 workers",
        EXAMPLES,
        ("main.py", "pictures", "-a", "resnet18", "-b", "4", "-j", "2", "--epochs", "2", "--seed", "1", "-p", "10"),
        "imagenet",
        [("pictures", data.pictures)],
        ["checkpoint.pth.tar"],
    ),
    Program(
        "vae",
        "variational auto-encoder",
        EXAMPLES,
        ("main.py", "--epochs", "3"),
        "vae",
        [("../data", data.mnist), ("results", Path.mkdir)],
        ["results/*.png"],
    ),
    Program(
        "word_language_model",
        "recurrent language model, which has no loader",
        EXAMPLES,
        ("main.py", "--epochs", "1", "--emsize", "64", "--nhid", "64", "--seed", "1"),
        "word_language_model",
        [("data/wikitext-2", data.corpus)],
        ["model.pt"],
    ),
    Program(
        "dcgan",
        "generative adversarial network, two optimizers, 2 workers",
        EXAMPLES,
        (
            *("main.py", "--dataset", "fake", "--workers", "2", "--niter", "1", "--batchSize", "16"),
            *("--manualSeed", "1", "--ngf", "16", "--ndf", "16"),
        ),
        "dcgan",
        [],
        ["netG_epoch_0.pth", "netD_epoch_0.pth"],
    ),
    Program(
        "siamese_network",
        "pairs drawn in the dataset's Python",
        EXAMPLES,
        ("main.py", "--epochs", "1", "--batch-size", "16", "--save-model"),
        "siamese_network",
        [("../data", lambda at: data.mnist(at, 1200, 400))],
        ["siamese_network.pt"],
    ),
    Program(
        "nlp_example",
        "Accelerate on a tiny random BERT, pairs tokenised ahead",
        ACCELERATE,
        ("nlp_example.py", "--cpu"),
        "examples",
        [(".", data.pairs), ("bert-base-cased", data.tiny_bert)],
    ),
    Program(
        "trl.scripts.sft",
        "Hugging Face Trainer (SFTTrainer) on a tiny random Llama",
        "trl",
        (
            *("-m", "trl.scripts.sft", "--model_name_or_path", "tiny", "--dataset_name", "texts", "--output_dir", "out"),
            *("--max_steps", "60", "--per_device_train_batch_size", "4", "--dataloader_num_workers", "2", "--use_cpu"),
            *("--report_to", "none", "--logging_steps", "20", "--gradient_checkpointing", "false", "--bf16", "false"),
        ),
        made=[("tiny", data.tiny_llama), ("texts", data.texts)],
        results=["out/model.safetensors"],
    ),
    Program(
        "bug_report_model",
        "Lightning fit and test of one batch each",
        LIGHTNING,
        ("bug_report_model.py",),
        "examples/pytorch/bug_report",
    ),
    Program(
        "backbone_image_classifier",
        "Lightning fit, validation, test and predict",
        LIGHTNING,
        ("backbone_image_classifier.py", "--trainer.max_epochs", "1", "--trainer.limit_train_batches", "400"),
        "examples/pytorch/basics",
        [(at, lambda at: data.mnist(at, 60_000, 1000)) for at in ("../../Datasets", "data")],
        ["lightning_logs/version_0/checkpoints/*.ckpt"],
    ),
    Program(
        "image_classifier/train_fabric",
        "Fabric, which wraps the loaders",
        LIGHTNING,
        ("train_fabric.py", "--epochs", "1", "--save-model"),
        "examples/fabric/image_classifier",
        [("../../../Datasets", data.mnist)],
        ["mnist_cnn.pt"],
    ),
)
