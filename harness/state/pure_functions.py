"""Which C functions are pure, and which impure ones are called soundly.

The rules are in `c_call_audit.py`, which lists the calls.
"""

from collections.abc import Mapping

# By module: functions, `Type.method`, `Type.*` for all methods of a type, `*` for all
# functions and methods.  Left out, because they depend on hidden state: `id` and `hash`
# (addresses, the hash seed), `print`, `open`, `input` (streams), `__sizeof__` of any
# object (capacity), `pickle.dumps` and `marshal.dumps` (they write an object that they
# meet again as a reference, so two equal texts are longer than one text twice),
# `pickle.loads` (it calls what its argument names), and all state of the interpreter
# itself.
PURE: Mapping[str, str] = {
    "builtins": """
        __build_class__ __import__ abs aiter all anext any ascii bin callable chr
        compile delattr dir divmod eval exec format getattr globals hasattr hex
        isinstance issubclass iter len locals max min next oct ord pow repr round
        setattr sorted sum vars
        BaseException.* BaseExceptionGroup.* ImportError.* OSError.*
        SystemExit.* UnicodeDecodeError.* UnicodeEncodeError.* async_generator.*
        async_generator_asend.* async_generator_athrow.* bool.* bytearray.*
        bytearray_iterator.* bytes.* bytes_iterator.* classmethod.* code.* complex.*
        coroutine.* coroutine_wrapper.* dict.* dict_itemiterator.* dict_items.*
        dict_keyiterator.* dict_keys.* dict_reverseitemiterator.*
        dict_reversekeyiterator.* dict_reversevalueiterator.* dict_valueiterator.*
        dict_values.* enumerate.* filter.* float.* frame.clear frozenset.* function.*
        generator.* int.* iterator.* list.* list_iterator.* list_reverseiterator.*
        map.* mappingproxy.* memoryview.* method.* module.* object.* property.* range.*
        range_iterator.* reversed.* set.* set_iterator.* slice.* staticmethod.* str.*
        str_iterator.* super.* traceback.* tuple.* tuple_iterator.* type.* zip.*
    """,
    # They cache functions of classes, unless a hook decides: see `_has_hook`.
    "_abc": "_abc_init _abc_instancecheck _abc_subclasscheck _get_dump",
    # Each fresh system has its own loop; pending tasks are state.
    "_asyncio": "*",
    "_bisect": "*",
    # Without updates of a hash or continued streams: their state shows in no object.
    "_blake2": "blake2b.digest blake2b.hexdigest blake2s.digest blake2s.hexdigest",
    # Without `register` and `lookup`, which writes and reads what no object shows.
    "_codecs": """
        ascii_decode ascii_encode charmap_build charmap_decode charmap_encode decode
        encode escape_decode escape_encode latin_1_decode latin_1_encode
        raw_unicode_escape_decode raw_unicode_escape_encode
        unicode_escape_decode unicode_escape_encode utf_16_be_decode utf_16_be_encode
        utf_16_decode utf_16_encode utf_16_le_decode utf_16_le_encode utf_32_decode
        utf_32_encode utf_7_decode utf_7_encode utf_8_decode utf_8_encode
    """,
    "_collections": "*",
    # A context variable is state that the canonical form reads by its current value.
    "_contextvars": "copy_context Context.* ContextVar.* Token.*",
    "_csv": "reader writer",
    "_functools": "*",
    "_heapq": "*",
    "_io": "text_encoding BytesIO.* StringIO.*",
    "_json": "*",
    "_md5": "md5 md5.digest md5.hexdigest",
    "_operator": "*",
    "_queue": "SimpleQueue.*",
    "_sha1": "sha1 sha1.digest sha1.hexdigest",
    "_sha2": """
        sha224 sha256 sha384 sha512 SHA224Type.digest SHA224Type.hexdigest
        SHA256Type.digest SHA256Type.hexdigest SHA384Type.digest SHA384Type.hexdigest
        SHA512Type.digest SHA512Type.hexdigest
    """,
    "_sre": """
        ascii_iscased ascii_tolower compile getcodesize template unicode_iscased
        unicode_tolower
    """,
    "_stat": "*",
    "_statistics": "*",
    "_string": "*",
    "_struct": "*",
    # There is one thread, so its number is a constant.
    "_thread": "allocate_lock get_ident RLock.* _local.* lock.*",
    "_typing": "*",
    # Without the number of weak references, which no form has.
    "_weakref": "_remove_dead_weakref getweakrefs proxy",
    "array": "*",
    "binascii": "*",
    "cmath": "*",
    "collections": "*",
    # Without `now`, `today`, `timestamp` and the like, which read clock or time zone.
    "datetime": """
        date.__format__ date.__reduce__ date.ctime date.fromisocalendar
        date.fromisoformat date.fromordinal date.isocalendar date.isoformat
        date.isoweekday date.replace date.strftime date.timetuple date.toordinal
        date.weekday datetime.__reduce__ datetime.__reduce_ex__ datetime.combine
        datetime.ctime datetime.date datetime.dst datetime.fromisoformat
        datetime.isoformat datetime.replace datetime.strptime datetime.time
        datetime.timetuple datetime.timetz datetime.tzname datetime.utcoffset
        datetime.utctimetuple time.* timedelta.* timezone.*
    """,
    "decimal": "Decimal.*",
    "functools": "*",
    "itertools": "*",
    "marshal": "loads",
    "math": "*",
    "numpy": """
        arange array asanyarray asarray ascontiguousarray bincount can_cast concatenate
        copyto dot dtype.* frombuffer fromiter generic.* inner lexsort may_share_memory
        min_scalar_type ndarray.* promote_types result_type shares_memory vdot where
        zeros
    """,
    "nt": "fspath",
    "operator": "*",
    "posix": "_path_normpath fspath",
    "re": "*",
    "sys": """
        _getframe call_tracing exc_info exception getdefaultencoding
        getfilesystemencodeerrors getfilesystemencoding intern is_finalizing
    """,
    "types": "*",
    "typing": "*",
    "unicodedata": "*",
    "weakref": "*",
    "zlib": "adler32 compress compressobj crc32 decompress decompressobj",
}
# Exceptions among these.
_OF_TASKS = (
    "_enter_task",
    "_leave_task",
    "_register_eager_task",
    "_register_task",
    "_set_running_loop",
    "_swap_current_task",
    "_unregister_eager_task",
    "_unregister_task",
)
_IMPURE = frozenset(
    {
        # An object is stored for the thread.
        *(("_asyncio", name) for name in _OF_TASKS),
        # The capacity.
        ("builtins", "bytearray.__alloc__"),
        # Where the last search of a set ended is kept in the set.
        ("builtins", "set.pop"),
        # They distinguish equal values, of which the canonical form has one token, or
        # return addresses.
        ("_operator", "is_"),
        ("_operator", "is_not"),
        ("array", "array.buffer_info"),
        ("builtins", "object.__eq__"),
        ("builtins", "object.__hash__"),
        ("builtins", "object.__ne__"),
    }
)
_KNOWN = {module: frozenset(names.split()) for module, names in PURE.items()}

