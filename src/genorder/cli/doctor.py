"""`genorder doctor`: what this machine offers, and whether all is in place."""

import importlib.util

from genorder.bench import matmul_gflops
from genorder.cli import options
from genorder.cli.console import emit_json, say
from genorder.execution import choose_device, describe_machine, package_versions, set_threads

_EXTRAS = {"transformers": "bench", "accelerate": "bench", "matplotlib": "figures"}


def doctor(device: options.Device = "auto", threads: options.Threads = None, json: options.Json = False) -> None:
    """Show the machine, the torch build, threads and device, and how fast it multiplies matrices.

    Example: genorder doctor
    """
    chosen = choose_device(device)
    set_threads(threads)
    extras = {name: importlib.util.find_spec(name) is not None for name in _EXTRAS}
    report = {
        **describe_machine(),
        "device": chosen.type,
        "matmul_gflops": matmul_gflops(chosen),
        "extras": extras,
    }
    if json:
        emit_json(report)
        return
    say(f"python {report['python']} on {report['platform']}")
    say(f"{report['processor']}, {report['cores']} cores, {report['cpu_capability']}")
    say(", ".join(f"{name} {version}" for name, version in package_versions().items()))
    say(f"device {report['device']}, {report['threads']} threads, {report['matmul_gflops']:.0f} GFLOP/s in float32")
    for name, present in extras.items():
        say(f"{name}: {'present' if present else f'absent (pip install genorder[{_EXTRAS[name]}])'}")
