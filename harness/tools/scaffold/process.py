"""The scenario of a target, found in a separate process, as the text of a file.

The target is imported and called only in that process; its output is discarded, it has
no input, and its folder is an empty one.

The file has 88 columns. A call that fits is on one line; otherwise each argument is on
a separate line, with a comma after the last, as formatters leave it. Unknown parts are
comments that begin with TODO.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from everyorder.harness.base.columns import wrap_words
from everyorder.harness.base.errors import HarnessError, TrialEnded
from everyorder.harness.processes.fork import exit_text
from everyorder.harness.tools.scaffold.discovery import draft_of
from everyorder.harness.tools.scaffold.draft import (
    RETURNED,
    Draft,
    StepDraft,
    UseDraft,
    words,
)

# The width of lines, which is the default of formatters.
WIDTH = 88

# The package that the printed file imports.
PACKAGE = "everyorder"


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A call to lay out; `remarks` are printed above it."""

    head: str
    arguments: tuple["str | SourceCall", ...]
    remarks: tuple[str, ...] = ()
    open: str = "("
    close: str = ")"

    @property
    def line(self) -> str | None:
        """Return the call on one line, or None if an argument has a remark."""
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
        """Return the lines of the call, indented; `tail` ends the last."""
        blank = " " * indent
        lines = [line for remark in self.remarks for line in comment(remark, indent)]
        line = self.line
        if line is not None and len(blank + line + tail) <= WIDTH:
            return [*lines, f"{blank}{line}{tail}"]
        lines.append(f"{blank}{self.head}{self.open}")
        for each in self.arguments:
            if isinstance(each, str):
                lines.append(f"{blank}    {each},")
            else:
                lines += each.lines(indent + 4, ",")
        return [*lines, f"{blank}{self.close}{tail}"]


def comment(text: str, indent: int = 0) -> list[str]:
    """Return a remark as `# TODO:` lines."""
    head = " " * indent + "# "
    return wrap_words(f"TODO: {text}.".replace("?.", "?"), WIDTH, head, head)


def render_draft(draft: Draft) -> str:
    """Return the whole file."""
    name = variable(draft)
    blocks = [_docstring(draft), *_imports(draft)]
    blocks += _spaced(draft.definitions)
    if draft.lines:
        blocks.append("\n".join(["", "", *_observe(draft)]))
    body = [line for remark in draft.remarks for line in comment(remark)]
    body += _scenario(draft, name).lines(0)
    # One blank line follows imports, and two follow definitions.
    blank = ["", ""] if draft.definitions or draft.lines else [""]
    return "\n".join([*blocks, *blank, *body]) + "\n"


def variable(draft: Draft) -> str:
    """Return the scenario's name."""
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
    """Return imports by section: the standard library, others, the project's own."""
    face = f"from {PACKAGE} import Scenario, step{', use' if draft.uses else ''}"
    sections: list[list[str]] = [[], [], []]
    for module in draft.imports:
        top = module.partition(".")[0]
        place = 0 if top in sys.stdlib_module_names else 2 if draft.own else 1
        sections[place].append(f"import {module}")
    if draft.lines and draft.kind != "class":
        sections[0].append("from typing import Any")
    sections[1].append(face)
    lines: list[str] = []
    for section in filter(None, sections):
        if lines:
            lines.append("")
        plain = sorted(each for each in section if each.startswith("import"))
        lines += [*plain, *(each for each in section if each not in plain)]
    return lines


def _spaced(definitions: Sequence[str]) -> list[str]:
    """Return definitions with two blank lines around functions and classes."""
    blocks: list[str] = []
    was_block = True
    for text in definitions:
        is_block = text.startswith(("def ", "class "))
        if is_block or was_block:
            blocks += ["", ""] if is_block or blocks else [""]
        blocks.append(text.rstrip("\n"))
        was_block = is_block
    return blocks


