"""`genorder watch`: the report of a run while it runs."""

from typing import Annotated

import typer

from genorder.cli import options
from genorder.cli.console import say


def watch(
    run_dir: options.RunDir,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")] = 0,
) -> None:
    """Serve the report of a run to a browser on this machine, renewed as the run goes on. Ctrl-C ends it.

    Example: genorder watch runs/relu --port 8765
    """
    from genorder.reports.server import LOOPBACK, report_server

    with report_server(run_dir, port) as server:
        say(f"http://{LOOPBACK}:{server.server_port}/ shows {run_dir}; Ctrl-C ends it")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("ended; the run itself is not touched")
