"""`everyorder write`: a first scenario of anybody's registry.

True only here: where the text goes.  How it is found is `harness.writing`.
"""

from pathlib import Path

import click

from harness.writing import SECONDS, CannotSave, FileExists, written


@click.command(epilog="Exit codes: 0 written; 2 it could not be; 130 interrupted.")
@click.argument("target", metavar="MODULE[:NAME]")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the scenario there. Default: print it.",
)
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@click.option(
    "--path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The folder to import from first. Default: the current one.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time for all trials together.",
)
def write(
    target: str, output: Path | None, force: bool, path: Path, timeout: float
) -> None:
    """Write a first scenario of a registry.

    Names are looked through for pairs (add and remove, connect and disconnect,
    push and pop, ...), for what registers alone, and for look-ups. Which arguments they
    take is tried out, on fresh registries in processes of their own, in an empty
    folder; nothing is called whose name says neither. What could not be found
    out is marked TODO.

    \b
    everyorder write pluggy:PluginManager
    everyorder write shop.registry:Registry -o tests/scenarios/test_registry.py
    everyorder write codecs
    """
    if output is not None and output.exists() and not force:
        raise FileExists(file=str(output))
    text = written(target, path=path, seconds=timeout)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotSave(file=str(output), reason=reason) from None
    click.echo(f"written: {output}\nexplore it: everyorder run {output}")
