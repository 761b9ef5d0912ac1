"""A decoded stream of tokens: nodes, their edges and paths.

This is the inverse of `encode.py` and `encoders.py`, record by record.  It sees tokens
only, never an object.  A record becomes an `ObjectNode`: its kind, a value for all that
is not an edge, and its edges, each with a label that is appended to the path of the
node: `.name`, `['key']`, `[0]`.  A label that begins with `@` is a whole path: globals
are named by their module, not by the first object that refers to them.

A *portrait* is a state as an immutable value: it can be pickled, refers to no object,
and does not change with the state; `differences.py` compares two of them.
"""

import marshal
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from everyorder.harness.state.accessors import NAN

_NOTHING = StopIteration
_PATHLESS = "@"
_APART = ("builtins.", "import ")
_DICTS = ("__dict__", "__annotations__")
_NAN = f".{NAN}"
_NUMBERS = ("class builtins.float", "class builtins.complex")
INSTANCES = ("object", "opaque", "suspended")


# The number of an object whose text replaces it in a label once it is known.
_KEY = re.compile("\0([0-9]+)\0")
_PARTS = 3


def _marked(number: int) -> str:
    return f"\0{number}\0"


class ObjectNode(NamedTuple):
    """One recorded object: its kind, a text for people, a value, and edges."""

    kind: str
    text: str
    value: Any
    edges: list[tuple[str, Any]]


def nan_bits(node: ObjectNode) -> str:
    """Return the text and the bits of a number that is unequal to itself, else ""."""
    tokens = (token for label, token in node.edges if label == _NAN)
    return next((token for token in tokens if type(token) is str), "")


