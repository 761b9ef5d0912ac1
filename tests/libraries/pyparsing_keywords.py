"""pyparsing: parse actions and alternatives of a small grammar."""

from typing import Any

import pyparsing as pp

from everyorder import Scenario, steps, use

WORDS = {"select": "SELECT", "insert": "INSERT", "delete": "DELETE"}


class Grammar:
    """A language whose statements are added by plugins."""

    def __init__(self) -> None:
        self.statements: dict[str, pp.ParserElement] = {}

    def add(self, name: str) -> None:
        keyword = pp.CaselessKeyword(WORDS[name])
        table = pp.Word(pp.alphas)("table")
        self.statements[name] = keyword + table

    def remove(self, name: str) -> None:
        del self.statements[name]

    def parse(self, text: str) -> Any:
        names = sorted(self.statements)
        if not names:
            return "no statements"
        grammar = pp.MatchFirst([self.statements[name] for name in names])
        try:
            return tuple(grammar.parse_string(text))
        except pp.ParseException as error:
            return f"{error.loc}: {error.msg}"


scenario = Scenario(
    *steps("add", [*WORDS], Grammar.add, undo=Grammar.remove),
    uses=[
        use('parse("select users")', lambda grammar: grammar.parse("select users")),
        use('parse("drop users")', lambda grammar: grammar.parse("drop users")),
    ],
    create=Grammar,
)
