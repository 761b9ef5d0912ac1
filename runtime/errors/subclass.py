"""Errors of classes of tensors: wrappers taken apart, views of them, their elements.

Who must act: the author of the class (`WrapperError` and its leaves), the author of an
operator (`AliasError`), or whoever replaces the elements of a tensor (`DoesNotFit`).

Rules: classes and tensors are named by text, so that an error keeps nothing alive.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class WrapperError(EveryorderError, TypeError):
    """A class of wrappers does not keep its side of the protocol; `cls` names it."""

    cls: str


@dataclass(eq=False, kw_only=True)
class NotAWrapper(WrapperError):
    """The class lacks `missing`, a method by which wrappers are taken apart."""

    missing: tuple[str, ...]

    def render(self) -> str:
        """The class, what it lacks, and what that returns."""
        return page(
            f"A `{self.cls}` cannot be taken apart: it has no "
            f"{' and no '.join(f'`{name}`' for name in self.missing)}.",
            (
                "to do",
                "define `__tensor_flatten__(self)`, which returns the names of its "
                "tensors and a context, and the static method "
                "`__tensor_unflatten__(tensors, context, size, strides)`",
            ),
        )


@dataclass(eq=False, kw_only=True)
class WrongParts(WrapperError):
    """`__tensor_flatten__` returned something else than names and a context."""

    found: str

    def render(self) -> str:
        """The class and what it returned."""
        return page(
            f"`{self.cls}.__tensor_flatten__()` gave {self.found}; it is to return a "
            "pair: the names of the attributes that hold its tensors, and a context.",
        )


@dataclass(eq=False, kw_only=True)
class WrongWhole(WrapperError):
    """`__tensor_unflatten__` made something else than was taken apart."""

    expected: str
    found: str

    def render(self) -> str:
        """The class, what belongs there, and what it made."""
        return page(
            f"`{self.cls}.__tensor_unflatten__(...)` gave {self.found}; it is to "
            f"return {self.expected}, as was taken apart.",
        )


@dataclass(eq=False, kw_only=True)
class WrongTensorCount(WrapperError, ValueError):
    """A wrapper is put together from another number of tensors than it came apart."""

    expected: int
    found: int

    def render(self) -> str:
        """The class and both numbers."""
        return page(
            f"A `{self.cls}` is made of {self.expected} tensors, and {self.found} were "
            "given.",
        )


@dataclass(eq=False, kw_only=True)
class UnsupportedForWrappers(WrapperError, ValueError):
    """A wrapper was to be made in a way that there is no wrapper of."""

    option: str
    found: str
    fits: str

    def render(self) -> str:
        """The class, the option, and what it may be."""
        return page(
            f"A `{self.cls}` cannot be made with {self.option}={self.found}: it has no "
            "elements.",
            ("fits", self.fits),
        )


@dataclass(eq=False, kw_only=True)
class AliasError(EveryorderError, RuntimeError):
    """What a call returned cannot be made to share what its schema says."""

    operator: str


@dataclass(eq=False, kw_only=True)
class WrapperOfAnotherClass(AliasError, TypeError):
    """A view of a wrapper is to be one of the same class, and is of another."""

    argument: str
    expected: str
    found: str

    def render(self) -> str:
        """The operator, and both classes."""
        return page(
            f"A result of `{self.operator}` shows `{self.argument}`, which is a "
            f"`{self.expected}`, and is a `{self.found}`: only wrappers of one class "
            "can share a storage.",
            ("to do", f"wrap the result in a `{self.expected}`"),
        )


@dataclass(eq=False, kw_only=True)
class WrongResultCount(AliasError, TypeError):
    """There are more or fewer results than the operator has."""

    expected: int
    found: str

    def render(self) -> str:
        """The operator and both numbers."""
        return page(
            f"`{self.operator}` returns {self.expected} values, and what was to be "
            f"corrected is {self.found}.",
        )


@dataclass(eq=False, kw_only=True)
class UnsupportedAliases(AliasError):
    """Nobody knows how to correct the results of such a schema."""

    reason: str
    schema: str

    def render(self) -> str:
        """The operator, what is special, and its schema."""
        return page(
            f"The results of `{self.operator}` cannot be corrected: {self.reason}.",
            ("schema", self.schema),
            ("to do", "let the handler itself return what its schema says"),
        )


@dataclass(eq=False, kw_only=True)
class DoesNotFit(EveryorderError, ValueError):
    """A tensor cannot take the elements of another one.

    `asked` is the call, `what` is different between the two.
    """

    asked: str
    what: str
    expected: str
    found: str

    def render(self) -> str:
        """What was asked, and what is different."""
        return page(
            f"`{self.asked}` was given a tensor that does not fit.",
            (self.what, f"{self.expected} here, {self.found} there"),
        )


@dataclass(eq=False, kw_only=True)
class NotReplaceable(EveryorderError, RuntimeError):
    """The elements of a tensor are not its own alone to replace; `reason` says why."""

    asked: str
    reason: str
    remedy: str

    def render(self) -> str:
        """What was asked, why not, and what to do."""
        return page(
            f"`{self.asked}` is refused: {self.reason}.", ("to do", self.remedy)
        )