# Impure functions that some modules of the standard library call soundly, with reasons.
SOUND: Mapping[str, frozenset[str]] = {
    # the id identifies an object met before, and is used for nothing else
    "copy": frozenset({"id"}),
    "dataclasses": frozenset({"id"}),
    "inspect": frozenset({"id", "sys.getrecursionlimit"}),
    "json.encoder": frozenset({"id"}),
    "pprint": frozenset({"id"}),
    "reprlib": frozenset({"id"}),
    # a task is entered and left by each step of its coroutine
    "asyncio.tasks": frozenset(f"_asyncio.{name}" for name in _OF_TASKS),
    # a dispatcher clears its cache when the counter of registrations changed
    "functools": frozenset({"_abc.get_cache_token"}),
    # the counter changes with `warnings.filters`, which is a visible list
    "warnings": frozenset({"_warnings._filters_mutated"}),
}
# Those that all modules of the standard library call, of which a program sees nothing
# unless it registered hooks or codecs.
SOUND_IN_LIBRARY = frozenset({"_codecs.lookup", "_codecs.lookup_error", "sys.audit"})
# A hash is used in a hash table, whose order is assumed unread in every proof.
SOUND_IN_HASH = frozenset({"hash", "id"})

# Random results, which no state determines: nothing is proven of their callers.  The
# functions of `random` are not listed: they have a state, which is read.
CHANCE = frozenset({"os.getrandom", "os.urandom", "_uuid.generate_time_safe"})

# Modules that play the operations: pytest, and the event loop, which waits and reads
# the clock for every coroutine; and hypothesis, which measures the collector.
MACHINERY = frozenset(
    {
        "_pytest",
        "asyncio.base_events",
        "asyncio.events",
        "asyncio.runners",
        "asyncio.selector_events",
        "asyncio.unix_events",
        "asyncio.windows_events",
        "hypothesis",
        "pytest",
        "selectors",
    }
)


def sound_in(module: str) -> frozenset[str]:
    """Return the impure functions that a module of the library calls soundly."""
    return SOUND_IN_LIBRARY | SOUND.get(module, frozenset())


def is_pure(module: str, name: str) -> bool:
    """Return True if PURE lists a function, or a method by `Type.method`."""
    if name.endswith("__sizeof__") or (module, name) in _IMPURE:
        return False
    pure_names = _KNOWN.get(module, frozenset())
    return (
        name in pure_names
        or "*" in pure_names
        or f"{name.rpartition('.')[0]}.*" in pure_names
    )
