"""Reading one element of a tensor that is handled."""

from typing import Any

import pytest

import runtime
from runtime import python_dispatch
from runtime.errors.python_dispatch import WrongHandlerResult
from runtime.hooks import ELEMENT

tensors: Any = runtime.Tensor

READ: tuple[Any, ...] = (
    *(lambda x: x.item(), bool, int, float, complex),
    lambda x: [1, 2, 3, 4][x],
)


class Wrapped(runtime.Tensor):
    inside: Any
    heard: Any

    @staticmethod
    def __new__(cls: Any, inside: Any) -> Any:
        made = tensors._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)
        made.inside, made.heard = inside, []
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args[0].heard.append(str(func))
        return func(*[x.inside if isinstance(x, Wrapped) else x for x in args])


@pytest.mark.parametrize("read", READ)
def test_the_handler_reads(read: Any) -> None:
    """7.3: what would read an element is an operator for who is handled."""
    x = Wrapped(runtime.tensor(3))
    plain = read(runtime.tensor(3))
    found = read(x)
    assert (type(found), found) == (type(plain), plain)
    assert x.heard == ["core._local_scalar.default"]


def test_in_if_and_while() -> None:
    """7.3: data-dependent code is heard."""
    x = Wrapped(runtime.tensor(0.0))
    assert not x
    assert x.heard == ["core._local_scalar.default"]


def test_what_a_handler_reads_wrongly() -> None:
    """5.7: an element is a number."""

    class Wrong(Wrapped):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "three"

    with pytest.raises(WrongHandlerResult) as caught:
        Wrong(runtime.tensor(3)).item()
    assert caught.value.problem == "a str 'three'; `Scalar` belongs there"


def test_a_mode_reads() -> None:
    """7.6: modes hear it of plain tensors."""

    class Four(python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return 4

    x = runtime.tensor([3])
    with Four():
        assert x.item() == 4
        with python_dispatch.no_dispatch():
            assert x.item() == 3
    assert x.item() == 3


def test_tensors_without_a_handler_are_read_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No cost for plain tensors: no operator is called."""
    heard: list[object] = []
    monkeypatch.setattr(ELEMENT, "answer", heard.append)
    assert runtime.tensor([3]).item() == 3
    assert heard == []
