"""Breakers that hide in modules: in those taken as noise, in caches, in the caller's."""

# ruff: noqa: E501  # each row of the table is one source text

from typing import Any

from tests.state.breakers import Place

# Modules of which a proof once left out everything, each with its proper use.
_USES = {
    "re": "re.compile('x' * number)",
    "re._compiler": "re.search('y' * number, 'y')",
    "re._parser": "re.sub('z' * number, '', 'z')",
    "tokenize": "list(tokenize.generate_tokens(iter(['x = 1']).__next__))",
    "traceback": "traceback.format_exception_only(ValueError(str(number)))",
    "importlib._bootstrap": "importlib.import_module('json')",
    "importlib._bootstrap_external": "importlib.import_module('json')",
    "zipimport": "importlib.import_module('json')",
    "everyorder": "len('everyorder')",
    "everyorder.coded_error": "len('everyorder')",
    "everyorder.harness": "len('everyorder')",
    "linecache": "linecache.getline('nowhere.py', number)",
    "pytest": "len('pytest')",
    "bdb": "len('bdb')",
}
_HEAD = """
import importlib, json, linecache, re, sys, tokenize, traceback, types
import {name}
module = sys.modules["{name}"]
"""


class _Hidden(dict[str, Place]):
    def add(self, name: str, load: str, save: str, **others: Any) -> None:
        assert name not in self
        self[name] = Place(load, save, **others)


PLACES = _Hidden()
place = PLACES.add

for name, proper in _USES.items():
    head = _HEAD.format(name=name)
    place(
        f"an attribute of {name}",
        "return module._breaker",
        "module._breaker = number",
        head=head,
        right=proper,
        restore="del module._breaker",
    )
    place(
        f"an attribute of {name} without its name",
        "return getattr(sys.modules[KEY], '_brea' + 'ker')",
        "setattr(sys.modules[KEY], '_brea' + 'ker', number)",
        head=f"{head}\nKEY = '{name}'\ndel module",
        right=proper,
        restore="delattr(sys.modules[KEY], '_brea' + 'ker')",
    )
    place(
        f"a function of {name}",
        "return victim._breaker",
        "victim._breaker = number",
        head=f"{head}\nvictim = next(value for value in vars(module).values() if type("
        "value) is types.FunctionType and value.__module__ != __name__)"
        if name not in ("everyorder", "everyorder.harness")
        else f"{head}\nvictim = module.__getattr__",
        right=proper,
        restore="del victim._breaker",
    )
_TABLES = (
    ("re", "re._cache", "re.compile('x' * number)"),
    ("sys", "sys.path_importer_cache", "len(sys.path)"),
    ("linecache", "linecache.cache", "linecache.getline('nowhere.py', number)"),
    ("tokenize", "tokenize.EXACT_TOKEN_TYPES", "tokenize.EXACT_TOKEN_TYPES['(']"),
    ("token", "token.tok_name", "token.tok_name[1]"),
    ("importlib._bootstrap", "importlib._bootstrap._module_locks", "len('x')"),
    ("importlib._bootstrap", "importlib._bootstrap._blocking_on", "len('x')"),
    ("warnings", "warnings.onceregistry", "len('x')"),
    ("threading", "threading._limbo", "threading.current_thread()"),
    ("platform", "platform._platform_cache", "platform.python_implementation()"),
    ("platform", "platform._sys_version_cache", "platform.python_implementation()"),
    ("everyorder.coded_error", "vars(everyorder.coded_error)", "len('x')"),
    ("json", "__import__('json').decoder.BACKSLASH", "json.loads('[1]')"),
    (
        "logging",
        "logging.getLogger('breaker')._cache",
        "logging.getLogger('breaker').isEnabledFor(10)",
    ),
    ("enum", "re.RegexFlag._value2member_map_", "re.RegexFlag(number)"),
    ("functools", "generic._clear_cache.__self__.data", "generic(number)"),
    ("copyreg", "copyreg.dispatch_table", "len(copyreg.dispatch_table)"),
    ("encodings", "encodings._cache", "'x'.encode('utf-8')"),
    ("mimetypes", "mimetypes.types_map", "len('x')"),
    ("os", "vars(os)", "os.path.join('a', 'b')"),
    ("builtins", "vars(builtins)", "len('x')"),
    ("sys", "sys.__dict__", "len(sys.argv)"),
)
for name, table, proper in _TABLES:
    head = f"import {name}, functools, re, weakref\n\n@functools.singledispatch\ndef generic(value):\n    return 0\n"
    if name != "functools":
        head = f"import {name}, re\n"
    place(
        f"an entry of {table}",
        f"return {table}.get('_breaker', 0)",
        f"{table}['_breaker'] = number",
        head=head,
        right=proper,
        restore=f"{table}.pop('_breaker', None)",
    )
