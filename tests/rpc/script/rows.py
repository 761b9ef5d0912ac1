"""The rows of what programs have to do with remote calls, and the tests that play them.

True only here: the list, by section of the specification: `(row, tests...)`.  A test
is `file::name`, in this folder unless it begins with another folder of `tests`.  What
is left out is in `LEFT_OUT`, with the reason.
"""

Rows = tuple[tuple[str, ...], ...]

CALLS = "test_calls"
GRAPHS = "test_graphs"
REFERENCES = "test_references"
ABSENT = "test_absent"
WORLD_CALLS = "test_calls_in_worlds"
WORLD_REFERENCES = "test_references_in_worlds"
WRONG = "test_wrong_calls::test_what_is_said_of_a_wrong_program"
REACHED = "test_wrong_calls::test_every_place_that_raises_is_reached"
SAVED = f"{GRAPHS}::test_a_program_is_saved_and_loaded"


def _of(file: str, *names: str) -> Rows:
    """Rows that are called as their tests are."""
    return tuple((name, f"{file}::{name}") for name in names)


# What no test shows, and why.
LEFT_OUT: dict[str, str] = {
    "test_load_script_module_with_pickled_rref": (
        "there is no flag that lets a file hold a reference: whoever loads it need not "
        "be a member, and no owner could count it"
    ),
}

