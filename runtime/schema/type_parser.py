"""The types of the schema language, from tokens.

The parser of a type and its alias annotation; each function is one line of the grammar.

Rules:
- nesting deeper than `DEEPEST` is an error, so that no input exhausts the stack, and so
  is a union of more than `MOST_MEMBERS`, so that parsing always ends soon;
- an annotation inside a tuple, dictionary, union or reference is an error: the value
  cannot represent it, and dropping it would hide a write;
- with a namespace, the text belongs to a program: it may name the types that are
  declared there, tuples with names, functions and objects of Python, and `Future[int]`
  is also accepted, as programs of upstream print it.
"""

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.schema.declared import (
    CUSTOM,
    ROOT,
    Namespace,
    is_registered_class,
)
from everyorder.runtime.schema.signature import FRESH, WILDCARD, AliasInfo, normal_sets
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.tokenizer import Cursor, Token
from everyorder.runtime.schema.types import (
    DICT_KEYS,
    NAMED_BASES,
    PROGRAM_BASES,
    AwaitType,
    ClassType,
    DictType,
    FutureType,
    ListType,
    RRefType,
    TupleType,
    Type,
    TypeVariable,
    fake,
)

# Known operators nest their types at most 4 deep; printing and comparing recurse.
DEEPEST = 64
# Each member of a union is compared with each: a text of ten thousand would take hours.
# Known operators have no unions; programs have unions of two or three.
MOST_MEMBERS = 32
# A single default of a sized list is stored that many times; sizes in use are 1 to 6.
LARGEST_SIZE = 65_536

# Words with one type in parentheses.
_WRAPPERS = {"Future": FutureType, "Await": AwaitType, "RRef": RRefType}

Annotated = tuple[Type, AliasInfo | None]


