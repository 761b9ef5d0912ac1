"""The schema of an operator: its name, arguments, results and what they share.

True only here: how a whole schema prints, and what follows from its annotations.

Rules:
- a schema is a value; `str` gives text that parses back to an equal schema;
- the alias-analysis kind is carried, but neither printed nor compared, and a copy under
  another name forgets it: whoever registers the copy says anew what is promised.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.schema.alias import AliasKind
from runtime.schema.argument import Argument
from runtime.schema.names import OperatorName
from runtime.schema.sharing import may_alias, may_contain_alias
from runtime.schema.strip import fill_defaults, strip_defaults


@dataclass(frozen=True, slots=True)
class Schema:
    """A function signature of the schema language."""

    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False
    alias_kind: AliasKind | None = field(default=None, compare=False)

    @property
    def overload(self) -> str:
        """The overload of the name, empty for the usual one."""
        return self.name.overload

    @property
    def kwarg_only_start(self) -> int:
        """The index of the first keyword-only argument, or the number of arguments."""
        for index, argument in enumerate(self.arguments):
            if argument.kwarg_only:
                return index
        return len(self.arguments)

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes to any of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether a result shares an argument's memory and nothing is written."""
        return not self.is_mutable and any(a.alias for a in self.arguments)

    def clone_with_name(self, name: OperatorName) -> "Schema":
        """The same signature under `name`, with no alias-analysis kind."""
        return replace(self, name=name, alias_kind=None)

    def clone_with_arguments(self, arguments: tuple[Argument, ...]) -> "Schema":
        """The same name and results on `arguments`, with no alias-analysis kind."""
        return replace(self, arguments=arguments, alias_kind=None)

    def clone_with_returns(self, returns: tuple[Argument, ...]) -> "Schema":
        """The same name and arguments giving `returns`, with no alias-analysis kind."""
        return replace(self, returns=returns, alias_kind=None)

    def with_alias_kind(self, kind: AliasKind | None) -> "Schema":
        """The same schema carrying `kind`."""
        return self if kind is self.alias_kind else replace(self, alias_kind=kind)

    def may_alias(self, argument: int, result: int) -> bool:
        """Whether that result may be memory of that argument.

        Raises:
            IndexError: there is no such argument or result.
        """
        return may_alias(self.arguments[argument], self.returns[result])

    def may_contain_alias(self, argument: int, result: int) -> bool:
        """Whether one of the two may also hold, as an element, memory of the other.

        Raises:
            IndexError: there is no such argument or result.
        """
        return may_contain_alias(self.arguments[argument], self.returns[result])

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Every argument of the call, as kernels see them: positional ones and named.

        Values are converted, defaults are filled in, codes are objects and lists are
        fresh; surplus values of a schema with `...` follow the positional arguments.

        Raises:
            CallError: the call does not fit; its leaf says why.
        """
        positional, named = fill_defaults(self, args, kwargs)
        return [*positional], named

    def fill_defaults(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`bind`, as a call: what `strip_defaults` took out is put back.

        Raises as `bind`.
        """
        return fill_defaults(self, args, kwargs)

    def strip_defaults(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call as a Python handler gets it: without what is at its default.

        The longest tail of positional arguments at their defaults goes, and every such
        keyword-only argument; the rest is as in `bind`.

        Raises as `bind`.
        """
        return strip_defaults(self, args, kwargs)

    def __str__(self) -> str:
        return f"{self.name}({self._arguments_text()}) -> {self._returns_text()}"

    def _arguments_text(self) -> str:
        items: list[str] = []
        for index, argument in enumerate(self.arguments):
            if argument.kwarg_only and index == self.kwarg_only_start:
                items.append("*")
            items.append(str(argument))
        if self.is_vararg:
            items.append("...")
        return ", ".join(items)

    def _returns_text(self) -> str:
        items = [str(result) for result in self.returns]
        if self.is_varret:
            items.append("...")
        if len(items) == 1 and not items[0].startswith("("):
            return items[0]
        return f"({', '.join(items)})"