ROWS: dict[str, Rows] = {
    "0": (
        (
            "0.1 the listing of document 000",
            "test_document::test_the_listing_compiles_and_runs",
            f"{WORLD_CALLS}::test_document_000",
        ),
        (
            "0.2 keyword arguments are not expanded",
            "script/test_spec_boundaries::test_keyword_arguments_are_not_expanded_at_a_call",
        ),
        (
            "0.3 a variable list of inputs",
            f"{GRAPHS}::test_what_is_left_out_is_not_there",
        ),
        (
            "0.4 a kind, a form, what runs",
            f"{GRAPHS}::test_the_full_form",
            f"{GRAPHS}::test_effects_and_sharing",
            f"{CALLS}::test_what_is_sent",
        ),
        (
            "0.5 remote calls may be absent",
            f"{ABSENT}::test_without_the_package_everything_else_works",
        ),
        (
            "0.6 by fork and by spawn",
            f"{WORLD_CALLS}::test_torchscript_function",
            f"{WORLD_CALLS}::test_call_python_function_remotely_from_script_not_supported",
        ),
        (
            "0.7 types of references by looking at them",
            f"{REFERENCES}::test_types_of_references_by_looking_at_them",
        ),
    ),
    "3": (
        ("3.1 the count, then keywords", WRONG, REACHED),
        (
            "3.2 by the object",
            f"{GRAPHS}::test_a_form_is_found_by_its_object",
        ),
        ("3.3 the callee's schema decides", WRONG, f"{GRAPHS}::test_the_full_form"),
        ("3.4 errors of compiling", WRONG, REACHED),
        (
            "3.5 nodes and types",
            f"{GRAPHS}::test_the_full_form",
            f"{GRAPHS}::test_what_is_left_out_is_not_there",
            f"{GRAPHS}::test_what_no_program_is_compiled_to_is_refused_in_a_text",
        ),
        (
            "3.5 effects",
            f"{GRAPHS}::test_calls_are_neither_left_out_nor_merged",
            f"{GRAPHS}::test_calls_stay_in_their_order",
        ),
        ("3.5 wildcards", f"{GRAPHS}::test_results_may_be_anybodys"),
        (
            "3.5 text and archives",
            SAVED,
            f"{GRAPHS}::test_the_text_of_a_program",
            f"{GRAPHS}::test_an_archive_is_not_loaded_where_remote_calls_are_not",
        ),
        ("3.6 the worker", f"{CALLS}::test_a_worker_is_a_name_or_an_info"),
        ("3.6 a worker that nobody is", f"{WORLD_CALLS}::test_a_worker_that_nobody_is"),
        ("3.6 defaults", f"{CALLS}::test_what_is_sent"),
        (
            "3.6 arguments by name",
            f"{CALLS}::test_arguments_by_name_are_held_against_the_schema",
            f"{CALLS}::test_arguments_of_a_function_that_is_known_by_its_name",
        ),
        (
            "3.6 no worker here",
            f"{CALLS}::test_without_a_worker",
        ),
        (
            "3.6 errors of the other worker",
            f"{CALLS}::test_errors_come_as_they_are_with_the_frames_of_the_caller",
        ),
        (
            "3.7 methods of references",
            f"{REFERENCES}::test_what_a_reference_is_asked",
            WRONG,
        ),
        ("3.7 timeouts", f"{REFERENCES}::test_the_timeout_of_to_here"),
        (
            "3.7 which reference is of a type",
            f"{REFERENCES}::test_which_reference_is_one_of_a_type",
            f"{WORLD_REFERENCES}::test_the_types_of_references_are_known",
        ),
        (
            "3.7 the owner's value itself",
            f"{REFERENCES}::test_the_owners_value_is_written_to",
        ),
        (
            "3.9 taken back",
            f"{GRAPHS}::test_handles_take_all_of_it_back",
            f"{ABSENT}::test_the_order_of_imports_makes_no_difference",
        ),
    ),
    "3.10 RRefAPITest": _of(
        WORLD_REFERENCES,
        "test_rref_is_owner",
        "test_rref_local_value",
        "test_local_rref_local_value",
        "test_user_rrefs_confirmed",
        "test_user_rrefs_confirmed_remote",
        "test_rref_list_mutate",
    ),
    "3.10 RRefTypingTest": _of(
        WORLD_REFERENCES,
        "test_rref_as_arg_and_return",
        "test_my_script_module_with_rrefs",
        "test_rref_python_annotation",
    ),
    "3.10 LocalRRefTest": _of(
        WORLD_REFERENCES,
        "test_create_local_script_class_rref_in_py",
        "test_create_local_script_module_rref_in_py",
        "test_return_local_script_class_rref_in_py_and_use_in_script",
        "test_return_local_script_module_rref_in_py_and_use_in_script",
    ),
    "3.10 JitRpcOpTest": _of(
        WORLD_CALLS,
        "test_all_kwargs_are_populated_by_defaults",
        "test_some_kwargs_are_populated_by_defaults",
        "test_no_kwargs_are_populated_by_defaults",
        "test_args_and_kwargs_contain_different_types",
        "test_kwargs_not_passed",
        "test_args_kwargs_are_neither_passed",
        "test_less_than_needed_args_are_specified",
        "test_more_than_needed_args_are_specified",
        "test_unexepected_kwarg_is_specified",
        "test_call_python_function_remotely_from_script_not_supported",
        "test_call_script_function_that_raises_remotely_from_script",
        "test_call_script_function_that_not_exists_remotely_from_script",
    ),
    "3.10 FutureTypingTest": _of(
        WORLD_CALLS,
        "test_future_passed_between_python_and_jit",
        "test_future_python_annotation",
    ),
    "3.10 JitRpcTest": (
        *_of(
            WORLD_CALLS,
            "test_torchscript_function",
            "test_torchscript_function_exception",
            "test_torchscript_functions_not_supported",
        ),
        *_of(
            WORLD_REFERENCES,
            "test_remote_script_module",
            "test_create_script_module_on_remote",
        ),
        ("test_load_script_module_with_pickled_rref",),
        *_of(WORLD_REFERENCES, "test_rref_jit_pickle_not_supported"),
        *_of(
            WORLD_CALLS,
            "test_remote_script_throw",
            "test_remote_script_udf",
            "test_async_script_udf",
            "test_callback_simple",
            "test_callback_chain",
            "test_add_done_callback",
            "test_async_script_throw",
            "test_callback_with_exception",
        ),
        *_of(
            "test_profiles_in_worlds",
            "test_call_rpc_with_profiling",
            "test_rpc_async_jit_profiled",
            "test_record_function_on_caller_rpc_async",
            "test_rpc_torchscript_record_function",
            "test_record_function_jit_end_callbacks_with_fork",
            "test_call_fork_in_jit_with_profiling",
        ),
        *_of(
            WORLD_CALLS,
            "test_async_function_simple",
            "test_async_function_wrong_return_type",
            "test_async_function_wrong_decorator_order",
            "test_async_function_remote",
            "test_async_function_remote_multi",
            "test_async_function_wrong_return_type_remote",
        ),
    ),
    "3.11": _of(
        WORLD_CALLS,
        "test_timeout_in_torchscript_function",
        "test_timeout_in_python",
        "test_remote_timeout_to_here_in_jit",
        "test_rref_to_here_timeout_in_jit",
        "test_rref_timeout_pickle_in_jit",
        "test_rref_timeout_pickle_script_func",
    ),
    "10": (
        ("D8 what is printed is whole", SAVED),
        (
            "D9 arguments by name are looked at before",
            f"{CALLS}::test_arguments_by_name_are_held_against_the_schema",
        ),
        (
            "D10 what has no default is given by place, or in the very call",
            f"{WORLD_CALLS}::test_less_than_needed_args_are_specified",
            SAVED,
        ),
        ("D12 the default timeout", f"{REFERENCES}::test_the_timeout_of_to_here"),
    ),
}
