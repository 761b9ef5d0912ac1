"""The scenario of a name, found in a process of its own, as the text of a file.

The target is imported and called there and not here; its output is thrown away, it has
no input, and its folder is an empty one.

The file has 88 columns.  A call that fits stands on one line; one that does not has
each argument on a line of its own, with a comma behind the last, as formatters leave
it.  What could not be known stands in comments that begin with TODO.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from everyorder.harness.base.errors import HarnessError, TrialEnded
from everyorder.harness.report.text import wrap_words
from everyorder.harness.tools.scaffold.discovery import draft_of
from everyorder.harness.tools.scaffold.draft import (
    RETURNED,
    Draft,
    StepDraft,
    UseDraft,
    words,
)

# The width of lines; formatters have it as their usual one.
WIDTH = 88

# What the printed file imports from us.
PACKAGE = "everyorder"


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A call to lay out; `remarks` stand above it."""

    head: str
    arguments: tuple["str | SourceCall", ...]
    remarks: tuple[str, ...] = ()
    open: str = "("
    close: str = ")"

    @property
    def line(self) -> str | None:
        """All on one line, or None where a remark stands inside."""
        parts = [
            each if isinstance(each, str) else each.line for each in self.arguments
        ]
        inner = [
            each
            for each in self.arguments
            if isinstance(each, SourceCall) and each.remarks
        ]
        if inner or None in parts:
            return None
        return f"{self.head}{self.open}{', '.join(filter(None, parts))}{self.close}"

    def lines(self, indent: int, tail: str = "") -> list[str]:
        """The lines of the call, `indent` blanks before each; `tail` ends the last."""
        blank = " " * indent
        found = [line for remark in self.remarks for line in comment(remark, indent)]
        line = self.line
        if line is not None and len(blank + line + tail) <= WIDTH:
            return [*found, f"{blank}{line}{tail}"]
        found.append(f"{blank}{self.head}{self.open}")
        for each in self.arguments:
            if isinstance(each, str):
                found.append(f"{blank}    {each},")
            else:
                found += each.lines(indent + 4, ",")
        return [*found, f"{blank}{self.close}{tail}"]


def comment(text: str, indent: int = 0) -> list[str]:
    """A remark as `# TODO:` lines."""
    head = " " * indent + "# "
    return wrap_words(f"TODO: {text}.".replace("?.", "?"), WIDTH, head, head)


def render_draft(draft: Draft) -> str:
    """The whole file."""
    name = variable(draft)
    blocks = [_docstring(draft), *_imports(draft)]
    blocks += _spaced(draft.definitions)
    if draft.lines:
        blocks.append("\n".join(["", "", *_observe(draft)]))
    body = [line for remark in draft.remarks for line in comment(remark)]
    body += _scenario(draft, name).lines(0)
    # One blank line behind imports, two behind what they are followed by.
    blank = ["", ""] if draft.definitions or draft.lines else [""]
    return "\n".join([*blocks, *blank, *body]) + "\n"


def variable(draft: Draft) -> str:
    """The scenario's name."""
    last = draft.target.replace(":", ".").rpartition(".")[2]
    return f"{'_'.join(words(last)) or 'registry'}_in_any_order"


def _docstring(draft: Draft) -> str:
    lines = (
        f'"""Does the order of registering with {draft.target} make a difference?',
        "",
        "Begun by `everyorder write`, which tried what works. What it could not know",
        "is marked TODO: decide it, and delete the mark.",
        '"""',
        "",
    )
    return "\n".join(lines)


def _imports(draft: Draft) -> list[str]:
    """Imports by section: the standard library, others, the project's own."""
    face = f"from {PACKAGE} import Scenario, step{', use' if draft.uses else ''}"
    sections: list[list[str]] = [[], [], []]
    for module in draft.imports:
        top = module.partition(".")[0]
        place = 0 if top in sys.stdlib_module_names else 2 if draft.own else 1
        sections[place].append(f"import {module}")
    if draft.lines and draft.kind != "class":
        sections[0].append("from typing import Any")
    sections[1].append(face)
    found: list[str] = []
    for section in filter(None, sections):
        if found:
            found.append("")
        plain = sorted(each for each in section if each.startswith("import"))
        found += [*plain, *(each for each in section if each not in plain)]
    return found


def _spaced(definitions: Sequence[str]) -> list[str]:
    """Definitions with two blank lines around functions and classes."""
    found: list[str] = []
    was_block = True
    for text in definitions:
        is_block = text.startswith(("def ", "class "))
        if is_block or was_block:
            found += ["", ""] if is_block or found else [""]
        found.append(text.rstrip("\n"))
        was_block = is_block
    return found


