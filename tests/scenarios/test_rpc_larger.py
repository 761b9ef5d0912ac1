"""Groups of workers with two values, each given to the owner of the other."""

import pytest

from everyorder.harness.scenario import Scenario, step, use
from everyorder.runtime.rpc.codec.named_functions import FunctionRegistry
from tests.scenarios.group import Group

pytestmark = pytest.mark.slow


def with_functions() -> Group:
    """A group whose keeper has functions that are called by their names."""
    group = Group()
    group.callables = FunctionRegistry()
    return group


# Workers join and leave, functions are registered, values created, shared and dropped.
two_values = Scenario(
    step("w1 joins", lambda group: group.join("w1")),
    step("w2 joins", lambda group: group.join("w2")),
    step(
        "w0 has a on w1",
        lambda group: group.create("a", "w0", "w1"),
        requires="w1 joins",
    ),
    step(
        "w0 has b on w2",
        lambda group: group.create("b", "w0", "w2"),
        requires="w2 joins",
    ),
    step(
        "w2 is given a",
        lambda group: group.share("a", "w0", "w2"),
        requires=["w1 joins", "w2 joins"],
        after="w0 has a on w1",
    ),
    step(
        "w1 is given b",
        lambda group: group.share("b", "w0", "w1"),
        requires=["w1 joins", "w2 joins"],
        after="w0 has b on w2",
    ),
    step("f is registered", lambda group: group.register("f")),
    uses=[use("w0 calls f", lambda group: group.ask("f"))],
    create=with_functions,
    observe=Group.seen,
    check=Group.wrong,
    fingerprint=Group.state,
)
