"""Code: convert graphs to Python text, for readers and for the compiler.

Nodes become statements:

    def f(x: Tensor, n: int) -> Tensor:
      y = x
      for i in range(n):
        y_0 = ops.core.mul(y, y)
        y = y_0
      return y

Rules:
- effects happen in the order of the graph. A value that is used once is written where
  it is used, but only if Python then evaluates in the same order; all others have a
  variable, and constants are written at each use;
- a branch assigns its outputs at the ends of both blocks, a loop its carried values at
  the end of its block, in one assignment;
- the graph of a fork or of an await is a nested function without parameters before it,
  which uses the enclosing variables;
- types are written at parameters, and where the text does not determine them
  (`annotate`).

Nodes are written one after another.  Expressions that wait for their one use are in
`pending`, in the order of evaluation; a node takes its operands from the end of it, and
a statement first writes all of it.
"""

from collections.abc import Callable, Sequence

from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    InterfaceType,
    ModuleType,
)
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Signature
from everyorder.runtime.script.archive.spelling import (
    FORMS,
    Constants,
    FunctionNames,
    constant_text,
    expression,
    is_name,
    parenthesized,
    spelling_of,
    tuple_text,
    type_text,
    without_parentheses,
)
from everyorder.runtime.script.ir import Block, Graph, Node, Value
from everyorder.runtime.script.ir.program import Function

_INDENT = "  "
# A longer expression is written on a separate line.
WIDEST = 60
CONSTANT = "prim::Constant"


def code_of(
    function: Function, constants: Constants | None = None, *, is_plain: bool = False
) -> str:
    """Return the text of a function, or method, without the functions that it calls.

    With `is_plain` a method is written like a function, so that its object has a type.
    """
    table = Constants() if constants is None else constants
    writer = _FunctionWriter(table, is_plain)
    return writer.function(function.name, function.schema, function.graph)


def graph_code(graph: Graph, constants: Constants | None = None) -> str:
    """Return the text of a graph without a function."""
    table = Constants() if constants is None else constants
    name = graph.name.rpartition(".")[2]
    return _FunctionWriter(table).function(
        name if is_name(name) else "graph", None, graph
    )


def type_code(declared: DeclaredType, constants: Constants | None = None) -> str:
    """Return the text of a class, module, interface or enum with its methods."""
    table = Constants() if constants is None else constants
    declaration = declared.declaration
    name = declaration.qualname.rpartition(".")[2]
    rows: list[str] = []
    if isinstance(declared, EnumType):
        base = "(Enum)"
        members = declaration.constants.items()
        rows += [f"{key} = {constant_text(value, table)}" for key, value in members]
    else:
        kinds = {ModuleType: "(Module)", InterfaceType: "(Interface)"}
        base = kinds.get(declared.__class__, "")
        rows += [
            f"{key}: {type_text(each)}" if is_name(key) else f"# {key}: {each}"
            for key, each in declaration.attributes.items()
        ]
    for key, schema in declaration.methods.items():
        function = declaration.functions.get(key)
        if isinstance(function, Function):
            rows += code_of(function, table).splitlines()
        else:
            rows += [_header(key, schema), f"{_INDENT}pass"]
    body = "".join(f"{_INDENT}{each}\n" for each in rows or ["pass"])
    return f"class {name}{base}:\n{body}"


def _header(name: str, schema: Signature, is_plain: bool = False) -> str:
    """Return def name(parameters) -> type:."""
    parts: list[str] = []
    for place, argument in enumerate(schema.arguments):
        if argument.kwarg_only and place == schema.kwarg_only_start:
            parts.append("*")
        text = argument.name
        is_object = place == 0 and isinstance(argument.type, DeclaredType)
        if is_plain or not (is_object and text == "self"):
            text = f"{text}: {type_text(argument.type)}"
        if argument.has_default:
            text = f"{text}={constant_text(argument.default, Constants())}"
        parts.append(text)
    types = [type_text(each.type) for each in schema.returns]
    result = types[0] if len(types) == 1 else f"Tuple[{', '.join(types) or '()'}]"
    return f"def {name}({', '.join(parts)}) -> {result}:"


