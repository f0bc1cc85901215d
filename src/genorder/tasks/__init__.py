"""Tasks: sources of samples with known dependencies. Importing this package registers the built-in tasks."""

from genorder.tasks.arithmetic import AdditionTask, MultiplicationTask, UnequalMultiplicationTask
from genorder.tasks.base import DrawnInputs, DrawnSamples, Lengths, Split, Task
from genorder.tasks.delay import DelayNetwork, DelayTask, Update
from genorder.tasks.pointers import IndexTask, LinkedListTask
from genorder.tasks.random_program import RandomProgramTask
from genorder.tasks.recurrence import RecurrenceTask
from genorder.tasks.registry import TaskSummary, make_task, register_task, task_names, task_summaries
from genorder.tasks.splits import (
    TaskData,
    hidden_order,
    hide_order,
    stored_columns,
    task_dataset,
    task_splits,
    unhide_order,
)

__all__ = [
    "AdditionTask",
    "DelayNetwork",
    "DelayTask",
    "DrawnInputs",
    "DrawnSamples",
    "IndexTask",
    "Lengths",
    "LinkedListTask",
    "MultiplicationTask",
    "RandomProgramTask",
    "RecurrenceTask",
    "Split",
    "Task",
    "TaskData",
    "TaskSummary",
    "UnequalMultiplicationTask",
    "Update",
    "hidden_order",
    "hide_order",
    "make_task",
    "register_task",
    "stored_columns",
    "task_dataset",
    "task_names",
    "task_splits",
    "task_summaries",
    "unhide_order",
]
