"""Scenarios as Python code that builds the same scenario.

Steps and uses of a dispatcher have a text that is code already.  Of all other steps the
functions are printed: by the name under which their module has them, or, for a lambda,
as its source.

Rules:
- code is printed only if it means the same elsewhere: a function or value without an
  importable name is refused (`NotAScenario`), and so is a lambda that uses local
  variables of the function around it;
- what the functions `step` and `use` cannot set is printed as `replace(step, ...)`;
- names of `__main__` are not imported: the code is for the same file.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from inspect import getsource
from math import isfinite
from textwrap import indent
from types import FunctionType
from typing import Any

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.step import Step, UseStep, call_of, performance_of

# Fields of a step that `step` sets from its argument of the same name.
_RELATIONS = ("requires", "after", "excludes", "ends")
_MARKS = ("again", "may_refuse", "constant")
# Characters of a call in one line; it is indented by 4 or 8.
LONGEST = 76
# Names of values that are neither functions nor classes, with the module that has them.
_VALUES = {"fallthrough": ("everyorder", "runtime")}


class Code:
    """Writes expressions, and collects the imports that they need."""

    def __init__(self) -> None:
        self._imports: dict[str, set[str]] = {}

    def program(self, assigned: str) -> str:
        """Return the imports and a statement."""
        lines = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]
        return "\n".join([*lines, "", assigned])

    def scenario(
        self,
        steps: Iterable[Step],
        uses: Iterable[UseStep],
        given: Iterable[Step],
        options: Mapping[str, Any],
    ) -> str:
        """Return the call of `Scenario`."""
        self._add("everyorder", "Scenario")
        lines = [self.step(each) for each in steps]
        for name, operations in (
            ("uses", [self.use(each) for each in uses]),
            ("given", [self.step(each) for each in given]),
        ):
            if operations:
                lines.append(f"{name}={_block('[', operations, ']')}")
        lines += [f"{name}={self.value(value)}" for name, value in options.items()]
        return _block("Scenario(", lines, ")")

    def step(self, step: Step) -> str:
        """Return the expression of a step."""
        performance = performance_of(step)
        if performance is None:
            # `replace` sets the relations, which are not arguments of these functions.
            text = self._text(step.text, step.named)
            return self._replaced(text, step, (*_RELATIONS, *_MARKS))
        arguments = [repr(step.text), self.function(performance.do)]
        if performance.undo is None:
            arguments.append("undo=None")
        elif performance.undo is not ...:
            arguments.append(f"undo={self.function(performance.undo)}")
        arguments += self._options(step, ("raises", *_RELATIONS, *_MARKS))
        self._add("everyorder", "step")
        text = _call("step", arguments)
        names = ("symmetry", "parameter_texts") if step.symmetry else ()
        return self._replaced(text, step, names)

    def use(self, use: UseStep) -> str:
        """Return the expression of a use."""
        if use.owner == "dispatcher":
            return self._text(use.text, ())
        arguments = [repr(use.text), self.function(use.perform)]
        names = ("raises", "constant", "unordered", "ends")
        arguments += self._options(use, names)
        self._add("everyorder", "use")
        return _call("use", arguments)

    def _options(self, operation: Step | UseStep, names: Iterable[str]) -> list[str]:
        pairs = [(name, getattr(operation, name)) for name in names]
        return [f"{name}={self.value(value)}" for name, value in pairs if value]

    def _replaced(self, text: str, step: Step, names: Iterable[str]) -> str:
        options = self._options(step, names)
        if not options:
            return text
        self._add("dataclasses", "replace")
        return _call("replace", [text, *options])

    def _text(self, text: str, functions: Iterable[Callable[..., Any]]) -> str:
        """Return a text that is code, with its names imported."""
        import everyorder

        public = everyorder.__getattr__("__all__")
        functions_by_name = {each.__name__: each for each in functions}
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            raise _refused(f"the step {text!r}, which is not code") from None
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name):
                continue
            if node.id in functions_by_name:
                self.function(functions_by_name[node.id])
            elif node.id in _VALUES:
                self._add(".".join(_VALUES[node.id]), node.id)
            elif node.id in public:
                self._add("everyorder", node.id)
            else:
                raise _refused(f"{node.id!r} in {text!r}, whose module is unknown")
        return text

    def function(self, function: Callable[..., Any]) -> str:
        """Return the expression of a function."""
        applied_call = call_of(function)
        if applied_call is not None:
            called_function, values, has_result = applied_call
            # A variable of this name hides no function that is called.
            names = ("registry", *(("result",) if has_result else ()))
            arguments = ["registry", *map(self.value, values), *names[1:]]
            text = self.function(called_function)
            text = f"({text})" if text.startswith("lambda") else text
            return f"lambda {', '.join(names)}: {text}({', '.join(arguments)})"
        if isinstance(function, partial):
            options = [f"{k}={self.value(v)}" for k, v in function.keywords.items()]
            parts = [self.function(function.func), *map(self.value, function.args)]
            self._add("functools", "partial")
            return f"partial({', '.join([*parts, *options])})"
        if isinstance(function, FunctionType) and function.__name__ == "<lambda>":
            return self._lambda(function)
        return self._named(function)

    def _named(self, value: Any) -> str:
        """Return the name of a function or class, and import it."""
        owner = getattr(value, "__objclass__", None)
        module = getattr(owner or value, "__module__", None)
        name = getattr(value, "__qualname__", "")
        if owner is not None:
            name = f"{owner.__qualname__}.{value.__name__}"
        value_of_name: Any = sys.modules.get(module or "")
        for part in name.split("."):
            value_of_name = getattr(value_of_name, part, None)
        if value_of_name is not value or module is None:
            raise _refused(f"the function {name or value!r}, which no module has")
        self._add(module, name.partition(".")[0])
        return str(name)

    def _lambda(self, function: FunctionType) -> str:
        """Return the source of a lambda, and import the names that it uses."""
        where = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        if function.__code__.co_freevars:
            names = ", ".join(function.__code__.co_freevars)
            raise _refused(f"the lambda of {where}, which uses the local {names}")
        sources = {ast.unparse(node) for node in _lambdas(function)}
        if len(sources) != 1:
            raise _refused(f"the lambda of {where}, whose source cannot be found")
        (text,) = sources
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name) and node.id in function.__globals__:
                self._add(function.__globals__.get("__name__", "__main__"), node.id)
        return text

    def value(self, value: Any) -> str:
        """Return the expression of a value."""
        kind = type(value)
        if value is None or value is ... or kind in (bool, int, str, bytes, complex):
            return repr(value)
        if kind is float:
            return repr(value) if isfinite(value) else f"float({str(value)!r})"
        if kind in (list, set, frozenset, tuple):
            return self._several(value)
        if kind is dict:
            pairs = [f"{self.value(k)}: {self.value(v)}" for k, v in value.items()]
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, Enum):
            return f"{self._named(kind)}.{value.name}"
        if is_dataclass(value) and not isinstance(value, type):
            init_fields = [each for each in fields(value) if each.init]
            parts = [
                f"{e.name}={self.value(getattr(value, e.name))}" for e in init_fields
            ]
            return f"{self._named(kind)}({', '.join(parts)})"
        if callable(value):
            return self.function(value)
        raise _refused(f"the value {value!r}, which is not named")

    def _several(self, values: Any) -> str:
        parts = [self.value(each) for each in values]
        if isinstance(values, list):
            return f"[{', '.join(parts)}]"
        if isinstance(values, tuple):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        text = "{" + ", ".join(sorted(parts)) + "}" if parts else "set()"
        return f"frozenset({text})" if isinstance(values, frozenset) else text

    def _add(self, module: str, name: str) -> None:
        if module not in ("builtins", "__main__"):
            self._imports.setdefault(module, set()).add(name)


def _call(name: str, arguments: list[str]) -> str:
    """Return a call, with a line for each argument if it is long."""
    text = f"{name}({', '.join(arguments)})"
    is_long = len(text) > LONGEST or "\n" in text
    return _block(f"{name}(", arguments, ")") if is_long else text


def _block(begin: str, parts: Iterable[str], end: str) -> str:
    return "\n".join([begin, *(indent(f"{each},", "    ") for each in parts), end])


def _lambdas(function: FunctionType) -> list[ast.Lambda]:
    """Return the lambdas in the source of the line that have the code of this one."""
    code = function.__code__
    file = sys.modules.get(function.__module__)
    try:
        tree = ast.parse(getsource(file) if file is not None else "")
    except (OSError, TypeError, SyntaxError):
        return []
    lambdas = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
    ]
    if len(lambdas) == 1:
        return lambdas
    places = [each for each in code.co_positions() if None not in each]
    return [
        node
        for node in lambdas
        if any(
            place
            == (
                node.body.lineno,
                node.body.end_lineno,
                node.body.col_offset,
                node.body.end_col_offset,
            )
            for place in places
        )
    ]


def _refused(found: str) -> NotAScenario:
    return NotAScenario(
        found=f"{found}, in code",
        wanted="functions, classes and values of a module, or lambdas without local "
        "variables",
    )
