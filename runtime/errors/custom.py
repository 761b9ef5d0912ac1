"""Errors of custom operators, and the findings of `opcheck`.

Who must act: the author of the operator or of its registrations (`DefinitionRefused`,
`MissingFake`), or the author of the function that broke the schema (`OpCheckError`, and
`KernelError` in `runtime.errors.call`).

Rule: `right` is the schema line that would describe the observed behaviour; it is empty
where no schema line would, and then the text says what would help.
"""

from everyorder.runtime.errors.base import EveryorderError, nearest, page


class DefinitionRefused(EveryorderError, ValueError):
    """Nothing was registered or checked: the request is invalid."""

    found: str = ""
    operator: str = ""
    fault: str = ""
    function: str = ""
    name: str = ""
    parameters: tuple[str, ...] = ()
    type: str = ""
    schema: str = ""
    declared: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    tag: str = ""
    argument: str = ""
    call: str = ""
    library: bool = False
    overloads: tuple[str, ...] = ()
    asked: str = ""
    fits: str = ""

    words = """
    NotQualified: A custom operator is named `namespace::name`; found {found}.
      write: 'mylib::{_bare}'
    MalformedSignature: The schema of `{operator}` {fault}.
      found: {found!r}
      write: '(Tensor x, int n=1) -> Tensor'
    BadMutatesArgs (TypeError): `mutates_args` is {found}, but should be the names of
        the arguments that the function writes to.
      write: mutates_args=('x',), () for none, or 'unknown' for any tensor
    UnknownMutated: `mutates_args` names `{name}`, which is not a parameter of
        `{function}`.
      near: {_near:, }
      parameters: {parameters:, |none}
    NotMutable (TypeError): `mutates_args` names `{name}` of `{function}`, which is of
        type {type}: only tensors, and lists of them, are written to.
      to do: remove {name!r} from mutates_args
    MutationMismatch: The schema of `{operator}` and its `mutates_args` disagree on
        which arguments are written to.
      schema: writes to {written:, |none}: {schema}
      mutates_args: {declared:, |none}
    TagRefused: `{function}` cannot have the tag {tag}: {fault}.
    UnfitKernel (TypeError): `{function}` cannot be a kernel of `{operator}`: {fault}.
      schema: {schema}
      calls it: with every argument, in this order, keyword-only ones by name, defaults
        filled in
    NoDeviceArgument (TypeError): `{operator}` takes no tensor, so that a call could
        not select a kernel by device.
      schema: {schema}
      to do: add an argument `device: Device`, or register one kernel for all devices
        (device_types=None)
    NotFunctional (RuntimeError): `{operator}` writes to `{argument}`; formulas of
        gradients are for operators that only return new tensors.
      schema: {schema}
      to do: give the formula to an operator that returns the result instead, and copy
        that over
    FakeNotNeeded (RuntimeError): `{operator}` has a kernel at
        CompositeImplicitAutograd: it calls other operators, whose fake kernels it
        uses on meta tensors already.
      to do: register fakes for the operators that it calls
    NotAnOperator (TypeError): {call} needs an operator; found {found}.
      pass: 'namespace::name', ops.namespace.name.overload, or the result of custom_op
      or call: {_method}
    OverloadNeeded (RuntimeError): {call}: `{operator}` has {_count} overloads, and each
        is a separate operator.
      overloads: {overloads:, }
    LibraryNeeded (RuntimeError): {call}: `{operator}` is not on the default dispatcher,
        so the registration needs a library that owns it.
      to do: pass lib=Library(namespace, 'FRAGMENT', dispatcher=...)
    KeywordOnlyTensor (NotImplementedError): The tensor `{argument}` of `{operator}` can
        be passed by name only, and such a tensor could get no gradient.
      schema: {schema}
      to do: make {argument!r} positional; or, if it is only there to be written to and
        returned, add tags='out'
    OpCheckMisuse: opcheck: {asked} {fault}.
      fits: {fits}
    """

    @property
    def _bare(self) -> str:
        name = self.found.strip("'\"")
        return name if name.isidentifier() else "name"

    @property
    def _near(self) -> tuple[str, ...]:
        return nearest(self.name, self.parameters)

    @property
    def _method(self) -> str:
        method = "the method of the library: library.impl(name, kernel, key)"
        return method if self.library else ""

    @property
    def _count(self) -> int:
        return len(self.overloads)