class Records:
    """The nodes of a stream that may still be growing."""

    def __init__(self, tokens: list[Any]) -> None:
        self.tokens = tokens
        self.roots: list[tuple[str, Any]] = []
        self.nodes: dict[int, ObjectNode] = {}
        self.globals: dict[str, Any] = {}
        self.callbacks: list[tuple[int, ...]] = []
        self._parents: dict[int, tuple[int, str]] = {}
        self._spaces: dict[int, str] = {}
        self._extra: dict[int, list[tuple[str, Any]]] = {}
        self._at = 0
        self._next = 0
        self._begun = False
        # The objects whose addresses are being named.
        self._named: set[int] = set()

    def read(self) -> None:
        """Read all records that are complete by now."""
        while self._at < len(self.tokens):
            at = self._at
            try:
                if not self._begun:
                    self._read_roots()
                elif type(self.tokens[at]) is not str:
                    rest = self.tokens[at:]
                    self.callbacks = [each for each in rest if type(each) is tuple]
                    return
                else:
                    self._record()
            except IndexError:  # the record is still being written
                self._at = at
                return

    def path(self, number: int) -> str:
        """Return the shortest path to a node: `registry._cache['json']`."""
        pieces: list[str] = []
        while True:
            node = self.nodes.get(number)
            if node is not None and node.kind == "class":
                pieces.append(node.value)
                break
            parent, label = self._parents.get(number, (-1, "?"))
            if label.startswith(_PATHLESS):
                pieces.append(label[1:])
                break
            pieces.append(label)
            if parent < 0:
                break
            number = parent
        return self.label("".join(reversed(pieces)))

    def label(self, label: str) -> str:
        """Return a label with its keys as text for people."""
        if "\0" not in label:
            return label
        return _KEY.sub(lambda match: self._key_text(int(match.group(1)), 2), label)

    def edges(self, node: ObjectNode) -> dict[str, Any]:
        """Return tokens by label; equal labels are distinguished by a count."""
        tokens: dict[str, Any] = {}
        for label, token in node.edges:
            text = name = self.label(label)
            place = 1
            while name in tokens:
                place += 1
                name = f"{text}<{place}>"
            tokens[name] = token
        return tokens

    def _key_text(self, token: Any, depth: int) -> str:
        """Return the text of a key or a member of a set, as distinct as possible."""
        node = self.nodes.get(token) if type(token) is int else None
        if node is None or not depth:
            return self.text(token)
        if node.kind in ("tuple", "list", "frozenset"):
            inner = [self._key_text(each, depth - 1) for _, each in node.edges]
            return f"({', '.join(inner)})"
        if node.kind != "object":
            return self.node_text(node)
        if self.node_text(node)[:1] != "<":  # a number
            return self.node_text(node)
        parts = [
            f"{self.label(label)[1:]}={self._key_text(each, depth - 1)}"
            for label, each in node.edges[1:]
            if (type(each) is not int or label == ".target") and label != _NAN
        ]
        return f"{self.node_text(node)[:-1]} {', '.join(parts[:_PARTS])}".rstrip() + ">"

    def text(self, token: Any) -> str:
        """Return a token as text for people, without its contents."""
        kind = type(token)
        if kind is int:
            node = self.nodes.get(token)
            return self.node_text(node) if node is not None else "<object>"
        if kind is tuple:
            if len(token) == 1:
                return repr(token[0])
            return f"<{token[1] if not token[0] else ' '.join(token)}>"
        if kind is list:
            number = token[0]
            if number in self._named:  # it is a key in its own path
                return f"id({self.text(number)})"
            self._named.add(number)
            try:
                return f"id({self.path(number)})"
            finally:
                self._named.remove(number)
        if token is _NOTHING:
            return "<absent>"
        return repr(token)

    def node_text(self, node: ObjectNode) -> str:
        """Return a node as text for people, without its contents."""
        if node.kind not in INSTANCES:
            return node.text
        cls = self.nodes.get(node.edges[0][1])
        name: str = cls.value if cls is not None else "object"
        short = name.removeprefix("class ").removeprefix("builtins.").rpartition(".")[2]
        if bits := nan_bits(node):
            text: str = bits.partition(" ")[0]
            return text if name in _NUMBERS else f"<{short} {text}>"
        body = {label: token for label, token in node.edges if label == ".value"}
        return f"<{short} {self.text(body['.value'])}>" if body else f"<{short}>"

    # Reading

    def _take(self) -> Any:
        token = self.tokens[self._at]
        self._at += 1
        return token

    def _read_roots(self) -> None:
        roots = []
        while (name := self._take()) is not _NOTHING:
            roots.append((name, self._take()))
        self._begun = True
        self.roots += roots
        for name, token in roots:
            if type(token) is int:  # a root has its own name, always
                self._parents[token] = (-1, name)

    def _link(self, parent: int, label: str, token: Any) -> None:
        if type(token) is int:
            self._parents.setdefault(token, (parent, label))

    def _record(self) -> None:
        kind = self._take()
        if kind == "members":
            self._members()
            return
        if kind == "roots":
            self._read_roots()
            return
        node = getattr(self, f"_read_{kind}")(kind)
        number = self._next
        self._next += 1
        self.nodes[number] = node
        for label, token in node.edges:
            self._link(number, label, token)

    def _members(self) -> None:
        number = self._take()
        tokens = [self._take() for _ in range(self._take())]
        edges = self.nodes[number].edges
        for each in tokens:
            label = f"{{{_marked(each)}}}"
            edges.append((label, each))
            self._link(number, label, each)

    def _read_list(self, kind: str) -> ObjectNode:
        edges = self._sequence()
        return ObjectNode(kind, f"<{kind} of {len(edges)}>", None, edges)

    _read_tuple = _read_list

    def _sequence(self) -> list[tuple[str, Any]]:
        return [(f"[{place}]", self._take()) for place in range(self._take())]

    def _read_dict(self, kind: str) -> ObjectNode:
        edges = self._items()
        return ObjectNode(kind, f"<dict of {len(edges)}>", None, edges)

    def _items(self) -> list[tuple[str, Any]]:
        edges: list[tuple[str, Any]] = []
        for _ in range(self._take()):
            key, value = self._take(), self._take()
            if type(key) is int:
                edges.append((f"<key {_marked(key)}>", key))
            edges.append((f"[{self._key(key)}]", value))
        return edges

    def _key(self, key: Any) -> str:
        return _marked(key) if type(key) is int else self.text(key)

    def _attributes(self) -> list[tuple[str, Any]]:
        edges: list[tuple[str, Any]] = []
        for _ in range(self._take()):
            key, value = self._take(), self._take()
            if type(key) is str:
                edges.append((f".{key}", value))
            else:
                edges.append((f".__dict__[{self._key(key)}]", value))
        return edges

    def _read_cell(self, kind: str) -> ObjectNode:
        return ObjectNode(kind, "<cell>", None, [("", self._take())])

    def _read_set(self, kind: str) -> ObjectNode:
        edges = self._set()
        return ObjectNode(kind, f"<{kind}>", None, edges)

    _read_frozenset = _read_set

    def _set(self) -> list[tuple[str, Any]]:
        edges: list[tuple[str, Any]] = []
        for _ in range(self._take()):
            member = self._take()
            edges.append((f"{{{self.text(member)}}}", member))
        for each in self._take():
            token: Any = (each,)
            if type(each) is tuple:
                token = [each[1]] if each[0] == 0 else (each[1],)
            edges.append((f"{{{self.text(token)}}}", token))
        self._take()
        return edges

    def _read_object(self, kind: str) -> ObjectNode:
        cls = self._take()
        edges: list[tuple[str, Any]] = [(".__class__", cls), *self._slots()]
        body = self._take()
        if body == "sequence":
            edges += self._sequence()
        elif body in ("dict", "ordered"):
            edges += self._items()
        elif body == "set":
            edges += self._set()
        if body is not None:
            edges += self._parts()
        attributes = self._take()
        if attributes is True:
            edges += self._attributes()
        elif attributes is not None:
            edges.append((".__dict__", attributes))
        return ObjectNode(kind, "", body, edges)

    _read_opaque = _read_object

    def _slots(self) -> list[tuple[str, Any]]:
        edges: list[tuple[str, Any]] = []
        while (name := self._take()) is not _NOTHING:
            edges.append((f".{name}", self._take()))
        return edges

    def _parts(self) -> list[tuple[str, Any]]:
        edges: list[tuple[str, Any]] = []
        counted: dict[str, int] = {}
        for _ in range(self._take()):
            label, token = self._take(), self._take()
            place = counted.get(label, 0)
            counted[label] = place + 1
            edges.append((f".{label}" + (f"[{place}]" if place else ""), token))
        return edges

    def _read_written(self, kind: str) -> ObjectNode:
        return ObjectNode(kind, "<dict>", None, [])

    def _read_named(self, kind: str) -> ObjectNode:
        what, name = self._take(), self._take()
        return ObjectNode(kind, f"<{what} {name}>", f"{what} {name}", [])

    def _read_class(self, kind: str) -> ObjectNode:
        name = f"{self._take()}.{self._take()}"
        edges = [(".__class__", self._take())]
        for label in ("__bases__", "__mro__"):
            edges += [(f".{label}{at}", token) for at, token in self._sequence()]
        for _ in range(self._take()):
            key, value = self._take(), self._take()
            text = key if type(key) is str else f"<{self._key(key)}>"
            edges.append((f".{text}", value))
        edges += [(f".__subclasses__(){at}", token) for at, token in self._sequence()]
        if self._take() is not None:
            edges.append((".__abstractmethods__", self._take()))
            for _ in range(3):
                self._take()
        return ObjectNode(kind, f"<class {name}>", name, edges)

    def _read_function(self, kind: str) -> ObjectNode:
        name = self._take()
        edges = [(".__code__", self._take())]
        while (label := self._take()) is not None:
            edges.append((f".{label}", self._take()))
        edges += [(f".{label}", self._take()) for label in _DICTS]
        cells = [self._take() for _ in range(self._take())]
        variables = self._take() if cells else ()
        edges += [
            (f".<{variable}>", cell)
            for variable, cell in zip(variables, cells, strict=True)
        ]
        self._entries()
        return ObjectNode(kind, f"<function {name}>", name, edges)

    def _entries(self) -> None:
        """Read the globals that this record writes first; their space precedes them."""
        first = True
        while (entry := self._take()) is not None:
            if entry == "space":
                number, name = self._take(), self._take()
                self._spaces[number] = name if type(name) is str else f"<{number}>"
            elif first:
                first = False
            else:
                name = self._take()
                apart = name.startswith(_APART)
                label = name if apart else f"{self._spaces[entry]}.{name}"
                value = self._take()
                self.globals[label] = value
                self._link(-1, f"{_PATHLESS}{label}", value)

    def _read_code(self, kind: str) -> ObjectNode:
        name, digest = self._take(), self._take()
        return ObjectNode(kind, f"<code {name}>", digest, self._sequence())

    def _read_module(self, kind: str) -> ObjectNode:
        name = self._take()
        edges = [(".__class__", self._take()), *self._slots()]
        self._entries()
        return ObjectNode(kind, f"<module {self.text(name)}>", name, edges)

    def _read_builtin(self, kind: str) -> ObjectNode:
        name = self._take()
        return ObjectNode(
            kind, f"<function {name}>", name, [(".__self__", self._take())]
        )

    def _read_descriptor(self, kind: str) -> ObjectNode:
        name = self._take()
        edges = [(".__objclass__", self._take())]
        return ObjectNode(kind, f"<descriptor {name}>", name, edges)

    def _read_suspended(self, kind: str) -> ObjectNode:
        cls = self._take()
        edges = [(".__class__", cls), *self._parts()]
        return ObjectNode(kind, "", None, edges)

    def _read_frame(self, kind: str) -> ObjectNode:
        return ObjectNode(kind, f"<{kind}>", None, self._parts())

    _read_traceback = _read_frame
    _read_finalizer = _read_frame
    _read_cache = _read_frame

    def _read_proxy(self, kind: str) -> ObjectNode:
        name = self._take()
        return ObjectNode(kind, f"<{name}>", name, self._parts())


@dataclass(frozen=True, slots=True)
class Portrait:
    """The recorded form of a state; `differences` reads it.

    Portraits are equal if the exact forms are: `variants`, the orders of sets and the
    hits of caches, are only shown.  `ids` are those of the process and of its threads.
    """

    tokens: bytes
    orders: bytes
    variants: bytes = field(compare=False)
    ids: frozenset[int] = field(default=frozenset(), compare=False)

    def records(self) -> Records:
        """Return the nodes of this state."""
        records = Records(marshal.loads(self.tokens))  # noqa: S302  # our own bytes
        records.read()
        return records
