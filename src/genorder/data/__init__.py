"""Sequence datasets: reading, inspecting, splitting, encoding."""

from genorder.data.dataset import PackedRows, SequenceDataset, share_vocabulary
from genorder.data.encoding import Batch, EncodedDataset, arrange, encode, encode_for_exploring
from genorder.data.inspection import DatasetSummary, Finding, check_dataset, summarise_dataset
from genorder.data.names import Names, names_from_lists, parse_names
from genorder.data.readers import ReadOptions, read_dataset, read_jsonl, write_dataset, write_jsonl
from genorder.data.splits import Splits, split_dataset, unseen_tokens
from genorder.data.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "DatasetSummary",
    "EncodedDataset",
    "Finding",
    "Names",
    "PackedRows",
    "ReadOptions",
    "SequenceDataset",
    "Splits",
    "Vocabulary",
    "arrange",
    "check_dataset",
    "encode",
    "encode_for_exploring",
    "names_from_lists",
    "parse_names",
    "read_dataset",
    "read_jsonl",
    "share_vocabulary",
    "split_dataset",
    "summarise_dataset",
    "unseen_tokens",
    "write_dataset",
    "write_jsonl",
]
