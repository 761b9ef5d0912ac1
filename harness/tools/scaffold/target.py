"""The target, its members, and arguments for trials of its functions.

A name is that of a class, a function, an object or a module:
`package.module:Class.attr` is looked up after the module is imported; if it does not
exist, the error lists similar names.

An argument is source text; trials evaluate the same text that is printed, and the
definitions that a printed file needs for it. The kinds of a parameter, likeliest first:
that of its annotation, a class with a matching name (`hdlr: Handler`, `addHandler(h)`),
the usual meaning of its name, all others.
"""

import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from types import FunctionType, ModuleType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from everyorder.harness.base.errors import (
    BadArgument,
    NotFound,
    check_not_hidden,
    near_modules,
)
from everyorder.harness.tools.scaffold.draft import (
    EXTERNAL_MODULES,
    has_lookup_verb,
    inverse_of,
    is_registration,
    word_set,
    words,
)

Kind: TypeAlias = Literal["class", "function", "object", "module"]

# Special methods that register, undo or look.
SPECIAL = frozenset(
    """
    __setitem__ __delitem__ __getitem__ __contains__ __len__ __iter__ __call__
    __enter__ __exit__
    """.split()  # noqa: SIM905  # one column is easier to read
)


class Target(NamedTuple):
    """The named object; `text` is its name in the printed file."""

    name: str
    text: str
    module: ModuleType
    value: Any
    kind: Kind


def find(name: str, folder: str) -> Target:
    """Import and look up the target.

    Raises:
        NotFound: the target does not exist.
        BadArgument: it acts on the machine, or a module of this package hides it.
    """
    place, colon, attribute = name.partition(":")
    check_not_hidden(place, folder)
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not place.startswith(error.name):
            raise _failed(name, error) from error
        reason = f"there is no module {place}"
        near = _with_colon(name) or near_modules(place, folder)
        raise NotFound(code="NoTarget", wanted=name, reason=reason, near=near) from None
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error
    if place.partition(".")[0] in EXTERNAL_MODULES:
        raise BadArgument(code="ActsOutside", name=name)
    value: Any = module
    for count, part in enumerate(attribute.split(".") if colon else ()):
        if not hasattr(value, part):
            before = ".".join(attribute.split(".")[:count])
            owner = f"{place}:{before}" if before else place
            public = [each for each in dir(value) if not each.startswith("_")]
            raise NotFound(
                code="NoTarget",
                wanted=name,
                reason=f"{owner} has no {part!r}",
                near=_near(f"{owner}{'.' if before else ':'}", part, public),
            )
        value = getattr(value, part)
    text = f"{place}.{attribute}" if colon else place
    return Target(name, text, module, value, _kind(value))


def is_own(module: ModuleType) -> bool:
    """Return True if a module belongs to the project: not installed, not of Python."""
    file = getattr(module, "__file__", None)
    top = module.__name__.partition(".")[0]
    if file is None or top in sys.stdlib_module_names:
        return False
    return "site-packages" not in Path(file).parts


def members(value: Any) -> tuple[list[str], list[str]]:
    """Return the public names of callables, and of other attributes."""
    callables, others = [], []
    if isinstance(value, ModuleType):
        names: Iterable[str] = getattr(value, "__all__", None) or [
            name
            for name, each in vars(value).items()
            if str(getattr(each, "__module__", None)).startswith(value.__name__)
        ]
    else:
        own = [*getattr(value, "__dict__", ())]
        names = [*own, *(name for name in names_of(type(value)) if name not in own)]
    for name in names:
        if name.startswith("_") and name not in SPECIAL:
            continue
        attribute = inspect.getattr_static(value, name, None)
        if isinstance(attribute, property):
            others.append(name)
        elif isinstance(attribute, type | ModuleType):
            continue
        elif callable(getattr(value, name, None)):
            callables.append(name)
        elif name not in SPECIAL:
            others.append(name)
    if isinstance(value, ModuleType):
        others += [
            name
            for name, each in vars(value).items()
            if isinstance(each, list | dict | set) and not name.startswith("_")
        ]
    return callables, list(dict.fromkeys(others))


