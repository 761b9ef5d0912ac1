"""The modules of the zoo, compiled here and by torch: the same results."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime.jit import script
from tests.script.modules import zoo
from tests.script.modules.zoo import ZOO

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

# What the zoo imports of the runtime, and where torch has it.
IMPORTS = {
    "from everyorder import runtime\n": "import torch as runtime\n",
    "from everyorder.runtime import (\n": (
        "from torch import Tensor\n"
        "def Parameter(x):\n"
        "    return runtime.nn.Parameter(runtime.tensor(x))\n"
        "from torch.nn import (\n"
    ),
    "    Parameter,\n    Sequential,\n    Tensor,\n": "    Sequential,\n",
    "from everyorder.runtime.jit": "from torch.jit",
    "from everyorder.runtime.script.ir.program import export, ignore, unused": (
        "from torch.jit import export, ignore, unused"
    ),
}
# What torch 2.13 does not take of the zoo: setters of properties, hooks whose `self`
# has no type, calls of modules out of a slice, `named_parameters`, `super()` twice.
NOT_OF_TORCH = {"methods", "hooked", "lists", "walking", "above"}


@pytest.fixture(scope="module")
def zoo_of_torch(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    text = Path(zoo.__file__).read_text(encoding="utf-8")
    for ours, theirs in IMPORTS.items():
        assert ours in text
        text = text.replace(ours, theirs)
    path = tmp_path_factory.mktemp("torch") / "zoo_of_torch.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("zoo_of_torch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["zoo_of_torch"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["zoo_of_torch"]


def shown(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", sorted({*ZOO} - NOT_OF_TORCH))
def test_the_same_results(name: str, zoo_of_torch: Any) -> None:
    import torch

    ours, theirs = ZOO[name], zoo_of_torch.ZOO[name]
    one, other = script(ours.make()), torch.jit.script(theirs.make())
    for left, right in zip(ours.calls, theirs.calls, strict=True):
        assert shown(one(*left)) == shown(other(*right))
    assert [*one.state_dict()] == [*other.state_dict()]
