"""A preset changed by a file and by settings: what fits, and what is said of what does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from genorder.errors import InputError
from genorder.presets import PRESETS
from genorder.settings import RENAMED, flat_settings, resolve, resolve_discovery, resolve_exploration


def test_settings_go_by_the_names_that_set_knows() -> None:
    nested = {"a": {"b": 1, "c": {"d": [2]}}, "e": None, "none": {}}
    assert list(flat_settings(nested)) == [("a.b", 1), ("a.c.d", [2]), ("e", None)]
    config = resolve("cpu")
    names = dict(flat_settings(config.model_dump()))
    assert resolve("cpu", settings=[f"{name}={value}" for name, value in names.items() if value]) == config


def test_settings_change_the_preset_and_nothing_else() -> None:
    settings = ["training.steps=7", "model.dropout=0.25", "samples.test = 12", "training.learning_rate=1e-2"]
    changed = resolve("cpu", settings=settings).model_dump()
    expected = resolve("cpu").model_dump()
    expected["training"] |= {"steps": 7, "learning_rate": 0.01}
    expected["model"]["dropout"] = 0.25
    expected["samples"]["test"] = 12
    assert changed == expected


def test_file_comes_before_settings(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[training]\nsteps = 11\nbatch_size = 3\n[model]\nlayers = 5\n")
    config = resolve("paper-delay", config_file=path, settings=["training.steps=12", "training.steps=13"])
    assert (config.training.steps, config.training.batch_size, config.model.layers) == (13, 3, 5)
    assert config.training.learning_rate == 5e-4


def refused(*expected: str, preset: str = "cpu", file: Path | None = None, settings: tuple[str, ...] = ()) -> None:
    with pytest.raises(InputError) as caught:
        resolve(preset, config_file=file, settings=settings)
    message = str(caught.value)
    assert "\n" not in message
    for text in expected:
        assert text in message


OLD_SETTINGS = {"profiler.told": "false", "any_order.reading_price": "0.5"}


@pytest.mark.parametrize(("old", "value"), OLD_SETTINGS.items())
def test_an_old_name_works_with_a_warning(
    old: str, value: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert OLD_SETTINGS.keys() == RENAMED.keys()
    expected = resolve_discovery("cpu", settings=[f"{RENAMED[old]}={value}"])
    assert not caplog.records
    assert expected != resolve_discovery("cpu")
    path = tmp_path / "old.toml"
    path.write_text(f"{old} = {value}\n")
    for where, given in ((f"--set {old}={value}", {"settings": [f"{old}={value}"]}), (path, {"config_file": path})):
        caplog.clear()
        assert resolve_discovery("cpu", **given) == expected
        assert caplog.messages == [f"{where}: the setting {old} is now called {RENAMED[old]}"]


def test_unknown_preset() -> None:
    refused("--preset 'gpu'", "expected one of cpu, paper, paper-prod, paper-delay", preset="gpu")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.stepz=3", ("--set training.stepz=3", "no setting training.stepz", "training.steps")),
        ("trainin.steps=3", ("no setting trainin", "samples, model, training")),
        ("steps=3", ("no setting steps",)),
        ("training=3", ("training is a group of settings",)),
        ("training.steps", ("expected NAME=VALUE",)),
        ("=3", ("expected NAME=VALUE",)),
        ("", ("expected NAME=VALUE",)),
        ("training.steps=many", ("training.steps = 'many'", "integer")),
        ("training.steps=", ("training.steps = ''", "integer")),
        ("training.steps=1.5", ("training.steps = 1.5", "integer")),
        ("training.steps=0", ("training.steps = 0", "greater than or equal to 1")),
        ("training.steps=[1]", ("training.steps = [1]",)),
        ("training.steps.more=1", ("training.steps = {'more': 1}",)),
        ("training.learning_rate=inf", ("training.learning_rate = inf", "finite")),
        ("training.learning_rate=nan", ("training.learning_rate = nan",)),
        ("training.learning_rate=-1", ("training.learning_rate = -1", "greater than 0")),
        ("model.heads=3", ("width 128 is not a multiple of the 3 heads",)),
        ("model.dropout=1", ("model.dropout = 1", "less than 1")),
        ("samples.train=0", ("samples.train = 0",)),
    ],
)
def test_setting_that_does_not_fit(setting: str, expected: tuple[str, ...]) -> None:
    refused(*expected, settings=(setting,))


def test_several_problems_are_told_at_once() -> None:
    refused("training.steps = 0", "model.layers = -1", settings=("training.steps=0", "model.layers=-1"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[training]\nstepz = 3\n", ("no setting training.stepz",)),
        (b"[training]\nsteps = 'x'\n", ("training.steps = 'x'",)),
        (b"[training\nsteps = 3\n", ("is not TOML", "line 1")),
        (b"steps: 3\n", ("is not TOML",)),
        (b"\xff\xfe", ("is not TOML",)),
        (b"training = 3\n", ("training is a group of settings",)),
    ],
)
def test_file_that_does_not_fit(tmp_path: Path, content: bytes, expected: tuple[str, ...]) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    refused(*expected, file=path)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    refused("cannot read", str(tmp_path / "absent.toml"), "No such file", file=tmp_path / "absent.toml")
    refused("cannot read", "Is a directory", file=tmp_path)


def test_empty_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.touch()
    assert resolve("cpu", config_file=path) == resolve("cpu")


def test_steps_follow_the_samples_that_are_asked_for_unless_steps_are_too() -> None:
    assert resolve("paper", settings=["samples.train=200000"]).training.steps == 15_625
    both = resolve("paper", settings=["samples.train=200000", "training.steps=7"])
    assert (both.samples.train, both.training.steps) == (200_000, 7)
    assert resolve("paper", train_samples=12_800).training.steps == 1_000


@pytest.mark.parametrize("resolver", [resolve, resolve_exploration, resolve_discovery])
@pytest.mark.parametrize("samples", [0, -5])
def test_no_training_samples_are_refused(resolver: Callable[..., object], samples: int) -> None:
    for preset in PRESETS:
        with pytest.raises(InputError, match=f"samples.train = {samples}: "):
            resolver(preset, settings=[f"samples.train={samples}"])
