"""The rows of what scripts have to do, and the tests that play them.

True only here: the list, by section of the specification: `(row, tests...)`.  A test
is `folder/module::name`, under `tests`; a row of 2.4 is where futures have it
(`tests.futures.rows`).  What is not there is in `MISSING`, with the reason.

When a row comes or goes, its section's number in `test_rows_covered` does, too.
"""

Rows = tuple[tuple[str, ...], ...]

AWAITS = "script/emission/test_await_script"
FORMS = "script/emission/test_forms"
WRONG = "script/emission/test_wrong::test_what_is_said_is_in_the_file"
WRONG_FORMS = "script/emission/test_wrong_forms::test_what_is_said_of_a_wrong_program"
PYTHONS = "script/emission/test_programs::test_does_what_python_does"
EMITTED = "script/emission/test_programs::test_every_accepted_construct_is_emitted"
GENERATED = "script/emission/test_generated"
REFUSED = "script/frontend/test_language::test_what_is_said_is_what_the_file_has"
OWN_ROW = (
    "script/frontend/test_language::test_a_refused_construct_is_told_by_its_own_row"
)
MODULES = "script/modules/test_refused::test_what_is_said"
BOUNDS = "script/test_spec_boundaries"
SPEC_AWAITS = "script/test_spec_awaits"
RUN = "script/running"

# What no test shows, and why.
MISSING: dict[str, str] = {}

