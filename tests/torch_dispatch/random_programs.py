"""Random programs of calls, modes, handlers and exceptions, and what plays them.

True only here: an act is a tuple, `("call", 0)`; a program is a list of acts.  After
every act the player looks whether the thread is as it was before.

| act                        | what happens                                            |
|----------------------------|---------------------------------------------------------|
| `("call", kind)`           | the operator, on a plain tensor, or one of two classes  |
| `("with", name, acts)`     | inside of a new mode, of no modes, of no dispatch, ...  |
| `("raise", number)`        | an exception, one of `ERRORS`                           |
| `("try", acts)`            | what is raised inside ends here                         |
"""

from typing import Any

from hypothesis import strategies as st

from everyorder.runtime import python_dispatch
from everyorder.runtime.errors.torch_dispatch import PythonDispatchError
from everyorder.runtime.torch_dispatch.context import Context
from tests.torch_dispatch.thread_state import Look
from tests.torch_dispatch.worlds import Ours

ERRORS = (KeyError, KeyboardInterrupt, GeneratorExit, RecursionError)
# What a handler does after its acts.
ENDS = (
    "run",
    "decline",
    "wrong",
    "leaves one entered",
    "leaves one",
    "raise",
    "enters",
)
WITHS = ("mode", "the same", "aside", "but one", "no dispatch", "reentrant", "context")
# Calls of one program: handlers call, and their handlers call.
MOST = 60

Act = tuple[Any, ...]

_leaves = st.one_of(
    st.tuples(st.just("call"), st.integers(0, 2)),
    st.tuples(st.just("raise"), st.integers(0, len(ERRORS) - 1)),
)
acts: st.SearchStrategy[list[Act]] = st.recursive(
    st.lists(_leaves, max_size=3),
    lambda inner: st.lists(
        st.one_of(
            _leaves,
            st.tuples(st.just("with"), st.sampled_from(WITHS), inner),
            st.tuples(st.just("try"), inner),
        ),
        max_size=4,
    ),
    max_leaves=8,
)
# What the handlers of modes and of both classes do: acts, and an end.
handlers = st.tuples(*[st.tuples(acts, st.sampled_from(ENDS))] * 3)


class Player:
    """Plays programs in a world of its own; `changed` names acts that left a trace."""

    def __init__(
        self, world: Ours, does: tuple[tuple[list[Act], str], ...], name: str = "f"
    ) -> None:
        self.world = world
        self.does = does
        self.left = MOST
        self.changed: list[Act] = []
        self.played = 0
        self.other, self.entered = Context("other"), 0
        self.op = world.operator(
            f"{name}(Tensor x) -> Tensor", lambda x: world.tensor(2.0)
        )
        self.mode = world.mode("M", self.answer(0))
        first = world.subclass("A", answer=self.answer(1))
        second = world.subclass("B", first, answer=self.answer(2))
        self.tensors = world.tensor(1.0), world.made(first), world.made(second)

    def play(self, program: list[Act]) -> None:
        for act in program:
            before = Look()
            try:
                self.act(act)
            finally:
                self.played += 1
                if not before.unchanged(act[0] == "with"):
                    self.changed.append(act)

    def close(self) -> None:
        """Leave what handlers have left entered."""
        for _ in range(self.entered):
            self.other.__exit__()
        self.other.close()

    def act(self, act: Act) -> None:
        kind, *rest = act
        if kind == "raise":
            raise ERRORS[rest[0]]
        if kind == "call":
            if self.left > 0:
                self.left -= 1
                self.op(self.tensors[rest[0]])
        elif kind == "try":
            try:
                self.play(rest[0])
            except BaseException as error:
                assert not isinstance(error, AssertionError), error  # noqa: PT017
        else:
            with self.context(rest[0]):
                self.play(rest[1])

    def context(self, name: str) -> Any:
        if name == "mode":
            return self.world.mode("N", self.answer(0))
        made: dict[str, Any] = {
            "the same": lambda: self.mode,
            "aside": python_dispatch.disable_current_modes,
            "but one": python_dispatch.pop_mode_temporarily,
            "no dispatch": python_dispatch.no_dispatch,
            "reentrant": python_dispatch.enable_reentrant_dispatch,
            "context": lambda: self.other,
        }
        return made[name]()

    def answer(self, number: int) -> Any:
        def answered(
            world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
        ) -> Any:
            todo, end = self.does[number]
            self.play(todo)
            if end == "decline":
                return NotImplemented
            if end == "wrong":
                return "no tensor"
            if end == "raise":
                raise KeyError
            if end == "leaves one entered":
                self.mode.__enter__()
            elif end == "enters":
                self.other.__enter__()
                self.entered += 1
            elif end == "leaves one":
                for mode in python_dispatch.current_modes()[-1:]:
                    mode.__exit__()
            if number:
                with python_dispatch.no_dispatch():
                    return func(*args)
            return func(*args)

        return answered


EXPECTED = (*ERRORS, PythonDispatchError)