def _observe(draft: Draft) -> list[str]:
    owner = draft.registry if draft.kind == "class" else "Any"
    found = [
        f"def observe(registry: {owner}) -> str:",
        '    """What must depend on nothing but the active steps."""',
    ]
    remarks = dict.fromkeys(each.remark for each in draft.lines if each.remark)
    for remark in remarks:
        found += comment(remark.replace("unordered=True", "sorted()"), 4)
    texts = [(each.ask.removeprefix("registry."), _text(each)) for each in draft.lines]
    if len(texts) == 1:
        return [*found, f"    return str({texts[0][1]})"]
    parts = tuple(f'f"{title}: {{{text}}}"' for title, text in texts)
    returned = SourceCall(
        'return "\\n".join', (SourceCall("", parts, open="[", close="]"),)
    )
    line = returned.line
    if line is not None and len(line) <= WIDTH - 4:
        return [*found, f"    {line}"]
    return [
        *found,
        *SourceCall("lines = ", parts, open="[", close="]").lines(4),
        '    return "\\n".join(lines)',
    ]


def _text(use: UseDraft) -> str:
    """A look as an expression of text."""
    if not use.unordered:
        return use.ask
    ask = use.ask
    if ask.startswith("list("):
        ask = ask.removeprefix("list(").removesuffix(")")
    return f"sorted({ask})"


def _scenario(draft: Draft, name: str) -> SourceCall:
    remarks: list[str] = []
    arguments: list[str | SourceCall] = []
    for each in draft.steps:
        # What is true of several steps is said of the first.
        arguments.append(_step(each, each.remark not in remarks))
        remarks.append(each.remark)
    if draft.uses:
        uses = tuple(_use(each) for each in draft.uses)
        arguments.append(SourceCall("uses=", uses, open="[", close="]"))
    guess = "what it is made with is a guess; is it right?" if draft.guessed else ""
    create = f"create=lambda: {draft.create}"
    if draft.create == f"{draft.registry}()":
        create = f"create={draft.registry}"
    arguments.append(
        SourceCall(create, (), (guess,) if guess else (), open="", close="")
    )
    if draft.lines:
        arguments.append("observe=observe")
    if draft.kind in ("module", "object"):
        arguments.append('isolation="fork"')
    return SourceCall(f"{name} = Scenario", tuple(arguments))


def _step(step: StepDraft, remarked: bool) -> SourceCall:
    arguments = [_quoted(step.do), f"lambda registry: {step.do}"]
    if step.undo is None:
        arguments.append("undo=None")
    elif step.undo != RETURNED:
        given = "registry, result" if "result" in step.undo else "registry"
        arguments.append(f"undo=lambda {given}: {step.undo}")
    remarks = (step.remark,) if step.remark and remarked else ()
    return SourceCall("step", tuple(arguments), remarks)


def _use(use: UseDraft) -> SourceCall:
    arguments = [_quoted(use.ask), f"lambda registry: {use.ask}"]
    if use.unordered:
        arguments.append("unordered=True")
    return SourceCall("use", tuple(arguments), (use.remark,) if use.remark else ())


def _quoted(text: str) -> str:
    """A text as a literal, in single quotation marks only if it has double ones."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# How long all trials may take together.
SECONDS = 30.0

# An interpreter of its own, and the target, have to be loaded first.
START_SECONDS = 60.0

PACKAGE_FOLDER = Path(__file__).parents[4]

_SCRIPT = (
    "import sys; sys.path.insert(0, {home!r}); "
    "from everyorder.harness.tools.scaffold.process import serve; serve()"
)


def scenario_text(
    target: str, *, path: str | Path = ".", seconds: float = SECONDS
) -> str:
    """The text of a scenario of the target, for which `seconds` may be spent.

    `path` is the folder to import it from first.

    Raises:
        NotFound: there is nothing of that name, or nothing of it registers.
        BadArgument: it acts on the machine, or no registry can be made.
        TrialEnded: it ended the process it was tried in, or stood still.
    """
    folder = str(Path(path).resolve())
    script = _SCRIPT.format(home=str(PACKAGE_FOLDER))
    with TemporaryDirectory() as empty:
        process = subprocess.Popen(  # noqa: S603  # this interpreter and ourselves
            [sys.executable, "-P", "-c", script, target, folder, str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=empty,
            start_new_session=True,
        )
        try:
            told, errors = process.communicate(timeout=seconds + START_SECONDS)
        except subprocess.TimeoutExpired:
            reason = "it did not come to an end"
            raise TrialEnded(target=target, reason=reason) from None
        finally:
            process.kill()
            process.wait()
    if not told:
        said = errors.decode(errors="replace").strip().rpartition("\n")[2]
        reason = f"its process ended with exit code {process.returncode}"
        if said:
            reason += f", saying {said!r}"
        raise TrialEnded(target=target, reason=reason)
    found: Draft | HarnessError = pickle.loads(told)  # noqa: S301  # of ourselves
    if isinstance(found, HarnessError):
        raise found
    return render_draft(found)


def serve() -> None:
    """Draft what the command line names, and write it to where the output was."""
    target, folder, seconds = sys.argv[1:]
    sys.argv[1:] = []
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        found: Draft | HarnessError = draft_of(target, folder, float(seconds))
    except HarnessError as error:
        found = error
    with os.fdopen(output, "wb") as pipe:
        pipe.write(pickle.dumps(found))
        pipe.flush()
    os._exit(0)