def names_of(kind: type) -> list[str]:
    """Return the names of a class, even if its metaclass overrides `__dir__`."""
    return sorted(type.__dir__(kind))


def near_registries(target: Target) -> tuple[str, ...]:
    """Return classes and objects of the module with names that register."""
    names_found = []
    for name, value in vars(target.module).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        kind = value if isinstance(value, type) else type(value)
        if issubclass(kind, BaseException):  # all have add_note
            continue
        if not str(kind.__module__).startswith(
            target.module.__name__.partition(".")[0]
        ):
            continue
        names = [each for each in names_of(kind) if not each.startswith("_")]
        if any(inverse_of(each, names) or is_registration(each) for each in names):
            names_found.append(f"{target.module.__name__}:{name}")
    return tuple(each for each in names_found if each != target.name)[:8]


def is_lookup(name: str) -> bool:
    """Return True if a function with this name only looks."""
    return has_lookup_verb(name) and name not in ("__setitem__", "__delitem__")


def _kind(value: Any) -> Kind:
    if isinstance(value, type):
        return "class"
    if isinstance(value, ModuleType):
        return "module"
    # A function may be a registry itself, as those of `functools.singledispatch` are.
    if inspect.isroutine(value) and not any(
        map(is_registration, getattr(value, "__dict__", ()))
    ):
        return "function"
    return "object"


def _with_colon(name: str) -> tuple[str, ...]:
    """Return `package.module:Class` if the name was written with dots only."""
    place, _, attribute = name.rpartition(".")
    if not place or ":" in name:
        return ()
    try:
        exists = hasattr(import_module(place), attribute)
    except (Exception, SystemExit):
        return ()
    return (f"{place}:{attribute}",) if exists else ()


def _near(prefix: str, part: str, names: Iterable[str]) -> tuple[str, ...]:
    by_lower = {each.lower(): each for each in names}
    close = get_close_matches(part.lower(), list(by_lower), n=3, cutoff=0.6)
    return tuple(f"{prefix}{by_lower[each]}" for each in close)


def _failed(name: str, error: BaseException) -> NotFound:
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    reason = f"its module cannot be imported, {text}"
    return NotFound(code="NoTarget", wanted=name, reason=reason)


# Different arguments of a kind for steps; the fourth is for creating a registry.
SLOTS = 3
FOR_CREATE = 3

# Kinds in the order of trials for a parameter without any hint.
KINDS: Mapping[str, tuple[str, ...]] = {
    "name": ('"a"', '"b"', '"c"', '"d"'),
    "function": ("first", "second", "third", "fourth"),
    "object": ("thing_a", "thing_b", "thing_c", "thing_d"),
    "class": ("First", "Second", "Third", "Fourth"),
    "type": ("int", "str", "float", "bytes"),
    "number": ("1", "2", "3", "4"),
    "names": ('["a"]', '["b"]', '["c"]', '["d"]'),
    "mapping": ('{"a": 1}', '{"b": 2}', '{"c": 3}', '{"d": 4}'),
    "bytes": ('b"a"', 'b"b"', 'b"c"', 'b"d"'),
    "flag": ("True", "False"),
}

# Definitions of the kinds; `{name}` is the printed text of a slot.
DEFINITIONS: Mapping[str, str] = {
    "function": (
        'def {name}(*args: object, **kwargs: object) -> str:\n    return "{name}"\n'
    ),
    "class": "class {name}:\n    pass\n",
    "object": '{name} = Thing("{name}")\n',
}

THING = """\
class Thing:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
"""

