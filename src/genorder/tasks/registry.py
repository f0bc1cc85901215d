"""Tasks by name, built-in or registered by the user."""

import difflib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, final

from genorder.errors import InputError
from genorder.tasks.base import Lengths, Task

Value = int | float | str
TaskFactory = Callable[..., Task]
Factory = TypeVar("Factory", bound=TaskFactory)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_FILE_SPEC = re.compile(r"(?P<file>.+\.py)(?::(?P<rest>.*))?")
_LENGTH = re.compile(r"\s*([+-]?\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?")


@final
@dataclass(frozen=True)
class TaskSummary:
    """One line of `genorder tasks`: what the task computes, and its parameters."""

    name: str
    summary: str
    default_length: int | None  # None: the task chooses
    length_step: int
    parameters: Mapping[str, Value]  # with their defaults


@dataclass(frozen=True)
class _Entry:
    summary: TaskSummary
    factory: TaskFactory
    origin: tuple[str, str]  # file and qualified name of the factory


_entries: dict[str, _Entry] = {}


def register_task(
    name: str, *, summary: str, default_length: int | None = 20, length_step: int = 1
) -> Callable[[Factory], Factory]:
    """Register the decorated factory `(lengths, **parameters) -> Task` as `name`.

    Every parameter needs a default, whose type decides how text is converted to a value. Lengths must be multiples of
    `length_step`. With `default_length=None` the factory chooses the length: it receives None as `lengths` unless the
    user sets a length. Raises InputError if the name is taken; the same function of the same file may be registered
    again, which happens when a file is imported twice.
    """

    def register(factory: Factory) -> Factory:
        if not _NAME.fullmatch(name) or name.endswith(".py"):
            raise InputError(f"{name!r} is no task name: use letters, digits, - and _")
        task_summary = TaskSummary(name, summary, default_length, length_step, _parameters(name, factory))
        code = inspect.unwrap(factory)
        file = str(Path(inspect.getfile(code)).resolve())
        entry = _Entry(task_summary, factory, (file, code.__qualname__))
        taken = _entries.get(name)
        if taken is not None and taken.origin != entry.origin:
            raise InputError(f"task name {name!r} is taken by {taken.origin[0]}: choose another")
        _entries[name] = entry
        return factory

    return register


def make_task(spec: str, length: int | str | Lengths | None = None) -> Task:
    """The task of `spec` with the target length `length`: 20, "20", "20-30" (variable), or None for the default.

    `spec` is NAME, NAME:parameter=value,... or FILE.py:NAME[:parameter=value,...]; the file is imported and registers
    its tasks. Raises InputError for an unusable `spec` or `length`.
    """
    match = _FILE_SPEC.fullmatch(spec)
    if match:
        name, settings = _split_spec(match.group("rest") or "")
        entry = _entry_from_file(Path(match.group("file")), name)
    else:
        name, settings = _split_spec(spec)
        entry = _entry_named(name)
    lengths = _lengths(entry.summary, length)
    task = entry.factory(lengths, **_settings(entry.summary, settings))
    if not isinstance(task, Task):
        raise InputError(f"the factory of task {name!r} returned {type(task).__name__}, not a Task")
    return task


def absolute_spec(spec: str) -> str:
    """The same spec with an absolute path, so that it works from every working directory."""
    match = _FILE_SPEC.fullmatch(spec)
    return str(Path(match.group("file")).resolve()) + spec[match.end("file") :] if match else spec


def task_names() -> tuple[str, ...]:
    return tuple(sorted(_entries))


def task_summaries() -> tuple[TaskSummary, ...]:
    return tuple(_entries[name].summary for name in task_names())


def _parameters(name: str, factory: TaskFactory) -> Mapping[str, Value]:
    signature = list(inspect.signature(factory).parameters.values())
    if not signature:
        raise InputError(f"the factory of task {name!r} must take lengths as its first argument")
    for parameter in signature[1:]:
        if not isinstance(parameter.default, (int, float, str)):
            raise InputError(f"parameter {parameter.name} of task {name!r} needs a number or text as default")
    return MappingProxyType({parameter.name: parameter.default for parameter in signature[1:]})


def _split_spec(text: str) -> tuple[str, str]:
    name, _, settings = text.partition(":")
    return name.strip(), settings


def _entry_named(name: str) -> _Entry:
    if name not in _entries:
        near = difflib.get_close_matches(name.lower(), list(_entries), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(f"no task named {name!r}: {hint}see `genorder tasks`")
    return _entries[name]


def _entry_from_file(path: Path, name: str) -> _Entry:
    if not path.is_file():
        raise InputError(f"{path}: no such task file")
    _import_file(path)
    file = str(path.resolve())
    registered = [known for known, entry in _entries.items() if entry.origin[0] == file]
    if name not in registered:
        offered = ", ".join(registered) or "none"
        raise InputError(f"{path}: registers no task named {name!r} (registered there: {offered})")
    return _entries[name]


def _import_file(path: Path) -> None:
    module_name = f"genorder_task_file_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    if module_spec is None or module_spec.loader is None:
        raise InputError(f"{path}: cannot be imported as a Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_name] = module  # dataclasses and pickle look up modules there
    try:
        module_spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{error.filename or path}:{error.lineno}: cannot be imported: {error.msg}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's code raises is the reason to report
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"{path}: cannot be imported: {type(error).__name__}: {reason}") from error


def _lengths(summary: TaskSummary, length: int | str | Lengths | None) -> Lengths | None:
    if length is None:
        length = summary.default_length
    if length is None:
        return None
    if isinstance(length, Lengths):
        shortest, longest = length.shortest, length.longest
    elif isinstance(length, str):
        match = _LENGTH.fullmatch(length)
        if match is None:
            raise InputError(f"length {length!r} is neither a number such as 20 nor a range such as 20-30")
        shortest = int(match.group(1))
        longest = shortest if match.group(2) is None else int(match.group(2))
    else:
        shortest = longest = length
    step = summary.length_step
    received = shortest if shortest == longest else f"{shortest}-{longest}"
    if longest < shortest:
        raise InputError(f"task {summary.name}: expected a range with the shorter length first, received {received}")
    if shortest < 1:
        raise InputError(f"task {summary.name}: length must be 1 or more, as in 20 or 20-30, received {received}")
    if shortest % step or longest % step:
        kind = "even" if step == 2 else f"a multiple of {step}"
        raise InputError(f"task {summary.name}: length must be {kind}, received {received}")
    return Lengths(shortest, longest, step)


def _settings(summary: TaskSummary, text: str) -> dict[str, Value]:
    settings: dict[str, Value] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        accepted = ", ".join(f"{name}={default}" for name, default in summary.parameters.items()) or "none"
        if not equals or key not in summary.parameters:
            raise InputError(f"task {summary.name} has no parameter {part!r} (accepted: {accepted})")
        if key in settings:
            raise InputError(f"task {summary.name}: parameter {key} occurs twice")
        settings[key] = _converted(summary.name, key, value, summary.parameters[key])
    return settings


def _converted(task: str, key: str, text: str, default: Value) -> Value:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"task {task}: parameter {key} must be true or false, received {text!r}")
        return text.lower() == "true"
    try:
        return type(default)(text)
    except ValueError as error:
        kind = "an integer" if isinstance(default, int) else "a number"
        raise InputError(f"task {task}: parameter {key} must be {kind}, received {text!r}") from error
