"""A model of libraries that can be checked by eye: a list and the documented rules.

`live` is the list of all records, oldest first; everything else is computed from it.
For each call the model returns the names of all errors that may refuse it, each by one
rule; a call must succeed if there are none, and must raise one of them otherwise.
"""

from dataclasses import dataclass, field

ALIAS = "FuncTorchBatchedDecomposition"
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
# Keys, and the runtime keys of which a fallback at each is one.
MEMBERS = {
    "CPU": {"CPU"},
    "CUDA": {"CUDA"},
    "Tracer": {"Tracer"},
    ALIAS: {"FuncTorchBatched"},
}
# Keys at which nothing can be registered, and names of no key.
BLOCKS, UNKNOWN = {"Dense"}, {"CPUU"}
TENSOR, INT = "(Tensor x) -> Tensor", "(int n) -> int"
# The schema that a kernel has by its annotations; untyped ones have none.
SIGNATURES = {"int": "(int n) -> int", "float": "(float n) -> float"}


@dataclass(eq=False)
class Lib:
    """A library."""

    ns: str
    kind: str
    key: str | None
    closed: bool = False


@dataclass(eq=False)
class Record:
    """A live record: `what` is definition, kernel, reservation, rule, fallback, claim.

    `value` is the schema, the sort of kernel, the class of a rule, or the namespace.
    """

    what: str
    name: str = ""
    key: str = ""
    value: str = ""
    label: str = ""


@dataclass(eq=False)
class Reg:
    """A registration: what one call registered."""

    lib: Lib
    records: list[Record] = field(default_factory=list)


class Model:
    """All that is registered."""

    def __init__(self) -> None:
        self.live: list[Record] = []

    def of(self, what: str, name: str | None = None) -> list[Record]:
        """The live records of a kind, oldest first."""
        return [r for r in self.live if r.what == what and name in (None, r.name)]

    def kernels(self, name: str, key: str) -> list[Record]:
        """The kernels of an operator at a key, newest first."""
        return [r for r in reversed(self.of("kernel", name)) if r.key == key]

    def names(self) -> list[str]:
        """The operators: a name with a rule alone is not one."""
        kinds = ("definition", "kernel", "reservation")
        return sorted({r.name for r in self.live if r.what in kinds})

    def add(self, reg: Reg, records: list[Record]) -> None:
        reg.records += records
        self.live += records

    def end(self, *regs: Reg) -> None:
        ended = {id(record) for reg in regs for record in reg.records}
        self.live = [record for record in self.live if id(record) not in ended]

    def is_live(self, reg: Reg) -> bool:
        return all(any(r is each for each in self.live) for r in reg.records)

    # -- The rules by which a call is refused.

    def opening(self, lib: Lib) -> set[str]:
        errors = set()
        if lib.key in UNKNOWN:
            errors.add("LookupFailed")
        if lib.kind not in ("DEF", "FRAGMENT", "IMPL"):
            errors.add("LibraryMisuse")
        if lib.ns == "_" and lib.kind != "IMPL":
            errors.add("LibraryMisuse")
        if lib.ns in ("2a", "None"):
            errors.add("LibraryMisuse")
        if lib.kind != "IMPL" and (lib.key is not None or lib.ns == "prim"):
            errors.add("LibraryMisuse")
        if lib.kind == "DEF" and lib.ns in {r.value for r in self.of("claim")}:
            errors.add("Conflict")
        return errors

    def naming(self, lib: Lib, namespace: str) -> set[str]:
        """The rules of all calls that name an operator; "" if it has no namespace."""
        foreign = namespace not in ("", lib.ns)
        wrong = lib.closed or lib.ns == "_" or foreign
        return {"LibraryMisuse"} if wrong else set()

    def defining(
        self, lib: Lib, namespace: str, name: str, schema: str, kernel: str, tag: str
    ) -> set[str]:
        errors = self.naming(lib, namespace)
        if lib.kind == "IMPL" or not schema:
            errors.add("LibraryMisuse")
        if tag == "nonsense":
            errors.add("SchemaError")
        if self.of("definition", name):
            errors.add("Conflict")
        sorts = {r.value for r in self.of("kernel", name)} | {kernel}
        sorts &= {*SIGNATURES}
        if len(sorts) > 1 or any(SIGNATURES[sort] != schema for sort in sorts):
            errors.add("Conflict")
        return errors

    def implementing(
        self,
        lib: Lib,
        namespace: str,
        name: str,
        kernel: str,
        keys: list[str | None],
        override: bool,
    ) -> set[str]:
        errors = self.naming(lib, namespace)
        if not keys:
            errors.add("LibraryMisuse")
        for key in keys:
            if key in UNKNOWN:
                errors.add("LookupFailed")
            elif lib.key is not None and key not in (None, lib.key):
                errors.add("LibraryMisuse")
            if (lib.key if key is None else key) in BLOCKS:
                errors.add("KeyMisuse")
            if not override and self.kernels(name, key or lib.key or IMPLICIT):
                errors.add("Conflict")
        if kernel in SIGNATURES:
            sorts = {r.value for r in self.of("kernel", name)} & {*SIGNATURES}
            schemas = {r.value for r in self.of("definition", name)}
            if sorts - {kernel} or schemas - {SIGNATURES[kernel]}:
                errors.add("Conflict")
        return errors

    def falling_back(self, lib: Lib, key: str | None) -> set[str]:
        errors = set()
        chosen = lib.key if key is None else key
        if lib.closed or lib.ns != "_" or chosen is None:
            errors.add("LibraryMisuse")
        if chosen in UNKNOWN:
            errors.add("LookupFailed")
        elif lib.key is not None and chosen != lib.key:
            errors.add("LibraryMisuse")
        if chosen in BLOCKS:
            errors.add("KeyMisuse")
        taken = set().union(*(MEMBERS[r.key] for r in self.of("fallback")))
        if MEMBERS.get(chosen or "", set()) & taken:
            errors.add("Conflict")
        return errors

    def ruling(self, lib: Lib, namespace: str, name: str, cls: str) -> set[str]:
        errors = self.naming(lib, namespace)
        if cls in {r.value for r in self.of("rule", name)}:
            errors.add("Conflict")
        return errors

    # -- What a call runs.

    def runs(self, name: str) -> str | None:
        """The label of the kernel that a call on the CPU runs; None if it has none.

        A fallthrough is passed; without any key that is left, a call takes what all
        backends share.
        """
        (definition,) = self.of("definition", name)
        shared = [
            records[0]
            for records in (self.kernels(name, EXPLICIT), self.kernels(name, IMPLICIT))
            if records
        ][:1]
        chosen = shared
        if definition.value == TENSOR:
            fallbacks = [r for r in self.of("fallback") if r.key == "CPU"]
            chosen = [*self.kernels(name, "CPU")[:1], *shared, *fallbacks][:1]
            if chosen and chosen[0].value == "through":
                chosen = shared
        if not chosen or chosen[0].value == "through":
            return None
        return chosen[0].label