# The usual meaning of the words of a parameter's name.
KIND_NOUNS: Mapping[str, frozenset[str]] = {
    "function": word_set(
        """
        action callable callback cb check f factory fn fun func function handler hook
        kernel listener method observer predicate receiver rule search slot subscriber
        target
        """
    ),
    "class": word_set("class cls klass subclass"),
    "type": word_set("typ type"),
    "name": word_set(
        """
        alias channel command encoding event extension id key kind label name path
        prefix scheme signal tag text title topic word
        """
    ),
    "object": word_set(
        "component instance item namespace obj object plugin sender value"
    ),
    "number": word_set("count index level n number order priority weight"),
    "names": word_set("keys names tags"),
}

# Limit on the combinations that are tried of one function's parameters.
MOST = 48


@dataclass(frozen=True, slots=True)
class TrialArgument:
    """An argument in its variants, with the definitions and imports that they need."""

    texts: tuple[str, ...]
    kind: str
    parameter: str = ""
    keyword: bool = False
    definitions: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    turn: int = 0

    def text(self, slot: int) -> str:
        """Return the argument as it is written in a call."""
        value = self.texts[(slot + self.turn) % len(self.texts)]
        return f"{self.parameter}={value}" if self.keyword else value

    def definition(self, slot: int) -> str:
        """Return the definition that the argument needs, or ""."""
        place = (slot + self.turn) % len(self.texts)
        if self.definitions:
            return self.definitions[place]
        return DEFINITIONS.get(self.kind, "").format(name=self.texts[place])


Arguments: TypeAlias = tuple[TrialArgument, ...]


def combinations(
    function: Callable[..., Any],
    name: str,
    module: Any,
    likely: Sequence[TrialArgument] = (),
    *,
    most: int = MOST,
) -> list[Arguments]:
    """Return arguments to try for the required parameters, likeliest first.

    `module` is searched for classes with the names of parameters; `likely` are
    arguments that are likelier than any other, most of all for a parameter with the
    name of their own parameter.
    """
    parameters = required(function)
    if parameters is None:
        one = [*likely, *(TrialArgument(texts, kind) for kind, texts in KINDS.items())]
        pairs = list(product(one[:4], one[:4]))
        return [(), *((each,) for each in one), *pairs][:most]
    choices = [_choices(each, name, module, likely) for each in parameters]
    if not choices:
        first = optional(function)
        single = [] if first is None else _choices(first, name, module, likely)
        return [(), *((each,) for each in single)][:most]
    # By sums of ranks, so that no parameter waits until all of another's are tried.
    ranked = sorted(
        product(*(list(enumerate(each)) for each in choices)),
        key=lambda combination: sum(rank for rank, _ in combination),
    )
    return [_distinct([each for _, each in one]) for one in islice(ranked, most)]


def _distinct(arguments: Sequence[TrialArgument]) -> Arguments:
    """Return arguments with distinct variants for those of one kind."""
    counted: dict[tuple[str, ...], int] = {}
    turned = []
    for each in arguments:
        turn = counted.get(each.texts, 0)
        counted[each.texts] = turn + 1
        turned.append(replace(each, turn=turn))
    return tuple(turned)


