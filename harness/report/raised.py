"""Errors in reports: the operation, type and message, and the user's line.

An operation that always raises could not have shown a fault: it is vacuous, or, if a
typing error is the likely reason, a typo.  Both are listed here, because both need the
error and its line.
"""

from everyorder.harness.base.columns import cut, wrap_words
from everyorder.harness.base.place import near
from everyorder.harness.engine.protocol import ErrorOrigin
from everyorder.harness.engine.result import Vacuity, Violation
from everyorder.harness.report.observation import error_text, readable_lines
from everyorder.harness.report.verdict import Report


def raised_lines(report: Report, violation: Violation) -> list[str]:
    """Return the errors of a history: the operation, type and message, the line."""
    history = report.violation_lines(violation)
    shown = ("create()", *history, "observe()")
    lines: list[str] = []
    for each in violation.raised:
        if each.position is None:
            where = "the other history" if violation.reference else "another history"
        else:
            where = shown[each.position + 1]
        if violation.kind == "law":
            where = f"check= after {where}"
        text = readable_lines([error_text(each.fields)])
        lines += [f"raised by {where}:", *(f"    {line}" for line in text)]
        lines += [f"    {line}" for line in origin_lines(each.origin)]
    return lines


def origin_lines(origin: ErrorOrigin | None) -> list[str]:
    """Return the place of an error, with its source line; a typing error is named."""
    if origin is None:
        return []
    place = f"at {near(origin.file)}:{origin.line}"
    lines = [f"{place}: {origin.text}" if origin.text else place]
    return [*lines, "a typing error, as it seems"] if origin.slip else lines


def vacuous_lines(report: Report, width: int) -> list[str]:
    """Return the operations that could not have shown a fault, as wrapped lines.

    A typing error is shown with its line, in the form of `raised_lines`.
    """
    lines: list[str] = []
    for each in report.exploration.vacuous:
        if each.is_slip:
            subject = _subject(report, each)
            if each.operation < len(report.steps) + len(report.uses):
                subject = f"`{cut(subject, width - 20)}`"
            lines += wrap_words(f"{subject} always raises:", width)
            raised = [error_text(each.fields), *origin_lines(each.origin)[:-1]]
            lines += [f"    {cut(line, width - 4)}" for line in raised]
    for text in vacuity_lines(report):
        lines += wrap_words(text, width, "- ", "  ")
    return lines


def vacuity_lines(report: Report) -> list[str]:
    """Return operations that could not have shown a fault, and how to declare them."""
    texts = []
    for each in report.exploration.vacuous:
        if each.is_slip:
            continue
        declaration = "constant=True"
        if each.raised:
            names = ", ".join(each.raised)
            declaration = f"raises={f'({names})' if len(each.raised) > 1 else names}"
        text = f"{_subject(report, each)} {each.reason}"
        if each.fields is not None:
            origin = "".join(f", {line}" for line in origin_lines(each.origin))
            text += f" ({error_text(each.fields)}{origin})"
        texts.append(f"{text}; if that is meant, declare {declaration}")
    return texts


def typo_lines(report: Report) -> list[str]:
    """Return the operations with a typing error: its message and its line."""
    return [
        f"{_subject(report, each)} {each.reason}: {error_text(each.fields)}, "
        + origin_lines(each.origin)[0]
        for each in report.exploration.vacuous
        if each.is_slip
    ]


def _subject(report: Report, vacuity: Vacuity) -> str:
    if vacuity.operation < len(report.steps):
        return report.steps[vacuity.operation]
    if vacuity.operation < len(report.steps) + len(report.uses):
        return report.line(vacuity.operation)
    return "what is observed"