# Attributes that are written elsewhere for other purposes.
_ATTRIBUTES = (
    ("sys", "sys.last_value", "sys.exc_info()"),
    ("sys", "sys.last_type", "sys.exc_info()"),
    ("sys", "sys.last_traceback", "sys.exc_info()"),
    ("sys", "sys.last_breaker", "sys.exc_info()"),
    ("warnings", "warnings.onceregistry", "len('x')"),
    ("threading", "threading._breaker", "threading.current_thread()"),
    ("platform", "platform._uname_cache", "platform.python_implementation()"),
    ("platform", "platform._os_release_cache", "platform.python_implementation()"),
    ("weakref", "weakref.finalize._dirty", "len('x')"),
    ("weakref", "weakref.finalize._index_iter", "len('x')"),
    ("asyncio", "asyncio.tasks._breaker_tasks", "asyncio.iscoroutine(1)"),
    ("asyncio", "asyncio.events._breaker", "asyncio.iscoroutine(1)"),
    ("re", "re.RegexFlag.__slotnames__", "re.RegexFlag(number)"),
    ("enum", "enum.EnumType._inverted_", "len('x')"),
    ("enum", "re.RegexFlag.ASCII._inverted_", "~re.RegexFlag.ASCII"),
    ("re", "re.Scanner._breaker", "re.compile('x' * number)"),
    ("tokenize", "tokenize.TokenInfo._breaker", "len('x')"),
    ("traceback", "traceback.FrameSummary._breaker", "len('x')"),
    ("traceback", "traceback.TracebackException.format.__doc__", "len('x')"),
    ("importlib.machinery", "importlib.machinery.PathFinder._breaker", "len('x')"),
    ("logging", "logging.Logger._cache", "logging.getLogger('breaker')"),
    (
        "logging",
        "logging.getLogger('breaker')._cache",
        "logging.getLogger('breaker').isEnabledFor(10)",
    ),
    ("logging", "logging.root.manager._breaker", "logging.getLogger('breaker')"),
    ("functools", "functools.cached_property._breaker", "len('x')"),
    ("functools", "functools.singledispatch._breaker", "functools.partial(len)"),
    ("ipaddress", "network.hostmask", "network.hostmask"),
    ("ipaddress", "network.broadcast_address", "network.broadcast_address"),
)
for name, path, proper in _ATTRIBUTES:
    owner, _, attribute = path.rpartition(".")
    head = f"import {name}, re\n"
    if name == "ipaddress":
        head += "network = ipaddress.ip_network('10.0.0.0/8')\n"
    place(
        f"the attribute {path}",
        f"return vars({owner}).get('{attribute}', 0)",
        f"setattr({owner}, '{attribute}', number)",
        head=f"{head}MISSING = object()\nbefore = vars({owner}).get('{attribute}', MISSING)",
        right=proper,
        restore=f"(delattr({owner}, '{attribute}')) if before is MISSING "
        f"else setattr({owner}, '{attribute}', before)",
    )
# Warnings that were shown once.
place(
    "the warning registry of the own module",
    "return __warningregistry__.get('breaker', 0)",
    "__warningregistry__['breaker'] = number",
    head="__warningregistry__ = {}",
    right="len('x')",
)
place(
    "the warning registry of another package",
    "return vars(other)['__warning' + 'registry__'].get('breaker', 0)",
    "vars(other)['__warning' + 'registry__']['breaker'] = number",
    elsewhere="__warningregistry__ = {}",
    right="len('x')",
)
place(
    "an attribute of another package that is named like a warning registry",
    "return getattr(other, '__warning' + 'registry__')",
    "setattr(other, '__warning' + 'registry__', number)",
    right="len('x')",
)
# Globals of the caller, which is the harness.
for depth in (1, 2, 3, 4, 5):
    place(
        f"the globals of caller {depth}",
        f"return sys._getframe({depth} + 1).f_globals.get('_breaker', 0)",
        f"sys._getframe({depth} + 1).f_globals['_breaker'] = number",
        head="import sys",
        right="len('x')",
    )
place(
    "the globals of a frame further out",
    "return home().get('_breaker', 0)",
    "home()['_breaker'] = number",
    head="""
import sys
def home():
    frame = sys._getframe()
    while frame.f_globals is globals():
        frame = frame.f_back
    return frame.f_globals
""",
    right="len('x')",
)
place(
    "the main module",
    "return vars(sys.modules['__main__']).get('_breaker', 0)",
    "vars(sys.modules['__main__'])['_breaker'] = number",
    head="import sys",
    right="len('x')",
    restore="del sys.modules['__main__']._breaker",
)
