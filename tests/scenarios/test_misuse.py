"""Libraries that are asked for what they do not do: refused, and with what words.

Each question opens a library, asks it, and closes it: whatever is refused leaves the
dispatcher as it was, which is what makes it a use.
"""

from collections.abc import Callable
from typing import Any

from everyorder.harness.scenario import Scenario, define, impl, library
from everyorder.runtime.dispatch import Dispatcher, Library, boxed, direct, linked
from everyorder.runtime.dispatch.registration_record import Implementation
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import OperatorName, parse_name, parse_schema
from tests.scenarios.asking import Question, ask, asked, handle
from tests.scenarios.kernels import composed, on_cpu, typed_one, typed_two


def _by(
    do: Callable[[Library], Any], kind: str = "FRAGMENT", key: str | None = None
) -> Question:
    """A question to a library of namespace `text`; what it registers is shown."""

    def question(target: Dispatcher) -> object:
        with Library("text", kind, key, dispatcher=target, origin="asked") as asked_one:
            do(asked_one)
            # What was registered, until it is closed here.
            return [_registered(token) for token in asked_one.tokens]

    return question


def _registered(token: Any) -> tuple[object, ...]:
    key = getattr(token, "key", None)
    named = getattr(token, "operator", ""), "" if key is None else key.name
    return type(token).__name__, *named, token.debug


_TEXT, _OTHER = "split(Tensor x) -> Tensor", "join(Tensor x) -> Tensor"

# Names: with and without the namespace, of another one, as objects, and no names.
names = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::join", on_cpu, "CPU"),
    **asked(
        ask(
            "impl(name, ...)",
            _by(lambda to: to.impl("split", on_cpu, "CPU")),
            _by(lambda to: to.impl("text::split", on_cpu, "CPU")),
            _by(lambda to: to.impl(parse_name("split.out"), on_cpu, "CPU")),
            _by(lambda to: to.impl(OperatorName("audio::split"), on_cpu, "CPU")),
            _by(lambda to: to.impl("audio::split", on_cpu, "CPU")),
            _by(lambda to: to.impl(3, on_cpu, "CPU")),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.impl("no name", on_cpu, "CPU")),
            _by(lambda to: to.reserve("split")),
            _by(lambda to: to.reserve("audio::split")),
            _by(lambda to: to.impl(handle(to._dispatcher, "text::join"), on_cpu)),
            lambda target: target.op_names(),
        )
    ),
)

