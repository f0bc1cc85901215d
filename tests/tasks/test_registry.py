from pathlib import Path

import pytest

from genorder.errors import InputError
from genorder.tasks import (
    IndexTask,
    Lengths,
    RecurrenceTask,
    Split,
    make_task,
    register_task,
    registry,
    task_names,
    task_summaries,
)

FIVE_LINES = """
from genorder.tasks import RecurrenceTask, register_task
@register_task("running-xor", summary="y_i = x_i xor y_(i-1)")
def running_xor(lengths):
    return RecurrenceTask("running-xor", lengths, low=0, high=7, step=lambda x, y: x ^ y)
"""


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_tasks.py"
    path.write_text(FIVE_LINES)
    return path


def test_all_built_in_tasks_are_there() -> None:
    assert set(task_names()) == {
        *("relu", "square", "triangle", "mlp", "sine", "cubic", "index", "prod"),
        *("delay-relu", "delay-hidden-cause", "delay-coupled-ring", "delay-modular"),
        *("delay-sine", "delay-mixed", "delay-square", "delay-asymmetric"),
        *("addition", "multiply", "linked-list", "random"),
    }


def test_listing_shows_the_parameters() -> None:
    listed = {entry.name: entry for entry in task_summaries()}
    assert [entry.name for entry in task_summaries()] == list(task_names())
    assert listed["index"].parameters == {"d": 2}
    assert listed["sine"].parameters == {"period": 16}
    assert listed["relu"].parameters == {}
    assert (listed["relu"].default_length, listed["relu"].length_step) == (20, 1)
    assert (listed["prod"].default_length, listed["prod"].length_step) == (10, 2)
    assert (listed["delay-sine"].default_length, listed["delay-sine"].length_step) == (36, 4)
    assert listed["random"].default_length is None
    assert all(entry.summary and "\n" not in entry.summary for entry in listed.values())


@pytest.mark.parametrize("name", task_names())
def test_default_length_works(name: str) -> None:
    task = make_task(name)
    listed = {entry.name: entry for entry in task_summaries()}[name]
    assert task.name == name
    assert listed.default_length in (task.longest, None)
    assert task.generate(3, Split.TRAIN).targets.shape == (3, task.longest)


@pytest.mark.parametrize(
    ("length", "lengths"),
    [
        (12, Lengths(12, 12, 2)),
        ("12", Lengths(12, 12, 2)),
        ("8-12", Lengths(8, 12, 2)),
        (" 8 - 12 ", Lengths(8, 12, 2)),
        (Lengths(8, 12), Lengths(8, 12, 2)),
        (None, Lengths(10, 10, 2)),
    ],
)
def test_lengths(length: int | str | Lengths | None, lengths: Lengths) -> None:
    assert make_task("prod", length).lengths == lengths


