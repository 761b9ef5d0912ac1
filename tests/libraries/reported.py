"""Faults from public reports of libraries that the locked versions still have.

Each docstring names the report.  Most of them are as intended there, or not worth a
fix: a history shows them all the same.
"""

from dataclasses import dataclass
from typing import Any

from everyorder import Scenario, step, steps, use
from tests.libraries.answers import answers


def omegaconf_cached_resolver() -> Scenario:
    """Clearing a resolver keeps its answers: omry/omegaconf#637."""
    from omegaconf import OmegaConf
    from omegaconf.errors import UnsupportedInterpolationType

    def create() -> Any:
        OmegaConf.clear_resolvers()
        return OmegaConf.create({"x": "${added:0}"})

    def register(config: Any, number: int) -> None:
        OmegaConf.register_new_resolver("added", lambda x: x + number, use_cache=True)

    def value(config: Any) -> tuple[str, ...]:
        return answers(UnsupportedInterpolationType, config.__getitem__, ["x"])

    def clear(config: Any, registered: None) -> None:
        OmegaConf.clear_resolver("added")

    return Scenario(
        step("register(1)", lambda config: register(config, 1), undo=clear),
        step(
            "register(2)",
            lambda config: register(config, 2),
            undo=clear,
            excludes="register(1)",
        ),
        uses=[use("x", value)],
        create=create,
    )


def pint_defined_after_use() -> Scenario:
    """A definition does not clear the cache of conversions: hgrecco/pint#922."""
    from pint import UnitRegistry

    def converted(registry: Any) -> float:
        return float(registry.Quantity(1, "kilometer").to("meter").magnitude)

    return Scenario(
        step("define", lambda it: it.define("kilometer = 7 meter"), undo=None),
        uses=[use("kilometer", converted)],
        create=lambda: UnitRegistry(None, cache_folder=None),
        given=[
            step("meter", lambda it: it.define("meter = [length]"), undo=None),
            step("kilo", lambda it: it.define("kilo- = 1000"), undo=None),
        ],
    )


@dataclass
class Inner:
    """A value of `Outer`."""

    number: int


@dataclass
class Outer:
    """A class that has a hook of its own and one of its value's class."""

    inner: Inner


def cattrs_generated_hooks() -> Scenario:
    """A generated function holds the hooks of its time: python-attrs/cattrs#630."""
    from cattrs import Converter
    from cattrs.gen import make_dict_unstructure_fn

    def generate(converter: Any) -> None:
        function = make_dict_unstructure_fn(Outer, converter)
        converter.register_unstructure_hook(Outer, function)

    return Scenario(
        step(
            "register(Inner)",
            lambda it: it.register_unstructure_hook(Inner, lambda inner: "inner"),
            undo=None,
        ),
        step("register(Outer)", generate, undo=None),
        uses=[use("unstructure", lambda it: str(it.unstructure(Outer(Inner(1)))))],
        create=Converter,
    )


def markdown_footnotes() -> Scenario:
    """Footnotes remain for the next text: Python-Markdown/markdown#663."""
    from markdown import Markdown
    from markdown.preprocessors import Preprocessor

    class Upper(Preprocessor):  # type: ignore[misc]  # it need not be installed
        """Writes in capitals."""

        def run(self, lines: list[str]) -> list[str]:
            return [line.upper() for line in lines]

    def register(converter: Any) -> None:
        converter.preprocessors.register(Upper(), "upper", 100)

    def deregister(converter: Any, registered: None) -> None:
        converter.preprocessors.deregister("upper")

    return Scenario(
        step("register(upper)", register, undo=deregister),
        uses=[
            use("footnote", lambda it: it.convert("A[^1]\n\n[^1]: B").count("\n")),
            use("plain", lambda it: it.convert("plain")),
        ],
        create=lambda: Markdown(extensions=["footnotes"]),
    )


