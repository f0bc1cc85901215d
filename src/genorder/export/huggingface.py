"""The model of a run as a folder that transformers loads, with a tokenizer, the order and a model card."""

import os
import shutil
from pathlib import Path

import torch

from genorder.errors import InputError
from genorder.export.card import model_card
from genorder.export.tokenizer import tokenizer_files, word_of
from genorder.models import load_model
from genorder.models.gpt2 import EXPORT_DESCRIPTION, as_json, gpt2_files
from genorder.orders import Order
from genorder.runs import FinishedRun
from genorder.store import ensure_writable_directory, write_bytes_atomic
from genorder.store.atomic import explaining_write_errors, fsync_directory, temporary_path


def export_huggingface(run: FinishedRun, folder: Path, *, given: bool, force: bool) -> tuple[list[str], Order]:
    """Write the folder. Returns the names of its files, and the order in which the model emits targets."""
    saved = load_model(run.model_folder(given=given), torch.device("cpu"))
    _refuse_folder(folder, force=force)
    vocabulary = saved.vocabulary
    words = [word_of(token) for token in vocabulary.tokens]
    columns = run.true_of_column
    about = {
        "words": words,
        "data": run.config["data"],
        "seed": run.config["seed"],
        "true_of_column": None if columns is None else list(columns),
    }
    tokenizer = tokenizer_files(vocabulary, saved.model.positions + 1)
    files = {
        "README.md": model_card(run, saved, words, folder.resolve().name, given=given).encode("utf-8", "replace"),
        **{name: as_json(content) for name, content in tokenizer.items()},
        **gpt2_files(saved, about),
    }
    _write_folder(folder, files)
    return list(files), saved.order


def _refuse_folder(folder: Path, *, force: bool) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder that is new or empty")
    if any(folder.iterdir()):
        if not (folder / EXPORT_DESCRIPTION).exists():
            raise InputError(f"{folder} is not empty, and no earlier export that --force could replace; choose another")
        if not force:
            raise InputError(f"{folder} holds an earlier export; choose another folder, or give --force to replace it")


def _write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Write a new folder in one atomic step. An earlier export is replaced file by file: users may have added files.

    The description, written last, holds the digest of the weights: reading a mixture of two exports fails.
    """
    if folder.exists() and any(folder.iterdir()):
        for name, content in files.items():
            write_bytes_atomic(folder / name, content)
        return
    ensure_writable_directory(folder.absolute().parent)
    temporary = temporary_path(folder.absolute().parent, folder.absolute().name)
    try:
        with explaining_write_errors(folder):
            temporary.mkdir()
            for name, content in files.items():
                write_bytes_atomic(temporary / name, content)
            os.replace(temporary, folder.absolute())  # noqa: PTH105 - takes the place of an empty folder
            fsync_directory(folder.absolute().parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
