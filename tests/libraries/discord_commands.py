"""discord.py: commands of a group, with aliases, looked up by name."""

from typing import Any

from discord.ext import commands

from everyorder import Scenario, steps, use


async def play(context: Any) -> None:
    """Play a song."""


async def stop(context: Any) -> None:
    """Stop the song."""


async def skip(context: Any) -> None:
    """Skip the song."""


FUNCTIONS = {"play": play, "stop": stop, "skip": skip}


def new_group() -> "commands.GroupMixin[Any]":
    return commands.core.GroupMixin()


def add(group: Any, name: str) -> None:
    group.add_command(commands.Command(FUNCTIONS[name], aliases=[name[:2]]))


def remove(group: Any, name: str) -> None:
    group.remove_command(name)


def names(group: Any) -> tuple[str, ...]:
    return tuple(sorted(each.qualified_name for each in group.walk_commands()))


def brief(group: Any) -> str:
    command = group.get_command("pl")
    return "none" if command is None else str(command.short_doc)


scenario = Scenario(
    *steps("add", [*FUNCTIONS], add, undo=remove),
    uses=[use("walk_commands", names), use('get_command("pl")', brief)],
    create=new_group,
)
