"""Shapes of modules: what each attribute is, and which modules share a type."""

# Annotations for scripts.
# mypy: disable-error-code="misc, assignment"

import gc
import math
from typing import Any, Final
from weakref import ref

import pytest

from everyorder import runtime
from everyorder.runtime import Module, ModuleList, Parameter
from everyorder.runtime.errors import NotScriptable
from everyorder.runtime.script.ir.program import Attribute, Program, interface
from everyorder.runtime.script.modules import Shaping, discard, shape_of

NAME = "__torch__.tests.script.modules.test_module_shape."


class Leaf(Module):
    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.w = Parameter([value])


@interface
class Doubles:
    def forward(self, x: Any) -> Any:
        pass


class Net(Module):
    __constants__ = ("pair",)
    __jit_ignored_attributes__ = ("secret",)

    names: list[str]
    size: "int | None"
    limit: Final[int]
    factor: "Final"
    strange: "Nowhere"  # type: ignore[name-defined]  # noqa: F821  # it means nothing
    wrong: int

    def __init__(self) -> None:
        super().__init__()
        self.leaf = Leaf()
        self.rest = ModuleList([Leaf(2.0), self.leaf])
        self.gone = None
        self.register_module("none", None)
        self.register_buffer("seen", runtime.tensor([0]))
        self.register_buffer("spare", None)
        self.names = []
        self.size = None
        self.limit = 3
        self.factor = 2.5
        self.pair = (1, "a")
        self.table = Attribute({}, dict[str, int])
        self.one = 1
        self.several = {1, 2}
        self.empty: list[int] = []
        self.strange = 1
        self.wrong = "a"
        self.sqrt = math.sqrt
        self.secret = object()
        self.code = "c"


def looked(module: Module, program: Program | None = None) -> tuple[Any, Any]:
    return Shaping(Program() if program is None else program).shape(module)


def test_a_program_with_modules_is_let_go() -> None:
    program = Program()
    looked(Leaf(), program)
    gone = ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_what_each_attribute_is() -> None:
    shape, facts = looked(Net())
    attributes = {name: str(of) for name, of in facts.attributes.items()}
    assert attributes == {
        "seen": "Tensor",
        "spare": "NoneType",
        "leaf": f"{NAME}Leaf",
        "rest": "__torch__.everyorder.runtime.nn.containers.ModuleList",
        "none": "NoneType",
        "training": "bool",
        "gone": "NoneType",
        "names": "str[]",
        "size": "int?",
        "table": "Dict(str, int)",
        "one": "int",
    }
    assert dict(shape.type.declaration.attributes) == facts.attributes
    assert shape.roles == {"seen": "buffer", "spare": "buffer"}
    assert shape.submodules == ("leaf", "rest")
    assert shape.constants == {"pair": (1, "a"), "limit": 3, "factor": 2.5}
    assert shape.functions == {"sqrt": math.sqrt}
    assert shape.failures == {
        "several": "a set is not a value of a program",
        "empty": "an empty list does not say of what",
        "strange": "its annotation: `Nowhere` is not defined here",
        "wrong": "it is of type int, and is a str",
        "code": "compiled modules have something else of this name",
    }
    assert shape_of(shape.type) is shape


def test_equal_modules_share_a_type() -> None:
    program = Program()
    one, _ = looked(Net(), program)
    two, _ = looked(Net(), program)
    assert one is two
    leaf, _ = looked(Leaf(5.0), program)
    assert one.type.declaration.attributes["leaf"] is leaf.type


def changed(name: str, value: Any) -> Module:
    module = Net()
    setattr(module, name, value)
    return module


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", 4),
        ("limit", 3.0),
        ("pair", (1, "b")),
        ("size", 3),
        ("one", True),
        ("sqrt", math.cos),
        ("extra", 1),
        ("several", object()),
        ("leaf", ModuleList()),
        ("spare", runtime.ones(1)),
    ],
)
def test_others_do_not(name: str, value: Any) -> None:
    program = Program()
    one, _ = looked(Net(), program)
    two, _ = looked(changed(name, value), program)
    # An annotated attribute has its type, whatever its value is.
    assert (one is two) == (name == "size")


def test_hooks_make_another_type() -> None:
    program, module = Program(), Leaf()
    one, _ = looked(Leaf(), program)
    module.register_forward_hook(math.hypot)
    two, _ = looked(module, program)
    assert (one.behind, two.behind, one is two) == ((), (math.hypot,), False)
    assert str(two.type) == f"{NAME[:-1]}.___torch_mangle_0.Leaf"


def test_an_interface() -> None:
    class Holder(Module):
        leaf: Doubles

        def __init__(self) -> None:
            super().__init__()
            self.leaf = Leaf()

        def forward(self) -> None:
            _ = Doubles

    shape, _ = looked(Holder())
    # Nobody has declared the interface.
    assert "leaf" in shape.type.declaration.attributes


def test_a_module_within_itself() -> None:
    module = Net()
    module.rest.append(module)
    with pytest.raises(NotScriptable) as caught:
        looked(module)
    assert str(caught.value) == (
        "a `Net` is not for scripts: it is a module within itself."
    )


def test_discarding() -> None:
    program = Program()
    one, _ = looked(Leaf(), program)
    discard(Leaf, program)
    assert program.namespace.find(str(one.type)) is None
    assert shape_of(one.type) is None
    two, _ = looked(Leaf(), program)
    assert (one is two, str(one.type) == str(two.type)) == (False, True)
