"""`everyorder runtime`: commands for the runtime of this package.

`warm` compiles the common kernels ahead (`runtime.kernels.warm`).
"""

from concurrent.futures.process import BrokenProcessPool
from time import perf_counter

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from everyorder.harness.cli.command import CommandError, console
from everyorder.harness.report.summary_table import duration

_EPILOG = (
    "Exit codes: 0 all are stored; 2 they cannot be; 130 interrupted: those that were "
    "compiled stay stored."
)


@click.group(epilog=_EPILOG)
def runtime() -> None:
    """Prepare this machine for programs that use the runtime."""


@runtime.command(epilog=_EPILOG)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many processes compile at once. Default: one for each processor.",
)
def warm(jobs: int | None) -> None:
    """Compile the common kernels ahead of the first program.

    A kernel is compiled once for a machine and stored in a folder of this user, or in
    EVERYORDER_CACHE_DIR; all environments with the same versions share it. Kernels that
    are not common are compiled when a program first uses them.
    """
    # First: it says which extra is missing.
    from everyorder.runtime.kernels import warm as kernels  # isort: skip
    import numba

    from everyorder.runtime.kernels.compile import cache
    from everyorder.runtime.kernels.shared.thread_pool import usable_cores

    settings: object = numba.config
    if getattr(settings, "DISABLE_JIT", 0):
        raise CommandError(
            "nothing is compiled while NUMBA_DISABLE_JIT is set; unset it to compile"
        )
    folder = cache.folder()
    if folder is None:
        raise CommandError(
            "compiled kernels cannot be stored: no folder for caches belongs to this "
            "user alone and is writable; set EVERYORDER_CACHE_DIR to one that is"
        )
    wanted = kernels.common_kernels()
    jobs = min(jobs or usable_cores(), len(wanted))
    out = console()
    compiled, begun = 0, perf_counter()
    with Progress(
        TextColumn("compiling kernels"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    ) as progress:
        task = progress.add_task("", total=len(wanted))
        try:
            for kernel, took in kernels.compile_kernels(wanted, jobs):
                compiled += took > 0
                progress.update(task, advance=1, description=kernel.family[:30])
        except BrokenProcessPool:
            raise CommandError(
                f"a process that compiles was ended from outside, after {compiled} "
                "kernels; if the memory was too small, use fewer --jobs"
            ) from None
        except OSError as error:
            raise CommandError(
                f"compiled kernels cannot be stored in {folder}: {error.strerror}"
            ) from None
    out.print(
        f"{len(wanted)} kernels are stored: {compiled} compiled in "
        f"{duration(perf_counter() - begun)} (--jobs {jobs}), "
        f"{len(wanted) - compiled} were there"
    )
    out.print(f"folder: {folder}", soft_wrap=True)
