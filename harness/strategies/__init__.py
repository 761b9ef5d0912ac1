"""Hypothesis strategies for steps, uses and scenarios of any registry.

They need the extra `hypothesis`.  `everyorder.harness.strategies.dispatcher` generates
scenarios of the runtime's dispatcher, and loads the runtime;
`everyorder.runtime.strategies` generates schemas, keys, and calls of libraries.
"""

# first of all, an error that names the extra
from importlib.util import find_spec

from everyorder.harness.base.errors import NotInstalled

if find_spec("hypothesis") is None:
    raise NotInstalled(code="NoHypothesis")

from everyorder.harness.strategies.checking import check, replayed
from everyorder.harness.strategies.generated import (
    calls,
    questions,
    scenarios,
    scenarios_within,
)

__all__ = ["calls", "check", "questions", "replayed", "scenarios", "scenarios_within"]
