"""What happens in which order when references are made, shared and dropped."""

import gc

import pytest

from everyorder.runtime import rpc
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, THIRD, in_world, quiet, until

SELF = NAMES[0]


def counts(name: str) -> tuple[int, int]:
    """How many values a worker keeps for others, and for how many references."""
    info = rpc.rpc_sync(name, remote.debug_info)
    return int(info["num_owner_rrefs"]), int(info["num_forks"])


def pending() -> int:
    return int(rpc.get_debug_info()["num_pending_users"])


@pytest.mark.spec("rpc 11.2", "remote")
@in_world
def test_making_a_value_on_another_worker() -> None:
    """11.2: pending, made, confirmed, dropped."""
    quiet()
    rref = rpc.remote(OTHER, remote.pass_gate, ("timeline", 3))
    # Nothing but the owner's answer confirms it.
    if not rref.confirmed_by_owner():
        assert pending() == 1
    rpc.rpc_sync(OTHER, remote.open_gate, ("timeline",))
    assert rref._get_future().wait() is None
    assert until(rref.confirmed_by_owner)
    assert until(lambda: pending() == 0)
    assert counts(OTHER) == (1, 1)
    assert rref.to_here() == 3
    del rref
    gc.collect()
    assert until(lambda: counts(OTHER) == (0, 0))


@pytest.mark.spec("rpc 11.2", "remote")
@in_world
def test_making_a_value_that_fails_makes_a_reference_all_the_same() -> None:
    """11.2: the error lies with the owner, until the reference is dropped."""
    quiet()
    rref = rpc.remote(OTHER, remote.raises, (ValueError, "Expected error"))
    assert rref._get_future().wait() is None
    assert until(rref.confirmed_by_owner)
    assert counts(OTHER) == (1, 1)
    del rref
    gc.collect()
    assert until(lambda: counts(OTHER) == (0, 0))


@pytest.mark.spec("rpc 4.7", "sharing in the four ways")
@pytest.mark.spec("rpc 11.3", "sharing")
@in_world
def test_a_user_shares_with_a_third_worker() -> None:
    """11.3: the owner knows of both; the first may go before the second."""
    quiet()
    rref = rpc.remote(OTHER, remote.add, (1, 2))
    rpc.rpc_sync(THIRD, remote.keep_reference, ("shared", rref))
    assert counts(OTHER) == (1, 2)
    del rref
    gc.collect()
    assert until(lambda: counts(OTHER) == (1, 1))
    assert rpc.rpc_sync(THIRD, remote.fetch_kept, ("shared",)) == 3
    rpc.rpc_sync(THIRD, remote.forget, ("shared",))
    assert until(lambda: counts(OTHER) == (0, 0))


@pytest.mark.spec("rpc 4.7", "sharing in the four ways")
@pytest.mark.spec("rpc 11.3", "sharing")
@in_world
def test_a_user_shares_with_the_owner() -> None:
    """11.3: the owner has the value itself, and no user more."""
    quiet()
    rref = rpc.remote(OTHER, remote.Account, (1,))
    assert rpc.rpc_sync(OTHER, remote.pay_here, (rref, 1)) == 2
    assert until(lambda: counts(OTHER) == (1, 1))
    del rref
    gc.collect()
    assert until(lambda: counts(OTHER) == (0, 0))


@pytest.mark.spec("rpc 4.7", "sharing in the four ways")
@pytest.mark.spec("rpc 11.3", "sharing")
@in_world
def test_an_owner_shares_with_a_user() -> None:
    """11.3: the owner counts the user when it sends, and the user is confirmed."""
    quiet()
    own = rpc.RRef(7)
    assert rpc.rpc_sync(OTHER, remote.confirmed, (own,)) is True
    rpc.rpc_sync(OTHER, remote.keep_reference, ("of worker0", own))
    assert until(lambda: counts(SELF) == (1, 1))
    rpc.rpc_sync(OTHER, remote.forget, ("of worker0",))
    # The owner has its own reference.
    assert until(lambda: counts(SELF) == (1, 0))
    del own
    assert until(lambda: counts(SELF) == (0, 0))


@pytest.mark.spec("rpc 4.7", "sharing in the four ways")
@pytest.mark.spec("rpc 11.3", "sharing")
@in_world
def test_an_owner_shares_with_itself() -> None:
    """11.3: while it is under way it is a reference like any other."""
    quiet()
    own = rpc.RRef([7])
    back = rpc.rpc_sync(SELF, remote.give_back, (own,))
    assert back.local_value() is own.local_value()
    del own, back
    gc.collect()
    assert until(lambda: counts(SELF) == (0, 0))


@pytest.mark.spec("rpc 11.6", "asynchronous execution")
@in_world
def test_an_answer_is_sent_by_whoever_completes_the_future() -> None:
    """11.6: the thread of the request is long gone."""
    before = rpc.rpc_sync(OTHER, remote.parked)
    future = rpc.rpc_async(OTHER, remote.park)
    assert until(lambda: rpc.rpc_sync(OTHER, remote.parked) == before + 1)
    assert not future.done()
    rpc.rpc_sync(OTHER, remote.release, ("released",))
    assert future.wait()[0] == "released"
