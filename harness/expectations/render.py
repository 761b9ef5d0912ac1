"""A document as the text of an expect file.

True only here: the layout.

    everyorder expect file, format 1
    scenario: scenarios/test_composites/two_kernels
    steps:
      1  impl("demo::add", cpu_add, "CPU")
    uses:                                          absent where there are none
      1  call("demo::add", "cpu")
    pinned: the newest kernel wins                 absent where nothing is
    strategy: graph
    guarantee:                                     one line a strategy
      1  graph: ...
    explored: 2 states, 2 transitions, 0 failing transitions

    == {} ==
    state: nothing

    == {1} ==
    same as {}

Rules:
- one document has exactly one text: `parse` accepts no other;
- a body that an earlier section has in full is a reference to the first such section;
- an empty line stands before each heading and nowhere else.

When the layout changes, raise `FORMAT` and teach `parse` to say what to do.
"""

from harness.expectations.body import Body, Digest, lines_of
from harness.expectations.document import Document
from harness.expectations.escape import escape
from harness.expectations.key import Key

FORMAT = 1
TITLE = "everyorder expect file, format "
SAME = "same as "

# Header fields that are lists of numbered lines; the others are one line each.
NUMBERED = ("steps", "uses", "guarantee")
# Fields that are left out where there is nothing to say.
OPTIONAL = ("uses", "pinned")


def render(document: Document) -> str:
    """The text of the expect file, with a newline at its end."""
    lines = [f"{TITLE}{FORMAT}"]
    for name, values in document.header().items():
        if name in NUMBERED:
            lines += [f"{name}:"] if values or name not in OPTIONAL else []
            width = len(str(len(values)))
            lines += [
                f"  {number:>{width}}  {escape(value)}"
                for number, value in enumerate(values, 1)
            ]
        else:
            lines += [f"{name}: {escape(value)}" for value in values]
    ordered = document.ordered
    seen: dict[Body, Key] = {}
    for key, body in document.entries:
        lines += ("", f"== {key.text(ordered=ordered)} ==")
        first = key if isinstance(body, Digest) else seen.setdefault(body, key)
        if first is key:
            lines += lines_of(body)
        else:
            lines.append(SAME + first.text(ordered=ordered))
    return "\n".join(lines) + "\n"
