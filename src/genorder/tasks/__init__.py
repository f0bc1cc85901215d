"""Sources of samples whose computation is known. Importing this package registers the built-in tasks."""

from genorder.tasks.addition import AdditionTask
from genorder.tasks.base import Drawn, DrawnInputs, Lengths, Task
from genorder.tasks.delay import DelayNetwork, DelayTask, Update
from genorder.tasks.hidden import hidden_order, hide, unhide_order
from genorder.tasks.index import IndexTask
from genorder.tasks.linked_list import LinkedListTask
from genorder.tasks.multiplication import MultiplicationTask, UnequalMultiplicationTask
from genorder.tasks.partition import Split
from genorder.tasks.random_program import RandomProgramTask
from genorder.tasks.recurrence import RecurrenceTask
from genorder.tasks.registry import TaskSummary, make_task, register_task, task_names, task_summaries
from genorder.tasks.splits import TaskData, stored_columns, task_dataset, task_splits

__all__ = [
    "AdditionTask",
    "DelayNetwork",
    "DelayTask",
    "Drawn",
    "DrawnInputs",
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
    "hide",
    "make_task",
    "register_task",
    "stored_columns",
    "task_dataset",
    "task_names",
    "task_splits",
    "task_summaries",
    "unhide_order",
]
