"""Findings about datasets, against plain loops over the samples."""

import time
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genorder.data import SequenceDataset, check_dataset, inspection, summarise_dataset
from genorder.data.inspection import token_preview

Pairs = list[tuple[list[str], list[str]]]
small = st.lists(st.sampled_from("ab"), min_size=1, max_size=2)


def dataset_of(pairs: Pairs) -> SequenceDataset:
    return SequenceDataset.from_sequences([x for x, _ in pairs], [y for _, y in pairs])


def found(dataset: SequenceDataset, blank_lines: int = 0) -> dict[str, str]:
    findings = check_dataset(dataset, blank_lines)
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding.message for finding in findings}


@settings(deadline=None)
@given(st.lists(st.tuples(small, small), min_size=1, max_size=12))
def test_duplicates_and_the_ceiling_that_follows_from_conflicts(pairs: Pairs) -> None:
    messages = found(dataset_of(pairs))
    distinct = {(tuple(x), tuple(y)) for x, y in pairs}
    assert ("duplicates" in messages) == (len(distinct) < len(pairs))
    if len(distinct) < len(pairs):
        assert messages["duplicates"].startswith(f"{len(pairs) - len(distinct)} samples repeat")
    targets = defaultdict(Counter)
    for x, y in pairs:
        targets[tuple(x)][tuple(y)] += 1
    conflicting = sum(len(counts) > 1 for counts in targets.values())
    assert ("conflicting_targets" in messages) == (conflicting > 0)
    if conflicting:
        right = sum(max(counts.values()) for counts in targets.values())
        assert messages["conflicting_targets"].startswith(f"{conflicting} inputs occur with more than one target")
        assert f"more than {100 * right / len(pairs):.1f} % of" in messages["conflicting_targets"]


@settings(deadline=None)
@given(st.lists(st.tuples(small, small), min_size=2, max_size=6))
def test_constant_and_copied_targets(pairs: Pairs) -> None:
    messages = found(dataset_of(pairs))
    columns = range(min(len(y) for _, y in pairs))
    constant = [t for t in columns if len({y[t] for _, y in pairs}) == 1]
    assert messages.get("constant_targets") == (
        f"always the same token: {' '.join(f'y{t}' for t in constant)}" if constant else None
    )
    copies = []
    for t in columns:
        sources = [i for i in range(min(len(x) for x, _ in pairs)) if all(x[i] == y[t] for x, y in pairs)]
        if sources and t not in constant:
            copies.append(f"y{t} = x{sources[0]}")
    expected = f"targets that repeat an input: {', '.join(copies)}" if copies else None
    assert messages.get("copied_inputs") == expected


def test_a_copy_that_fails_once_is_none() -> None:
    rows = np.arange(2000)[:, None] % 7
    targets = rows.copy()
    targets[1001] += 1
    lengths = np.ones(2000, dtype=np.int64)
    assert "copied_inputs" in found(SequenceDataset.from_integers(rows, lengths, rows, lengths))
    assert "copied_inputs" not in found(SequenceDataset.from_integers(rows, lengths, targets, lengths))


def test_vocabulary_of_numbers_and_of_rare_words() -> None:
    numbers = found(dataset_of([([str(n)], ["1"]) for n in range(1000)]))
    assert "900 of them" not in numbers["large_vocabulary"]
    assert numbers["large_vocabulary"].startswith("1,000 different tokens, 990 of them numbers of several digits")
    words = found(dataset_of([([f"w{n}"], ["1"]) for n in range(1000)]))
    assert "1,000 of them seen fewer than ten times" in words["large_vocabulary"]
    assert "large_vocabulary" not in found(dataset_of([([str(n % 100)], ["1"]) for n in range(1000)]))


def test_few_samples_and_blank_lines() -> None:
    pairs = [([str(n % 9), str(n)], ["1", "2"]) for n in range(200)]
    assert "few_samples" not in found(dataset_of(pairs))
    assert found(dataset_of(pairs[:199]))["few_samples"].startswith("199 samples are few for targets of 2 tokens")
    assert found(dataset_of(pairs), 3)["blank_lines"] == "3 blank lines skipped"


def test_what_cannot_be_padded_prevents_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of([(["1"] * 9, ["2"]), (["1"], ["2"])])
    assert not any(finding.prevents for finding in check_dataset(dataset))
    monkeypatch.setattr(inspection, "_LARGEST_MATRIX", 19)
    assert [finding.name for finding in check_dataset(dataset) if finding.prevents] == ["too_wide"]


def test_summary() -> None:
    summary = summarise_dataset(dataset_of([(["a"] * n, ["b", "c"][: 1 + n % 2]) for n in range(25)]))
    assert (summary.samples, summary.vocabulary, summary.frequent_tokens[:2]) == (25, 3, [("a", 300), ("b", 25)])
    assert (str(summary.inputs), summary.inputs.mean, str(summary.targets)) == ("0-24", 12.0, "1-2")
    assert summary.inputs.histogram[0] == (0, 2, 3)
    assert summary.inputs.histogram[-1] == (24, 24, 1)
    assert summary.targets.histogram == [(1, 1, 13), (2, 2, 12)]
    assert summary.sample == ([], ["b"])
    assert token_preview(["x" * 30, *"123456789"]) == f"{'x' * 17}... 1 2 3 4 5 6 7 ... (10 in all)"


@pytest.mark.slow
def test_a_million_samples_are_checked_in_seconds() -> None:
    rng = np.random.default_rng(0)
    rows, lengths = rng.integers(0, 100, (1_000_000, 20)), np.full(1_000_000, 20)
    dataset = SequenceDataset.from_integers(rows, lengths, rows[:, ::-1], lengths)
    started = time.process_time()
    assert found(dataset)["copied_inputs"].startswith("targets that repeat an input: y0 = x19, y1 = x18")
    assert time.process_time() - started < 20
