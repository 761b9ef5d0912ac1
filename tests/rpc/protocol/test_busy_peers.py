"""Peers that are silent: the transport knows whether their processes run."""

from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Died,
    Failed,
    Freed,
    Joined,
    Lost,
    Reason,
)
from tests.rpc.protocol.network import Network
from tests.rpc.protocol.times import TIMES

LONG = 5 * TIMES.expire


def group() -> Network:
    """Two members; the second one owns a value to which the first one refers."""
    network = Network()
    keeper, other = network.group("a", "b")
    network.call("a", "b", b"made", creates=keeper.new_id())
    network.call("b", "a", b"made", creates=other.new_id())
    network.run(TIMES.heartbeat)
    return network


def silent(network: Network, seconds: float, *, runs: bool) -> None:
    """The second worker is silent for some time, and its process runs or not."""
    network.frozen.add("b")
    end = network.now + seconds
    while network.now < end:
        if runs:
            network.sessions["a"].reached({"b": network.now, "elsewhere": 0.0})
        network.run(TIMES.dead / 4)
    network.frozen.discard("b")


def answered(network: Network, name: str, call: int) -> bool:
    found = network.told(name, Answered)
    return call in [each.call for each in found if isinstance(each, Answered)]


def ends(network: Network) -> list[object]:
    kinds = (Lost, Failed, Died, Freed)
    return [each for name in "ab" for each in network.told(name, *kinds)]


def test_a_worker_that_is_busy_is_not_lost_and_loses_nobody() -> None:
    network = group()
    call = network.call("a", "b", b"asked", timeout=None)
    silent(network, LONG, runs=True)
    # It looks before it does anything else.
    network.sessions["b"].reached({"a": network.now})
    network.until(lambda: answered(network, "a", call))
    network.run(2 * TIMES.expire)
    assert ends(network) == []


def test_a_worker_whose_process_does_not_run_is_lost() -> None:
    network = group()
    call = network.call("a", "b", b"asked", timeout=None)
    silent(network, LONG, runs=False)
    assert Failed(call, Reason.LOST) in network.events["a"]
    assert network.told("a", Lost) != []


def test_a_handshake_waits_for_a_process_that_runs() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.frozen.add("c")
    call = network.call("b", "c", b"asked", timeout=None)
    end = network.now + 3 * TIMES.connect
    while network.now < end:
        for name in "ab":
            network.sessions[name].reached({"c": network.now})
        network.run(TIMES.dead / 4)
    network.frozen.discard("c")
    for name in "ab":
        network.sessions["c"].reached({name: network.now})
    network.until(lambda: answered(network, "b", call))


def test_who_was_lost_and_knows_that_the_others_run_is_told() -> None:
    """It would rely on them for ever: they do not answer a worker that is none."""
    network = group()
    silent(network, LONG, runs=False)
    joined = len(network.told("b", Joined))
    network.sessions["b"].reached({"a": network.now})
    call = network.call("b", "a", b"asked", timeout=None)
    for _ in range(8):
        network.sessions["b"].reached({"a": network.now})
        network.run(TIMES.dead / 4)
    assert Failed(call, Reason.LOST) in network.events["b"]
    assert network.told("b", Died) != []
    # It is a member again, in the same life.
    network.until(lambda: len(network.told("b", Joined)) > joined)
    call = network.call("b", "a", b"again")
    network.until(lambda: answered(network, "b", call))