def structlog_cached_logger() -> Scenario:
    """A used logger keeps its configuration: wimglenn/pytest-structlog#10."""
    import structlog

    def configure(prefix: str) -> None:
        structlog.configure(
            processors=[lambda logger, method, event: prefix + event["event"]],
            logger_factory=structlog.ReturnLoggerFactory(),
            cache_logger_on_first_use=True,
        )

    def create() -> Any:
        configure("")
        return structlog.get_logger()

    return Scenario(
        step(
            "configure",
            lambda logger: configure("test: "),
            undo=lambda logger, configured: configure(""),
        ),
        uses=[use("info", lambda logger: logger.info("saved"))],
        create=create,
    )


def flask_refused_rule() -> Scenario:
    """A rule that was refused remains in the map: pallets/flask#6143."""
    from flask import Flask

    def view(name: str) -> Any:
        return lambda: name

    def add(app: Any, path: str) -> None:
        app.add_url_rule(path, "same", view(path))

    return Scenario(
        *steps("add_url_rule", ["/a", "/b"], add, undo=None),
        uses=[
            use("rules", lambda app: sorted(map(str, app.url_map.iter_rules()))),
        ],
        create=lambda: Flask("books", static_folder=None),
    )


def werkzeug_same_rule() -> Scenario:
    """Of two equal rules the first one is matched: pallets/werkzeug#3037."""
    from werkzeug.exceptions import NotFound
    from werkzeug.routing import Map, Rule

    def matched(rules: Any) -> tuple[str, ...]:
        adapter = rules.bind("example.org")
        return answers(NotFound, lambda path: adapter.match(path)[0], ["/test"])

    return Scenario(
        *steps(
            "add",
            ["first", "second"],
            lambda rules, name: rules.add(Rule("/test", endpoint=name)),
            undo=None,
        ),
        uses=[use("match", matched)],
        create=Map,
    )


def multipledispatch_ambiguity() -> Scenario:
    """An ambiguous call chooses by registration: mrocklin/multipledispatch#25."""
    from multipledispatch import Dispatcher

    signatures = {"left": (float, object), "right": (object, float)}

    def add(dispatcher: Any, name: str) -> None:
        dispatcher.add(signatures[name], lambda one, other: name)

    def called(dispatcher: Any) -> tuple[str, ...]:
        return answers(
            NotImplementedError, lambda pair: dispatcher(*pair), [(1.0, 2.0)]
        )

    return Scenario(
        *steps("add", [*signatures], add, undo=None),
        uses=[use("call", called)],
        create=lambda: Dispatcher("choose"),
    )


def jinja2_constant_filter() -> Scenario:
    """A filter of a constant is called at compile time only: pallets/jinja#1752."""
    from jinja2 import DictLoader, Environment, TemplateError

    def add(environment: Any) -> None:
        environment.filters["more"] = lambda number: number + 1

    def remove(environment: Any, added: None) -> None:
        del environment.filters["more"]

    def rendered(environment: Any) -> tuple[str, ...]:
        return answers(
            TemplateError, lambda name: environment.get_template(name).render(), ["t"]
        )

    return Scenario(
        step("add", add, undo=remove),
        uses=[use("render", rendered)],
        create=lambda: Environment(loader=DictLoader({"t": "{{ 1|more }}"})),
    )


def yaml_derived_loader() -> Scenario:
    """A derived loader copies the constructors of its base: yaml/pyyaml#221."""
    import yaml

    class Loaders:
        """A loader, and one that is derived from it."""

        def __init__(self) -> None:
            class Base(yaml.SafeLoader):  # type: ignore[misc]  # need not be installed
                """A loader with constructors of its own."""

            class Derived(Base):
                """A loader with more of them."""

            self.base: Any = Base
            self.derived: Any = Derived

        def load(self) -> tuple[str, ...]:
            def loaded(text: str) -> Any:
                return yaml.load(text, self.derived)

            return answers(yaml.YAMLError, loaded, ["!base x", "!derived x"])

    def add(loader: Any, name: str) -> None:
        loader.add_constructor(f"!{name}", lambda it, node: name)

    return Scenario(
        step("add(base)", lambda it: add(it.base, "base"), undo=None),
        step("add(derived)", lambda it: add(it.derived, "derived"), undo=None),
        uses=[use("load", Loaders.load)],
        create=Loaders,
    )
