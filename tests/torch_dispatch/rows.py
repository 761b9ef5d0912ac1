"""The rows of what dispatch to Python has to do, and the tests that play them.

True only here: the list, by section: `(row, tests...)`.  A test is `module::name`, in
this folder unless a folder is named; `programs` stands for both modules of programs.  A
row that cannot hold here has its reason in place of a test.

When a row comes or goes, its section's number in `test_rows_covered` does, too.
"""

from tests.torch_dispatch.rows_of_upstream import UPSTREAM

Rows = tuple[tuple[str, ...], ...]

# section -> its rows
ROWS: dict[str, Rows] = {
    "0.2": (
        ("arguments equal to their defaults are removed", "programs::defaults"),
        ("so that a new default breaks no handler", "programs::defaults"),
        (
            "the API that fills defaults in",
            "schema/test_defaults::test_filling_undoes_stripping",
        ),
        (
            "all arguments are scanned, then the handlers are asked",
            "programs::lists",
            "test_handling::test_where_tensors_are_looked_for",
        ),
        (
            "Tensor has no handler: the disabled one",
            "test_bad_input::test_disabled_is_no_handler",
        ),
        (
            "the Python key is set when the tensor is made",
            "test_bad_input::test_who_was_given_a_handler_too_late",
            "test_subclasses::test_a_handler_is_found_when_the_tensor_is_made",
        ),
        (
            "a private property for debugging",
            "test_rows_upstream::test_plain_tensors_are_not_like_subclasses",
        ),
        (
            "detaching goes to the handler",
            "test_detach::test_detach_is_heard_once",
            "test_rows_upstream::test_a_result_that_detach_may_not_have",
        ),
        (
            "two phases, several interpreters",
            "test_context_router::test_tensors_route_to_their_own_body",
        ),
        (
            "LoggingTensor has a tensor and is none",
            "examples/test_logging_tensor::test_forward_and_backward_to_the_letter",
        ),
        (
            "operators that lose the subclass are not repaired",
            "test_wrapper_lost::test_the_error_names_the_class",
        ),
        (
            "no function overrides beside these",
            "no `__torch_function__` here, so there is none to disable",
        ),
        (
            "keyword-only arguments are in kwargs, unless at their defaults",
            "programs::defaults",
        ),
    ),
    "3.13": (
        (
            "a schema with its namespace",
            "test_rows_traps::test_9_2_16_a_schema_with_its_namespace",
        ),
        (
            "an operator that is gone",
            "test_rows_traps::test_9_2_13_operators_that_are_gone",
        ),
        (
            "a kernel without a definition",
            "test_rows_traps::test_3_13_6_a_kernel_without_a_definition",
        ),
        (
            "a kept kernel whose operator is gone",
            "custom/test_registration::test_it_works_as_long_as_the_operator_is_defined_by_whomever",
        ),
    ),
    "5.7": (
        (
            "no results: None",
            "test_handling::test_what_does_not_fit",
            "test_handling::test_what_fits",
        ),
        (
            "one result",
            "test_handling::test_what_does_not_fit",
            "test_handling::test_what_fits",
        ),
        (
            "several results: their number",
            "test_handling::test_what_does_not_fit",
            "programs::results",
        ),
        (
            "exceptions, and the thread restored",
            "test_handling::test_what_does_not_fit",
            "test_fallback::test_a_wrong_result_leaves_the_thread_as_it_was",
        ),
    ),
    "7.1": (
        (
            "decided once, when the tensor is made",
            "test_subclasses::test_a_handler_is_found_when_the_tensor_is_made",
            "test_bad_input::test_disabled_is_no_handler",
        ),
        (
            "never again",
            "test_bad_input::test_who_was_given_a_handler_too_late",
            "test_bad_input::test_who_lost_the_handler_after_it_was_made",
            "test_subclasses::test_another_class_does_not_change_the_keys",
        ),
        (
            "the property `_python_dispatch`",
            "test_bad_input::test_disabled_is_no_handler",
        ),
        (
            "a plain method",
            "test_bad_input::test_a_class_whose_handler_is_a_plain_method",
            "test_subclasses::test_a_plain_method_is_refused",
        ),
    ),
    "7.2": (
        (
            "the snapshot of the outermost call",
            "test_fallback::test_the_snapshot_is_that_of_the_outermost_call",
        ),
        (
            "who is found, and what is excluded",
            "test_fallback::test_python_by_hand_and_nobody_to_ask",
            "test_fallback::test_the_keys_above_python_are_excluded",
            "test_bad_input::test_python_included_without_a_snapshot",
        ),
        (
            "the raw sets inside of handlers",
            "programs::keys_in_handlers",
            "test_fallback::test_python_stays_in_and_the_handler_is_asked_again",
            "test_fallback::test_a_class_that_calls_itself_without_end",
        ),
        (
            "reentrant dispatch",
            "test_fallback::test_reentrant_dispatch_records_inside_of_a_handler",
            "test_fallback::test_reentrant_dispatch_asks_the_modes_on_the_stack",
            "test_fallback::test_reentrant_dispatch_outside_of_a_handler",
        ),
    ),
    "7.3": (
        (
            "who is overloaded: lists, not tuples or dicts",
            "test_handling::test_where_tensors_are_looked_for",
            "test_handling::test_where_tensors_are_not_looked_for",
            "programs::lists",
        ),
        (
            "the order of classes",
            "test_handling::test_the_order",
            "test_handling::test_the_laws_of_the_order",
            "programs::order_of_classes",
        ),
        ("`types`, for every handler", "programs::order_of_classes"),
        (
            "the innermost mode, then the classes",
            "programs::a_mode_that_declines",
            "programs::first_who_answers",
        ),
        ("`func` is the overload", "programs::functions"),
        (
            "all return NotImplemented",
            "test_bad_input::test_nobody_implements_it",
            "test_bad_input::test_binary_operators_of_who_implements_nothing",
        ),
        (
            "exceptions of handlers",
            "test_fallback::test_what_a_handler_raises_goes_on",
            "programs::handlers_that_raise",
        ),
    ),
    "7.4": (
        (
            "1: positional arguments from the end",
            "programs::defaults",
            "schema/test_defaults::test_7_4_a_default_in_the_middle_stays",
        ),
        ("2: keyword-only ones each by itself", "programs::defaults"),
        ("3: by name becomes positional", "programs::defaults"),
        (
            "4: when a value is its default",
            "programs::defaults",
            "programs::zeros",
            "schema/test_defaults::test_7_4_a_scalar_knows_the_kinds_of_numbers",
        ),
        ("5: values of their real types", "programs::defaults"),
        (
            "6: kernels and modes get the same",
            "programs::functions",
            "schema/test_defaults::test_kernels_that_see_values_are_shown_the_same",
        ),
        ("7: what was once", "history: nothing to hold"),
    ),
    "7.5": (
        (
            "upstream's helpers have holes",
            "schema/test_defaults::test_filling_gives_every_argument",
        ),
        (
            "bind, fill, strip, normalize",
            "schema/test_defaults::test_stripping_undoes_filling",
            "schema/test_defaults::test_filling_undoes_stripping",
        ),
    ),
    "7.6": (
        (
            "a stack for each thread",
            "test_threads::test_a_thread_starts_without_modes",
            "programs::a_mode_twice",
            "test_bad_input::test_a_mode_whose_handler_is_no_method",
        ),
        (
            "off the stack while it is asked",
            "programs::modes_in_modes",
            "programs::a_mode_in_its_own_handler",
        ),
        (
            "factories and plain tensors",
            "programs::modes_hear_everything",
            "test_modes::test_factories_are_heard",
        ),
        (
            "before classes; introspection",
            "programs::modes_before_classes",
            "test_modes::test_introspection",
            "test_modes::test_a_place_without_a_mode",
            "test_modes::test_the_innermost_of_none",
        ),
        (
            "infra modes",
            "test_rows_infra::test_infra_modes_are_asked_last_in_their_own_order",
            "test_rows_infra::test_a_place_that_is_taken",
        ),
        (
            "no_dispatch; making is hidden",
            "test_modes::test_no_dispatch_also_hides_a_mode_that_is_entered_inside",
            "programs::hidden_modes",
        ),
        (
            "rules for one operator and class",
            "test_rules::test_a_rule_of_modes_gets_the_mode",
            "programs::rules",
        ),
    ),
    "7.7": (
        (
            "detach and its result",
            "test_detach::test_detach_has_no_kwargs_and_gives_a_tensor",
        ),
        (
            "how often it is heard",
            "test_detach::test_detach_is_heard_once",
            "test_detach::test_data_is_heard_once",
            "test_detach::test_saving_for_backward_is_not_heard",
        ),
        (
            "versions",
            "test_detach::test_a_detached_tensor_counts_versions_with_its_origin",
        ),
    ),
    "7.8": (
        (
            "Python and all above excluded, and stay so",
            "test_rows_upstream::test_a_super_call_stays_below_python",
            "programs::super_calls",
        ),
        ("a list or a tuple", "test_bad_input::test_a_super_call_with_no_list"),
    ),
    "7.9": (
        (
            "an interpreter for each tensor; closed ones",
            "test_context::test_a_tensor_is_handled_in_the_context_that_made_it",
            "test_context::test_what_is_of_a_closed_context_is_not_handled",
        ),
        (
            "register or verify, with a time limit",
            "test_context_library::test_a_definition_that_main_lacks",
            "test_context_library::test_the_other_waits_for_main",
        ),
        (
            "routing, mixing",
            "test_context_router::test_tensors_route_to_their_own_body",
            "test_context_library::test_tensors_of_two_contexts_meet_in_no_call",
        ),
    ),
    "7.10": (
        (
            "lines and ids",
            "examples/test_logging_tensor::test_forward_and_backward_to_the_letter",
        ),
        (
            "dtypes, lists, scalars",
            "examples/test_logging_tensor::test_dtypes_have_short_names",
            "examples/test_logging_tensor::test_arguments_by_name_numbers_lists_and_several_results",
        ),
        (
            "short ids for all tensors",
            "examples/test_logging_tensor::test_other_tensors_print_in_full_unless_all_are_numbered",
        ),
    ),
    "7.11": (
        (
            "_make_subclass",
            "test_subclasses::test_a_subclass_is_on_the_elements_and_no_view",
            "test_subclasses::test_a_tensor_of_another_class_is_refused",
        ),
        (
            "_make_wrapper_subclass",
            "test_subclasses::test_a_wrapper_allocates_nothing",
            "test_bad_input::test_a_wrapper_without_a_handler",
        ),
        ("policies", "test_policies::test_the_handler_tells"),
        ("numpy and tolist", "test_subclasses::test_elements_do_not_leave"),
        ("known limits", "test_wrapper_lost::test_an_operator_below_the_handler"),
    ),
    "7.12": (
        (
            "step 1: storages",
            "test_wrappers::test_a_view_gets_the_storage_and_keeps_its_shape",
        ),
        ("the protocol", "test_wrappers::test_who_has_the_protocol"),
        (
            "step 3: what is written to is the result",
            "test_handling::test_what_is_written_to_is_the_result",
            "test_handling::test_several_that_are_written_to",
        ),
    ),
    "9.2": (
        ("1", "test_rows_traps::test_9_2_1_tables_are_never_stale"),
        ("2", "test_rows_traps::test_9_2_2_has_is_about_supersets"),
        (
            "3",
            "test_rows_traps::test_9_2_3_sparse_tensors_are_cpu_tensors_for_autograd",
        ),
        ("4", "pinned with the recipes: tests/dispatch/test_dispatch_table.py"),
        ("5", "test_rows_traps::test_9_2_5_nothing_is_left_to_dispatch_on"),
        ("6", "test_rows_traps::test_9_2_6_what_never_dispatches"),
        ("7", "programs::a_mode_that_declines"),
        ("8", "programs::defaults", "programs::zeros"),
        ("9", "test_rows_traps::test_9_2_9_the_number_of_results"),
        ("10", "test_rows_traps::test_9_2_10_switches_leave_no_backend"),
        ("11", "test_rows_traps::test_9_2_11_what_fails_leaves_nothing"),
        ("12", "test_rows_traps::test_9_2_12_wildcard_libraries_need_a_namespace"),
        ("13", "test_rows_traps::test_9_2_13_operators_that_are_gone"),
        ("14", "the orders of both dumps are pinned: tests/dispatch/test_dump.py"),
        ("15", "test_rows_traps::test_9_2_15_schemas_print_what_they_read"),
        ("16", "test_rows_traps::test_9_2_16_a_schema_with_its_namespace"),
        ("17", "test_rows_traps::test_9_2_17_one_element_for_an_integer"),
        ("18", "test_rows_traps::test_9_2_18_closed_libraries_are_closed"),
    ),
    "8.4": UPSTREAM,
}