# Definitions: each way of writing one, and what is none.
definitions = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", typed_one, "CPU"),
    **asked(
        ask(
            "define(...)",
            _by(lambda to: to.define(_TEXT)),
            _by(lambda to: to.define(f"text::{_TEXT}", debug="described")),
            _by(lambda to: to.define(parse_schema(_TEXT), "PURE_FUNCTION")),
            _by(lambda to: to.define("split(int x) -> Tensor")),
            _by(lambda to: to.define(_OTHER, kernel=on_cpu)),
            _by(lambda to: to.define("join", kernel=typed_two, debug="inferred")),
            _by(lambda to: to.define("join", kernel=on_cpu)),
            _by(lambda to: to.define("join")),
            _by(lambda to: to.define(_OTHER, "NO_SUCH_KIND")),
            _by(lambda to: to.define(_OTHER, tags=("core", "core"))),
            _by(lambda to: to.define(_OTHER, tags="core")),
            _by(lambda to: to.define(_OTHER, tags=3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.define(_OTHER, kernel=3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.define(3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.define("audio::join(Tensor x) -> Tensor")),
            _by(lambda to: to.define(_OTHER), "IMPL"),
        )
    ),
)

# A definition of one's own has no type variables, whichever way it is written.
type_variables = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", typed_one, "CPU"),
    **asked(
        ask(
            "define(t)",
            _by(lambda to: to.define("split(int x) -> Tensor")),
            _by(lambda to: to.define("same(t x) -> t")),
            _by(lambda to: to.define("same(t x) -> t", kernel=on_cpu)),
        )
    ),
)

# Keys: the library's, the kernel's, several, none, one that is no key.
keys = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", on_cpu, "CUDA"),
    **asked(
        ask(
            "impl(..., key)",
            _by(lambda to: to.impl("split", on_cpu)),
            _by(lambda to: to.impl("split", on_cpu, "Undefined")),
            _by(lambda to: to.impl("split", on_cpu, ["CPU", DispatchKey.CUDA, "CPU"])),
            _by(lambda to: to.impl("split", on_cpu, [])),
            _by(lambda to: to.impl("split", on_cpu, [None, "CPU"])),  # type: ignore[list-item]  # as if none was named
            _by(lambda to: to.impl("split", on_cpu, "Dense")),
            _by(lambda to: to.impl("split", on_cpu, 3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.impl("split", on_cpu), "IMPL", "CPU"),
            _by(lambda to: to.impl("split", on_cpu, "CPU"), "IMPL", "CPU"),
            _by(lambda to: to.impl("split", on_cpu, "Undefined"), "IMPL", "CPU"),
            _by(lambda to: to.impl("split", on_cpu, "CUDA"), "IMPL", "CPU"),
            _by(lambda to: to.impl("split", on_cpu), "IMPL", "Undefined"),
            _by(lambda to: to.rule("split", 3, on_cpu)),  # type: ignore[arg-type]  # that is refused
            lambda target: target.registrations_for("CUDA"),
        )
    ),
)


class _Called:
    """What can be called and is no function; it equals everything of its class."""

    def __call__(self, *given):  # type: ignore[no-untyped-def]  # an untyped kernel
        return given[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Called)

    __hash__ = None  # type: ignore[assignment]  # it cannot be remembered by value


def _keyed(do: Callable[[Library], Any]) -> Question:
    """Whether what is registered takes the keyset of the call first."""

    def question(target: Dispatcher) -> object:
        with Library("text", "FRAGMENT", dispatcher=target, origin="asked") as to:
            do(to)
            return [(each.debug, each.kernel.with_keyset) for each in _kernels(to)]

    return question


def _kernels(library: Library) -> list[Implementation]:
    return [each for each in library.tokens if isinstance(each, Implementation)]


# Kernels: of every kind, and what is none; what dumps show of each.
kernels = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    impl("text::split", composed),
    **asked(
        ask(
            "impl(..., kernel)",
            _by(lambda to: to.impl("split", 3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: to.impl("split", _Called(), "CPU")),
            _by(lambda to: to.impl("split", lambda x: x, "CPU")),
            _by(lambda to: to.impl("split", on_cpu, "CPU", debug="described")),
            _by(lambda to: to.impl("split", boxed(on_cpu), "CPU")),
            _by(lambda to: to.impl("split", direct(on_cpu, "named"), "CPU")),
            _by(lambda to: to.impl("split", typed_two, "CPU")),
            _keyed(
                lambda to: to.impl("split", direct(on_cpu), "CPU", with_keyset=True)
            ),
            _keyed(lambda to: to.impl("split", direct(on_cpu), "CPU")),
            _keyed(lambda to: to.impl("split", on_cpu, "CPU", with_keyset=True)),
            _by(lambda to: boxed(3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: direct(3)),  # type: ignore[arg-type]  # that is refused
            _by(lambda to: linked(3, "linked")),  # type: ignore[arg-type]  # that is refused
        )
    ),
)


def _wild(do: Callable[[Library], Any], key: str | None = None) -> Question:
    def question(target: Dispatcher) -> object:
        with Library("_", "IMPL", key, dispatcher=target, origin="asked") as wild:
            do(wild)
            return [
                (each.debug, tuple(key.name for key in getattr(each, "keys", ())))
                for each in wild.tokens
            ]

    return question


# Fallbacks: of an IMPL library of the wildcard namespace, and of no other.
fallbacks = Scenario(
    define("text::split(Tensor x) -> Tensor"),
    library("text", "DEF"),
    **asked(
        ask(
            "fallback(...)",
            _wild(lambda to: to.fallback(on_cpu, "CPU")),
            _wild(lambda to: to.fallback(on_cpu), "CPU"),
            _wild(lambda to: to.fallback(on_cpu)),
            _wild(lambda to: to.fallback(on_cpu, "CUDA"), "CPU"),
            _wild(lambda to: to.fallback(direct(on_cpu), "CPU")),
            _wild(lambda to: to.fallback(3, "CPU")),  # type: ignore[arg-type]  # that is refused
            _wild(lambda to: to.fallback(on_cpu, "Undefined")),
            _wild(lambda to: to.impl("split", on_cpu, "CPU")),
            _wild(lambda to: to.reserve("split")),
            _by(lambda to: to.fallback(on_cpu, "CPU"), "IMPL"),
            _by(lambda to: to.fallback(on_cpu, "CPU")),
            _by(lambda to: to.impl("split", on_cpu, "CPU"), "DEF"),
        )
    ),
)


def _opening(*given: Any, **named: Any) -> Question:
    def question(target: Dispatcher) -> str:
        with Library(*given, dispatcher=target, **named) as opened:
            return repr(opened)

    return question


# Libraries that cannot be, by namespace, by kind and by key.
kinds = Scenario(
    library("text", "DEF"),
    define("text::split(Tensor x) -> Tensor"),
    **asked(
        ask(
            "Library(...)",
            _opening("text", "FRAGMENT", origin="asked"),
            _opening("text", "IMPL", "CPU", origin="asked"),
            _opening("text", "IMPL", "Undefined", origin="asked"),
            _opening("other", "DEF", origin="asked"),
            _opening("text", "DEF", origin="asked"),
            _opening("text", "NEW", origin="asked"),
            _opening("no name", "FRAGMENT", origin="asked"),
            _opening("größe", "FRAGMENT", origin="asked"),
            _opening("Tensor", "FRAGMENT", origin="asked"),
            _opening("prim", "FRAGMENT", origin="asked"),
            _opening("prim", "IMPL", origin="asked"),
            _opening("_", "DEF", origin="asked"),
            _opening("text", "FRAGMENT", "CPU", origin="asked"),
            _opening(3, origin="asked"),
            _opening("text", "IMPL", 3, origin="asked"),
            _opening("text", "FRAGMENT", origin=3),
        )
    ),
)