class _FunctionWriter:
    """One run over one function."""

    def __init__(self, constants: Constants, is_plain: bool = False) -> None:
        self.constants = constants
        self.is_plain = is_plain
        self.names = FunctionNames()
        self.rows: list[str] = []
        self.indent = ""
        # Value -> its text.
        self.texts: dict[Value, str] = {}
        # Values whose expressions are not written yet, in the order of evaluation.
        self.pending: dict[Value, str] = {}
        self.statements: dict[str, Callable[[Node], None]] = {
            "prim::If": self.branch,
            "prim::Loop": self.loop,
            "prim::With": self.with_block,
            "prim::SetAttr": self.set_attribute,
            "prim::RaiseException": self.raise_exception,
            "prim::Closure": self.closure,
            "prim::fork": lambda node: self.later(node, "fork", "__forked_function"),
            "prim::awaitable": lambda node: self.later(
                node, "awaitable", "__awaitable_function"
            ),
        }

    def function(self, name: str, schema: Schema | None, graph: Graph) -> str:
        parameters = graph.block.parameters
        if schema is not None and len(schema.arguments) == len(parameters):
            for value, argument in zip(parameters, schema.arguments, strict=True):
                self.texts[value] = self.names.take(argument.name)
            self.line(_header(name, schema, self.is_plain))
        else:
            typed = [
                f"{self.named(each)}: {type_text(each.type)}" for each in parameters
            ]
            self.line(f"def {name}({', '.join(typed)}):")
        self.body(graph.block)
        return "".join(f"{each}\n" for each in self.rows)

    def body(self, block: Block) -> None:
        """Write the block of a function, which returns its results."""
        with _Indented(self):
            self.nodes(block)
            texts = self.operands(block.exit, block.results)
            self.flush()
            texts = [*map(without_parentheses, texts)]
            result = texts[0] if len(texts) == 1 else tuple_text(texts)
            self.line(f"return {result}" if texts else "return None")

    def nodes(self, block: Block) -> None:
        for node in block:
            if node.kind == CONSTANT:
                text = expression(node, (), self.constants)
                if len(text) > WIDEST:
                    self.flush()
                    self.assign([node.output], text)
                else:
                    self.texts[node.output] = text
                continue
            write = self.statements.get(node.kind)
            if write is not None and node.kind not in FORMS.rows:
                write(node)
            else:
                self.node(node)

    # Lines and names

    def line(self, text: str) -> None:
        self.rows.append(f"{self.indent}{text}")

    def named(self, value: Value, hint: str = "") -> str:
        """Return a new variable for the value."""
        name = self.texts[value] = self.names.fresh(value.hint or hint)
        return name

    def assign(self, values: Sequence[Value], text: str) -> None:
        text = without_parentheses(text)
        names = [self.named(each) for each in values]
        self.line(f"{', '.join(names)} = {text}")

    # Expressions that wait

    def flush(self, keep: int = 0) -> None:
        """Write the pending expressions except the last `keep`."""
        waiting = list(self.pending.items())
        for value, text in waiting[: len(waiting) - keep]:
            del self.pending[value]
            if value.uses:
                self.assign([value], text)
            else:
                self.line(without_parentheses(text))

    def operands(
        self, node: Node, values: Sequence[Value], order: Sequence[int] | None = None
    ) -> list[str]:
        """Return the texts of values that are used now, evaluated in the order.

        The pending expressions among them must be the last ones, in the same order;
        otherwise they are first assigned to variables.
        """
        places = range(len(values)) if order is None else order
        used = [values[at] for at in places if values[at] in self.pending]
        if used and list(self.pending)[-len(used) :] != used:
            self.flush()
        texts: list[str] = []
        for value in values:
            text = self.pending.pop(value, None)
            texts.append(self.texts[value] if text is None else text)
        return texts

    def plain(self, values: Sequence[Value]) -> list[str]:
        """Return the texts of values; write other pending expressions first."""
        waiting = [each for each in values if each in self.pending]
        last = next(reversed(self.pending), None)
        if len(waiting) == 1 and waiting[0] is last:
            self.flush(keep=1)
            text = self.pending.pop(waiting[0])
            return [text if v is waiting[0] else self.texts[v] for v in values]
        self.flush()
        return [self.texts[each] for each in values]

    def node(self, node: Node) -> None:
        """Write a node that is one expression, or a primitive that is a statement."""
        spelt = spelling_of(node)
        if spelt is not None and spelt.statement:
            self.primitive_statement(node, spelt.way.pattern)
            return
        operands = self.operands(
            node, node.inputs, None if spelt is None else spelt.order
        )
        text = expression(node, operands, self.constants)
        outputs = node.outputs
        if len(outputs) == 1 and node.kind not in (
            "prim::TupleUnpack",
            "prim::ListUnpack",
        ):
            (value,) = outputs
            if len(value.uses) < 2 and len(text) <= WIDEST and self._is_near(value):
                self.pending[value] = text
                return
            self.flush()
            self.assign(outputs, text)
            return
        self.flush()
        if not outputs:
            self.line(without_parentheses(text))
            return
        names = [self.named(each) for each in outputs]
        left = f"{names[0]}," if len(names) == 1 else ", ".join(names)
        self.line(f"{left} = {text}")

    def _is_near(self, value: Value) -> bool:
        """Return True if the uses are in the same block, so that no loop repeats it."""
        return all(user.block is value.node.block for user, _ in value.uses)

    def primitive_statement(self, node: Node, pattern: str) -> None:
        self.flush()
        texts = [self.texts[each] for each in node.inputs]
        texts[0] = parenthesized(texts[0])
        gives = bool(node.outputs)
        if gives and not is_name(texts[0]):
            name = self.names.fresh("_0")
            self.line(f"{name} = {texts[0]}")
            texts[0] = name
        self.line(pattern.format(*texts))
        if gives:
            self.texts[node.output] = texts[0]

    # Statements

    def set_attribute(self, node: Node) -> None:
        owner, value = self.plain(node.inputs)
        name = node.attributes["name"]
        if is_name(name):
            value = without_parentheses(value)
            self.line(f"{parenthesized(owner)}.{name} = {value}")
        else:
            self.line(f"setattr({owner}, {name!a}, {value})")

    def raise_exception(self, node: Node) -> None:
        (message,) = self.plain(node.inputs)
        kind = node.attributes["class"]
        name = kind.removeprefix("builtins.")
        if is_name(name):
            self.line(f"raise {name}({without_parentheses(message)})")
        else:
            self.line(f"raise_exception({kind!a}, {message})")

    def ends(self, block: Block, names: Sequence[str], rest: Sequence[Value]) -> None:
        """Assign the values that a block ends with to variables, in one assignment."""
        if not rest:
            self.flush()
            return
        texts = self.operands(block.exit, rest)
        self.flush()
        assignments = zip(names, map(without_parentheses, texts), strict=True)
        pairs = [(name, text) for name, text in assignments if name != text]
        if pairs:
            left = ", ".join(name for name, _ in pairs)
            self.line(f"{left} = {', '.join(text for _, text in pairs)}")

    def branch(self, node: Node) -> None:
        (condition,) = self.plain(node.inputs)
        names = [self.names.fresh(each.hint) for each in node.outputs]
        for word, block in zip(
            (f"if {without_parentheses(condition)}:", "else:"), node.blocks, strict=True
        ):
            if word == "else:" and not names and next(iter(block), None) is None:
                continue
            self.line(word)
            with _Indented(self):
                self.nodes(block)
                self.ends(block, names, block.results)
        self.texts |= dict(zip(node.outputs, names, strict=True))

    def loop(self, node: Node) -> None:
        self.flush()
        trips, condition, *carried = node.inputs
        (body,) = node.blocks
        index, *parameters = body.parameters
        names = [self.named(each) for each in parameters]
        for name, value, parameter in zip(names, carried, parameters, strict=True):
            text = self.texts[value]
            if value.type is not parameter.type:
                text = f"annotate({type_text(parameter.type)}, {text})"
            self.line(f"{name} = {text}")
        again = body.results[0]
        counted = _is(trips, LONGEST)
        checked = not (_is(condition, True) and _is(again, True))
        if not checked:
            name = self.named(index, "i")
            count = "9223372036854775807" if counted else self.texts[trips]
            self.line(f"for {name} in range({count}):")
            with _Indented(self):
                self.nodes(body)
                self.ends(body, names, body.results[1:])
        else:
            self.while_loop(node, names, not counted or bool(index.uses))
        self.texts |= dict(zip(node.outputs, names, strict=True))

    def while_loop(self, node: Node, names: list[str], counts: bool) -> None:
        trips, condition, *_ = node.inputs
        (body,) = node.blocks
        test = self.names.fresh("go_on")
        self.line(f"{test} = {self.texts[condition]}")
        loop_test = test
        if counts:
            index = self.named(body.parameters[0], "i")
            self.line(f"{index} = 0")
            if not _is(trips, LONGEST):
                loop_test = f"{index} < {self.texts[trips]} and {test}"
        self.line(f"while {loop_test}:")
        with _Indented(self):
            self.nodes(body)
            self.ends(body, [test, *names], body.results)
            if counts:
                self.line(f"{index} = {index} + 1")

    def with_block(self, node: Node) -> None:
        (manager,) = self.plain(node.inputs)
        (body,) = node.blocks
        names = [self.names.fresh(each.hint) for each in node.outputs]
        (entered,) = body.parameters
        target = f" as {self.named(entered)}" if entered.uses else ""
        self.line(f"with {without_parentheses(manager)}{target}:")
        with _Indented(self):
            before = len(self.rows)
            self.nodes(body)
            self.ends(body, names, body.results)
            if len(self.rows) == before:
                self.line("pass")
        self.texts |= dict(zip(node.outputs, names, strict=True))

    def closure(self, node: Node) -> None:
        self.flush()
        name = self.named(node.output, "__closure")
        self.line(f"def {name}():")
        self.body(node.blocks[0])

    def later(self, node: Node, word: str, name: str) -> None:
        """Write the graph of a fork or an await as a function without parameters."""
        self.flush()
        graph: Graph = node.attributes["graph"]
        inner = self.names.fresh(name)
        pairs = zip(graph.block.parameters, node.inputs, strict=True)
        self.texts |= {parameter: self.texts[value] for parameter, value in pairs}
        self.line(f"def {inner}():")
        self.body(graph.block)
        self.assign([node.output], f"{word}({inner})")


# The number of trips of a loop without a count.
LONGEST = 2**63 - 1


def _is(value: Value, expected: object) -> bool:
    """Return True if a value is this constant."""
    node = value.node
    if node.kind != CONSTANT:
        return False
    constant = node.attributes.get("value")
    return constant.__class__ is expected.__class__ and constant == expected


class _Indented:
    """Indents the lines within; a block without lines has a `pass`."""

    __slots__ = ("before", "writer")

    def __init__(self, writer: _FunctionWriter) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        self.before = len(self.writer.rows)
        self.writer.indent += _INDENT

    def __exit__(self, *error: object) -> None:
        if len(self.writer.rows) == self.before:
            self.writer.line("pass")
        self.writer.indent = self.writer.indent[: -len(_INDENT)]