def _observe(draft: Draft) -> list[str]:
    owner = draft.registry if draft.kind == "class" else "Any"
    lines = [
        f"def observe(registry: {owner}) -> str:",
        '    """Return the text that must depend on the active steps only."""',
    ]
    remarks = dict.fromkeys(each.remark for each in draft.lines if each.remark)
    for remark in remarks:
        lines += comment(remark.replace("unordered=True", "sorted()"), 4)
    texts = [(each.ask.removeprefix("registry."), _text(each)) for each in draft.lines]
    if len(texts) == 1:
        return [*lines, f"    return str({texts[0][1]})"]
    parts = tuple(f'f"{title}: {{{text}}}"' for title, text in texts)
    returned = SourceCall(
        'return "\\n".join', (SourceCall("", parts, open="[", close="]"),)
    )
    line = returned.line
    if line is not None and len(line) <= WIDTH - 4:
        return [*lines, f"    {line}"]
    return [
        *lines,
        *SourceCall("lines = ", parts, open="[", close="]").lines(4),
        '    return "\\n".join(lines)',
    ]


def _text(use: UseDraft) -> str:
    """Return a look as an expression of text."""
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
        # A remark that is true of several steps is printed for the first.
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
        parameters = "registry, result" if "result" in step.undo else "registry"
        arguments.append(f"undo=lambda {parameters}: {step.undo}")
    remarks = (step.remark,) if step.remark and remarked else ()
    return SourceCall("step", tuple(arguments), remarks)


def _use(use: UseDraft) -> SourceCall:
    arguments = [_quoted(use.ask), f"lambda registry: {use.ask}"]
    if use.unordered:
        arguments.append("unordered=True")
    return SourceCall("use", tuple(arguments), (use.remark,) if use.remark else ())


def _quoted(text: str) -> str:
    """Return a text as a literal, in double quotation marks if possible."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# Time limit for all trials together.
SECONDS = 30.0

# Time to start a new interpreter, and to load the target.
START_SECONDS = 60.0

PACKAGE_FOLDER = Path(__file__).parents[4]

_SCRIPT = (
    "import sys; sys.path.insert(0, {home!r}); "
    "from everyorder.harness.tools.scaffold.process import serve; serve()"
)


def scenario_text(
    target: str, *, path: str | Path = ".", seconds: float = SECONDS
) -> str:
    """Return the text of a scenario of the target, after trials of at most `seconds`.

    `path` is the first folder of its imports.

    Raises:
        NotFound: the target does not exist, or has no functions that register.
        BadArgument: it acts on the machine, or no registry can be created.
        TrialEnded: it ended the process of the trials, or hung.
    """
    folder = str(Path(path).resolve())
    script = _SCRIPT.format(home=str(PACKAGE_FOLDER))
    with TemporaryDirectory() as empty:
        try:
            process = subprocess.run(  # noqa: S603  # this interpreter and ourselves
                [sys.executable, "-P", "-c", script, target, folder, str(seconds)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=empty,
                start_new_session=True,
                timeout=seconds + START_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = "it did not end"
            raise TrialEnded(target=target, reason=reason) from None
    if not process.stdout:
        last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = f"its process ended with {exit_text(process.returncode)}"
        if last_line:
            reason += f", and printed {last_line!r}"
        raise TrialEnded(target=target, reason=reason)
    draft: Draft | HarnessError = pickle.loads(process.stdout)  # noqa: S301  # of ourselves
    if isinstance(draft, HarnessError):
        raise draft
    return render_draft(draft)


def serve() -> None:
    """Draft the target of the command line, and write it to the original output."""
    target, folder, seconds = sys.argv[1:]
    sys.argv[1:] = []
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        draft: Draft | HarnessError = draft_of(target, folder, float(seconds))
    except HarnessError as error:
        draft = error
    with os.fdopen(output, "wb") as pipe:
        pipe.write(pickle.dumps(draft))
    os._exit(0)
