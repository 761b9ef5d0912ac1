"""The target that was named, its members, and arguments to try its functions with.

A name is that of a class, a function, an object or a module:
`package.module:Class.attr` is looked up after the module is imported; where it is not
there, names that come close are told.

An argument is source text; what is tried is evaluated from the very text that is
printed, and so are the definitions that a printed file needs for it.  The kinds of a
parameter, likeliest first: what its annotation says, a class that is called like it
(`hdlr: Handler`, `addHandler(h)`), what its name usually means, all.
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

# Dunders that register, take back or look.
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
    """Import and look up what was named.

    Raises:
        NotFound: there is nothing of that name.
        BadArgument: it acts on the machine, or is hidden by a module of ours.
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
            known = [each for each in dir(value) if not each.startswith("_")]
            raise NotFound(
                code="NoTarget",
                wanted=name,
                reason=f"{owner} has no {part!r}",
                near=_near(f"{owner}{'.' if before else ':'}", part, known),
            )
        value = getattr(value, part)
    text = f"{place}.{attribute}" if colon else place
    return Target(name, text, module, value, _kind(value))


def is_own(module: ModuleType) -> bool:
    """Whether a module is of the project: not installed, not of Python."""
    file = getattr(module, "__file__", None)
    top = module.__name__.partition(".")[0]
    if file is None or top in sys.stdlib_module_names:
        return False
    return "site-packages" not in Path(file).parts


def members(value: Any) -> tuple[list[str], list[str]]:
    """The public names of what can be called, and of other attributes."""
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
        found = inspect.getattr_static(value, name, None)
        if isinstance(found, property):
            others.append(name)
        elif isinstance(found, type | ModuleType):
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
    """The names of a class, whatever a metaclass of its own says of them."""
    return sorted(type.__dir__(kind))


def near_registries(target: Target) -> tuple[str, ...]:
    """Classes and objects of the module that have pairs of names that register."""
    found = []
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
            found.append(f"{target.module.__name__}:{name}")
    return tuple(each for each in found if each != target.name)[:8]


def is_lookup(name: str) -> bool:
    """Whether a name only looks."""
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
    """`package.module:Class` where it was written with dots alone."""
    place, _, attribute = name.rpartition(".")
    if not place or ":" in name:
        return ()
    try:
        found = hasattr(import_module(place), attribute)
    except (Exception, SystemExit):
        return ()
    return (f"{place}:{attribute}",) if found else ()


def _near(prefix: str, part: str, known: Iterable[str]) -> tuple[str, ...]:
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(part.lower(), list(by_lower), n=3, cutoff=0.6)
    return tuple(f"{prefix}{by_lower[each]}" for each in close)


def _failed(name: str, error: BaseException) -> NotFound:
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    reason = f"its module cannot be imported, {said}"
    return NotFound(code="NoTarget", wanted=name, reason=reason)


# Different arguments of a kind for steps; the fourth is what a registry is made with.
SLOTS = 3
FOR_CREATE = 3

# Kinds in the order in which they are tried where nothing is known of a parameter.
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

# What has to be defined for it; `{name}` is what is printed for a slot.
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

# What the words of a parameter's name usually mean.
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

# Combinations that are tried of one function's parameters.
MOST = 48


@dataclass(frozen=True, slots=True)
class TrialArgument:
    """An argument in its variants; what each needs is defined and imported above it."""

    texts: tuple[str, ...]
    kind: str
    parameter: str = ""
    keyword: bool = False
    definitions: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    turn: int = 0

    def text(self, slot: int) -> str:
        """As it stands in a call."""
        said = self.texts[(slot + self.turn) % len(self.texts)]
        return f"{self.parameter}={said}" if self.keyword else said

    def definition(self, slot: int) -> str:
        """The definition that it needs, or ""."""
        place = (slot + self.turn) % len(self.texts)
        if self.definitions:
            return self.definitions[place]
        return DEFINITIONS.get(self.kind, "").format(name=self.texts[place])


Arguments: TypeAlias = tuple[TrialArgument, ...]