# section -> its rows
ROWS: dict[str, Rows] = {
    "0": (
        (
            "0.2 keyword arguments are not expanded",
            f"{BOUNDS}::test_keyword_arguments_are_not_expanded_at_a_call",
            REFUSED,
        ),
        (
            "0.4 a symbol, a form, an operator of a plug-in",
            f"{FORMS}::test_a_form_of_a_plug_in_is_registered_and_taken_back",
            f"{FORMS}::test_an_operator_of_a_plug_in_is_registered_and_taken_back",
            f"{FORMS}::test_sugar_of_a_class_of_a_plug_in",
            f"{FORMS}::test_registrations_are_taken_back_in_any_order",
            "script/archive/test_code::test_a_plug_in_describes_its_own",
        ),
        (
            "0.7 freezing",
            "script/modules/test_freezing::test_it_computes_the_same",
            "script/modules/test_freezing::test_attributes_are_constants_named_by_their_ways",
        ),
        (
            "0.7 types of values",
            "script/program/test_inference::test_types",
            "script/program/test_inference::test_reasons",
        ),
        (
            "0.7 literals as indices of modules",
            "script/modules/test_compiled::test_it_computes_what_python_does",
            MODULES,
        ),
        (
            "0.7 names of annotations",
            "script/frontend/test_annotations::test_annotations_are_read_where_they_are_written",
            "script/frontend/test_annotations::test_what_is_unknown_is_told_at_its_place",
        ),
        (
            "0.14 one direction",
            "test_architecture::test_a_file_imports_its_own_layer_and_those_above_it",
            "test_architecture::test_futures_know_of_nothing_but_errors_and_locks",
        ),
        (
            "0.15 locks and the order of imports",
            f"{RUN}/test_pool::test_kernels_run_without_the_interpreter_lock",
            f"{BOUNDS}::test_each_package_may_be_imported_first",
        ),
        ("0.16 storages", f"{BOUNDS}::test_a_storage_is_never_absent"),
        (
            "0.17 errors and warnings",
            f"{RUN}/test_backtrace::test_an_operator_raises_its_own_exception_with_a_note",
            f"{RUN}/test_backtrace::test_a_program_raises_the_class_that_it_names",
            f"{RUN}/test_warnings::test_a_filter_turns_a_warning_into_the_error_of_the_call",
            f"{RUN}/test_warnings::test_an_error_on_its_way_stays_and_all_warnings_are_told",
        ),
        (
            "0.18 the interpreter lock",
            f"{RUN}/test_pool::test_kernels_run_without_the_interpreter_lock",
        ),
        (
            "0.19 owners",
            f"{BOUNDS}::test_an_await_owns_its_arguments_until_it_is_gone",
            f"{BOUNDS}::test_a_function_goes_with_the_unit_that_it_is_of",
            f"{RUN}/test_lifetimes::test_behind_the_last_use",
            f"{RUN}/test_pool::test_a_finished_task_keeps_nothing",
            "futures/test_future::test_an_abandoned_future_is_freed_without_the_collector",
            "script/archive/test_jit::test_what_is_loaded_dies_with_its_last_user",
        ),
        (
            "0.20 made when first needed",
            "futures/test_await_attributes::test_a_lazy_module",
            f"{AWAITS}::test_await_getattr_implicit_conversion",
        ),
        (
            "0.21 a type of its own",
            f"{AWAITS}::test_the_type_of_an_await",
            f"{AWAITS}::test_await_of_a_script_is_one_of_python",
        ),
        (
            "0.22 closures that run at the wait",
            f"{AWAITS}::test_nothing_runs_before_the_first_wait",
            f"{RUN}/test_later::test_awaits_run_when_they_are_waited_for",
        ),
        (
            "0.23 the example",
            f"{AWAITS}::test_script",
            "futures/test_await_attributes::test_the_founding_example",
        ),
        (
            "0.24 three functions",
            f"{AWAITS}::test_nothing_runs_before_the_first_wait",
            f"{AWAITS}::test_nowait",
            "futures/test_awaits::test_the_result_is_kept",
        ),
    ),
    "1.9": (
        ("1 python", f"{SPEC_AWAITS}::test_await_python"),
        ("2 type_python", f"{AWAITS}::test_await_type_of_a_list"),
        ("3 script", f"{AWAITS}::test_script"),
        ("4 nowait", f"{AWAITS}::test_nowait"),
        ("5 nowait_class", f"{AWAITS}::test_nowait_class"),
        ("6 class_arg", f"{AWAITS}::test_await_class_arg"),
        ("7 awaitable_to_await", f"{AWAITS}::test_awaitable_to_await"),
        ("8 class_return", f"{AWAITS}::test_await_class_return"),
        ("9 getattr", f"{AWAITS}::test_await_getattr_implicit_conversion"),
        ("10 nested", f"{AWAITS}::test_await_nested"),
        ("11 not scriptable", f"{SPEC_AWAITS}::test_eager_await_non_scriptable"),
        ("12 isinstance", f"{AWAITS}::test_await_isinstance"),
        (
            "13 lazy",
            f"{SPEC_AWAITS}::test_await_eager_lazy",
            f"{AWAITS}::test_await_lazy",
        ),
        ("14 out_of_interpreter", f"{AWAITS}::test_await_out_of_interpreter"),
        (
            "15 jit_trace",
            f"{SPEC_AWAITS}::test_jit_trace",
            "script/tracing/test_recorder::test_an_await_is_recorded_where_it_is_waited_for",
        ),
        (
            "16 multiout_save",
            f"{AWAITS}::test_await_multiout",
            "script/archive/test_jit::test_await_multiout_save",
        ),
        (
            "17 func_arg",
            f"{AWAITS}::test_await_func_arg",
            "script/archive/test_jit::test_await_func_arg",
        ),
    ),
    "6.1": (
        (
            "from a function to its value",
            "script/jit/test_script::test_a_function",
            "script/emission/test_compile::test_functions_that_are_called_are_compiled_with_it",
        ),
        (
            "cleaning up between",
            "script/passes/test_pipeline::test_passes_run_in_rounds_until_one_changes_nothing",
            "script/passes/test_pipeline::test_the_checker_names_the_pass_that_broke_a_law",
        ),
        (
            "from a text",
            "script/jit/test_script::test_a_unit",
            "script/emission/test_compile::test_functions_of_a_text_know_each_other_and_names",
        ),
    ),
    "6.2": (
        (
            "parameters and defaults",
            "script/frontend/test_signature::test_a_signature_is_a_schema",
            "script/frontend/test_signature::test_other_defaults_are_refused",
        ),
        (
            "type comments",
            "script/frontend/test_annotations::test_comments_are_read_as_annotations",
        ),
        ("statements and expressions", PYTHONS, EMITTED),
        (
            "each form, by chance",
            f"{GENERATED}::test_some_programs_do_what_python_does",
            f"{GENERATED}::test_many_programs_do_what_python_does",
        ),
        ("what is refused", REFUSED, OWN_ROW),
        (
            "starred arguments",
            "script/emission/test_fork_script::test_starred_arguments_of_known_length",
        ),
        (
            "the reference is the table",
            "script/frontend/test_language::test_the_reference_is_the_one_of_the_tables",
            "script/frontend/test_language::test_the_module_prints_the_reference",
        ),
        (
            "with",
            "script/emission/test_classes::test_managers",
            f"{RUN}/test_with::test_compiled_managers",
        ),
    ),
    "6.3": (
        (
            "all types",
            "schema/test_type_parser::test_every_type_prints_as_text_that_is_read_as_that_type",
        ),
        (
            "named tuples, enums, classes, interfaces",
            "script/emission/test_classes::test_named_tuples",
            "script/emission/test_enums::test_members",
            "script/emission/test_classes::test_attributes_and_methods",
            "script/emission/test_classes::test_interfaces",
        ),
        (
            "subtypes",
            "schema/test_subtyping::test_a_subtype_of_a_subtype_is_a_subtype",
        ),
        ("variables", "schema/test_subtyping::test_what_variables_stand_for"),
        ("refinement", PYTHONS, "script/emission/test_objects::test_refined_objects"),
    ),
    "6.4": (
        (
            "names of the function",
            "script/frontend/test_annotations::test_names_of_the_function_around_are_known_if_they_are_used",
        ),
        (
            "unknown names",
            "script/frontend/test_annotations::test_what_is_unknown_is_told_at_its_place",
        ),
        (
            "values",
            "script/program/test_inference::test_types",
            "script/program/test_inference::test_reasons",
        ),
        (
            "a reference of another process",
            "rpc/program/test_references::test_types_of_references_by_looking_at_them",
            "rpc/program/test_references_in_worlds::test_the_types_of_references_are_known",
        ),
    ),
    "6.5": (
        ("graphs", "script/ir/test_graph::test_what_a_graph_is_made_of"),
        ("the text", "script/ir/test_printer::test_a_whole_graph"),
        (
            "texts read back",
            "script/ir/test_text::test_what_is_printed_reads_back_and_prints_the_same",
            "script/emission/test_programs::test_graphs_read_back",
        ),
        ("schemas", "schema/test_signature::test_text_of_an_annotation"),
        (
            "the rules of kinds",
            "script/ir/test_type_rules::test_sound_lines",
            "script/ir/test_type_rules::test_unsound_lines",
        ),
    ),
    "6.6": (
        ("literals", "script/modules/test_compiled::test_it_computes_what_python_does"),
        ("other indices, out of range", MODULES),
        (
            "lists of compiled modules",
            "script/modules/test_compiled::test_lists_are_those_of_the_compiled_module",
        ),
    ),
    "6.7": (
        (
            "inlining",
            "script/passes/test_inlining::test_a_call_is_replaced_by_a_copy_of_the_body_each_time",
        ),
        (
            "tuples",
            "script/passes/test_folding::test_parts_of_a_tuple_that_is_made_here",
        ),
        (
            "constants",
            "script/passes/test_folding::test_constants",
            "script/passes/test_folding::test_constants_are_kept_once_at_the_head",
        ),
        ("dead code", "script/passes/test_dead_code::test_dead_code"),
        (
            "common subexpressions",
            "script/passes/test_subexpressions::test_subexpressions",
        ),
        ("peephole", "script/passes/test_peephole::test_peephole"),
        (
            "list literals",
            "script/passes/test_folding::test_length_elements_and_unpacking_are_known",
        ),
        (
            "aliases and effects",
            "script/passes/test_aliases::test_aliases",
            "script/passes/test_effects::test_what_is_taken_out_of_a_row_is_missed",
        ),
        (
            "freezing",
            "script/modules/test_freezing::test_what_is_set_stays",
            "script/modules/test_freezing::test_what_is_preserved_stays",
        ),
    ),
    "6.8": (
        (
            "control, numbers and containers",
            f"{RUN}/test_kinds::test_loops_and_branches",
            "script/primitives/test_rows::test_a_primitive_does_what_python_does",
        ),
        ("calls", f"{RUN}/test_kinds::test_functions_call_each_other_and_themselves"),
        (
            "exceptions",
            f"{RUN}/test_backtrace::test_a_program_raises_the_class_that_it_names",
            f"{RUN}/test_backtrace::test_an_operator_raises_its_own_exception_with_a_note",
        ),
        (
            "errors of forks",
            f"{RUN}/test_backtrace::test_frames_of_tasks_stay_below_those_of_who_waits",
        ),
    ),
    "6.9": (
        (
            "excerpts",
            f"{BOUNDS}::test_keyword_arguments_are_not_expanded_at_a_call",
            "errors/test_source::test_two_lines_are_shown_before_and_behind",
            "errors/test_source::test_every_line_of_the_span_is_marked",
        ),
        (
            "because of which calls",
            "script/emission/test_compile::test_an_error_tells_the_calls_and_nothing_is_kept",
        ),
        ("names, attributes, branches, results, overloads", WRONG, WRONG_FORMS),
        (
            "while it runs",
            f"{RUN}/test_backtrace::test_run_leaves_frames_and_no_note",
        ),
        (
            "of what was loaded",
            "script/archive/test_round_trip::test_errors_of_what_was_loaded_show_the_source",
        ),
        (
            "every place is reached",
            "script/test_raise_sites::test_every_place_that_raises_is_reached",
            "script/frontend/test_raising::test_every_place_that_raises_is_reached",
        ),
    ),
    "6.10": (
        ("calls that fit", f"{RUN}/test_boundary::test_calls_that_fit"),
        (
            "too many, missing, twice, unknown, another type",
            f"{RUN}/test_boundary::test_calls_that_do_not_fit",
        ),
        (
            "conversions",
            f"{RUN}/test_boundary::test_values_that_fit",
            f"{RUN}/test_boundary::test_values_that_do_not_fit",
        ),
    ),
}

