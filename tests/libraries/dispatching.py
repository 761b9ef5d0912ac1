"""Functions chosen by types, converters of types, and providers of dependencies."""

from typing import Any

from everyorder import Scenario, step, steps, use
from tests.libraries.answers import answers

TYPES = {"int": int, "str": str, "list": list}
VALUES = (1, "text", [2])


def name_of(value: Any) -> str:
    """Return the name of a value's class."""
    return type(value).__name__


def multipledispatch_dispatcher() -> Scenario:
    from multipledispatch import Dispatcher

    def add(dispatcher: Any, name: str) -> None:
        dispatcher.add((TYPES[name],), name_of)

    return Scenario(
        *steps("add", [*TYPES], add, undo=None),
        uses=[
            use("call", lambda called: answers(NotImplementedError, called, VALUES)),
            use("dispatch(bool)", lambda called: called.dispatch(bool) is not None),
        ],
        create=lambda: Dispatcher("describe"),
    )


def plum_function() -> Scenario:
    from plum import Function, NotFoundLookupError, Signature

    def describe(value: Any) -> str:
        return name_of(value)

    def create() -> Any:
        return Function(describe, owner=None)

    def add(function: Any, name: str) -> None:
        function.register(describe, signature=Signature(TYPES[name]))

    return Scenario(
        *steps("register", [*TYPES], add, undo=None),
        uses=[
            use("call", lambda called: answers(NotFoundLookupError, called, VALUES)),
            use("methods", lambda called: len(called.methods)),
        ],
        create=create,
    )


def zope_adapters() -> Scenario:
    from zope.interface import Interface, implementedBy
    from zope.interface.adapter import AdapterRegistry

    def register(registry: Any, name: str) -> None:
        registry.register([implementedBy(TYPES[name])], Interface, "", name)

    def unregister(registry: Any, name: str) -> None:
        registry.unregister([implementedBy(TYPES[name])], Interface, "", name)

    def looked_up(registry: Any) -> tuple[Any, ...]:
        kinds = (*TYPES.values(), bool)
        return tuple(registry.lookup1(implementedBy(kind), Interface) for kind in kinds)

    return Scenario(
        *steps("register", [*TYPES], register, undo=unregister),
        uses=[
            use("lookup1", looked_up),
            use(
                "registered",
                lambda registry: registry.registered([implementedBy(int)], Interface),
            ),
        ],
        create=AdapterRegistry,
    )


def cattrs_hooks() -> Scenario:
    from cattrs import Converter

    def register(converter: Any, name: str) -> None:
        converter.register_unstructure_hook(TYPES[name], lambda value: f"{name}!")

    return Scenario(
        *steps("register_unstructure_hook", [*TYPES], register, undo=None),
        uses=[
            use("unstructure", lambda it: [str(it.unstructure(v)) for v in VALUES]),
            use("unstructure(bool)", lambda it: str(it.unstructure(True))),
        ],
        create=Converter,
    )


def yaml_constructors() -> Scenario:
    import yaml

    def new_loader() -> Any:
        class Loader(yaml.SafeLoader):  # type: ignore[misc]  # it need not be installed
            """A loader with constructors of its own."""

        return Loader

    def add(loader: Any, name: str) -> None:
        kind = TYPES[name]
        loader.add_constructor(
            f"!{name}", lambda it, node: kind.__name__ + it.construct_scalar(node)
        )

    def loaded(loader: Any) -> tuple[str, ...]:
        texts = [f"!{name} value" for name in TYPES]
        return answers(yaml.YAMLError, lambda text: yaml.load(text, loader), texts)

    return Scenario(
        *steps("add_constructor", [*TYPES], add, undo=None),
        uses=[
            use("load", loaded),
            use("is_own", lambda loader: "yaml_constructors" in vars(loader)),
        ],
        create=new_loader,
    )


class Engine:
    """A service."""


class Store:
    """Another service."""


class Mailer:
    """A third one."""


SERVICES = {"Engine": Engine, "Store": Store, "Mailer": Mailer}


def punq_container() -> Scenario:
    from punq import Container, MissingDependencyError

    def register(container: Any, name: str) -> None:
        container.register(name, factory=SERVICES[name])

    def resolved(container: Any) -> tuple[str, ...]:
        def resolve(name: str) -> str:
            return name_of(container.resolve(name))

        return answers(MissingDependencyError, resolve, SERVICES)

    return Scenario(
        *steps("register", [*SERVICES], register, undo=None),
        uses=[
            use("resolve", resolved),
            use("resolve_all", lambda it: len(it.resolve_all("Engine"))),
        ],
        create=Container,
    )


def lagom_container() -> Scenario:
    from lagom import Container

    def define(container: Any, name: str) -> None:
        container[SERVICES[name]] = SERVICES[name]()

    def resolved(container: Any) -> tuple[bool, ...]:
        kinds = SERVICES.values()
        return tuple(container[kind] is container[kind] for kind in kinds)

    def defined(container: Any) -> tuple[str, ...]:
        kinds = container.defined_types
        return tuple(sorted(name for name, kind in SERVICES.items() if kind in kinds))

    return Scenario(
        *steps("define", [*SERVICES], define, undo=None),
        uses=[use("defined_types", defined), use("resolve", resolved)],
        create=Container,
    )


def injector_binder() -> Scenario:
    from injector import Injector, UnsatisfiedRequirement

    def bind(injector: Any, name: str) -> None:
        injector.binder.bind(SERVICES[name], to=SERVICES[name]())

    def resolved(injector: Any) -> tuple[str, ...]:
        def resolve(kind: type) -> str:
            return name_of(injector.get(kind))

        return answers(UnsatisfiedRequirement, resolve, SERVICES.values())

    return Scenario(
        *steps("bind", [*SERVICES], bind, undo=None),
        uses=[
            use("get", resolved),
            use("has_binding_for", lambda it: it.binder.has_binding_for(Engine)),
        ],
        create=lambda: Injector(auto_bind=False),
    )


def jsonschema_formats() -> Scenario:
    from jsonschema import FormatChecker

    def checks(checker: Any, name: str) -> None:
        checker.checks(name)(lambda value: value == name)

    def forget(checker: Any, name: str) -> None:
        del checker.checkers[name]

    def conforming(checker: Any) -> tuple[bool, ...]:
        return tuple(checker.conforms("int", name) for name in TYPES)

    return Scenario(
        *steps("checks", [*TYPES], checks, undo=forget),
        uses=[
            use("conforms", conforming),
            use("checkers", lambda checker: sorted(checker.checkers)),
        ],
        create=lambda: FormatChecker(formats=()),
    )


def pint_units() -> Scenario:
    from pint import UndefinedUnitError, UnitRegistry

    units = {"smoot": "1.7018 meter", "fathomette": "2 meter", "shake": "1e-8 second"}

    def converted(registry: Any) -> tuple[str, ...]:
        def magnitude(name: str) -> float:
            return float(registry.Quantity(3, name).to_base_units().magnitude)

        return answers(UndefinedUnitError, magnitude, units)

    return Scenario(
        *steps(
            "define",
            [*units],
            lambda registry, name: registry.define(f"{name} = {units[name]}"),
            undo=None,
        ),
        uses=[
            use("to_base_units", converted),
            use("contains", lambda registry: "smoot" in registry),
        ],
        create=lambda: UnitRegistry(None, cache_folder=None),
        given=[
            step("meter", lambda it: it.define("meter = [length]"), undo=None),
            step("second", lambda it: it.define("second = [time]"), undo=None),
        ],
    )
