"""The laws that hold at every step of a world, and those of a world at rest.

True only here: the laws that no agent can see alone; what an agent sees is in `worker`.
Each looks at a world and returns what it found, or nothing; its first line is the law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.rpc.simulator.world import World


def confirmed_are_listed(world: World) -> str | None:
    """An owner lists every reference that its user takes for confirmed."""
    living = {
        worker.agent.session.node: worker.agent
        for worker in world.workers
        if worker.agent is not None and not worker.agent.leaving
    }
    for worker in world.workers:
        agent = worker.agent
        # Who is frozen takes nothing for anything, nor who has just thawed.
        if agent is None or worker.frozen or worker.behind(world.time):
            continue
        for name in agent.confirmed:
            fork = agent.held[name]
            owner = living.get(fork.owner)
            if owner is None:
                continue
            owners = owner.session._references.owners
            if owners.listed.get(name) != fork.rref:
                return f"{fork.owner.name} does not list {fork}, held by {worker.name}"
            if fork.rref not in owner.values:
                return f"{fork.owner.name} has freed {fork}, held by {worker.name}"
    return None


def deadlines_end(world: World) -> str | None:
    """A call has its end when its deadline has passed."""
    for worker in world.workers:
        agent = worker.agent
        if agent is None or worker.frozen or worker.behind(world.time):
            continue
        for number, asked in agent.asked.items():
            if asked.deadline is not None and asked.deadline < agent.now - 1e-3:
                return f"call {number} of {worker.name} goes on"
    return None


def the_end_is_common(world: World) -> str | None:
    """Who is told that all are done knows of nobody who is not."""
    agents = {
        worker.agent.session.node: worker.agent
        for worker in world.workers
        if worker.agent is not None
    }
    for worker in world.workers:
        agent = worker.agent
        if agent is None:
            continue
        for node in agent.last:
            other = agents.get(node)
            if other is not None and not other.done:
                return f"{worker.name} is told so, and {node.name} is not done"
    return None


LAWS = (confirmed_are_listed, deadlines_end, the_end_is_common)


def calls_have_ended(world: World) -> str | None:
    """Every call has one end."""
    for worker in world.workers:
        agent = worker.agent
        if agent is not None and (agent.asked or agent.running):
            return f"{worker.name}: {agent.asked} go on, {agent.running} run"
    return None


def all_is_freed(world: World) -> str | None:
    """Nothing is kept that nobody needs."""
    kept = ("owners", "forks", "users", "pending", "children", "carriers")
    for worker in world.workers:
        agent = worker.agent
        if agent is None:
            continue
        counts = agent.session.counts()
        left = {
            name: counts[name]
            for name in (*kept, "calls", "called", "queued")
            if counts[name]
        }
        if left or agent.values or agent.held:
            return f"{worker.name}: {left}, {agent.values}, {agent.held}"
        references = agent.session._references
        if references.holding or references.owners.fenced or references.unheard:
            return f"{worker.name}: {references.holding}, {references.owners.fenced}"
    return None


def members_agree(world: World) -> str | None:
    """All members of a group have the same members."""
    first = world.workers[0].agent
    if first is None or first.session.node.id < 0:
        return None
    group = {first.session.node, *first.members}
    if len({node.name for node in group}) < len(group):
        return f"two of {group} have one name"
    if len({node.id for node in group}) < len(group):
        return f"two of {group} have one number"
    for worker in world.workers:
        agent = worker.agent
        if agent is None or agent.session.node not in group:
            continue
        seen = {agent.session.node, *agent.members}
        if set(agent.session.members()) != seen:
            return f"{worker.name} has {agent.session.members()}, and was told {seen}"
        # Who was cut off may believe in somebody who has gone meanwhile.
        if not group <= seen if world.cut_off else seen != group:
            return f"{worker.name} has {seen}, {world.workers[0].name} {group}"
    return None


AT_REST = (calls_have_ended, all_is_freed, members_agree)
