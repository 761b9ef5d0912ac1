"""Errors of the stack of modes: modes that are entered, left, or asked for.

Who must act: whoever enters and leaves modes; all are `ModeStackError`.

Rules: modes are named by their classes, so that an error keeps none alive; `stack`
names those that are entered, outermost first.
"""

from dataclasses import dataclass

from runtime.errors.call import page
from runtime.errors.python_dispatch import PythonDispatchError


@dataclass(eq=False, kw_only=True)
class ModeStackError(PythonDispatchError, RuntimeError):
    """The stack of modes is not as it has to be."""

    stack: tuple[str, ...]

    def _page(self, problem: str, remedy: str = "") -> str:
        """What was found, the stack, and what to do."""
        rows = [("modes", ", ".join(self.stack) or "none are entered")]
        if remedy:
            rows.append(("to do", remedy))
        return page(problem, *rows)


@dataclass(eq=False, kw_only=True)
class ModeStackChanged(ModeStackError):
    """A handler entered or left modes and did not put them back; they are put back.

    `left` are those that it left, outermost first.
    """

    handler: str
    left: tuple[str, ...]

    def render(self) -> str:
        """The handler, and both stacks."""
        return self._page(
            f"`{self.handler}` left other modes than it was called with, "
            f"{', '.join(self.left) or 'none'}; they are as before again.",
            "enter modes by `with`",
        )


@dataclass(eq=False, kw_only=True)
class EmptyModeStack(ModeStackError):
    """No mode is entered, and one was to be left: `mode`; "" if one was asked for."""

    mode: str = ""

    def render(self) -> str:
        """What was asked for."""
        if self.mode:
            return self._page(
                f"{self.mode} is left, and no mode is entered in this thread."
            )
        return self._page("The innermost mode was asked for, and no mode is entered.")


@dataclass(eq=False, kw_only=True)
class NoModeAtPlace(ModeStackError):
    """There are fewer modes than the place that was asked for."""

    place: int

    def render(self) -> str:
        """The place, and how many there are."""
        return self._page(
            f"There is no mode at place {self.place} of {len(self.stack)}."
        )


@dataclass(eq=False, kw_only=True)
class ModeNotInnermost(ModeStackError):
    """A mode is left that is not the innermost one, or was not entered here."""

    mode: str

    def render(self) -> str:
        """The mode, and the innermost one."""
        return self._page(
            f"{self.mode} is left, but {self.stack[-1]} is the innermost mode.",
            "leave modes in the reverse of the order they were entered in, in the "
            "thread that entered them",
        )


@dataclass(eq=False, kw_only=True)
class ModeNotEntered(ModeNotInnermost):
    """A mode is left, wherever it stands, and it stands nowhere."""

    def render(self) -> str:
        """The mode."""
        return self._page(
            f"{self.mode} is left, and it is not entered in this thread.",
            "leave it once for each time that it was entered",
        )


@dataclass(eq=False, kw_only=True)
class ModeSlotTaken(ModeStackError):
    """There is one place for an infra mode of that kind, and `holder` has it."""

    mode: str
    place: str
    holder: str

    def render(self) -> str:
        """Both modes, and the place."""
        return self._page(
            f"{self.mode} is entered, but the place {self.place} is that of "
            f"{self.holder}.",
            "leave the other one first",
        )


@dataclass(eq=False, kw_only=True)
class NoModeSlot(ModeStackError):
    """A mode wants a place for infra modes that is not one of `known`."""

    mode: str
    place: str
    known: tuple[str, ...]

    def render(self) -> str:
        """The mode, and the places that there are."""
        return self._page(
            f"{self.mode} is entered, and there is no place {self.place} for infra "
            "modes.",
            f"let `infra` be None, {', '.join(self.known[:-1])} or {self.known[-1]}",
        )


@dataclass(eq=False, kw_only=True)
class PutAsideElsewhere(ModeStackError):
    """Modes were put aside in another thread than the one that wants them back."""

    def render(self) -> str:
        """What was found, and who may do so."""
        return self._page(
            "Modes were put aside in another thread than the one that wants them back.",
            "leave what puts modes aside in the thread that entered it",
        )
