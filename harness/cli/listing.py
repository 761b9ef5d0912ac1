"""`everyorder list` and `everyorder completion`: scenarios, and names in a shell.

`list` collects and explores nothing. `completion` prints the script of click for a
shell; https://click.palletsprojects.com/en/stable/shell-completion/ describes how a
shell loads it.
"""

from typing import Any

import click
from click.shell_completion import get_completion_class

from everyorder.harness.cli.command import (
    FAILED,
    OK,
    json_option,
    json_output,
    paths_argument,
)
from everyorder.harness.cli.runner import Runner, load_scenarios
from everyorder.harness.cli.settings import default_paths
from everyorder.harness.collection.tasks import ExploreOptions, Listing, Task
from everyorder.harness.report.text import plural

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "list",
    epilog="Exit codes: 0 listed; 1 a module could not be loaded; 2 bad arguments.",
)
@paths_argument
@json_option
def list_(paths: tuple[str, ...], as_json: bool) -> None:
    """List scenarios, and tests that explore some.

    \b
    Examples:
      everyorder list
      everyorder list tests/plugins --json
    """
    runner = Runner(ExploreOptions(), default=default_paths())
    with json_output(as_json) as emit, runner:
        listing = load_scenarios(runner, paths, silent=as_json)
        if as_json:
            emit(data_of(listing))
    if not as_json:
        for task in listing.tasks:
            click.echo(f"{task.path}  {_size(task)}")
        for broken in listing.broken:
            click.echo(f"{broken.scenario}: {broken.sentence}\n{broken.render()}")
        scenarios = sum(not task.is_test for task in listing.tasks)
        text = plural(scenarios, "scenario")
        if tests := len(listing.tasks) - scenarios:
            text += f", {plural(tests, 'test')} with the fixture explore"
        click.echo(text)
    raise SystemExit(FAILED if listing.broken else OK)


def _size(task: Task) -> str:
    if task.is_test:
        return "(a test)"
    steps, uses = len(task.subject.steps), len(task.subject.uses)
    return f"({plural(steps, 'step')}, {plural(uses, 'use')})"


def data_of(listing: Listing) -> dict[str, Any]:
    """Return a listing as JSON data."""
    return {
        "root": str(listing.root),
        "scenarios": [
            {
                "scenario": task.path,
                "node": task.node,
                "is_test": task.is_test,
                "steps": list(task.subject.steps),
                "uses": list(task.subject.uses),
            }
            for task in listing.tasks
        ],
        "broken": [each.data() for each in listing.broken],
        "skipped": [
            {"source": source, "reason": reason} for source, reason in listing.skipped
        ],
    }


@click.command(epilog="Exit codes: 0 printed; 2 bad arguments.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script for completion in a shell.

    \b
    Examples:
      eval "$(everyorder completion bash)"      in ~/.bashrc
      eval "$(everyorder completion zsh)"       in ~/.zshrc
      everyorder completion fish | source       in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click supports these shells"
    group = click.get_current_context().find_root().command
    source = kind(group, {}, "everyorder", "_EVERYORDER_COMPLETE").source()
    click.echo(source)
