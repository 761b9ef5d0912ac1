"""`everyorder worker`: a process that runs the remote calls of other workers.

The command starts such a process, prints its address, and lets it leave in good order.
`runtime.rpc` documents workers; it needs the extra `rpc`, and is imported when the
command runs.
"""

import sys
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import click

from everyorder.harness.base.errors import ProcessError
from everyorder.harness.cli.command import Seconds, defer_interrupts, path_option

# Interval between two checks for a request to leave.
_LOOK_SECONDS = 0.2
_EPILOG = (
    "Exit codes: 0 it left when it was asked to; 2 it could not join; 130 it was "
    "interrupted while it joined, or once more while it left."
)


@click.command(epilog=_EPILOG)
@click.option(
    "--name",
    required=True,
    metavar="NAME",
    help="The name by which other workers call it.",
)
@click.option(
    "--join",
    "address",
    required=True,
    metavar="ADDRESS",
    help="Where the workers of a group meet: tcp://HOST:PORT or ipc:///folder. The "
    "first worker there keeps the list of members.",
)
@click.option(
    "--keys",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder of keys; needed for a group of several machines.",
)
@click.option(
    "--host",
    default="",
    metavar="HOST",
    help="The name or address of this machine for other machines. Default: a guess.",
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module to import first, for the functions that it registers. May be "
    "repeated.",
)
@path_option
@click.option(
    "--registered-only",
    is_flag=True,
    help="Run only registered functions, and decode nothing that could run code.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="How many functions run at once.",
)
@click.option(
    "--timeout",
    type=Seconds(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for joining the group, and again for calls to finish when it "
    "leaves.",
)
def worker(
    name: str,
    address: str,
    keys: Path | None,
    host: str,
    modules: tuple[str, ...],
    path: Path,
    registered_only: bool,
    threads: int,
    timeout: float,
) -> None:
    """Start a worker of remote calls, in an open group.

    It serves until Ctrl-C or SIGTERM; then running calls are finished, and it leaves
    the group. A second signal ends it at once.

    \b
    Examples:
      everyorder worker --name w1 --join ipc:///run/user/1000/group
      everyorder worker --name w2 --join tcp://10.0.0.1:5555 --keys keys
    """
    sys.path.insert(0, str(path.absolute()))
    agents = _agents()
    options = agents.RpcBackendOptions(
        init_method=address,
        num_worker_threads=threads,
        keys=keys,
        host=host,
        registered_only=registered_only,
        join_timeout=timeout,
    )
    try:
        for module in modules:
            import_module(module)
        # No work has begun yet: an interrupt ends it at once.
        agents.init_rpc(name, rpc_backend_options=options)
    except (agents.RpcError, ImportError) as error:
        raise ProcessError(code="CannotServe", name=name, reason=str(error)) from None
    agent = agents.current_agent("worker")
    try:
        with defer_interrupts() as check:
            click.echo(
                f"worker {name} (id {agent.info.id}) serves at "
                f"{agent.transport.endpoint}; Ctrl-C to leave"
            )
            while not agent.ended:
                check()
                Event().wait(_LOOK_SECONDS)
    except KeyboardInterrupt:
        if not agent.is_idle():
            click.echo(
                f"worker {name} finishes running calls; Ctrl-C to end it at once",
                err=True,
            )
    # From here on an interrupt is raised at once, and the worker leaves without
    # waiting.
    try:
        agents.shutdown(timeout=timeout)
    except agents.RpcError as error:
        click.echo(str(error), err=True)
    click.echo(f"worker {name} has left")


def _agents() -> Any:
    """Return the module of agents, which needs the extra `rpc`.

    Raises:
        ProcessError: the extra is not installed.
    """
    try:
        return import_module("everyorder.runtime.rpc.api.lifecycle")
    except ImportError as error:
        name = getattr(error, "package", None) or error.name
        raise ProcessError(
            code="CannotServe",
            reason=f"{name} is not installed: pip install 'everyorder[rpc]'",
        ) from None
