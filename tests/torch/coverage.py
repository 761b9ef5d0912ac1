"""How far a comparison with torch got: what it hit, of what there is.

True only here: counting.  A comparison that passes says only as much as what it went
through; so it counts keys, rows of the table's rules, kinds of kernels, constructs of
the schema grammar and predictions, and `missed` names what was never seen.
"""

from collections import Counter
from collections.abc import Collection

from everyorder.runtime.dispatch.state import OperatorEntry
from everyorder.runtime.keys import DispatchKey
from tests.torch.language import CONSTRUCTS
from tests.torch.predictions import PREDICTIONS

# The rows of the rules that fill a table, in order; `at` is the slot of no key at all.
ROWS = (
    "1 a kernel of its own",
    "2.1 explicit, not functional",
    "2.1 at Undefined",
    "2.2 explicit",
    "2.2 at Undefined",
    "2.3a implicit for nested tensors",
    "2.3b ambiguous at AutogradOther",
    "2.3c implicit",
    "2.3c at Undefined",
    "2.4 autograd",
    "2.5 batched",
    "3 fallback",
    "4 missing",
)
_ROW_OF = {
    "CompositeExplicitAutogradNonFunctional": "2.1",
    "CompositeExplicitAutograd": "2.2",
    "CompositeImplicitAutogradNestedTensor": "2.3a",
    "CompositeImplicitAutograd": "2.3c",
    "Autograd": "2.4",
    "FuncTorchBatchedDecomposition": "2.5",
}
_BY_NUMBER = {row.partition(" ")[0]: row for row in reversed(ROWS)}
_AT_UNDEFINED = {row.partition(" ")[0]: row for row in ROWS if "at Undefined" in row}
KINDS = (
    *("t_t", "python", "fallthrough", "fallback"),
    *("definition by schema", "definition by name", "definition with kernel"),
)
REGISTRABLE = tuple(
    key.name for key in DispatchKey if key.is_alias or (key.is_runtime and key.slot)
)
# Longer groups are given by their number alone.
MOST_LISTED = 40


class Coverage:
    """Counters of one comparison, one for each thing there is to hit.

    `readable` are the keys whose names torch reads: both sides must meet at each.
    """

    def __init__(self, readable: Collection[str]) -> None:
        self._shared = tuple(key for key in REGISTRABLE if key in readable)
        self.keys: Counter[str] = Counter()
        self.shared_keys: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.constructs: Counter[str] = Counter()
        self.predictions: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()

    def table(self, entry: OperatorEntry) -> None:
        """Count the rules by which the slots of a live table were filled."""
        recipe = entry.table.recipe
        for line in recipe.lines:
            number = _ROW_OF.get(line.source.name, "1")
            if line.ambiguous:
                number = "2.3b"
            elif line.provenance == "kernel":
                number = "1"
            if line.slots & 1 and number in _AT_UNDEFINED:
                self.rows[_AT_UNDEFINED[number]] += 1
            if line.slots & ~1:
                self.rows[_BY_NUMBER[number]] += 1
        if recipe.rest & entry.table.fallbacks.present:
            self.rows[_BY_NUMBER["3"]] += 1
        if recipe.rest & ~entry.table.fallbacks.present:
            self.rows[_BY_NUMBER["4"]] += 1

    def missed(self) -> dict[str, list[str]]:
        """What was never seen, by group; groups that were hit whole are left out."""
        found = {
            title: [each for each in wanted if not hit[each]]
            for title, hit, wanted in self._groups()
        }
        return {title: missing for title, missing in found.items() if missing}

    def report(self) -> str:
        """The counts as text, for people."""
        lines = [f"{count:>11,}  {what}" for what, count in self.numbers.items()]
        for title, counter, wanted in self._groups():
            hit = sum(1 for each in wanted if counter[each])
            lines.append(f"{hit:>4} of {len(wanted):>3}  {title}")
            if len(wanted) <= MOST_LISTED:
                lines += [f"{counter[each]:>15,}  {each}" for each in wanted]
        for title, missing in self.missed().items():
            lines.append(f"never seen, {title}: {', '.join(missing)}")
        return "\n".join(lines)

    def _groups(self) -> tuple[tuple[str, Counter[str], tuple[str, ...]], ...]:
        return (
            ("keys with a kernel", self.keys, REGISTRABLE),
            ("keys with a kernel on both sides", self.shared_keys, self._shared),
            ("rows of the table's rules", self.rows, ROWS),
            ("kinds of registrations", self.kinds, KINDS),
            ("constructs of the schema grammar", self.constructs, CONSTRUCTS),
            ("predicted deviations", self.predictions, tuple(PREDICTIONS)),
        )
