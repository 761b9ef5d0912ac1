"""Normalisers: functions that make observed texts fit to be compared with a file.

    @normaliser(version=2)
    def mask_ids(text):
        return re.sub("id=[0-9]+", "id=N", text)

    pair = Scenario(..., normalisers=[mask_ids, sort_lines])

A chain of normalisers is applied to each observed text, one function after the other,
after the exploration: it never hides that an order makes a difference. The expect file
names the chain with its versions. So a difference that is due to another chain, and not
to the registry, is reported as such.

A project has its own chain in pytest's configuration, which the command line reads,
too. It comes before that of each scenario.

    [tool.pytest.ini_options]
    everyorder_normalisers = ["tests.texts:mask_ids"]

Rules:
- raise the version whenever a function may return another text than before;
- a plain function is a normaliser of version 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import resolve_name

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.mistakes import check_takes, name_of


@dataclass(frozen=True, slots=True)
class Normaliser:
    """A function from text to text, with the name and version for expect files."""

    name: str
    version: int
    function: Callable[[str], str]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"

    def __call__(self, text: str) -> str:
        """Return the normalised text.

        Raises:
            NotAScenario: the function does not return a text.
        """
        result = self.function(text)
        if not isinstance(result, str):
            raise NotAScenario(
                found=f"{type(result).__name__}, returned by the normaliser "
                f"{self.name}",
                wanted="a text",
            )
        return result


def normaliser(
    version: int, *, name: str | None = None
) -> Callable[[Callable[[str], str]], Normaliser]:
    """Return a decorator that makes a function a normaliser.

    Args:
        version: a number from 1, to be raised when the function changes.
        name: the name in expect files; None for that of the function.

    Raises:
        NotAScenario: the version is not such a number, or the decorated object is not
            a function of one text.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise NotAScenario(
            found=f"normaliser({version!r})", wanted="@normaliser(version=1), or more"
        )

    def decorate(function: Callable[[str], str]) -> Normaliser:
        return _normaliser(function, version, name)

    return decorate


def chain_of(normalisers: Iterable[object]) -> tuple[Normaliser, ...]:
    """Return the normalisers of a scenario.

    Raises:
        NotAScenario: an object is not a normaliser or a function of one text.
    """
    if not isinstance(normalisers, Iterable) or isinstance(normalisers, str):
        raise NotAScenario(
            found=f"normalisers={normalisers!r}", wanted="a list, normalisers=[...]"
        )
    return tuple(
        each if isinstance(each, Normaliser) else _normaliser(each, 1, None)
        for each in normalisers
    )


def project_chain(names: Iterable[str]) -> tuple[Normaliser, ...]:
    """Return the normalisers of a project, by their names in its configuration.

    Raises:
        NotAScenario: a name does not lead to a normaliser.
    """
    return chain_of([_named(name) for name in names])


def _named(name: str) -> object:
    module, colon, _ = name.partition(":")
    reason = "it is not written as 'package.module:function'"
    if module and colon:
        try:
            found: object = resolve_name(name)
        except (ImportError, AttributeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
        else:
            return found
    raise NotAScenario(
        found=f"everyorder_normalisers = {name} ({reason})",
        wanted="'package.module:function', a function from text to text that can be "
        "imported from the root",
    )


def normalised(text: str, chain: Iterable[Normaliser]) -> str:
    """Return the text after the whole chain."""
    for each in chain:
        text = each(text)
    return text


def _normaliser(function: object, version: int, name: str | None) -> Normaliser:
    if not callable(function):
        raise NotAScenario(
            found=f"{function!r} among the normalisers", wanted="a function of one text"
        )
    check_takes("normaliser", function, (1,), "a function of one text")
    return Normaliser(name or name_of(function), version, function)
