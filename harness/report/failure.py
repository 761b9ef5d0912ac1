"""The text of one scenario for people: first a sentence, then what shows it.

A failure begins with a sentence that a stranger understands: what differs,
between which values, and on what it depends.  Below it stand the two histories side by
side, the variables that differ, and the command that replays it.  The words of the
engine, the strategies and the counts follow only with `verbose`.

Rules:
- every kind of violation has its sentence here; `SENTENCES_BY_KIND` is the table;
- prose is wrapped to the width, evidence is folded, runnable lines are neither;
- a value is part of a sentence if it fits on half a line, else it is a diff below;
- this file prints nothing and uses no colour.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

from everyorder.harness.base.columns import (
    WIDTH,
    columns,
    cut,
    fold_lines,
    padded,
    wrap_words,
)
from everyorder.harness.engine.result import Kind, Violation
from everyorder.harness.report.evidence import (
    explanation,
    extent,
    path_lines,
    recurrence_lines,
    replay_commands,
)
from everyorder.harness.report.observation import (
    error_fields,
    error_text,
    law_text,
    sections,
    visible,
)
from everyorder.harness.report.raised import raised_lines
from everyorder.harness.report.text import (
    counts_text,
    facts,
    plural,
    prose,
    reasons,
    sentence,
    square_sentence,
    suspects,
)
from everyorder.harness.report.verdict import Report, register_renderer

# Printed with a history that was played again and did not show the fault.
UNCONFIRMED = (
    "played again from these lines, it did not show: what came before them, or chance, "
    "has a part in it"
)

# Longest text of an operation, and of a value, within a sentence.
QUOTED = 60
# Names of the two histories, above their columns.
SIDES = ("one way", "another way")
# Names of the two values, where only the history of the second is known.
UNKNOWN_SIDES = ("otherwise", "here")
# Blanks before and between the columns.
INDENT, GAP = "    ", 3


def render(
    report: Report,
    *,
    width: int = WIDTH,
    verbose: bool = False,
) -> str:
    """Return the outcome of one scenario, without a newline at the end.

    A failure is its violations; with `verbose`, and for a pass, the steps, the
    strategies and the counts follow.
    """
    violations = report.exploration.violations
    lines: list[str] = []
    for at, violation in enumerate(violations):
        head = "also: " if at else f"{report.scenario}: "
        text = render_violation(
            *(report, violation),
            head=head,
            width=width,
            verbose=verbose,
        )
        lines += (text, "")
    if not violations:
        lines += wrap_words(f"{report.scenario}: {sentence(report)}", width)
        lines += [] if report.passed or verbose else reasons(report, width=width)
    if not verbose:
        for text in suspects(report):
            lines += wrap_words(f"not read, so it may be there: {text}", width)
    if report.passed or verbose:
        lines += _details(report, width)
    return visible("\n".join(lines).rstrip("\n"))


def _details(report: Report, width: int) -> list[str]:
    lines = [*_numbered("steps", report.steps), *_numbered("uses", report.uses)]
    for name, texts in facts(report):
        for text in texts:
            lines += prose(name, text, width)
    return [*lines, *prose("executed", counts_text(report), width)]


def render_violation(
    report: Report,
    violation: Violation,
    *,
    head: str = "",
    width: int = WIDTH,
    verbose: bool = False,
) -> str:
    """Return one violation: a sentence, the histories, what differs, how to replay it.

    `head` begins the sentence.
    """
    lines = wrap_words(f"{head}{headline(report, violation)}", width)
    lines += _histories(report, violation, width)
    if violation.proven_shortest and len(violation.shown) > 1:
        lines.append("no shorter history of these operations shows it")
    evidence = [*_evidence(violation), *raised_lines(report, violation)]
    lines += fold_lines(evidence, width)
    if not violation.confirmed:
        lines += wrap_words(UNCONFIRMED, width)
    lines += recurrence_lines(violation)
    if verbose:
        lines += _engine_words(report, violation, width)
    lines.append("replay it:")
    lines += (f"    {command}" for command in replay_commands(report, violation))
    return "\n".join(lines)


def _engine_words(report: Report, violation: Violation, width: int) -> list[str]:
    """Return the claim of the engine, its place, and the square that is not closed."""
    where = report.state_name(violation.state)
    length = len(violation.shown)
    lines = wrap_words(f"{violation.kind}: {violation.claim}", width)
    lines += wrap_words(f"at {where}, {extent(violation, length)}", width)
    if violation.square is not None:
        lines.append("square: " + square_sentence(report, violation.square))
    return lines


def headline(report: Report, violation: Violation) -> str:
    """Return the violation as one sentence, or two: what differs, and why."""
    return SENTENCES_BY_KIND[violation.kind](report, violation)


def _depends(report: Report, violation: Violation) -> str:
    """Return the sentence of an answer, or an observation, with two values."""
    cause = _cause(report, violation)
    values = _values(violation)
    two = _two_orders(report, violation)
    subject = _subject(report, violation)
    if two is not None:
        if values is None:
            return f"{subject} depends on the order of {two[0]} and {two[1]}."
        first, second = values
        return (
            f"{subject} depends on the order: {two[0]} then {two[1]} gives {second}, "
            f"the other way round {first}."
        )
    verb = "answers differently" if subject.startswith("`") else "differs"
    if violation.hidden:
        verb = "differs, though nothing that is observed shows it,"
    shown = _both(violation)
    same = "the same registrations"
    if report.ordering.total:
        same += " in the same order"
    if _is_about_repeats(report, violation):
        same = "the same steps, as far as they are in effect"
    text = f"{subject} {verb} after {same}{shown}."
    return f"{text} {cause}".rstrip()


def _subject(report: Report, violation: Violation) -> str:
    if _is_answer(report, violation):
        return _name(report, violation.shown[-1])
    if violation.hidden:
        return "the registry"
    before, after = sections(violation.expected), sections(violation.found)
    titles = [each[0] for each in after if each not in before]
    many = max(len(before), len(after)) > 1
    return f"what is observed ({titles[0]})" if many and titles else "what is observed"


def _is_answer(report: Report, violation: Violation) -> bool:
    """Return True if the last operation is a use whose answers differ."""
    history, other = violation.shown, _other(violation)
    if not history or not _is_use(report, history[-1]):
        return False
    if other is None:
        # What is observed has titles, an answer has none.
        titled = any(title for title, _ in sections(violation.found))
        return violation.kind == "use" and not violation.hidden and not titled
    return other[-1:] == history[-1:]


def _is_use(report: Report, operation: int) -> bool:
    return 0 <= operation - len(report.steps) < len(report.uses)


def _other(violation: Violation) -> tuple[int, ...] | None:
    """Return the history that shows the expected value, if it is known."""
    return violation.reference if violation.other is None else violation.other


def _cause(report: Report, violation: Violation) -> str:
    """Return on what the value depends: the rarest kind of operation before it."""
    if violation.shortest is None:
        # Nothing was left out, so anything may be the cause.
        return ""
    history = violation.shown
    for operation in history:
        if operation in report.ends:
            return f"It depends on what {_name(report, operation)} ended."
    if _is_about_repeats(report, violation):
        return "It depends on how often a step was done."
    if _is_answer(report, violation):
        history = history[:-1]
    undos = _undone(report, violation)
    count = len(report.steps) + len(report.uses)
    uses = {op: None for op in history if _is_use(report, op)}
    if uses:
        calls = " or ".join(_name(report, op) for op in uses)
        return f"It depends on whether {calls} was called before."
    if count in history:
        return "It depends on whether the registry was observed before."
    if count + 1 in history:
        return "It depends on when garbage is collected."
    if _is_round_trip(history, undos):
        return f"The undo of {_name(report, history[0])} does not take all of it back."
    if undos:
        return "It depends on what was registered and removed before."
    other = _other(violation)
    if other is not None and sorted(history) == sorted(_steps_of(report, other)):
        return "It depends on the order of registration."
    return ""


def _undone(report: Report, violation: Violation) -> frozenset[int]:
    """Return the places in the history at which a step was undone."""
    lines = zip(violation.shown, report.violation_lines(violation), strict=True)
    return frozenset(
        at
        for at, (operation, line) in enumerate(lines)
        if operation < len(report.steps) and line == f"step_{operation + 1}.close()"
    )


def _is_about_repeats(report: Report, violation: Violation) -> bool:
    """Return True if a step was done again, or an operation ended others."""
    done = list(violation.shown)
    again = any(done.count(step) > 1 for step in report.again)
    return again or any(operation in report.ends for operation in done)


def _is_round_trip(history: Sequence[int], undos: frozenset[int]) -> bool:
    """Return True for one step and its undo."""
    return len(history) == 2 and history[0] == history[1] and undos == {1}


def _steps_of(report: Report, history: Sequence[int]) -> list[int]:
    return [operation for operation in history if operation < len(report.steps)]


def _two_orders(report: Report, violation: Violation) -> tuple[str, str] | None:
    """Return two steps, quoted, if only their order distinguishes the values."""
    other = _other(violation)
    history = violation.shown
    if other is None or violation.other is not None or _undone(report, violation):
        return None
    if _is_answer(report, violation):
        history, other = history[:-1], other[:-1]
    pairs = [pair for pair in zip(history, other, strict=False) if pair[0] != pair[1]]
    if len(history) != len(other) or len(pairs) != 2 or pairs[0] != pairs[1][::-1]:
        return None
    first, second = pairs[0]
    if max(history) >= len(report.steps) or _is_about_repeats(report, violation):
        return None
    return _name(report, first), _name(report, second)


def _values(violation: Violation) -> tuple[str, str] | None:
    """Return both values for a sentence: the expected one, and the found one."""
    if violation.hidden:
        return None
    one, two = _short(violation.expected), _short(violation.found)
    return None if one is None or two is None or one == two else (one, two)


def _both(violation: Violation) -> str:
    """Return both values as the end of a sentence, or nothing if they do not fit."""
    values = _values(violation)
    return "" if values is None else f": {' or '.join(values)}"


def _short(value: Hashable) -> str | None:
    """Return a value on half a line, or None."""
    fields = error_fields(value)
    if fields is not value:
        text = f"raises {error_text(fields)}"
    elif isinstance(value, str):
        text = repr(value) if len(value.splitlines()) < 2 else ""
    elif value is None or len(sections(value)) > 1:
        return None
    else:
        ((title, text),) = sections(value)
        text = text.strip() if len(text.splitlines()) < 2 else ""
        text = repr(text) if title and text else text
    return text if text.isprintable() and 0 < columns(text) <= QUOTED else None


def _quote(text: str) -> str:
    """Return an operation within a sentence, shortened."""
    return f"`{cut(' '.join(text.split()), QUOTED)}`"


def _name(report: Report, operation: int) -> str:
    """Return the text of a step, or of another operation, quoted."""
    if operation < len(report.steps):
        return _quote(report.steps[operation])
    return _quote(report.line(operation))


def _operation(report: Report, violation: Violation, at: int) -> str:
    """Return an operation of the history in words, or `create` before the first one."""
    if not violation.shown:
        return "`create`"
    name = _name(report, violation.shown[at])
    places = range(len(violation.shown))
    return f"the undo of {name}" if places[at] in _undone(report, violation) else name


def _last(report: Report, violation: Violation) -> str:
    """Return the last operation in words."""
    return _operation(report, violation, -1)


def _error(value: Hashable) -> str:
    return _cut(" ".join(error_text(error_fields(value)).split()))


def _cut(text: str) -> str:
    """Return a text within a sentence, with dots in place of what is left out."""
    return cut(text, 2 * QUOTED)


def _laws_of(violation: Violation) -> Sequence[Hashable]:
    found = violation.found
    return found if isinstance(found, tuple) and found else (found,)


def _law(report: Report, violation: Violation) -> str:
    laws = _laws_of(violation)
    if len(laws) > 1:
        broken = f"{plural(len(laws), 'law')} are broken"
        return f"{broken} after {_last(report, violation)}."
    text = _cut(" ".join(law_text(laws[0]).split()))
    return f"a law is broken after {_last(report, violation)}: {text}"


def _wedged(report: Report, violation: Violation) -> str:
    places = range(len(violation.shown))
    raising = [each.position for each in violation.raised if each.position in places]
    if not raising or raising[0] is None:
        return "a step or undo raises, and leaves something behind."
    operation = _operation(report, violation, raising[0])
    return f"{operation} raises, and leaves something behind."


def _fails(report: Report, violation: Violation) -> str:
    step = _last(report, violation)
    same = "after the same registrations"
    if violation.expected is None:
        return f"{step} raises {_error(violation.found)}; {same} it also succeeds."
    if violation.found is None:
        return f"{step} succeeds; {same} it also raises {_error(violation.expected)}."
    one, two = _error(violation.expected), _error(violation.found)
    return f"{step} raises different errors {same}: {one}, or {two}."


def _hidden(report: Report, violation: Violation) -> str:
    shown = _both(violation)
    if not violation.shown:
        what = "two fresh registries differ"
    elif _is_answer(report, violation):
        what = f"{_last(report, violation)} answers differently"
    else:
        what = f"{_last(report, violation)} leads to different results"
    return (
        f"{what}{shown}, although the state before it is the same, as far as it can "
        "be read. Something else is remembered elsewhere."
    )


def _chance(report: Report, violation: Violation) -> str:
    shown = _both(violation)
    times = ""
    if violation.frequency is not None:
        rare, plays = violation.frequency
        times = f" ({rare} of {plays} plays differ)"
    text = f"the same operations, played again, gave another result{shown}{times}."
    if " at 0x" in str(violation.expected) and " at 0x" in str(violation.found):
        text += " They contain addresses of objects; show their names instead."
    return text


# The sentence of each kind; `engine.result.KINDS` has the claims in its own words.
SENTENCES_BY_KIND: Mapping[Kind, Callable[[Report, Violation], str]] = {
    "law": _law,
    "order": _depends,
    "use": _depends,
    "cold": _depends,
    "wedged": _wedged,
    "error": _fails,
    "undo": lambda report, violation: (
        f"{_last(report, violation)} raises {_error(violation.found)}."
    ),
    "leak": lambda report, violation: (
        f"something of {_last(report, violation)} is still in use: "
        f"{violation.found} is alive."
    ),
    "hidden": _hidden,
    "not fresh": lambda report, violation: (
        "`create` does not make a fresh registry: a later one differs from the first."
    ),
    "nondeterminism": _chance,
    "unpinned": lambda report, violation: (
        "the order is declared to matter, but no two orders look different."
    ),
}


def _histories(report: Report, violation: Violation, width: int) -> list[str]:
    """Return the operations of both histories, side by side if that fits."""
    lines = list(report.violation_lines(violation))
    other = _other_lines(report, violation)
    values = _values(violation)
    if values is not None and other is not None:
        other.append(f"=> {values[0]}")
        lines.append(f"=> {values[1]}")
    if other is None or other == lines:
        return [f"{INDENT}{line}" for line in lines]
    left, right = SIDES
    other = other or ["(nothing)"]
    # As a terminal shows them: invisible characters are escaped.
    other, lines = [*map(visible, other)], [*map(visible, lines)]
    column = max(map(columns, (left, *other))) + GAP
    if columns(INDENT) + column + max(map(columns, (right, *lines))) <= width:
        rows = max(len(other), len(lines))
        ends = values is not None
        pairs = zip(
            (left, *_padded(other, rows, ends)),
            (right, *_padded(lines, rows, ends)),
            strict=True,
        )
        return [f"{INDENT}{padded(one, column)}{two}".rstrip() for one, two in pairs]
    return [
        f"{left}:",
        *(f"{INDENT}{line}" for line in other),
        f"{right}:",
        *(f"{INDENT}{line}" for line in lines),
    ]


def _padded(lines: Sequence[str], rows: int, has_result: bool) -> list[str]:
    """Return the lines of a column; its last line, a result, is at the bottom."""
    body, result = (lines[:-1], lines[-1:]) if has_result else (lines, ())
    return [*body, *[""] * (rows - len(lines)), *result]


def _other_lines(report: Report, violation: Violation) -> list[str] | None:
    if violation.other is not None:
        return list(report.other_lines(violation))
    if violation.reference is not None:
        return list(report.reference_lines(violation))
    return None


def _evidence(violation: Violation) -> list[str]:
    """Return the difference, unless the sentence has both values, and its place."""
    sides = UNKNOWN_SIDES if _other(violation) is None else SIDES
    if violation.kind in _SAID_IN_A_SENTENCE:
        values = (violation.expected, violation.found)
        texts = [error_text(error_fields(each)) for each in values if each is not None]
        if all(_cut(text) == text for text in texts):
            return path_lines(violation, sides)
        return explanation(violation, sides=sides)
    if violation.kind == "law" and len(_laws_of(violation)) == 1:
        text = " ".join(law_text(_laws_of(violation)[0]).split())
        return [] if _cut(text) == text else explanation(violation, sides=sides)
    if _values(violation) is None:
        return explanation(violation, sides=sides)
    return path_lines(violation, sides)


# Kinds whose sentence and errors leave nothing to say of the values.
_SAID_IN_A_SENTENCE = frozenset({"error", "leak", "undo"})


def _numbered(title: str, texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    return [f"  {title}", *(f"  {i:>3}  {text}" for i, text in enumerate(texts, 1))]


register_renderer("text", render)
