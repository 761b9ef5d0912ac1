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
  because they differ from run to run; and by its arguments, attributes, notes and
  members as far as they are plain data (`what_it_carries`).  Its cause, context and
  traceback are not compared;
- no exception is kept: its frames hold registries and handles;
- an object that has not run yet is not an answer (a generator, a coroutine): it is
  refused;
- an observation is text: it is written to expect files and reports as it is.
"""

import hashlib
import re
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Hashable,
    ItemsView,
    Iterator,
    KeysView,
    ValuesView,
)
from enum import Enum
from inspect import isawaitable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar
from unittest import SkipTest

from everyorder.harness.base.errors import HarnessError, NotAScenario
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.scenario.mistakes import kind_of
from everyorder.harness.scenario.step import UseStep
from everyorder.harness.state import canonical
from everyorder.harness.state.global_names import GlobalNames
from everyorder.harness.state.layout import layout_of, module_of, qualname_of
from everyorder.harness.state.value_snapshot import PLAIN_KINDS, ValueSnapshot

T = TypeVar("T")
P = ParamSpec("P")
# An error as it is compared: its class, its text, and what it carries.
Fields = tuple[tuple[str, Hashable], ...]

# A text that depends on the limits of the machine, not on the registry.
_RECURSION = "maximum recursion depth exceeded"
# Requests to end the process, or the running task.
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)
# As `repr` writes an address: all that are in use have so many digits.
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]{7,}")
# Deeper and longer data of an exception is not compared.
_DEEPEST = 6
_MOST = 1_000
_CONTAINERS = (list, tuple, dict, set, frozenset)
# Their texts have all arguments.
_SPOKEN = (OSError, UnicodeError)


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
    ) -> None:
        super().__init__(name, text)
        # The traceback of the error in whose place this one is raised.
        if raised is not None:
            self.__traceback__ = raised.__traceback__
        self.name = name
        self.text = text
        self.kind = kind
        self.fields = fields or (("error", name), ("text", text))


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
        elif isinstance(error, Exception) or _is(error, "Exit"):
            raise
        else:
            outcome = ErrorOutcome(*name_and_text(error), type(error), error)
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
    if isinstance(error, ScenarioSkipped):
        return error.reason
    if isinstance(error, SkipTest) or _is(error, "Skipped"):
        return _text(error)
    return None


def name_and_text(error: BaseException) -> tuple[str, str]:
    """Return the name of an error's class and its text, without addresses."""
    if isinstance(error, ErrorOutcome):
        return error.name, error.text
    text = _ADDRESS.sub("at 0x...", _text(error))
    if type(error) is RecursionError and text.startswith(_RECURSION):
        return type(error).__name__, _RECURSION
    return type(error).__name__, text


def error_fields(error: BaseException, note: Callable[[Caveat], object]) -> Fields:
    """Return an error as fields that can be compared: class, text, what it carries.

    `note` is called if it carries an object, of which only the class is compared.
    """
    name, text = name_and_text(error)
    if isinstance(error, ErrorOutcome):
        return error.fields
    carried = _Carried()
    data = carried.of(error, text)
    if carried.objects:
        objects = ", ".join(sorted(carried.objects))
        note(Caveat("assumed", f"what an error carries ({objects}) is not compared"))
    fields: Fields = ("error", name), ("text", text)
    if module_of(type(error)) != "builtins":
        # Two classes may have one name.
        names = "\n".join(
            f"{module_of(e)}.{qualname_of(e)}" for e in type(error).__mro__
        )
        digest = hashlib.blake2b(names.encode(), digest_size=16).digest()
        fields = ("error", ValueSnapshot(name, digest)), ("text", text)
    return (*fields, ("with", canonical(data))) if data else fields


class _Carried:
    """Plain data that exceptions carry besides their texts.

    `objects` names all that is not plain: `LookupFailed.registry`.
    """

    def __init__(self) -> None:
        self.objects: set[str] = set()

    def of(self, error: BaseException, text: str, depth: int = 0) -> dict[str, Any]:
        """Return the arguments, attributes, notes and members of an error, by name."""
        kind = type(error)
        place = str.__str__(qualname_of(kind))
        args = list(BaseException.__dict__["args"].__get__(error))
        rows = _attributes(error)
        members = []
        if issubclass(kind, BaseExceptionGroup):
            members = list(args.pop(1))
        data: dict[str, Any] = {}
        if not (_is_in_text(args, text) or issubclass(kind, _SPOKEN)):
            data["args"] = self.plain(args, f"{place}.args", depth)
        for name, value in rows.items():
            label = "notes" if name == "__notes__" else name
            data[label] = self.plain(value, f"{place}.{name}", depth)
        if members:
            data["members"] = self.plain(members, f"{place}.exceptions", depth)
        return data

    def plain(self, value: Any, place: str, depth: int) -> Any:
        """Return a value with a text in the place of each object."""
        kind = type(value)
        if kind is str:
            return _ADDRESS.sub("at 0x...", value)
        if id(kind) in PLAIN_KINDS:
            return value
        if depth < _DEEPEST and issubclass(kind, BaseException):
            name, text = name_and_text(value)
            return [name, text, self.of(value, text, depth + 1)]
        if depth < _DEEPEST and kind in _CONTAINERS and len(value) <= _MOST:
            pairs = kind is dict
            inner = [
                self.plain(list(each) if pairs else each, place, depth + 1)
                for each in (value.items() if pairs else value)
            ]
            return sorted(inner, key=repr) if kind in (set, frozenset) else inner
        name = str.__str__(qualname_of(value if issubclass(kind, type) else kind))
        if issubclass(kind, type):
            return f"<class {module_of(value)}.{name}>"
        if issubclass(kind, Enum):
            return f"<{name}.{Enum.__dict__['name'].__get__(value, kind)}>"
        if kind is FunctionType:
            return f"<function {value.__module__}.{value.__qualname__}>"
        self.objects.add(place)
        return f"<{name}>"


def _is_in_text(args: list[Any], text: str) -> bool:
    """Return True if the text of an error is that of its arguments, which are texts."""
    if text == _RECURSION:
        return True
    if any(type(each) is not str for each in args):
        return False
    shown = [*args, *map(repr, args)] if len(args) == 1 else [repr(tuple(args))]
    return not args or text in [_ADDRESS.sub("at 0x...", each) for each in shown]


def _attributes(error: BaseException) -> dict[str, Any]:
    """Return the attributes of an error that Python code has set, by name."""
    layout = layout_of(type(error))
    rows = dict((layout.dict_of and layout.dict_of(error)) or {})
    for name, getter in layout.slots:
        try:
            rows[name] = getter(error)
        except AttributeError:
            continue
    return {str(name): value for name, value in rows.items()}


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
    kind = error.kind if isinstance(error, ErrorOutcome) else type(error)
    return issubclass(kind, kinds)


def is_failed_check(error: BaseException) -> bool:
    """Return True if an `assert` or a `pytest.fail` raised the error."""
    if isinstance(error, ErrorOutcome):
        return error.name == "Failed"
    return isinstance(error, AssertionError)


def _is(error: BaseException, name: str) -> bool:
    """Return True if it is that outcome of pytest, which need not be imported."""
    outcomes = sys.modules.get("_pytest.outcomes")
    kind = getattr(outcomes, name, None)
    return kind is not None and isinstance(error, kind)


# The advice for each wrong type of an observation.
_REPLACEMENTS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "text; does it lack a return?"),
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
