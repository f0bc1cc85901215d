import itertools

import numpy as np
import pytest

from genorder.errors import InputError
from genorder.tasks import Split, Task, make_task, task_names
from genorder.tasks.base import owned_by

RECURRENCES = ("relu", "square", "triangle", "mlp", "sine", "cubic")


def inputs_of(task: Task, split: Split, samples: int, seed: int = 0) -> set[tuple[int, ...]]:
    drawn = task.generate(samples, split, seed=seed)
    return {(length, *row) for row, length in zip(drawn.inputs.tolist(), drawn.input_lengths.tolist(), strict=True)}


@pytest.mark.parametrize("name", RECURRENCES)
@pytest.mark.parametrize("length", [1, 2, 3, "1-3"])
def test_short_recurrences_fill_three_disjoint_splits(name: str, length: int | str) -> None:
    """So short that independent draws would surely collide."""
    task = make_task(name, length)
    owned = [inputs_of(task, split, 3000) | inputs_of(task, split, 3000, seed=1) for split in Split]
    assert all(owned)
    assert sum(len(part) for part in owned) == len(set().union(*owned))


@pytest.mark.parametrize("name", task_names())
def test_splits_are_disjoint_for_every_task(name: str) -> None:
    task = make_task("multiply:digits=3,by=1" if name == "multiply" else name, 4)
    owned = [inputs_of(task, split, 2000) for split in Split]
    assert sum(len(part) for part in owned) == len(set().union(*owned))


def test_each_input_has_one_owner_and_shares_are_as_stated() -> None:
    space = np.array(list(itertools.product(range(-9, 10), repeat=3)))
    lengths = np.full(len(space), 3)
    owners = {split: owned_by(split, space, lengths) for split in Split}
    assert (np.stack(list(owners.values())).sum(axis=0) == 1).all()
    assert owners[Split.TEST].mean() == pytest.approx(0.1, abs=0.015)
    assert owners[Split.VALIDATION].mean() == pytest.approx(0.1, abs=0.015)


def test_owner_ignores_what_lies_beyond_the_length() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-9, 10, size=(500, 6))
    lengths = np.full(500, 4)
    other = rows.copy()
    other[:, 4:] += 1
    for split in Split:
        np.testing.assert_array_equal(owned_by(split, rows, lengths), owned_by(split, other, lengths))
        np.testing.assert_array_equal(owned_by(split, rows, lengths), owned_by(split, rows[:, :4], lengths))
    assert (owned_by(Split.TEST, rows, lengths) != owned_by(Split.TEST, rows, lengths + 1)).any()


@pytest.mark.parametrize("column", [0, 9, 19])
def test_owner_does_not_follow_any_one_token(column: int) -> None:
    rows = np.random.default_rng(0).integers(0, 19, size=(60_000, 20))
    owned = owned_by(Split.TEST, rows, np.full(len(rows), 20))
    shares = [owned[rows[:, column] == value].mean() for value in range(19)]
    assert max(abs(share - 0.1) for share in shares) < 0.03


def test_generation_depends_on_seed_split_and_task_only() -> None:
    task = make_task("relu", 20)
    first = task.generate(50, Split.TRAIN)
    again = make_task("relu", 20).generate(50, Split.TRAIN)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    others = [
        task.generate(50, Split.TRAIN, seed=1),
        task.generate(50, Split.TEST),
        make_task("square", 20).generate(50, Split.TRAIN),  # the same inputs range, another task
    ]
    for other in others:
        assert not np.array_equal(first.inputs, other.inputs)


@pytest.mark.parametrize("spec", ["relu", "prod", "index", "delay-relu", "addition", "linked-list", "random:noise=0.1"])
@pytest.mark.parametrize("length", [8, "8-16"])
def test_first_samples_do_not_depend_on_the_number_of_samples(spec: str, length: int | str) -> None:
    task = make_task(spec, length)
    few, many = task.generate(10, Split.TEST), task.generate(5000, Split.TEST)
    assert len(many.inputs) == 5000
    assert all(np.array_equal(a, b[:10]) for a, b in zip(few, many, strict=True))


def test_a_split_named_by_its_text_is_the_same_split() -> None:
    task = make_task("relu", 5)
    by_text = task.generate(50, "test")  # type: ignore[arg-type]
    np.testing.assert_array_equal(by_text.inputs, task.generate(50, Split.TEST).inputs)


@pytest.mark.parametrize("samples", [0, -5])
def test_samples_must_be_positive(samples: int) -> None:
    with pytest.raises(InputError, match=f"1 or more, received {samples}"):
        make_task("relu", 5).generate(samples, Split.TRAIN)


def test_draw_does_not_partition() -> None:
    drawn = make_task("relu", 1).draw(500, Split.TEST, np.random.default_rng(0))
    assert len(np.unique(drawn.inputs)) == 19
