"""Objects of programs: a class with an attribute, methods, and what `with` needs."""

from everyorder.runtime.schema.declared import Namespace, ScriptClassType
from everyorder.runtime.schema.types import IntType
from everyorder.runtime.script.ir.program import declare_objects
from tests.script.executor.written import written


class Counter:
    """An object of programs."""

    count: int

    def __enter__(self) -> int:
        raise AssertionError("programs run what was compiled")

    def __exit__(self, *_: object) -> None:
        raise AssertionError("programs run what was compiled")


def counter(namespace: Namespace) -> ScriptClassType:
    """The type of counters: an attribute, methods, what `with` needs."""
    declared = namespace.declare(ScriptClassType, "__torch__.c.Counter", Counter)
    declaration = declared.declaration
    declaration.add_attribute("count", IntType)
    declare_objects(Counter, declared)
    kind = "__torch__.c.Counter"
    for text, lines in (
        (
            "add(int n) -> int",
            """\
  %a : int = prim::GetAttr[name="count"](%self)
  %b : int = script::add.int(%a, %n)
  prim::SetAttr[name="count"](%self, %b)
  return (%b)
""",
        ),
        (
            "__enter__() -> int",
            '  %a : int = prim::GetAttr[name="count"](%self)\n  return (%a)\n',
        ),
        (
            "__exit__(Any kind, Any error, Any traceback) -> bool",
            """\
  %a : int = prim::GetAttr[name="count"](%self)
  %one : int = prim::Constant[value=1]()
  %b : int = script::add.int(%a, %one)
  prim::SetAttr[name="count"](%self, %b)
  %ten : int = prim::Constant[value=10]()
  %swallows : bool = script::gt.int(%a, %ten)
  return (%swallows)
""",
        ),
    ):
        name = text.partition("(")[0]
        head = text.replace("(", f"({kind} self, ", 1).replace(", )", ")")
        function = written(head, lines, namespace=namespace)
        declaration.add_method(name, function.schema)
        declaration.functions[name] = function
    return declared
