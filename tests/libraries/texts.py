"""Filters, rules and directives of templates and markup."""

from typing import Any

from everyorder import Scenario, steps, use
from tests.libraries.answers import answers

NAMES = ("alpha", "beta", "gamma")


def jinja2_filters() -> Scenario:
    from jinja2 import Environment, TemplateAssertionError

    def add(environment: Any, name: str) -> None:
        environment.filters[name] = lambda value: f"{name}({value})"

    def remove(environment: Any, name: str) -> None:
        del environment.filters[name]

    def rendered(environment: Any) -> tuple[str, ...]:
        def render(name: str) -> Any:
            return environment.from_string(f"{{{{ 1|{name} }}}}").render()

        return answers(TemplateAssertionError, render, NAMES)

    return Scenario(
        *steps("add", NAMES, add, undo=remove),
        uses=[
            use("render", rendered),
            use("filters", lambda environment: len(environment.filters)),
        ],
        create=Environment,
    )


def markdown_preprocessors() -> Scenario:
    from markdown import Markdown
    from markdown.preprocessors import Preprocessor

    class Mark(Preprocessor):  # type: ignore[misc]  # it need not be installed
        """Replaces one word."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.word = name

        def run(self, lines: list[str]) -> list[str]:
            return [line.replace(self.word, self.word.upper()) for line in lines]

    def register(converter: Any, name: str) -> None:
        converter.preprocessors.register(Mark(name), name, 5 + len(name))

    def deregister(converter: Any, name: str) -> None:
        converter.preprocessors.deregister(name)

    def converted(converter: Any) -> str:
        return str(converter.reset().convert("alpha, beta and gamma"))

    return Scenario(
        *steps("register", NAMES, register, undo=deregister),
        uses=[
            use("convert", converted),
            use("preprocessors", lambda converter: len(converter.preprocessors)),
        ],
        create=Markdown,
    )


def markdown_it_rules() -> Scenario:
    from markdown_it import MarkdownIt

    rules = ("emphasis", "backticks", "link")

    def disable(parser: Any, name: str) -> None:
        parser.disable(name)

    def enable(parser: Any, name: str) -> None:
        parser.enable(name)

    return Scenario(
        *steps("disable", rules, disable, undo=enable),
        uses=[
            use("render", lambda parser: parser.render("*a* `b` [c](d)")),
            use(
                "active",
                lambda parser: sorted(parser.get_active_rules()["inline"]),
            ),
        ],
        create=MarkdownIt,
    )


def mistune_rules() -> Scenario:
    from mistune import create_markdown

    def register(markdown: Any, name: str) -> None:
        def parse(inline: Any, match: Any, state: Any) -> int:
            state.append_token({"type": "text", "raw": name.upper()})
            return int(match.end())

        markdown.inline.register(name, rf"\b{name}\b", parse, before="link")

    return Scenario(
        *steps("register", NAMES, register, undo=None),
        uses=[
            use("convert", lambda markdown: markdown("alpha, beta and gamma")),
            use("rules", lambda markdown: sorted(markdown.inline.rules)),
        ],
        create=create_markdown,
    )


def docutils_directives() -> Scenario:
    from docutils.parsers.rst import Directive, directives

    class Note(Directive):  # type: ignore[misc]  # it need not be installed
        """A directive."""

    def register(registered: Any, name: str) -> None:
        directives.register_directive(name, Note)

    def remove(registered: Any, name: str) -> None:
        del directives._directives[name]

    def new_table() -> Any:
        directives._directives.clear()
        return directives._directives

    return Scenario(
        *steps("register_directive", NAMES, register, undo=remove),
        uses=[
            use("alpha", lambda registered: "alpha" in directives._directives),
            use("registered", lambda registered: sorted(registered)),
        ],
        create=new_table,
    )
