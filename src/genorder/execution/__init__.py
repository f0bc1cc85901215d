"""Where jobs run: device, threads, worker processes, and interruption."""

from genorder.execution.interrupt import StopRequest
from genorder.execution.machine import (
    DEVICES,
    choose_device,
    describe_machine,
    flushing_denormals,
    package_versions,
    prefer_deterministic_kernels,
    set_threads,
    usable_cores,
    using_threads,
)
from genorder.execution.workers import Workers

__all__ = [
    "DEVICES",
    "StopRequest",
    "Workers",
    "choose_device",
    "describe_machine",
    "flushing_denormals",
    "package_versions",
    "prefer_deterministic_kernels",
    "set_threads",
    "usable_cores",
    "using_threads",
]
