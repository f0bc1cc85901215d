"""Where and how work runs."""

from genorder.execution.interrupt import StopRequest
from genorder.execution.machine import DEVICES, choose_device, describe_machine, set_threads

__all__ = ["DEVICES", "StopRequest", "choose_device", "describe_machine", "set_threads"]