@pytest.mark.parametrize(
    ("spec", "length", "message"),
    [
        ("relu", 0, "length must be 1 or more.*received 0"),
        ("relu", -3, "received -3"),
        ("relu", "-3", "received -3"),
        ("relu", "30-20", "received 30-20"),
        ("relu", "0-4", "received 0-4"),
        ("relu", "twenty", "'twenty' is neither a number"),
        ("relu", "", "neither a number"),
        ("relu", "5-", "neither a number"),
        ("relu", "2.5", "neither a number"),
        ("prod", 7, "task prod: length must be even, received 7"),
        ("prod", "4-7", "even, received 4-7"),
        ("delay-sine", 30, "task delay-sine: length must be a multiple of 4, received 30"),
        ("rellu", 5, "no task named 'rellu': did you mean relu"),
        ("Square", 5, "did you mean square"),
        ("zzzzzz", 5, "see `genorder tasks`"),
        ("", 5, "no task named ''"),
        ("index:k=4", 5, r"no parameter 'k=4' \(accepted: d=2\)"),
        ("index:4", 5, r"no parameter '4' \(accepted: d=2\)"),
        ("relu:d=4", 5, r"no parameter 'd=4' \(accepted: none\)"),
        ("index:d=two", 5, "d must be an integer, received 'two'"),
        ("index:d=2.5", 5, "d must be an integer"),
        ("index:d=2,d=3", 5, "occurs twice"),
    ],
)
def test_errors_say_what_was_received_and_expected(spec: str, length: int | str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_task(spec, length)
    assert "\n" not in str(caught.value)


def test_parameters_reach_the_task() -> None:
    task = make_task("index: d = 4", 13)
    assert isinstance(task, IndexTask)
    assert task.d == 4
    assert make_task("triangle:high=20").parameters["high"] == 20


def test_identity_differs_between_tasks() -> None:
    specs: list[tuple[str, int | str]] = [
        ("index", 13),
        ("index:d=3", 13),
        ("index", 14),
        ("index", "13-14"),
        ("sine", 13),
        ("sine:period=10", 13),
    ]
    assert len({make_task(spec, length).identity for spec, length in specs}) == len(specs)
    assert make_task("index:d=2", "13").identity == make_task("index").identity


def test_a_task_from_a_file(task_file: Path) -> None:
    task = make_task(f"{task_file}:running-xor", 4)
    x, _, y, _ = task.generate(5, Split.TRAIN)
    assert y[:, 3].tolist() == [a ^ b ^ c ^ d for a, b, c, d in x.tolist()]
    assert "running-xor" in task_names()
    assert make_task("running-xor", 4).identity == task.identity


def test_a_file_may_be_imported_again_after_an_edit(task_file: Path) -> None:
    make_task(f"{task_file}:running-xor", 4)
    task_file.write_text(FIVE_LINES.replace("high=7", "high=15"))
    assert make_task(f"{task_file}:running-xor", 4).parameters["high"] == 15


def test_parameters_of_a_task_from_a_file(task_file: Path) -> None:
    task_file.write_text(
        FIVE_LINES.replace("(lengths)", "(lengths, high=7, scale=0.5, fast=True, label='x')").replace(
            "high=7, step", "high=high, step"
        )
    )
    spec = f"{task_file}:running-xor"
    assert make_task(f"{spec}:high=3, scale=2, fast=false, label=y", 4).parameters["high"] == 3
    with pytest.raises(InputError, match="fast must be true or false, received 'no'"):
        make_task(f"{spec}:fast=no", 4)
    with pytest.raises(InputError, match="scale must be a number, received 'x'"):
        make_task(f"{spec}:scale=x", 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1 / 0", r"my_tasks\.py: cannot be imported: ZeroDivisionError: division by zero"),
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named"),
        ("x = 1\ndef f(:", r"my_tasks\.py:2: cannot be imported"),
        ("raise ValueError('first\\nsecond')", "ValueError: first$"),
        ("raise ValueError", "cannot be imported: ValueError"),
        ("x = 1", r"no task named 'running-xor' \(registered there: none\)"),
        (FIVE_LINES.replace('"running-xor"', '"other"'), r"registered there: other\)"),
        (
            FIVE_LINES.replace('"running-xor"', '"relu"', 1),
            r"my_tasks\.py: task name 'relu' is taken by .*rec",
        ),
        (FIVE_LINES.replace("(lengths)", "()"), "must take lengths"),
        (FIVE_LINES.replace("(lengths)", "(lengths, high)"), "parameter high of task 'running-xor' needs"),
        (FIVE_LINES.replace('task("running-xor"', 'task("a b"'), "'a b' is no task name"),
        (FIVE_LINES + FIVE_LINES.replace("def running_xor", "def again"), "'running-xor' is taken"),
    ],
)
def test_file_errors_are_one_line(task_file: Path, content: str, message: str) -> None:
    task_file.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        make_task(f"{task_file}:running-xor", 4)
    assert "\n" not in str(caught.value)


def test_missing_file_and_missing_name(task_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such task file"):
        make_task(f"{tmp_path / 'missing.py'}:x", 4)
    with pytest.raises(InputError, match="registered there: running-xor"):
        make_task(str(task_file), 4)
    with pytest.raises(InputError, match="registers no task named 'relu'"):
        make_task(f"{task_file}:relu", 4)


def test_factory_must_return_a_task() -> None:
    @register_task("nothing", summary="returns no task")
    def nothing(lengths: Lengths) -> RecurrenceTask:
        return None  # type: ignore[return-value]

    with pytest.raises(InputError, match="returned NoneType, not a Task"):
        make_task("nothing", 4)


def test_a_factory_may_choose_the_length() -> None:
    received: list[Lengths | None] = []

    @register_task("chooser", summary="chooses its length", default_length=None)
    def chooser(lengths: Lengths | None) -> RecurrenceTask:
        received.append(lengths)
        return RecurrenceTask("chooser", lengths or Lengths(7, 7), low=0, high=7, step=lambda x, y: x ^ y)

    assert (make_task("chooser").longest, make_task("chooser", "4-5").longest) == (7, 5)
    assert received == [None, Lengths(4, 5)]


@pytest.mark.parametrize(("shortest", "longest", "step"), [(0, 3, 1), (4, 3, 1), (2, 5, 2), (2, 4, 0)])
def test_impossible_lengths(shortest: int, longest: int, step: int) -> None:
    with pytest.raises(InputError, match="lengths"):
        Lengths(shortest, longest, step)
