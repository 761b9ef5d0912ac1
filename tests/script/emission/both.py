"""Running one text as Python and as a program: what both give is compared."""

import contextlib
import copy
import io
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

from everyorder import runtime
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import check
from everyorder.runtime.script.ir.program import Program

NAMES: dict[str, Any] = {
    "math": math,
    "runtime": runtime,
    "Tensor": runtime.Tensor,
    "warnings": warnings,
}


@dataclass(frozen=True)
class Outcome:
    """What a call does: its value, what it prints, its arguments afterwards."""

    value: str
    output: str
    arguments: str
    error: str


class Both:
    """The functions of a text, as Python's and as those of a program."""

    def __init__(self, text: str, names: dict[str, Any] | None = None) -> None:
        given = {**NAMES, **(names or {})}
        self.python: dict[str, Any] = dict(given)
        exec(compile(text, "<both>", "exec"), self.python)  # tests' own text
        functions = compile_text(text, Program(), given)
        self.script = {each.name: each for each in functions}
        for each in functions:
            check(each.graph)

    def outcomes(self, name: str, *arguments: Any) -> tuple[Outcome, Outcome]:
        """What Python does, and what the program does.

        Of an exception of which the words are ours, the class counts.
        """
        script = self.script[name]
        python = outcome(self.python[name], arguments)
        ours = outcome(lambda *given: call(script, given, {}), arguments)
        if ours.error.endswith(": "):
            python = replace(python, error=f"{python.error.partition(':')[0]}: ")
        return python, ours


def outcome(function: Any, arguments: Any) -> Outcome:
    """What a call does, in texts that can be compared."""
    given = copy.deepcopy(arguments)
    output, value, error = io.StringIO(), None, ""
    with contextlib.redirect_stdout(output):
        try:
            value = function(*given)
        except Exception as caught:
            error = f"{kind(caught)}: {words(caught)}"
    return Outcome(shown(value), output.getvalue(), shown(given), error)


def kind(error: Exception) -> str:
    """The builtin class of an exception."""
    for each in type(error).__mro__:
        if each.__module__ == "builtins":
            return each.__name__
    return code_of(error)


def words(error: Exception) -> str:
    """What an exception says, where that is Python's own."""
    return (
        "" if type(error).__module__.startswith("everyorder.runtime.") else str(error)
    )


def shown(value: Any) -> str:
    """A value with its types."""
    if isinstance(value, runtime.Tensor):
        return f"{value.dtype}{value.tolist()}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if type(value) is dict:
        pairs = (f"{shown(k)}: {shown(v)}" for k, v in value.items())
        return f"dict({', '.join(pairs)})"
    return f"{type(value).__name__} {value!r}"