def combinations(
    function: Callable[..., Any],
    name: str,
    module: Any,
    known: Sequence[TrialArgument] = (),
    *,
    most: int = MOST,
) -> list[Arguments]:
    """Arguments to try for what must be given, likeliest first.

    `module` is where classes are looked for by the names of parameters; `known` are
    arguments that are likelier than any other, most of all for a parameter of their
    own parameter's name.
    """
    parameters = required(function)
    if parameters is None:
        one = [*known, *(TrialArgument(texts, kind) for kind, texts in KINDS.items())]
        pairs = list(product(one[:4], one[:4]))
        return [(), *((each,) for each in one), *pairs][:most]
    choices = [_choices(each, name, module, known) for each in parameters]
    if not choices:
        first = optional(function)
        single = [] if first is None else _choices(first, name, module, known)
        return [(), *((each,) for each in single)][:most]
    # By sums of ranks, so that no parameter waits until all of another's are tried.
    ranked = sorted(
        product(*(list(enumerate(each)) for each in choices)),
        key=lambda combination: sum(rank for rank, _ in combination),
    )
    return [_distinct([each for _, each in one]) for one in islice(ranked, most)]


def _distinct(arguments: Sequence[TrialArgument]) -> Arguments:
    """Arguments of one kind turned against each other, so that none is given twice."""
    counted: dict[tuple[str, ...], int] = {}
    turned = []
    for each in arguments:
        turn = counted.get(each.texts, 0)
        counted[each.texts] = turn + 1
        turned.append(replace(each, turn=turn))
    return tuple(turned)


def required(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters that must be given; None where that cannot be known."""
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
    """The first of the parameters that need not be given, if it has a place."""
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
    except Exception:  # an annotation that names what is not there
        return inspect.signature(function)


def _choices(
    parameter: inspect.Parameter, name: str, module: Any, known: Sequence[TrialArgument]
) -> list[TrialArgument]:
    found: dict[tuple[str, ...], TrialArgument] = {}
    same = [each for each in known if each.parameter == parameter.name]
    said = _annotated(parameter.annotation)
    for each in (*same, *said, *known, *_likely(parameter, name, module)):
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        named = replace(each, parameter=parameter.name, keyword=keyword)
        found.setdefault((*each.texts, *each.definitions), named)
    return list(found.values())


def _likely(
    parameter: inspect.Parameter, name: str, module: Any
) -> Iterator[TrialArgument]:
    """The kinds that the name of a parameter or function suggests, then all others."""
    own = words(parameter.name)
    for noun in (*own, *words(name)[1:]):
        for called, value in vars(module).items():
            if isinstance(value, type) and called.lower() == noun:
                yield from _instances(value)
    yield from _meant(parameter)
    for kind, texts in KINDS.items():
        yield TrialArgument(texts, kind)


def _annotated(annotation: Any) -> Iterator[TrialArgument]:
    """The kinds of an annotation, the members of unions one after the other."""
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
    """Instances of a class that can be made without much, or members of an Enum."""
    place, name = kind.__module__, kind.__qualname__
    if place == "builtins" or "<" in name or inspect.isabstract(kind):
        return
    if issubclass(kind, Enum):
        members = tuple(f"{place}.{name}.{each}" for each in kind.__members__)
        if members:
            yield TrialArgument(members, "member", imports=(place,))
        return
    given = required(kind) or []
    if any(each.kind is each.KEYWORD_ONLY for each in given):
        return
    variable = "_".join(words(kind.__name__)) or "made"
    texts = tuple(f"{variable}_{slot}" for slot in "abcd")
    kinds = [["name"] * len(given)]
    first = None if given else optional(kind)
    if first is not None:
        # Instances that differ show in which order they are.
        kinds = [[each.kind] for each in _meant(first)][:1] + kinds
    for each in kinds:
        definitions = tuple(
            f"{text} = {place}.{name}({', '.join(KINDS[one][slot] for one in each)})\n"
            for slot, text in enumerate(texts)
        )
        yield TrialArgument(
            texts, "instance", definitions=definitions, imports=(place,)
        )


def _meant(parameter: inspect.Parameter) -> Iterator[TrialArgument]:
    """The kind that the words of a name mean, else that of its default."""
    for noun in reversed(words(parameter.name)):
        for kind, nouns in KIND_NOUNS.items():
            if noun in nouns or noun.removesuffix("s") in nouns:
                yield TrialArgument(KINDS[kind], kind)
    if parameter.default is not parameter.empty:
        for kind in _PLAIN.get(type(parameter.default), ()):
            yield TrialArgument(KINDS[kind], kind)


# What annotations of common types ask for.
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
