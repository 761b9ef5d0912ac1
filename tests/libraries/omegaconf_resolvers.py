"""OmegaConf: resolvers of interpolations, which the whole process shares."""

from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import UnsupportedInterpolationType

from everyorder import Scenario, steps, use

RESOLVERS = {
    "double": lambda number: 2 * int(number),
    "upper": lambda word: str(word).upper(),
    "join": lambda *words: "-".join(map(str, words)),
}
CONFIG = {"size": "${double:4}", "name": "${upper:net}", "path": "${join:a,b}"}


def new_config() -> Any:
    OmegaConf.clear_resolvers()
    return OmegaConf.create(CONFIG)


def register(config: Any, name: str) -> None:
    OmegaConf.register_new_resolver(name, RESOLVERS[name])


def clear(config: Any, name: str) -> None:
    OmegaConf.clear_resolver(name)


def values(config: Any) -> tuple[str, ...]:
    answers = []
    for key in CONFIG:
        try:
            answers.append(str(config[key]))
        except UnsupportedInterpolationType:
            answers.append("unsupported")
    return tuple(answers)


scenario = Scenario(
    *steps("register_new_resolver", [*RESOLVERS], register, undo=clear),
    uses=[
        use("values", values),
        use("has_resolver", lambda config: OmegaConf.has_resolver("upper")),
    ],
    create=new_config,
)
