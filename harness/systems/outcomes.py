"""Outcomes of a scenario's own functions: errors, answers, observations, as values.

An `Exception` is an outcome, and so are other exceptions with the same meaning:
`pytest.fail`, a cancelled task, those of other frameworks.  `pytest.skip` skips the
scenario (`ScenarioSkipped`).  Requests to end the process or the session
(`KeyboardInterrupt`, `SystemExit`, `pytest.exit`) are passed on.

An answer is stored and compared with later ones, so it is recorded at once in its
canonical form, by exact types: a list that the registry still holds would change with
it and stay equal to itself, and `True` would be equal to `1`.

Rules:
- an exception is an outcome by the name of its class and its text, without addresses,
  because they differ from run to run; and by the plain data that it carries
  (`carried.py`);
- no exception is kept: its frames hold registries and handles;
- an object that has not run yet is not an answer (a generator, a coroutine): it is
  refused;
- an observation is text: it is written to expect files and reports as it is.
"""

import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Hashable,
    ItemsView,
    Iterator,
    KeysView,
    Sequence,
    ValuesView,
)
from inspect import isawaitable
from typing import Any, ParamSpec, TypeVar
from unittest import SkipTest

from everyorder.harness.base.errors import HarnessError, NotAScenario
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.scenario.mistakes import kind_of
from everyorder.harness.scenario.step import UseStep
from everyorder.harness.state import canonical
from everyorder.harness.state.global_names import GlobalNames
from everyorder.harness.systems.carried import (
    RECURSION,
    CarriedData,
    without_addresses,
)

T = TypeVar("T")
P = ParamSpec("P")
# An error as it is compared: its class, its text, and what it carries.
Fields = tuple[tuple[str, Hashable], ...]

# Requests to end the process, or the running task.
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)


class ScenarioSkipped(HarnessError, SkipTest):
    """A step, a use or another function of a scenario skipped it.

    Test runners skip the test that raises it.
    """

    reason: str

    words = """
    ScenarioSkipped: {reason}
    """


class ErrorOutcome(Exception):
    """An outcome by its name and its text, in place of a `kind` that was raised."""

    def __init__(
        self,
        name: str,
        text: str,
        kind: type[BaseException] = BaseException,
        raised: BaseException | None = None,
        fields: Fields = (),
        caveats: Sequence[Caveat] = (),
    ) -> None:
        super().__init__(name, text)
        # The traceback of the error in whose place this one is raised.
        if raised is not None:
            self.__traceback__ = raised.__traceback__
        self.name = name
        self.text = text
        self.kind = kind
        self.fields = fields or (("error", name), ("text", text))
        self.caveats = tuple(caveats)


