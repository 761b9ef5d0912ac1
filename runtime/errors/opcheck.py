"""Errors of `opcheck`: what an operator does and its registrations do not say.

Who must act: the author of the operator (`OpCheckError` and its leaves), or whoever
asked for the check (`OpCheckMisuse`).

Rules: `right` is the schema line that would be true of what was seen; it is empty where
no schema line would help, and then the text says what would.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page

Rows = tuple[tuple[str, str], ...]


@dataclass(eq=False, kw_only=True)
class OpCheckMisuse(EveryorderError, ValueError):
    """`opcheck` was asked for something that it cannot check."""

    asked: str
    fault: str
    fits: str

    def render(self) -> str:
        """What was asked, what is wrong, and what would do."""
        return page(f"opcheck: {self.asked} {self.fault}.", ("fits", self.fits))


@dataclass(eq=False, kw_only=True)
class OpCheckError(EveryorderError, AssertionError):
    """A finding: `test` found that the operator and its registrations disagree."""

    test: str
    operator: str
    call: str
    schema: str

    def _page(self, head: str, *rows: tuple[str, str]) -> str:
        head = f"{head[0].upper()}{head[1:]}"
        told = tuple(row for row in rows if row[1])
        about = ("call", self.call), ("schema", self.schema)
        return page(f"{self.test}: {head}", *about, *told)


@dataclass(eq=False, kw_only=True)
class UndeclaredWrite(OpCheckError):
    """A call changed an argument that the schema does not declare as written.

    `aspect` is elements, version, beyond (elements of the storage that the argument
    does not show), or the metadata that changed.
    """

    argument: str
    aspect: str
    seen: str
    right: str

    def render(self) -> str:
        """The argument, what changed, and the schema that would say so."""
        name = f"argument `{self.argument}`"
        if self.aspect == "beyond":
            return self._page(
                f"`{self.operator}` wrote to the storage of {name}, but not to an "
                "element of an argument that it declares.",
                ("seen", self.seen),
                ("to do", "write to elements of the arguments only"),
            )
        done = {
            "elements": f"wrote to {name}",
            "version": f"raised the version of {name}",
        }.get(self.aspect, f"changed the {self.aspect} of {name}")
        return self._page(
            f"`{self.operator}` {done}, which its schema does not declare.",
            ("seen", self.seen),
            ("right", self.right),
        )


@dataclass(eq=False, kw_only=True)
class UndeclaredAlias(OpCheckError):
    """A result shares memory with an argument, and the schema does not say so.

    `declared` are the arguments that it may share memory with.
    """

    result: str
    argument: str
    declared: tuple[str, ...]
    seen: str
    right: str

    def render(self) -> str:
        """The result, the argument, and the schema that would say so."""
        only = " or ".join(f"`{name}`" for name in self.declared)
        return self._page(
            f"{self.result} of `{self.operator}` shares memory with argument "
            f"`{self.argument}`, which its schema does not declare.",
            ("seen", self.seen),
            ("declared", only and f"it may share memory with {only}"),
            ("right", self.right),
            ("or", "return a copy"),
        )


@dataclass(eq=False, kw_only=True)
class AliasNotSeen(OpCheckError):
    """A result is declared to share memory with arguments, and never does."""

    result: str
    declared: tuple[str, ...]
    seen: str
    right: str

    def render(self) -> str:
        """The result, the arguments, and the schema without the annotation."""
        names = " or ".join(f"`{name}`" for name in self.declared)
        return self._page(
            f"{self.result} of `{self.operator}` does not share memory with {names}, "
            "as its schema declares.",
            ("seen", self.seen),
            ("right", self.right),
        )


@dataclass(eq=False, kw_only=True)
class ResultsAlias(OpCheckError):
    """Two results share memory, and the schema does not say so."""

    one: str
    other: str
    seen: str
    right: str

    def render(self) -> str:
        """Both results, and the schema that would say so."""
        return self._page(
            f"{self.one} and {self.other} of `{self.operator}` share memory, which "
            "its schema does not declare.",
            ("seen", self.seen),
            ("right", self.right),
            ("or", "return a copy"),
        )


@dataclass(eq=False, kw_only=True)
class FakeMissing(OpCheckError):
    """No kernel runs for tensors without elements; `missing` has none at Meta."""

    missing: str

    def render(self) -> str:
        """The operator without a kernel at Meta."""
        return self._page(
            f"`{self.operator}` cannot run without elements: `{self.missing}`"
            " has no kernel at Meta.",
            ("to do", 'register one: register_fake, or impl(..., "Meta")'),
        )


@dataclass(eq=False, kw_only=True)
class FakeReadsElements(OpCheckError):
    """The fake kernel asks for elements; there are none."""

    asked: str
    sample: str

    def render(self) -> str:
        """What it asked for."""
        return self._page(
            f"The fake kernel of `{self.operator}` reads elements, which tensors on "
            "meta do not have.",
            ("seen", f"{self.asked}, for {self.sample}"),
            (
                "to do",
                "compute from shapes and dtypes only; or, if results depend on the "
                "elements, define the operator with the tag data_dependent_output "
                "or dynamic_output_shape",
            ),
        )


@dataclass(eq=False, kw_only=True)
class FakeHasElements(OpCheckError):
    """The fake kernel returned a tensor that holds elements."""

    where: str
    device: str
    sample: str

    def render(self) -> str:
        """The result, and where its elements are."""
        return self._page(
            f"The fake kernel of `{self.operator}` returned elements: {self.where} is "
            f"on {self.device}, and not on meta.",
            ("for", self.sample),
            ("to do", "make results like the arguments, or on their device"),
        )


@dataclass(eq=False, kw_only=True)
class FakeRaised(OpCheckError):
    """The fake kernel raised where the real one did not."""

    kind: str
    text: str
    sample: str

    def render(self) -> str:
        """What was raised, and for which sample."""
        return self._page(
            f"The fake kernel of `{self.operator}` raised {self.kind} where the real "
            "one did not.",
            ("for", self.sample),
            ("error", self.text),
        )


@dataclass(eq=False, kw_only=True)
class FakeDiffers(OpCheckError):
    """What the fake kernel says differs from what the real one does.

    `where` is a result or an argument; `aspect` is length, kind, dtype, shape, strides,
    offset, aliasing or value.
    """

    where: str
    aspect: str
    real: str
    fake: str
    sample: str

    def render(self) -> str:
        """The place, the aspect, and both sides."""
        return self._page(
            f"The fake kernel of `{self.operator}` and the real one differ in the "
            f"{self.aspect} of {self.where}.",
            ("for", self.sample),
            ("real", self.real),
            ("fake", self.fake),
        )


@dataclass(eq=False, kw_only=True)
class AutogradMissing(OpCheckError):
    """Inputs require grad, and no gradient comes back to them."""

    inputs: tuple[str, ...]
    seen: str

    def render(self) -> str:
        """The inputs, and what there was instead of a gradient."""
        names = ", ".join(f"`{name}`" for name in self.inputs)
        return self._page(
            f"`{self.operator}` has no gradient for {names}.",
            ("seen", self.seen),
            (
                "to do",
                'register one: register_autograd, or impl(..., "Autograd"); if it '
                "is a constant on purpose, register fallthrough at Autograd",
            ),
        )


@dataclass(eq=False, kw_only=True)
class AutogradAtBackend(OpCheckError):
    """The kernel of a backend records a gradient, where nobody looks for one."""

    key: str
    result: str

    def render(self) -> str:
        """The key, and the result that requires grad."""
        return self._page(
            f"The kernel of `{self.operator}` at {self.key} records a gradient itself.",
            ("seen", f"below Autograd, {self.result} requires grad"),
            (
                "to do",
                f"compute at {self.key}, and register the gradient at Autograd: "
                'register_autograd, or impl(..., "Autograd")',
            ),
        )


@dataclass(eq=False, kw_only=True)
class BackwardRaised(OpCheckError):
    """Running backwards raised, or gave what is no gradient of the inputs."""

    inputs: tuple[str, ...]
    kind: str
    text: str

    def render(self) -> str:
        """What was raised."""
        names = ", ".join(f"`{name}`" for name in self.inputs)
        return self._page(
            f"Running `{self.operator}` backwards to {names} raised {self.kind}.",
            ("error", self.text),
        )


@dataclass(eq=False, kw_only=True)
class GradientWrong(OpCheckError):
    """The gradient is not that of finite differences; see `GradcheckFailed`."""

    result: str
    argument: str
    entry: str
    reason: str
    analytical: str
    numerical: str

    def render(self) -> str:
        """The entry, and both numbers."""
        return self._page(
            f"The gradient of `{self.operator}` is wrong, for {self.result} by "
            f"argument `{self.argument}`.",
            ("seen", self.reason),
            ("entry", self.entry),
            ("analytical", self.analytical),
            ("numerical", self.numerical),
        )


@dataclass(eq=False, kw_only=True)
class FunctionalDiffers(OpCheckError):
    """On clones of its arguments, written back, the operator does something else."""

    where: str
    seen: str

    def render(self) -> str:
        """Where the two differ, and how."""
        return self._page(
            f"`{self.operator}` run on clones, which are then copied back, differs "
            f"from the call in place, in {self.where}.",
            ("seen", self.seen),
            (
                "to do",
                "let results depend on the elements and layouts of the arguments "
                "alone, and declare what is written",
            ),
        )
