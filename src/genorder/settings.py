"""A preset, changed by a TOML file and by settings `a.b=c`: the configuration of a run."""

import logging
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, final

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
    SampleSizes,
)

_log = logging.getLogger(__name__)

# Old names of settings, which still work, with a warning. A renamed setting stays in its section.
RENAMED = {
    "any_order.reading_price": "any_order.read_penalty",
    "profiler.told": "profiler.order_conditioned",
}

AnyConfig = TypeVar("AnyConfig", RunConfig, ExplorationConfig, DiscoveryConfig)


class Override(NamedTuple):
    """Settings by section, and where they were given, for messages."""

    values: Mapping[str, Any]
    where: str


def read_overrides(config_file: Path | None, settings: Sequence[str]) -> tuple[Override, ...]:
    """The TOML file's settings, then those of the form `a.b=c`. Raises InputError for what cannot be read."""
    file = [Override(_read_toml(config_file), str(config_file))] if config_file else []
    return (*file, *(Override(parse_setting(setting), f"--set {setting}") for setting in settings))


@final
@dataclass(frozen=True)
class SampleLimits:
    """How many samples of each split a run may use: those set by the user (None: not set), and the preset's."""

    train: int | None
    validation: int | None
    test: int | None
    preset: SampleSizes

    def or_preset(self) -> SampleSizes:
        """The numbers set by the user, else those of the preset."""
        sizes = {"train": self.train, "validation": self.validation, "test": self.test}
        return self.preset.model_copy(update={name: size for name, size in sizes.items() if size is not None})


@final
@dataclass(frozen=True)
class Resolver(Generic[AnyConfig]):
    """Turns the name of a preset into a configuration of one kind. Calls raise InputError for what does not fit."""

    presets: Mapping[str, Callable[[DataSize], AnyConfig]]
    kind: type[AnyConfig]

    def __call__(
        self,
        preset: str,
        *,
        train_samples: int | None = None,
        positions: int | None = None,
        held_out: Mapping[str, int] | None = None,
        config_file: Path | None = None,
        settings: Sequence[str] = (),
    ) -> AnyConfig:
        """A preset, changed by a TOML file, then by `a.b=c` settings.

        `train_samples` and `held_out` (validation, test) are the numbers of samples, where they differ from the
        preset's; `positions` is the number of tokens in a sample.
        """
        size = DataSize(train_samples, positions)
        return self.resolve(preset, read_overrides(config_file, settings), size, held_out or {})

    def sample_limits(self, preset: str, overrides: Sequence[Override]) -> SampleLimits:
        """The number of samples to use, before the data is read. All settings are checked."""
        sizes = self.resolve(preset, overrides).samples
        changed = {name for values, _ in overrides for name in values.get("samples", {})}
        limits = {name: getattr(sizes, name) if name in changed else None for name in ("train", "validation", "test")}
        return SampleLimits(**limits, preset=sizes)

    def resolve(
        self,
        preset: str,
        overrides: Sequence[Override],
        size: DataSize = DataSize(),
        held_out: Mapping[str, int] | None = None,
    ) -> AnyConfig:
        if preset not in self.presets:
            raise InputError(f"--preset {preset!r}: expected one of {', '.join(self.presets)}")
        # The number of training samples comes first: the preset's steps may follow from it.
        for values, _ in overrides:
            samples = values.get("samples")
            if isinstance(samples, dict) and type(samples.get("train")) is int and samples["train"] > 0:
                size = DataSize(samples["train"], size.positions)  # other values are refused below
        values = self.presets[preset](size).model_dump()
        values["samples"] |= held_out or {}
        for change, where in overrides:
            _merge(values, change, where)
        try:
            return self.kind.model_validate(values)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))} = {problem['input']!r}: {problem['msg']}"
                if problem["type"] != "value_error"
                else problem["msg"].removeprefix("Value error, ")
                for problem in error.errors()
            )
            raise InputError(f"the configuration does not fit: {problems}") from None


resolve = Resolver(PRESETS, RunConfig)  # one order
resolve_exploration = Resolver(EXPLORATIONS, ExplorationConfig)  # the ranking of orders
resolve_discovery = Resolver(DISCOVERIES, DiscoveryConfig)


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


def _merge(values: dict[str, Any], changes: Mapping[str, Any], where: str, prefix: str = "") -> None:
    for name, change in changes.items():
        if renamed := RENAMED.get(f"{prefix}{name}"):
            _log.warning("%s: the setting %s%s is now called %s", where, prefix, name, renamed)
            name = renamed.removeprefix(prefix)
        if name not in values:
            known = ", ".join(f"{prefix}{known}" for known in values)
            raise InputError(f"{where}: there is no setting {prefix}{name}; there are: {known}")
        if isinstance(values[name], dict):
            if not isinstance(change, dict):
                raise InputError(f"{where}: {prefix}{name} is a group of settings, not a value")
            _merge(values[name], change, where, f"{prefix}{name}.")
        else:
            values[name] = change
