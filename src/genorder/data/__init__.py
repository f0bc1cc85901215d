"""Sequence datasets: reading, splitting, encoding."""

from genorder.data.checks import Finding, check_dataset
from genorder.data.dataset import PackedRows, SequenceDataset, share_vocabulary
from genorder.data.encoding import Batch, EncodedDataset, arrange, encode, encode_for_exploring
from genorder.data.names import Names, given_names, parse_names
from genorder.data.readers import ReadOptions, read_dataset, read_jsonl, write_dataset, write_jsonl
from genorder.data.splits import Splits, split_dataset, unseen_tokens
from genorder.data.summary import Summary, summarise
from genorder.data.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "EncodedDataset",
    "Finding",
    "Names",
    "PackedRows",
    "ReadOptions",
    "SequenceDataset",
    "Splits",
    "Summary",
    "Vocabulary",
    "arrange",
    "check_dataset",
    "encode",
    "encode_for_exploring",
    "given_names",
    "parse_names",
    "read_dataset",
    "read_jsonl",
    "share_vocabulary",
    "split_dataset",
    "summarise",
    "unseen_tokens",
    "write_dataset",
    "write_jsonl",
]