class MissingFake(EveryorderError, NotImplementedError):
    """An operator was called with tensors without data, and has no fake kernel.

    `most` is the number of sizes that a kernel may request while it is checked, 0 where
    it is not being checked.
    """

    operator: str = ""
    schema: str = ""
    most: int = 0

    words = """
    MissingFake: `{operator}` has no fake kernel: it was called with meta tensors, which
        have a shape and no data.
      schema: {schema}
      to do: @register_fake on the result of custom_op, or register_fake({operator!r},
        fn), with a function that returns empty tensors of the right shape
    SizeNotKnown | {_size_not_known}
    """

    @property
    def _size_not_known(self) -> str:
        """Return why the size is unknown, and what a fake kernel can do."""
        if self.most:
            return page(
                f"A fake kernel requested more than {self.most} sizes that depend on "
                "elements.",
                ("fits", f"at most {self.most} calls of new_dynamic_size"),
            )
        return page(
            "A fake kernel requested a size that depends on elements, of tensors "
            "without any: sizes are numbers here, and this one is unknown.",
            (
                "to do",
                "call the operator with elements, or let its fake kernel return "
                "the greatest possible size; opcheck knows the sizes of real results",
            ),
        )


class OpCheckError(EveryorderError, AssertionError):
    """A finding: `test` detected that the operator and its registrations disagree."""

    test: str
    operator: str
    call: str
    schema: str
    argument: str = ""
    aspect: str = ""
    seen: str = ""
    right: str = ""
    result: str = ""
    declared: tuple[str, ...] = ()
    one: str = ""
    other: str = ""
    missing: str = ""
    asked: str = ""
    sample: str = ""
    where: str = ""
    device: str = ""
    kind: str = ""
    text: str = ""
    real: str = ""
    fake: str = ""
    inputs: tuple[str, ...] = ()
    key: str = ""
    entry: str = ""
    reason: str = ""
    analytical: str = ""
    numerical: str = ""

    rows = (("call", "{call}"), ("schema", "{schema}"))

    words = """
    UndeclaredWrite: `{operator}` {_done}.
      seen: {seen}
      right: {_schema_line}
      to do: {_remedy}
    UndeclaredAlias: {result} of `{operator}` shares memory with argument `{argument}`,
        which its schema does not declare.
      seen: {seen}
      declared: [[it may share memory with `{declared:` or `}`]]
      right: {right}
      or: return a copy
    AliasNotSeen: {result} of `{operator}` does not share memory with
        `{declared:` or `}`, as its schema declares.
      seen: {seen}
      right: {right}
    ResultsAlias: {one} and {other} of `{operator}` share memory, which its schema does
        not declare.
      seen: {seen}
      right: {right}
      or: return a copy
    FakeMissing: `{operator}` cannot run without elements: `{missing}` has no kernel at
        Meta.
      to do: register one: register_fake, or impl(..., "Meta")
    FakeReadsElements: The fake kernel of `{operator}` reads elements, which tensors on
        meta do not have.
      seen: {asked}, for {sample}
      to do: compute from shapes and dtypes only; or, if results depend on the elements,
        define the operator with the tag data_dependent_output or dynamic_output_shape
    FakeHasElements: The fake kernel of `{operator}` returned elements: {where} is on
        {device}, and not on meta.
      for: {sample}
      to do: create results like the arguments, or on their device
    FakeRaised: The fake kernel of `{operator}` raised {kind} where the real one did
        not.
      for: {sample}
      error: {text}
    FakeDiffers: The fake kernel of `{operator}` and the real one differ in the {aspect}
        of {where}.
      for: {sample}
      real: {real}
      fake: {fake}
    AutogradMissing: `{operator}` has no gradient for `{inputs:`, `}`.
      seen: {seen}
      to do: register one: register_autograd, or impl(..., "Autograd"); if it is a
        constant on purpose, register fallthrough at Autograd
    AutogradAtBackend: The kernel of `{operator}` at {key} records a gradient itself.
      seen: below Autograd, {result} requires grad
      to do: compute at {key}, and register the gradient at Autograd: register_autograd,
        or impl(..., "Autograd")
    BackwardRaised: Running `{operator}` backwards to `{inputs:`, `}` raised {kind}.
      error: {text}
    GradientWrong: The gradient of `{operator}` is wrong, for {result} by argument
        `{argument}`.
      seen: {reason}
      entry: {entry}
      analytical: {analytical}
      numerical: {numerical}
    FunctionalDiffers: `{operator}` run on clones, which are then copied back, differs
        from the call in place, in {where}.
      seen: {seen}
      to do: let results depend on the elements and layouts of the arguments alone, and
        declare what is written
    """

    @property
    def _done(self) -> str:
        name = f"argument `{self.argument}`"
        if self.aspect == "beyond":
            return (
                f"wrote to the storage of {name}, but not to an element of an argument "
                "that it declares"
            )
        done = {
            "elements": f"wrote to {name}",
            "version": f"raised the version of {name}",
        }.get(self.aspect, f"changed the {self.aspect} of {name}")
        return f"{done}, which its schema does not declare"

    @property
    def _schema_line(self) -> str:
        return "" if self.aspect == "beyond" else self.right

    @property
    def _remedy(self) -> str:
        return "write to elements of the arguments only" * (self.aspect == "beyond")

    def _head(self, text: str) -> str:
        """Return the test, and the sentence with a capital letter."""
        return f"{self.test}: {text[0].upper()}{text[1:]}"
