"""Errors of custom operators: what no operator can be made of, and broken promises.

True only here: who made the function an operator is told what to write instead.  A
`DefinitionRefused` is mended where the operator is made or added to, a `BrokenPromise`
in the function that did what the schema rules out.

Rules: text and numbers only; laid out by `page`, as the errors of calls.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError, nearest
from runtime.errors.call import page


class CustomOperatorError(EveryorderError):
    """Base of the errors about custom operators."""


class DefinitionRefused(CustomOperatorError):
    """Nothing was registered: what was asked for makes no sense."""


class BrokenPromise(CustomOperatorError):
    """A function did something that the schema of its operator rules out."""


@dataclass(eq=False, kw_only=True)
class NotQualified(DefinitionRefused, ValueError):
    """The name of a new operator has no namespace, or is none."""

    found: str

    def render(self) -> str:
        """What came, and the form it should have."""
        name = self.found.strip("'\"")
        return page(
            f"A custom operator is named `namespace::name`; found {self.found}.",
            ("write", f"'mylib::{name if name.isidentifier() else 'name'}'"),
        )


@dataclass(eq=False, kw_only=True)
class MalformedSignature(DefinitionRefused, ValueError):
    """The text of a schema is no list of arguments with its results."""

    operator: str
    found: str
    fault: str

    def render(self) -> str:
        """The text, what is wrong with it, and one that would do."""
        return page(
            f"The schema of `{self.operator}` {self.fault}.",
            ("found", repr(self.found)),
            ("write", "'(Tensor x, int n=1) -> Tensor'"),
        )


@dataclass(eq=False, kw_only=True)
class BadMutatesArgs(DefinitionRefused, TypeError):
    """`mutates_args` is neither the names of arguments nor "unknown"."""

    found: str

    def render(self) -> str:
        """What came, and what it can be."""
        return page(
            f"`mutates_args` is {self.found}, but should be the names of the arguments "
            "that the function writes to.",
            ("write", "mutates_args=('x',), () for none, or 'unknown' for any tensor"),
        )


@dataclass(eq=False, kw_only=True)
class UnknownMutated(DefinitionRefused, ValueError):
    """`mutates_args` names something that is no parameter."""

    function: str
    name: str
    parameters: tuple[str, ...]

    def render(self) -> str:
        """The name, the nearest parameters, and all of them."""
        near = nearest(self.name, self.parameters)
        rows = [("near", ", ".join(near))] if near else []
        rows.append(("parameters", ", ".join(self.parameters) or "none"))
        return page(
            f"`mutates_args` names `{self.name}`, which is no parameter of "
            f"`{self.function}`.",
            *rows,
        )


@dataclass(eq=False, kw_only=True)
class NotMutable(DefinitionRefused, ValueError):
    """`mutates_args` names a parameter that holds no tensors."""

    function: str
    name: str
    type: str

    def render(self) -> str:
        """The parameter and its type."""
        return page(
            f"`mutates_args` names `{self.name}` of `{self.function}`, which is of "
            f"type {self.type}: only tensors, and lists of them, are written to.",
            ("to do", f"take {self.name!r} from mutates_args"),
        )


@dataclass(eq=False, kw_only=True)
class MutationMismatch(DefinitionRefused, ValueError):
    """`mutates_args` and the given schema say different things."""

    operator: str
    schema: str
    declared: tuple[str, ...]
    written: tuple[str, ...]

    def render(self) -> str:
        """Both sets of names."""
        return page(
            f"The schema of `{self.operator}` and its `mutates_args` disagree on which "
            "arguments are written to.",
            ("schema", f"writes to {', '.join(self.written) or 'none'}: {self.schema}"),
            ("mutates_args", ", ".join(self.declared) or "none"),
        )


@dataclass(eq=False, kw_only=True)
class TagRefused(DefinitionRefused, ValueError):
    """The function cannot be what its tag says."""

    function: str
    tag: str
    fault: str

    def render(self) -> str:
        """The tag, and what is in its way."""
        return page(f"`{self.function}` cannot have the tag {self.tag}: {self.fault}.")


@dataclass(eq=False, kw_only=True)
class KeywordOnlyTensor(DefinitionRefused, NotImplementedError):
    """A tensor that can be passed by name only, of an operator that is no out= form."""

    operator: str
    argument: str
    schema: str

    def render(self) -> str:
        """The argument, and the two ways out."""
        return page(
            f"The tensor `{self.argument}` of `{self.operator}` can be passed by name "
            "only, and such a tensor could get no gradient.",
            ("schema", self.schema),
            ("to do", f"make {self.argument!r} positional; or, if it is only there to "
             "be written to and returned, add tags='out'"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class UnfitKernel(DefinitionRefused, TypeError):
    """A function cannot be called with the arguments of its operator."""

    operator: str
    function: str
    fault: str
    schema: str

    def render(self) -> str:
        """The function, why not, and the schema."""
        return page(
            f"`{self.function}` cannot be a kernel of `{self.operator}`: {self.fault}.",
            ("schema", self.schema),
            ("calls it", "with every argument, in this order, keyword-only ones by "
             "name, defaults filled in"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class NoDeviceArgument(DefinitionRefused, ValueError):
    """Kernels for devices, and nothing in a call that says which device."""

    operator: str
    schema: str

    def render(self) -> str:
        """The schema, and what to add."""
        return page(
            f"`{self.operator}` takes no tensor, so that no call would say which "
            "device's kernel is meant.",
            ("schema", self.schema),
            ("to do", "add an argument `device: Device`, or register one kernel for "
             "all devices (device_types=None)"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class NotFunctional(DefinitionRefused, RuntimeError):
    """A formula for the gradient of an operator that writes to its arguments."""

    operator: str
    argument: str
    schema: str

    def render(self) -> str:
        """What is written to, and the way out."""
        return page(
            f"`{self.operator}` writes to `{self.argument}`; formulas of gradients are "
            "for operators that only return new tensors.",
            ("schema", self.schema),
            ("to do", "give the formula to an operator that returns the result "
             "instead, and copy that over"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class FakeNotNeeded(DefinitionRefused, RuntimeError):
    """A fake kernel for an operator that is made of others."""

    operator: str

    def render(self) -> str:
        """Why there is nothing to add, and what to do instead."""
        return page(
            f"`{self.operator}` has a kernel at CompositeImplicitAutograd: it is made "
            "of other operators, whose fake kernels it uses on meta tensors already.",
            ("to do", "register fakes for the operators that it calls"),
        )


@dataclass(eq=False, kw_only=True)
class NotAnOperator(DefinitionRefused, TypeError):
    """What was given as an operator is none; `library` if it is a library."""

    call: str
    found: str
    library: bool = False

    def render(self) -> str:
        """The call, what came, and what it can be."""
        rows = [
            ("give", "'namespace::name', ops.namespace.name.overload, or what "
             "custom_op returned"),
        ]  # fmt: skip
        if self.library:
            rows.append(("or call", "its own method: library.impl(name, kernel, key)"))
        return page(f"{self.call} needs an operator; found {self.found}.", *rows)


@dataclass(eq=False, kw_only=True)
class OverloadNeeded(DefinitionRefused, ValueError):
    """An operator of several overloads, and none was chosen."""

    call: str
    operator: str
    overloads: tuple[str, ...]

    def render(self) -> str:
        """The overloads there are."""
        return page(
            f"{self.call}: `{self.operator}` has {len(self.overloads)} overloads, and "
            "each is an operator of its own.",
            ("overloads", ", ".join(self.overloads)),
        )


@dataclass(eq=False, kw_only=True)
class LibraryNeeded(DefinitionRefused, ValueError):
    """A registration on a dispatcher of somebody's own, without a library."""

    call: str
    operator: str

    def render(self) -> str:
        """Why, and what to pass."""
        return page(
            f"{self.call}: `{self.operator}` is not on the default dispatcher, and "
            "nobody would keep what is registered.",
            ("to do", "pass lib=Library(namespace, 'FRAGMENT', dispatcher=...)"),
        )