class TypeParser:
    """A parser of types; `type_variables` allows unknown lower-case words."""

    __slots__ = ("cursor", "depth", "namespace", "type_variables")

    def __init__(
        self, cursor: Cursor, type_variables: bool, namespace: Namespace | None = None
    ) -> None:
        self.cursor = cursor
        self.type_variables = type_variables
        self.namespace = namespace
        self.depth = 0

    def type(self) -> Annotated:
        """type := base [alias] suffix*      suffix := '[' ']' [alias] | '?'."""
        self._enter()
        depth = self.depth
        cursor = self.cursor
        read, alias = self._base()
        while True:
            if cursor.kind == "?":
                cursor.take()
                read = optional(read)
            elif cursor.kind == "[" and cursor.following == "]":
                cursor.take()
                cursor.take()
                read = ListType(read)
                alias = _container(self.alias(), alias)
            else:
                self.depth = depth - 1
                return read, alias
            self._enter()

    def sized_type(self) -> tuple[Type, AliasInfo | None, int | None]:
        """sized := type ['[' number ']' [alias] ['?']]."""
        cursor = self.cursor
        read, alias = self.type()
        if cursor.kind != "[":
            return read, alias, None
        cursor.take()
        size = self._size()
        cursor.expect("]", "`]` after the size of the list")
        read = ListType(read)
        alias = _container(self.alias(), alias)
        if cursor.accept("?"):
            read = optional(read)
        if cursor.kind in ("[", "?"):
            hint = "A sized list is the last thing of a type; at most one `?` follows."
            cursor.fail("a sized list cannot be extended", cursor.token, hint)
        return read, alias, size

    def alias(self) -> AliasInfo | None:
        """alias := '(' sets ['!'] ['->' sets] ')' | '!'."""
        cursor = self.cursor
        if cursor.kind == "!":
            cursor.take()
            return AliasInfo(before=(FRESH,), is_write=True)
        if cursor.kind != "(":
            return None
        cursor.take()
        before = self._sets()
        is_write = cursor.accept("!")
        after = self._sets() if cursor.accept("->") else before
        cursor.expect(")", "`)`, which closes the alias annotation")
        return AliasInfo(before, after, is_write)

    def _sets(self) -> tuple[str, ...]:
        """Parse sets := set ('|' set)*      set := ident | '*'."""
        names = [self._set()]
        while self.cursor.accept("|"):
            names.append(self._set())
        return normal_sets(tuple(names))

    def _set(self) -> str:
        if self.cursor.accept(WILDCARD):
            return WILDCARD
        return self.cursor.expect("name", "the name of an alias set, or `*`").text

    def _base(self) -> Annotated:
        """Parse base := '(' types ')' | word '(' types ')' | path | word | named."""
        cursor = self.cursor
        if cursor.kind == "(":
            return TupleType(self._types()), None
        if cursor.kind in ("None", "NoneType"):
            word = cursor.take()
        else:
            word = cursor.expect("name", "a type")
        base = NAMED_BASES.get(word.text)
        if base is not None:
            return base, self.alias()
        if word.text in _WRAPPERS:
            (element,) = self._parameters(word, 1)
            return _WRAPPERS[word.text](element), None
        if word.text == "Dict":
            start = cursor.token
            key, value = self._parameters(word, 2)
            if key not in DICT_KEYS:
                hint = f"Keys are {', '.join(sorted(map(str, DICT_KEYS)))}."
                message = f"a {key} cannot be the key of a dictionary"
                cursor.fail(message, start, hint, upto=cursor.last)
            return DictType(key, value), self.alias()
        if word.text == "Union":
            return union(self._parameters(word, None)), self.alias()
        if word.text == ROOT:
            return self._declared(word), self.alias()
        if self.namespace is not None:
            if word.text in PROGRAM_BASES:
                return PROGRAM_BASES[word.text], self.alias()
            if word.text == "NamedTuple":
                return self._named_tuple(), None
        if self.type_variables and "a" <= word.text[0] <= "z":
            return TypeVariable(word.text), self.alias()
        return self._unknown(word)

    def _parameters(self, word: Token, count: int | None) -> tuple[Type, ...]:
        """Return the types in parentheses after a word; a union needs two or more."""
        start = self.cursor.token
        brackets = self.namespace is not None and start.kind == "["
        types = self._types("[]" if brackets else "()")
        if len(types) != count if count else len(types) < 2:
            number = {1: "one type", 2: "two types", None: "two types or more"}[count]
            hint = f"`{word.text}` takes {number}, but got {len(types)}."
            last = self.cursor.last
            self.cursor.fail("the number of types is wrong", start, hint, upto=last)
        if len(types) > MOST_MEMBERS:
            hint = f"A union has at most {MOST_MEMBERS} members."
            message = "this union has too many members"
            self.cursor.fail(message, start, hint, upto=self.cursor.last)
        return types

    def _types(self, brackets: str = "()") -> tuple[Type, ...]:
        """types := [type (',' type)*], between brackets, stored as fake types."""
        belongs = f"`{brackets[0]}` and a type"
        return tuple(self.cursor.items(brackets, self._inner, "type", belongs))

    def plain_type(self, message: str, hint: str = "") -> Type:
        """Parse a type; fail with `message` if it has an alias annotation."""
        start = self.cursor.token
        plain, alias = self.type()
        if alias is not None:
            self.cursor.fail(message, start, hint, upto=self.cursor.last)
        return plain

    def _inner(self) -> Type:
        """Return the type of a component, as on the boxed stack."""
        hint = "Annotate the whole value, or pass its parts one by one."
        message = "an alias annotation inside another type has no meaning"
        return fake(self.plain_type(message, hint))

    def _named_tuple(self) -> Type:
        """named := 'NamedTuple' '(' path (',' ident ':' type)* ')'."""
        cursor = self.cursor
        cursor.expect("(", "`(` and the name of the tuple")
        qualname = self._path(cursor.expect("name", "the name of the tuple"))
        names: dict[str, None] = {}
        elements: list[Type] = []
        while cursor.accept(","):
            name = cursor.expect("name", "the name of an element")
            if name.text in names:
                hint = "Each element needs a different name."
                cursor.fail(f"`{name.text}` is given twice", name, hint)
            cursor.expect(":", "`:` and the type of the element")
            names[name.text] = None
            elements.append(self._inner())
        cursor.expect(")", "`,` and another element, or `)`")
        return TupleType(tuple(elements), tuple(names), qualname)

    def _path(self, start: Token) -> str:
        """path := ident ('.' ident)*; the first one is read already."""
        parts = [start.text]
        while self.cursor.accept("."):
            parts.append(self.cursor.word("the next part of the path"))
        return ".".join(parts)

    def _declared(self, start: Token) -> Type:
        """Return the type of a path, from the namespace or the custom classes."""
        cursor = self.cursor
        path = self._path(start)
        if path.startswith(f"{CUSTOM}.") or self.namespace is None:
            # class := '__torch__' '.' 'torch' '.' 'classes' '.' ident '.' ident
            qualname = path.removeprefix(f"{CUSTOM}.")
            if is_registered_class(qualname):
                return ClassType(qualname)
            message = f"no class {qualname} is registered"
            hint = "Register the class before a schema names it."
            if qualname == path or qualname.count(".") != 1:
                message = "this is not the path of a class"
                hint = f"A path is {CUSTOM}.namespace.Class."
            cursor.fail(message, start, hint, upto=cursor.last)
        declared = self.namespace.find(path)
        if declared is not None:
            return declared
        # Paths have long common parts: only the best candidate is useful.
        near = nearest(path, self.namespace.qualnames)
        hint = f"Did you mean {near[0]}?" if near else ""
        return cursor.fail(f"no type {path} is declared", start, hint, upto=cursor.last)

    def _size(self) -> int:
        token = self.cursor.expect("number", "a size, or `]`")
        digits = token.text.lstrip("0") or "0"
        if not digits.isdecimal() or len(digits) > 5 or int(digits) > LARGEST_SIZE:
            hint = f"Write a whole number from 0 to {LARGEST_SIZE}."
            self.cursor.fail("this is not the size of a list", token, hint)
        return int(digits)

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            hint = f"Types may be nested {DEEPEST} deep."
            self.cursor.fail("this type is nested too deeply", self.cursor.token, hint)

    def _unknown(self, word: Token) -> Annotated:
        words = () if self.namespace is None else (*PROGRAM_BASES, "NamedTuple")
        near = nearest(word.text, (*NAMED_BASES, *_WRAPPERS, "Dict", "Union", *words))
        guess = f"Did you mean {' or '.join(near)}?" if near else ""
        common = "Common types are Tensor, int, SymInt, float, bool, Scalar and str."
        self.cursor.fail(f"`{word.text}` is not a type", word, guess or common)


def _container(own: AliasInfo | None, element: AliasInfo | None) -> AliasInfo | None:
    """Return the annotation of a list, which contains that of its elements."""
    if element is None:
        return own
    if own is None:
        return AliasInfo(is_write=element.is_write, contained=(element,))
    return AliasInfo(own.before, own.after, own.is_write, (element,))
