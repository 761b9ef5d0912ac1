"""Laws about threads: what is not a call leaves them alone, too.

True only here: how two samples of one thread are compared.  That calls restore their
thread is a law of `invariants.laws.runs`.
"""

from invariants.law import Finding, law
from invariants.run import Run
from invariants.surroundings import Surroundings


@law("run")
def deeds_leave_the_thread_alone(run: Run) -> list[Finding]:
    """A registration, its removal, a refusal or a look leaves its thread as it was."""
    return [
        finding
        for deed in run.deeds
        for finding in changed(deed.what, deed.before, deed.after)
    ]


def changed(what: str, before: Surroundings, after: Surroundings) -> list[Finding]:
    """Where two samples differ, as findings about `what` came between them."""
    return [
        (f"{what}, {field}", f"{old}", f"{new}")
        for field in Surroundings.__slots__
        if (old := getattr(before, field)) != (new := getattr(after, field))
    ]