def required(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the required parameters; None if that is unknown."""
    try:
        parameters = _signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    return [
        each
        for each in parameters
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def optional(function: Callable[..., Any]) -> inspect.Parameter | None:
    """Return the first parameter if it is positional, or None."""
    try:
        parameters = _signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    placed = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    return next((each for each in placed if each.kind is not each.VAR_KEYWORD), None)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except (TypeError, ValueError):
        raise
    except Exception:  # an annotation with an undefined name
        return inspect.signature(function)


def _choices(
    parameter: inspect.Parameter,
    name: str,
    module: Any,
    likely: Sequence[TrialArgument],
) -> list[TrialArgument]:
    by_text: dict[tuple[str, ...], TrialArgument] = {}
    same = [each for each in likely if each.parameter == parameter.name]
    annotated = _annotated(parameter.annotation)
    for each in (*same, *annotated, *likely, *_likely(parameter, name, module)):
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        named = replace(each, parameter=parameter.name, keyword=keyword)
        by_text.setdefault((*each.texts, *each.definitions), named)
    return list(by_text.values())


def _likely(
    parameter: inspect.Parameter, name: str, module: Any
) -> Iterator[TrialArgument]:
    """Yield the kinds that the name of a parameter or function suggests, then all."""
    own = words(parameter.name)
    for noun in (*own, *words(name)[1:]):
        for called, value in vars(module).items():
            if isinstance(value, type) and called.lower() == noun:
                yield from _instances(value)
    yield from _suggested(parameter)
    for kind, texts in KINDS.items():
        yield TrialArgument(texts, kind)


def _annotated(annotation: Any) -> Iterator[TrialArgument]:
    """Yield the kinds of an annotation, the members of unions one after the other."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _annotated(each)
        return
    if origin is Annotated:
        yield from _annotated(get_args(annotation)[0])
        return
    if isinstance(annotation, TypeVar):
        yield from _annotated(annotation.__bound__)
        return
    if origin is Literal:
        texts = tuple(map(repr, get_args(annotation)))
        yield TrialArgument(texts, "literal")
        return
    plain = origin or annotation
    if plain is inspect.Parameter.empty:
        return
    kinds = _PLAIN.get(plain, ())
    for kind in kinds:
        yield TrialArgument(KINDS[kind], kind)
    if not kinds and isinstance(plain, type):
        yield from _instances(plain)


def _instances(kind: type) -> Iterator[TrialArgument]:
    """Yield instances of a class with simple constructors, or members of an Enum."""
    place, name = kind.__module__, kind.__qualname__
    if place == "builtins" or "<" in name or inspect.isabstract(kind):
        return
    if issubclass(kind, Enum):
        members = tuple(f"{place}.{name}.{each}" for each in kind.__members__)
        if members:
            yield TrialArgument(members, "member", imports=(place,))
        return
    parameters = required(kind) or []
    if any(each.kind is each.KEYWORD_ONLY for each in parameters):
        return
    variable = "_".join(words(kind.__name__)) or "made"
    texts = tuple(f"{variable}_{slot}" for slot in "abcd")
    kinds = [["name"] * len(parameters)]
    first = None if parameters else optional(kind)
    if first is not None:
        # Different instances reveal their order.
        kinds = [[each.kind] for each in _suggested(first)][:1] + kinds
    for each in kinds:
        definitions = tuple(
            f"{text} = {place}.{name}({', '.join(KINDS[one][slot] for one in each)})\n"
            for slot, text in enumerate(texts)
        )
        yield TrialArgument(
            texts, "instance", definitions=definitions, imports=(place,)
        )


def _suggested(parameter: inspect.Parameter) -> Iterator[TrialArgument]:
    """Yield the kinds that the words of a name suggest, then that of its default."""
    for noun in reversed(words(parameter.name)):
        for kind, nouns in KIND_NOUNS.items():
            if noun in nouns or noun.removesuffix("s") in nouns:
                yield TrialArgument(KINDS[kind], kind)
    if parameter.default is not parameter.empty:
        for kind in _PLAIN.get(type(parameter.default), ()):
            yield TrialArgument(KINDS[kind], kind)


# The kinds for annotations of common types.
_PLAIN: Mapping[Any, tuple[str, ...]] = {
    str: ("name",),
    Hashable: ("name",),
    object: (),
    int: ("number",),
    float: ("number",),
    bool: ("flag",),
    bytes: ("bytes",),
    type: ("type", "class"),
    Callable: ("function",),
    FunctionType: ("function",),
    list: ("names",),
    tuple: ("names",),
    set: ("names",),
    Sequence: ("names",),
    Iterable: ("names",),
    dict: ("mapping",),
    Mapping: ("mapping",),
}
