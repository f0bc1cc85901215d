"""A preset, changed by a TOML file and by settings `a.b=c`: the configuration of a run."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from genorder.errors import InputError
from genorder.presets import (
    DISCOVERIES,
    EXPLORATIONS,
    PRESETS,
    DataSize,
    DiscoveryConfig,
    ExplorationConfig,
    RunConfig,
)

AnyConfig = TypeVar("AnyConfig", RunConfig, ExplorationConfig, DiscoveryConfig)


def resolve(
    preset: str,
    *,
    train_samples: int | None = None,
    positions: int | None = None,
    held_out: Mapping[str, int] | None = None,
    config_file: Path | None = None,
    settings: Sequence[str] = (),
) -> RunConfig:
    """A preset, changed by a TOML file, then by `a.b=c` settings. Raises InputError for what does not fit.

    `train_samples` and `held_out` (validation, test) are how many samples there are, where that is not the preset's;
    `positions` are the tokens of one.
    """
    return _resolve(PRESETS, RunConfig, preset, DataSize(train_samples, positions), held_out, config_file, settings)


def resolve_exploration(
    preset: str,
    *,
    train_samples: int | None = None,
    positions: int | None = None,
    held_out: Mapping[str, int] | None = None,
    config_file: Path | None = None,
    settings: Sequence[str] = (),
) -> ExplorationConfig:
    """The same for the exploration of orders."""
    return _resolve(
        EXPLORATIONS, ExplorationConfig, preset, DataSize(train_samples, positions), held_out, config_file, settings
    )


def resolve_discovery(
    preset: str,
    *,
    train_samples: int | None = None,
    positions: int | None = None,
    held_out: Mapping[str, int] | None = None,
    config_file: Path | None = None,
    settings: Sequence[str] = (),
) -> DiscoveryConfig:
    """The same for a discovery."""
    return _resolve(
        DISCOVERIES, DiscoveryConfig, preset, DataSize(train_samples, positions), held_out, config_file, settings
    )


def _resolve(
    presets: Mapping[str, Callable[[DataSize], AnyConfig]],
    kind: type[AnyConfig],
    preset: str,
    size: DataSize,
    held_out: Mapping[str, int] | None,
    config_file: Path | None,
    settings: Sequence[str],
) -> AnyConfig:
    if preset not in presets:
        raise InputError(f"--preset {preset!r}: expected one of {', '.join(presets)}")
    changes = [(_read_toml(config_file), str(config_file))] if config_file else []
    changes += [(parse_setting(setting), f"--set {setting}") for setting in settings]
    # The number of samples comes first: a preset's steps may follow from it.
    for change, _ in changes:
        asked = change.get("samples")
        if (
            isinstance(asked, dict) and type(asked.get("train")) is int and asked["train"] > 0
        ):  # others are refused below
            size = DataSize(asked["train"], size.positions)
    values = presets[preset](size).model_dump()
    values["samples"] |= held_out or {}
    for change, where in changes:
        _merge(values, change, where)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))} = {problem['input']!r}: {problem['msg']}"
            if problem["type"] != "value_error"
            else problem["msg"].removeprefix("Value error, ")
            for problem in error.errors()
        )
        raise InputError(f"the configuration does not fit: {problems}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None


def parse_setting(setting: str) -> dict[str, Any]:
    """`a.b=c` as {"a": {"b": c}}. Raises InputError."""
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise InputError(f"--set {setting!r}: expected NAME=VALUE, such as training.steps=500")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for part in reversed(name.strip().split(".")):
        value = {part: value}
    return dict(value)


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value, by the name that --set knows it by: `a.b` for {"a": {"b": ...}}."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _merge(values: dict[str, Any], changes: dict[str, Any], where: str, prefix: str = "") -> None:
    for name, change in changes.items():
        if name not in values:
            known = ", ".join(f"{prefix}{known}" for known in values)
            raise InputError(f"{where}: there is no setting {prefix}{name}; there are: {known}")
        if isinstance(values[name], dict):
            if not isinstance(change, dict):
                raise InputError(f"{where}: {prefix}{name} is a group of settings, not a value")
            _merge(values[name], change, where, f"{prefix}{name}.")
        else:
            values[name] = change
