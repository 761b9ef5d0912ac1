"""The sequences of operators that are written down are those of the real torch."""

import pytest

from tests.torch_dispatch.everyday import calls, sequence
from tests.torch_dispatch.sequences import SEQUENCES

pytestmark = pytest.mark.torch


def test_modes_of_torch_see_what_is_written_down() -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):  # type: ignore[misc]  # it need not be installed
        """Lists the operators of its calls."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    found = {}
    for name, call in calls(torch, torch.nn.functional).items():
        with Log() as log:
            call()
        found[name] = sequence(name, log.seen)
    assert found == SEQUENCES