def call_with_outcomes(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function whose exceptions are outcomes; convert others to `Exception`.

    Raises:
        ScenarioSkipped: the function skipped the scenario.
    """
    outcome: Exception
    try:
        return function(*args, **kwargs)
    except _ENDING:
        raise
    except BaseException as error:
        reason = skip_reason(error)
        if reason is not None:
            outcome = ScenarioSkipped(reason=reason)
        elif issubclass(type(error), Exception) or _is(error, "Exit"):
            raise
        else:
            caveats: list[Caveat] = []
            named = name_and_text(error)
            # Those of pytest have their text only.
            is_pytests = _is(error, "OutcomeException")
            fields = () if is_pytests else error_fields(error, caveats.append)
            outcome = ErrorOutcome(*named, type(error), error, fields, caveats)
    # Raise outside of `except`, so that the error is not chained.
    raise outcome


def call_without_skips(
    may_skip: Callable[[], bool],
    function: Callable[P, T],
    *args: P.args,
    **kw: P.kwargs,
) -> T:
    """Call as `call_with_outcomes`; a skip is an outcome unless `may_skip`.

    The history must not decide about skipping: a function may skip the scenario only at
    its first call.

    Raises:
        ScenarioSkipped: the function skipped the scenario, and may do so.
    """
    outcome: ErrorOutcome
    try:
        return call_with_outcomes(function, *args, **kw)
    except ScenarioSkipped as skipped:
        if may_skip():
            raise
        outcome = ErrorOutcome("Skipped", skipped.reason)
    # Raise outside of `except`, so that the skip is not chained.
    raise outcome


def skip_reason(error: BaseException) -> str | None:
    """Return the reason if the error skips the scenario, else None."""
    # By the type: a `__class__` of the user's may raise.
    if issubclass(type(error), ScenarioSkipped):
        skipped: Any = error
        reason: str = skipped.reason
        return reason
    if issubclass(type(error), SkipTest) or _is(error, "Skipped"):
        return _text(error)
    return None


def name_and_text(error: BaseException) -> tuple[str, str]:
    """Return the name of an error's class and its text, without addresses."""
    if type(error) is ErrorOutcome:
        return error.name, error.text
    text = without_addresses(_text(error))
    if type(error) is RecursionError and text.startswith(RECURSION):
        return type(error).__name__, RECURSION
    return type(error).__name__, text


def error_fields(error: BaseException, note: Callable[[Caveat], object]) -> Fields:
    """Return an error as fields that can be compared: class, text, carried data.

    `note` is called with the limits: the objects in that data are not compared.
    """
    if type(error) is ErrorOutcome:
        for caveat in error.caveats:
            note(caveat)
        return error.fields
    name, text = name_and_text(error)
    carried = CarriedData(name_and_text)
    try:
        named, data = carried.named(error, name, text), carried.shown(error)
        fields: Fields = ("error", named), ("text", text)
        if data:
            fields = (*fields, ("with", canonical(data)))
    except _ENDING:
        raise
    except Exception as broken:
        # It must not be taken for the outcome.
        reason = f"what a {name} carries (reading it raised {type(broken).__name__})"
        note(Caveat("opaque", reason))
        return ("error", name), ("text", text)
    if carried.left_out:
        objects = ", ".join(sorted(carried.left_out))
        note(Caveat("assumed", f"what an error carries ({objects}) is not compared"))
    return fields


def _text(error: BaseException) -> str:
    """Return the text of an error, or the name of the error that `str` raised."""
    try:
        return str.__str__(str(error))
    except _ENDING:
        raise
    except BaseException as broken:
        if _is(broken, "Exit"):
            raise
        return f"<no text: {type(broken).__name__}>"


def is_one_of(error: Exception, kinds: tuple[type[BaseException], ...]) -> bool:
    """Return True if the error is, or represents, an error of one of these classes."""
    kind = error.kind if type(error) is ErrorOutcome else type(error)
    return issubclass(kind, kinds)


def is_failed_check(error: BaseException) -> bool:
    """Return True if an `assert` or a `pytest.fail` raised the error."""
    if type(error) is ErrorOutcome:
        return error.name == "Failed"
    return issubclass(type(error), AssertionError)


def _is(error: BaseException, name: str) -> bool:
    """Return True if it is that outcome of pytest, which need not be imported."""
    outcomes = sys.modules.get("_pytest.outcomes")
    kind = getattr(outcomes, name, None)
    return kind is not None and issubclass(type(error), kind)


# The advice for each wrong type of an observation.
_REPLACEMENTS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "text, by a `return`"),
    ((bytes, bytearray), "text: repr(...), or .decode() if it is one"),
    (dict, "text: '\\n'.join(f'{key}: {value}' for key, value in ...items())"),
    ((list, tuple, set, frozenset), "text: '\\n'.join(map(str, ...))"),
    (Iterator, "text: '\\n'.join(map(str, ...))"),
)


def check_answer(
    use: UseStep,
    answer: Any,
    registry: object = None,
    names: GlobalNames | None = None,
    note: Callable[[Caveat], object] | None = None,
) -> Hashable:
    """Return the answer of a use as a value; a text is returned unchanged.

    If the answer leads back to the registry, the registry's contents are not part of
    it.  `names` are those of objects that global variables hold; `note` is called for
    what cannot be read.

    Raises:
        NotAScenario: the answer has not run yet, so it cannot be compared.
    """
    if type(answer) is str:
        return answer
    if isinstance(answer, (KeysView, ValuesView, ItemsView)):
        answer = list(answer)
    if isinstance(answer, (Iterator, AsyncIterator)) or isawaitable(answer):
        raise NotAScenario(
            found=f"{kind_of(answer)}, returned by the use {use.text!r}",
            wanted="its items: list(...), or the awaited result",
        )
    return canonical(
        answer, unordered=use.unordered, registry=registry, names=names, note=note
    )


def check_observation(observation: Any, *, unordered: bool) -> str:
    """Return the observation; lines are sorted if their order does not count.

    Raises:
        NotAScenario: the observation is not a text.
    """
    if isinstance(observation, str):
        # A plain text: a subclass may override equality and conversion.
        text = str.__str__(observation)
        return "\n".join(sorted(text.splitlines())) if unordered else text
    instead = "text: str(...)"
    for kinds, words in _REPLACEMENTS:
        if isinstance(observation, kinds):
            instead = words
            break
    raise NotAScenario(
        found=f"{kind_of(observation)}, returned by observe", wanted=instead
    )


def check_laws(report: Any) -> tuple[str, ...]:
    """Return the report of a check, one text for each broken law.

    Raises:
        NotAScenario: the report is not a list of texts.
    """
    if not report:
        return ()
    if isinstance(report, str):
        return (str.__str__(report),)
    try:
        return tuple(
            str.__str__(each if isinstance(each, str) else str(each)) for each in report
        )
    except TypeError:
        raise NotAScenario(
            found=f"{type(report).__name__}, returned by check",
            wanted="a list of texts, one for each broken law, or an empty one",
        ) from None
