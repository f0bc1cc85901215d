"""Sequence datasets: reading, splitting, encoding."""

from genorder.data.dataset import PackedRows, SequenceDataset, share_vocabulary
from genorder.data.encoding import Batch, EncodedDataset, arrange, encode, encode_for_exploring
from genorder.data.readers import ReadOptions, read_dataset, read_jsonl, write_dataset, write_jsonl
from genorder.data.splits import Splits, split_dataset
from genorder.data.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "EncodedDataset",
    "PackedRows",
    "ReadOptions",
    "SequenceDataset",
    "Splits",
    "Vocabulary",
    "arrange",
    "encode",
    "encode_for_exploring",
    "read_dataset",
    "read_jsonl",
    "share_vocabulary",
    "split_dataset",
    "write_dataset",
    "write_jsonl",
]
