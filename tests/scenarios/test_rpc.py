"""Groups of workers: who is there, and who refers to what, in every order."""

from everyorder.harness.scenario import Scenario, step
from tests.scenarios.group import Group

# A worker comes and goes beside another one, which has a value that it is given.
references = Scenario(
    step("w1 joins", lambda group: group.join("w1")),
    step("w2 joins", lambda group: group.join("w2")),
    step(
        "w0 has a on w1",
        lambda group: group.create("a", "w0", "w1"),
        requires="w1 joins",
    ),
    step(
        "w2 is given a",
        lambda group: group.share("a", "w0", "w2"),
        requires=["w1 joins", "w2 joins"],
        after="w0 has a on w1",
    ),
    create=Group,
    observe=Group.seen,
    check=Group.wrong,
    fingerprint=Group.state,
)