@dataclass(eq=False, kw_only=True)
class NoSuchKernel(CustomOperatorError, LookupError):
    """A kernel was to be switched that nobody registered."""

    operator: str
    device: str
    known: tuple[str, ...]

    def render(self) -> str:
        """The device, and those that have kernels."""
        return page(
            f"`{self.operator}` has no kernel of its own for {self.device!r}, so that "
            "there is none to switch.",
            ("kernels", ", ".join(self.known) or "none"),
        )


@dataclass(eq=False, kw_only=True)
class AliasedResult(BrokenPromise, RuntimeError):
    """A result shares memory that the schema says it does not share.

    `result` and `other` say which values; `same` that they are one tensor, `written`
    that the operator writes to it.
    """

    operator: str
    kernel: str
    result: str
    other: str
    same: bool
    schema: str
    written: bool = False

    def render(self) -> str:
        """Both values, the schema, and the ways out."""
        how = "is" if self.same else "shares memory with"
        remedy = "return a copy (`.clone()`), or leave it out of the results"
        if self.same and self.written:
            remedy = "return None; or, where the operator should return what it "
            remedy += "writes to, say so: tags='inplace', or 'out'"
        return page(
            f"`{self.operator}` ({self.kernel}) returned {self.result} that {how} "
            f"{self.other}, which its schema rules out.",
            ("schema", self.schema),
            ("to do", remedy),
        )