# Boundaries: a file, the words by which it states what holds there, and the tests.
STATED: Rows = (
    (
        "runtime/script/executor/python_interop.py",
        "an exception that leaves a program is the very object that was raised within",
        f"{RUN}/test_backtrace::test_an_operator_raises_its_own_exception_with_a_note",
    ),
    (
        "runtime/script/executor/run_function.py",
        "a call that does not fit the schema is refused before anything runs",
        f"{RUN}/test_boundary::test_a_refused_call_runs_nothing",
    ),
    (
        "runtime/script/executor/python_interop.py",
        "the warnings of programs within it are collected",
        f"{RUN}/test_warnings::test_a_node_warns_once_in_a_run_when_all_is_done",
    ),
    (
        "runtime/kernels/compile/jit.py",
        "kernels release the interpreter lock",
        f"{RUN}/test_pool::test_kernels_run_without_the_interpreter_lock",
    ),
    (
        "runtime/tensors/storage.py",
        "A storage is never absent",
        f"{BOUNDS}::test_a_storage_is_never_absent",
    ),
    (
        "runtime/futures/awaits.py",
        "an await owns the function and all of its arguments",
        f"{BOUNDS}::test_an_await_owns_its_arguments_until_it_is_gone",
    ),
    (
        "runtime/script/ir/program.py",
        "functions and types live as long as their program, unless they are discarded",
        f"{BOUNDS}::test_a_function_goes_with_the_unit_that_it_is_of",
    ),
    (
        "runtime/script/executor/graph_plan.py",
        "a value is let go right behind its last use",
        f"{RUN}/test_lifetimes::test_behind_the_last_use",
    ),
    (
        "ARCHITECTURE.md",
        "**Imports point one way**",
        "test_architecture::test_a_file_imports_its_own_layer_and_those_above_it",
    ),
)
