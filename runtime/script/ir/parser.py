"""The parser of graphs: reads the printer's text back to the same graph.

Each method parses one line of the grammar:

    text      := 'graph' graph ('with' kind '=' 'graph' graph)*
    graph     := [path | string] parameters ':' line* 'return' values
    line      := [outputs '='] kind [attributes] values block*
    block     := 'block' number parameters ':' line* '->' values
    parameters, outputs := value ':' type (',' ...)*

Rules:
- total: every text results in a graph or one `SchemaSyntaxError`;
- a name refers to the visible definition in the enclosing blocks; a visible name cannot
  be defined again;
- counts and types are not verified: the checker does that;
- blocks are nested `DEEPEST` deep, and constants `DEEPEST_CONSTANT`; blocks are parsed
  without recursion;
- a comment `file:line:column` after a node is its place: in the source that `sources`
  has for the file, else in a source of blanks.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.errors.schema import SchemaSyntaxError, UnknownKind
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.declared import SHARED, EnumType, Namespace
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.tokenizer import Cursor, Token
from everyorder.runtime.schema.type_parser import TypeParser
from everyorder.runtime.schema.types import Type
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.ir.graph import (
    PARAM,
    RETURN,
    Block,
    Graph,
    Node,
    Place,
    Value,
)
from everyorder.runtime.script.ir.node_kinds import (
    DEEPEST,
    AttributeForm,
    NodeAttribute,
    NodeKind,
    kind_names,
    known_kind,
)
from everyorder.runtime.script.ir.type_rules import DEEPEST_CONSTANT

_BLOCK = re.compile(r"block([0-9]{1,9})")
_REFERENCE = re.compile(r"(.+)_[0-9]{1,9}")
# Longer lines, and files of more lines, do not occur.
_PLACE = re.compile(r"(.*\S):([0-9]{1,9}):([0-9]{1,5})")
_PARTS = {"True": True, "False": False, "None": None}
# The decimal digits of the greatest 64-bit integer.
_DIGITS = 19


def _written() -> tuple[str, ...]:
    """Return the kinds that a text may name, without their namespace."""
    names = (each for each in kind_names() if each not in (PARAM, RETURN))
    return tuple(each.removeprefix("prim::") for each in names)


def parse_graph(
    text: str,
    *,
    namespace: Namespace = SHARED,
    objects: Sequence[Any] = (),
    functions: Mapping[str, Any] | None = None,
    sources: Mapping[str, Source] | None = None,
) -> Graph:
    """Return the graph that `text` describes.

    Types of a program are looked up in `namespace`; `objects` and `functions` are those
    that the text refers to (see `runtime.script.ir.printer.Printed`).

    Raises:
        SchemaSyntaxError: `text` is not a graph, or refers to an undefined name.
    """
    try:
        reader = _GraphParser(text, namespace, objects, functions or {}, sources or {})
        return reader.text()
    except SchemaSyntaxError as error:
        # The frames of the parser say nothing about the text.
        raise error.with_traceback(None) from None


class _Frame:
    """A block that is being parsed, and the names whose scope it is."""

    __slots__ = ("block", "names", "pending")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.names: list[str] = []
        # Outputs of the last node: not visible in its nested blocks.
        self.pending: dict[str, Value] = {}


class _GraphParser:
    """One parse of one text."""

    def __init__(
        self,
        text: str,
        namespace: Namespace,
        objects: Sequence[Any],
        functions: Mapping[str, Any],
        sources: Mapping[str, Source],
    ) -> None:
        self.cursor = Cursor(text)
        self.types = TypeParser(self.cursor, False, namespace)
        self.namespace = namespace
        self.objects = objects
        self.functions = functions
        self.sources = sources
        self.names: dict[str, Value] = {}
        self.frames: list[_Frame] = []
        # Graphs that were named but not parsed yet, and the parsed ones.
        self.awaited: dict[str, tuple[Node, str, Token]] = {}
        self.read: set[str] = set()
        # Length -> the blank text of sources that are not available.
        self.blanks: dict[int, str] = {}

    # The text, its graphs and blocks

    def text(self) -> Graph:
        """text := 'graph' graph ('with' kind '=' 'graph' graph)*."""
        cursor = self.cursor
        whole = self.graph()
        while cursor.accept("with"):
            token = cursor.token
            name = cursor.symbol("the name of a graph, such as prim::fork_0")
            if name not in self.awaited:
                hint = "A graph is written once, behind the node that names it."
                cursor.fail(f"no node waits for {name}", token, hint, upto=cursor.last)
            cursor.expect("=", "`=` and the graph")
            node, attribute, _ = self.awaited.pop(name)
            self.read.add(name)
            node.attributes[attribute] = self.graph()
        if cursor.kind != "end":
            cursor.misplaced("`with` and another graph, or nothing more")
        for name, (_, _, token) in self.awaited.items():
            cursor.fail(f"the graph {name} is not written", token)
        return whole

    def graph(self) -> Graph:
        """graph := 'graph' [path | string] parameters ':' line* 'return' values."""
        cursor = self.cursor
        if cursor.kind != "name" or cursor.token.text != "graph":
            cursor.misplaced("the word `graph`")
        cursor.take()
        result = Graph(self.graph_name())
        self.names = {}
        self.frames = []
        self.open(result.block)
        while self.frames:
            self.line()
        return result

    def graph_name(self) -> str:
        cursor = self.cursor
        if cursor.kind == "(":
            return ""
        if cursor.kind == "string":
            return cursor.string(cursor.take())
        parts = [cursor.word("the name of the graph, or its parameters")]
        while cursor.accept("."):
            parts.append(cursor.word("the next part of the name"))
        return ".".join(parts)

    def open(self, block: Block) -> None:
        """parameters := '(' [value ':' type (',' value ':' type)*] ')' ':'."""
        cursor = self.cursor
        frame = _Frame(block)
        self.frames.append(frame)
        cursor.expect("(", "`(` and the parameters")
        if not cursor.accept(")"):
            while True:
                name, type_, hint = self.output()
                self.define(frame, name.text, block.add_parameter(type_, hint), name)
                if not cursor.accept(","):
                    break
            cursor.expect(")", "`,` and another parameter, or `)`")
        cursor.expect(":", "`:` and the lines of the block")
        cursor.end_line()

    def line(self) -> None:
        """Parse a line of the innermost block, its end, or the start of a new block."""
        cursor, frame = self.cursor, self.frames[-1]
        kind = cursor.kind
        if kind == "name" and cursor.following == "(":
            self.inner(frame)
            return
        self.names |= frame.pending
        frame.names += frame.pending
        frame.pending = {}
        if kind == "value" or kind == "name":
            self.node(frame)
        elif len(self.frames) == 1:
            cursor.expect("return", "a node, or `return` and what the graph gives")
            self.close(frame)
        else:
            cursor.expect("->", "a node, or `->` and what the block gives")
            self.close(frame)

    def inner(self, frame: _Frame) -> None:
        """block := 'block' number parameters ':' line* '->' values."""
        cursor = self.cursor
        token = cursor.take()
        match = _BLOCK.fullmatch(token.text)
        node = frame.block.exit.previous
        assert node is not None, "something is before the end of a block"
        if match is None or node.kind == PARAM:
            hint = "A node has a kind: namespace::name."
            if match is not None:
                hint = "Blocks follow the node that they belong to."
            cursor.fail(f"unexpected `{token.text}`", token, hint)
        if int(match.group(1)) != len(node.blocks):
            hint = f"Expected block{len(node.blocks)}."
            cursor.fail("the blocks of a node are numbered in order", token, hint)
        if len(self.frames) >= DEEPEST:
            hint = f"Blocks may be nested {DEEPEST} deep."
            cursor.fail("this block is nested too deeply", token, hint)
        self.open(node.add_block())

    def close(self, frame: _Frame) -> None:
        """Parse the results of a block and end the scope of its names."""
        frame.block.exit.set_inputs(self.values())
        self.cursor.end_line()
        for name in frame.names:
            del self.names[name]
        self.frames.pop()

    # Nodes

    def node(self, frame: _Frame) -> None:
        """line := [output (',' output)* '='] kind [attributes] values."""
        cursor = self.cursor
        outputs: list[tuple[Token, Type, str]] = []
        if cursor.kind == "value":
            outputs.append(self.output())
            while cursor.accept(","):
                outputs.append(self.output())
            cursor.expect("=", "`=` and what is computed")
        start = cursor.token
        name, row = self.kind()
        node = Node(name)
        for token, type_, hint in outputs:
            value = node.add_output(type_, hint)
            if token.text in frame.pending or token.text in self.names:
                cursor.fail(f"{token.text} has a meaning already", token)
            frame.pending[token.text] = value
        self.attributes(node, row, start)
        node.set_inputs(self.values())
        node.place = self.place(cursor.remark)
        cursor.end_line()
        frame.block.append(node)

    def output(self) -> tuple[Token, Type, str]:
        """output := value ':' type; the hint is its name without the number."""
        cursor = self.cursor
        token = cursor.expect("value", "a value, such as %x.1")
        cursor.expect(":", "`:` and the type of the value")
        hint, dot, _ = token.text[1:].rpartition(".")
        if not dot and not token.text[1:].isdecimal():
            hint = token.text[1:]
        return token, self.type(), hint

    def type(self) -> Type:
        """Parse a type without annotations."""
        start = self.cursor.token
        read, alias = self.types.type()
        if alias is not None:
            message = "a value of a graph has no alias annotation"
            self.cursor.fail(message, start, upto=self.cursor.last)
        return read

    def define(self, frame: _Frame, name: str, value: Value, token: Token) -> None:
        if name in self.names:
            self.cursor.fail(f"{name} has a meaning already", token)
        self.names[name] = value
        frame.names.append(name)

    def values(self) -> list[Value]:
        """values := '(' [value (',' value)*] ')'."""
        cursor = self.cursor
        cursor.expect("(", "`(` and values")
        values: list[Value] = []
        if cursor.accept(")"):
            return values
        while True:
            token = cursor.expect("value", "a value, such as %x.1")
            value = self.names.get(token.text)
            if value is None:
                near = nearest(token.text, tuple(self.names))
                hint = f"Did you mean {' or '.join(near)}?" if near else ""
                cursor.fail(f"{token.text} is not defined here", token, hint)
            values.append(value)
            if not cursor.accept(","):
                break
        cursor.expect(")", "`,` and another value, or `)`")
        return values

    def kind(self) -> tuple[str, NodeKind | None]:
        """kind := ident '::' word ['.' word], a row of the table or an operator."""
        cursor = self.cursor
        start = cursor.token
        name = cursor.symbol("the kind of a node, such as prim::If")
        if cursor.accept("."):
            name = f"{name}.{cursor.word('the name of an overload')}"
        if not name.startswith("prim::"):
            return name, None
        row = known_kind(name)
        if row is None:
            match = _REFERENCE.fullmatch(name)
            row = known_kind(match.group(1)) if match else None
            if row is not None and row.graph is None:
                row = None
        elif row.graph is not None:
            hint = f"Write {name}_0, and the graph behind all of this one."
            cursor.fail(f"{name} has a graph", start, hint, upto=cursor.last)
        if row is None or name in (PARAM, RETURN):
            near = nearest(name.removeprefix("prim::"), _written())
            guess = " or ".join(f"prim::{each}" for each in near)
            hint = f"Did you mean {guess}?" if guess else ""
            raise UnknownKind(
                message=f"there is no kind {name}",
                source=cursor.source,
                span=(start.start, cursor.last.end),
                hint=hint,
                kind=name,
            )
        if name != row.name and (name in self.awaited or name in self.read):
            hint = "A graph belongs to one node."
            cursor.fail(f"{name} is named twice", start, hint, upto=cursor.last)
        return name, row

    def attributes(self, node: Node, row: NodeKind | None, start: Token) -> None:
        """attributes := ['[' word '=' form (',' word '=' form)* ']']."""
        cursor = self.cursor
        if row is not None and row.graph is not None:
            self.awaited[node.kind] = node, row.graph, start
            node.kind = row.name
        if not cursor.accept("["):
            return
        forms = {} if row is None else {each.name: each for each in row.attributes}
        while True:
            token = cursor.token
            name = cursor.word("the name of an attribute")
            attribute = forms.pop(name, None)
            if attribute is None or attribute.form is AttributeForm.GRAPH:
                self.no_attribute(node, name, token, row)
            cursor.expect("=", "`=` and the attribute")
            node.attributes[name] = self.form(attribute)
            if not cursor.accept(","):
                break
        cursor.expect("]", "`,` and another attribute, or `]`")

    def no_attribute(
        self, node: Node, name: str, token: Token, row: NodeKind | None
    ) -> NoReturn:
        if name in node.attributes:
            self.cursor.fail(f"`{name}` is given twice", token)
        attribute_names = (
            () if row is None else tuple(each.name for each in row.attributes)
        )
        hint = (
            f"It has {' and '.join(attribute_names)}."
            if attribute_names
            else "It has none."
        )
        message = f"{node.kind} has no attribute `{name}`"
        self.cursor.fail(message, token, hint)

    def place(self, remark: str) -> Place | None:
        """place := file ':' line ':' column, in a comment."""
        match = _PLACE.fullmatch(remark)
        if match is None:
            return None
        file, line, column = match.group(1), int(match.group(2)), int(match.group(3))
        if column < 1:
            return None
        source = self.sources.get(file)
        if source is None:
            # Rounded to few lengths, so that many places share a text.
            size = 1 << (column - 1).bit_length()
            blanks = self.blanks.setdefault(size, " " * size)
            source = Source(blanks, "" if file == "<text>" else file, line)
        offset = source.offset(line, column)
        return Place(source, (offset, offset))

    # Attributes

    def form(self, attribute: NodeAttribute) -> Any:
        """form := string | number | '[' types ']' | value | object."""
        cursor, form = self.cursor, attribute.form
        if form is AttributeForm.VALUE:
            return self.value(0)
        if form is AttributeForm.TEXT:
            return self.cursor.string(cursor.expect("string", "a quoted text"))
        if form is AttributeForm.INDEX:
            return self.integer(cursor.expect("number", "a number"), negative=False)
        if form is AttributeForm.TYPES:
            return self.type_list()
        if form is AttributeForm.FUNCTION and cursor.kind == "string":
            token = cursor.take()
            name = self.cursor.string(token)
            if name not in self.functions:
                near = nearest(name, tuple(self.functions))
                # Names of functions share long prefixes: the second best is a poor
                # guess.
                hint = f"There is {near[0]}." if near else ""
                cursor.fail("no function of this name is given", token, hint)
            return self.functions[name]
        token = cursor.expect("name", "`object` and its number")
        return self.object(token)

    def type_list(self) -> tuple[Type, ...]:
        """types := '[' [type (',' type)*] ']'."""
        cursor = self.cursor
        cursor.expect("[", "`[` and types")
        if cursor.accept("]"):
            return ()
        types = [self.type()]
        while cursor.accept(","):
            types.append(self.type())
        cursor.expect("]", "`,` and another type, or `]`")
        return tuple(types)

    def value(self, depth: int) -> Any:
        """value := word | number | string | call | path | '(' values ')'."""
        cursor = self.cursor
        kind = cursor.kind
        if kind in _PARTS:
            cursor.take()
            return _PARTS[kind]
        if kind == "string":
            return cursor.string(cursor.take())
        if kind == "number" or kind == "-":
            return self.number()
        if kind == "(":
            return self.tuple(depth)
        token = cursor.expect("name", "a constant")
        if token.text in ("inf", "nan"):
            return float(token.text)
        if token.text == "complex":
            return self.complex()
        if token.text == "device":
            return self.device()
        if token.text == "object":
            return self.object(token)
        return self.member(token)

    def tuple(self, depth: int) -> tuple[Any, ...]:
        """tuple := '(' [value ',' [value (',' value)*]] ')'."""
        cursor = self.cursor
        start = cursor.take()
        if depth >= DEEPEST_CONSTANT:
            hint = f"Tuples may be nested {DEEPEST_CONSTANT} deep."
            cursor.fail("this constant is nested too deeply", start, hint)
        if cursor.accept(")"):
            return ()
        values = [self.value(depth + 1)]
        cursor.expect(",", "`,`, also behind a single element")
        if cursor.kind != ")":
            values.append(self.value(depth + 1))
            while cursor.accept(","):
                values.append(self.value(depth + 1))
        cursor.expect(")", "`,` and another element, or `)`")
        return tuple(values)

    def number(self) -> int | float:
        """Parse number := ['-'] (digits | 'inf' | 'nan')."""
        cursor = self.cursor
        negative = cursor.accept("-")
        if negative and cursor.kind == "name" and cursor.token.text == "inf":
            cursor.take()
            return float("-inf")
        token = cursor.expect("number", "a number")
        if token.text.isdecimal():
            return self.integer(token, negative)
        if token.text.endswith("j"):
            hint = "Write complex(real, imaginary)."
            cursor.fail("this is not a real number", token, hint)
        value = float(token.text)
        if value == float("inf"):
            hint = "A float reaches to about 1.8e308; write inf for what is above."
            cursor.fail("this number is too large", token, hint)
        return -value if negative else value

    def integer(self, token: Token, negative: bool) -> int:
        digits = token.text.lstrip("0") or "0"
        if not digits.isdecimal():
            self.cursor.fail("this is not a whole number", token)
        value = int(digits) if len(digits) <= _DIGITS else INT_END + 1
        value = -value if negative else value
        if not INT_FIRST <= value < INT_END:
            hint = "An int has 64 bits; write it with a point to make it a float."
            self.cursor.fail("this integer is too large", token, hint)
        return value

    def real(self) -> float:
        """Parse a float that is a part of a complex number."""
        cursor = self.cursor
        start = cursor.token
        if cursor.kind == "name" and start.text in ("inf", "nan"):
            cursor.take()
            return float(start.text)
        value = self.number()
        if value.__class__ is int:
            cursor.fail("this part is not a float", start, "Write 1.0, not 1.")
        return value

    def complex(self) -> complex:
        """complex := 'complex' '(' number ',' number ')'."""
        cursor = self.cursor
        cursor.expect("(", "`(` and the real part")
        real = self.real()
        cursor.expect(",", "`,` and the imaginary part")
        imaginary = self.real()
        cursor.expect(")", "`)`")
        return complex(real, imaginary)

    def device(self) -> Device:
        """device := 'device' '(' string ')'."""
        cursor = self.cursor
        cursor.expect("(", "`(` and the name of the device")
        token = cursor.expect("string", 'the name of a device, such as "cuda:1"')
        text = self.cursor.string(token)
        cursor.expect(")", "`)`")
        try:
            return Device.parse(text)
        except UnknownDevice as error:
            return cursor.fail(f"{text!r} is not a device", token, str(error))

    def object(self, start: Token) -> Any:
        """object := 'object' '(' number ')'."""
        cursor = self.cursor
        if start.text != "object":
            cursor.fail(f"`{start.text}` is not an object", start, "Write object(0).")
        cursor.expect("(", "`(` and the number of the object")
        token = cursor.expect("number", "the number of an object")
        number = self.integer(token, negative=False)
        cursor.expect(")", "`)`")
        if number >= len(self.objects):
            hint = f"There are {len(self.objects)} in the table."
            cursor.fail("there is no such object", token, hint)
        return self.objects[number]

    def member(self, start: Token) -> Any:
        """path := ident ('.' ident)*, a member of an enum."""
        cursor = self.cursor
        parts = [start.text]
        while cursor.accept("."):
            parts.append(cursor.word("the next part of the path"))
        path, name = ".".join(parts[:-1]), parts[-1]
        declared = self.namespace.find(path)
        if not isinstance(declared, EnumType):
            message = f"`{'.'.join(parts)}` is not a constant"
            cursor.fail(message, start, upto=cursor.last)
        python: Any = declared.declaration.python
        if python is None:
            message = f"the Python class of {path} is gone"
            cursor.fail(message, start, upto=cursor.last)
        if name not in python.__members__:
            hint = f"It has {', '.join(python.__members__)}."
            cursor.fail(f"{path} has no member {name}", start, hint, upto=cursor.last)
        return python.__members__[name]