@dataclass(eq=False, kw_only=True)
class OtherResult(BrokenPromise, RuntimeError):
    """A result that should be a written argument is another tensor."""

    operator: str
    kernel: str
    result: str
    argument: str
    schema: str

    def render(self) -> str:
        """The result, and the argument that it should be."""
        return page(
            f"`{self.operator}` ({self.kernel}) returned {self.result} that is not "
            f"its argument `{self.argument}`, as its schema promises.",
            ("schema", self.schema),
            ("to do", f"write to {self.argument!r} in place, and return it"),
        )


@dataclass(eq=False, kw_only=True)
class MissingFake(CustomOperatorError, NotImplementedError):
    """An operator met tensors without data, and nobody said what it makes of them."""

    operator: str
    schema: str

    def render(self) -> str:
        """The operator, and what to register."""
        return page(
            f"`{self.operator}` has no fake kernel: it was called with meta tensors, "
            "which have a shape and no data.",
            ("schema", self.schema),
            ("to do", "@register_fake on what custom_op returned, or "
             f"register_fake({self.operator!r}, fn), with a function that returns "
             "empty tensors of the right shape"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class SizeNotKnown(CustomOperatorError, NotImplementedError):
    """A fake kernel asked for a size that depends on elements, where there are none.

    `most` is how many a kernel may ask for while it is checked, 0 where it is not.
    """

    most: int

    def render(self) -> str:
        """Why nobody knows, and what a fake kernel can do."""
        if self.most:
            return page(
                f"A fake kernel asked for more than {self.most} sizes that depend on "
                "elements.",
                ("fits", f"at most {self.most} calls of new_dynamic_size"),
            )
        return page(
            "A fake kernel asked for a size that depends on elements, of tensors "
            "without any: sizes are numbers here, and nobody knows this one.",
            ("to do", "call the operator with elements, or let its fake kernel return "
             "the greatest there can be; opcheck knows the sizes of real results"),
        )  # fmt: skip


@dataclass(eq=False, kw_only=True)
class GradientStructure(BrokenPromise, RuntimeError):
    """What `backward` returned does not match the arguments of its operator."""

    operator: str
    fault: str
    arguments: tuple[str, ...]

    def render(self) -> str:
        """What came, and what belongs there."""
        return page(
            f"The backward of `{self.operator}` {self.fault}.",
            ("returns", ", ".join(self.arguments) or "nothing"),
            ("that is", "a gradient or None for each positional argument, for a list "
             "of tensors a list of its length"),
        )  # fmt: skip
