"""The rows of groups of behaviours, section 8 of the specification, and their tests.

The others are in `rows`, which takes the names of files from here.
"""

Rows = tuple[tuple[str, ...], ...]

IDENTITY = "surface/test_identity"
CALLS = "surface/test_calls"
ERRORS = "surface/test_errors"
TIMEOUTS = "surface/test_timeouts"
FUTURES = "surface/test_futures"
REFERENCES = "surface/test_references"
PROXIES = "surface/test_proxies"
ASYNC = "surface/test_async_execution"
GROUPS = "surface/test_groups"
ENDS = "surface/test_ends"
# The same, of processes.
ENDED = "surface/test_ends_in_worlds"
SURFACE = "surface/test_surface"

SECTION_8: dict[str, Rows] = {
    "8 identity": (
        (
            "infos",
            f"{IDENTITY}::test_each_worker_knows_itself_and_all_others",
            f"{IDENTITY}::test_an_info_is_a_value",
        ),
        (
            "no such destination",
            f"{IDENTITY}::test_who_is_no_member",
            f"{CALLS}::test_what_no_worker_is",
        ),
        (
            "initialized twice",
            f"{IDENTITY}::test_a_second_worker_in_one_process_is_refused",
            f"{ENDED}::test_a_second_start_is_refused",
        ),
        (
            "names that are not unique",
            f"{ENDS}::test_a_name_that_is_taken",
            f"{ENDED}::test_a_name_that_is_taken",
        ),
        (
            "names that no worker has",
            f"{ENDS}::test_names_that_no_worker_has",
            f"{ENDED}::test_names_that_no_worker_has",
        ),
        ("infos travel", f"{CALLS}::test_a_worker_info_travels"),
        ("owners", f"{IDENTITY}::test_owners_of_references_are_infos"),
    ),
    "8 calls": (
        (
            "by name, number, info",
            f"{CALLS}::test_a_worker_is_named_by_name_by_number_or_by_its_info",
        ),
        ("itself", f"{CALLS}::test_a_worker_calls_itself"),
        (
            "operators",
            f"{CALLS}::test_operators_are_called_by_their_schema",
            f"{CALLS}::test_an_operator_may_give_several_tensors",
        ),
        ("functions of Python", f"{CALLS}::test_functions_of_python"),
        ("classes", f"{CALLS}::test_classes_and_their_methods"),
        (
            "nested",
            f"{CALLS}::test_a_call_may_call_on",
            f"{CALLS}::test_calls_in_a_circle_end_though_all_threads_wait",
        ),
        ("many at once", f"{CALLS}::test_many_calls_are_under_way_at_once"),
        ("no result", f"{CALLS}::test_no_result_is_none"),
        ("containers", f"{CALLS}::test_tensors_in_containers_at_any_depth"),
        (
            "pickles within pickles",
            f"{CALLS}::test_values_within_values_that_pickle_themselves",
        ),
        ("strides", f"{CALLS}::test_strides_and_requires_grad_are_kept"),
        (
            "copies",
            f"{CALLS}::test_a_call_of_itself_gets_copies",
            f"{CALLS}::test_what_arrives_can_be_written_to",
        ),
        ("who called", f"{CALLS}::test_a_call_may_call_on"),
    ),
    "8 errors": (
        ("an error without a text", f"{ERRORS}::test_an_error_without_a_text"),
        (
            "texts of several lines",
            f"{ERRORS}::test_texts_of_several_lines_and_other_letters_arrive_as_they_are",
        ),
        ("operators", f"{ERRORS}::test_an_operator_that_fails"),
        (
            "classes that cannot be built again",
            f"{ERRORS}::test_an_error_that_cannot_be_built_again_is_told",
        ),
        (
            "functions that are not there",
            f"{ERRORS}::test_a_function_that_the_other_worker_lacks",
        ),
        (
            "the type of a value that failed, in both ways",
            f"{REFERENCES}::test_the_type_of_a_value_that_failed",
        ),
        (
            "within calls",
            f"{ERRORS}::test_an_error_of_a_call_within_a_call_names_both_workers",
            f"{ERRORS}::test_the_worker_is_as_before_after_any_error",
        ),
        (
            "the wrong number of arguments",
            f"{ERRORS}::test_the_wrong_number_of_arguments",
        ),
    ),
    "8 futures": (
        ("waited twice", f"{ERRORS}::test_a_future_gives_the_same_error_each_time"),
        (
            "wait_all",
            f"{FUTURES}::test_wait_all_waits_for_what_was_begun_inside",
            f"{FUTURES}::test_wait_all_raises_what_failed_inside",
            f"{FUTURES}::test_all_of_several",
            f"{FUTURES}::test_the_first_error_of_several",
        ),
        (
            "before the slow ones",
            f"{FUTURES}::test_an_error_ends_waiting_before_the_slow_ones",
        ),
        (
            "callbacks",
            f"{FUTURES}::test_a_callback_gets_the_future_and_gives_a_value",
            f"{FUTURES}::test_callbacks_of_the_wrong_kind",
            f"{FUTURES}::test_a_chain_of_callbacks",
            f"{FUTURES}::test_a_callback_may_call_on",
        ),
        (
            "done, errors",
            f"{FUTURES}::test_done_callbacks",
            f"{FUTURES}::test_an_error_reaches_a_callback_that_waits",
            f"{FUTURES}::test_an_error_of_a_callback",
        ),
        ("completed twice", f"{FUTURES}::test_a_future_is_completed_once"),
        ("not pickled", f"{FUTURES}::test_a_future_does_not_travel"),
    ),
    "8 references": (
        (
            "as arguments of all",
            f"{REFERENCES}::test_references_as_arguments",
            f"{REFERENCES}::test_a_reference_comes_back",
        ),
        (
            "nested",
            f"{REFERENCES}::test_references_of_references",
            f"{REFERENCES}::test_a_tree_of_references",
        ),
        ("many", f"{REFERENCES}::test_many_references_at_once"),
        (
            "of values of this worker",
            f"{REFERENCES}::test_a_reference_to_a_value_of_this_worker",
            f"{REFERENCES}::test_values_of_other_workers_are_given_by_reference",
        ),
        (
            "local_value elsewhere",
            f"{REFERENCES}::test_the_value_itself_is_asked_of_its_owner_only",
        ),
        ("text", f"{REFERENCES}::test_the_text_of_a_reference_is_its_numbers"),
        (
            "type: waiting or not, slow, late",
            f"{REFERENCES}::test_types_of_values",
            f"{REFERENCES}::test_the_type_of_a_value_that_is_still_made",
        ),
        ("methods", f"{PROXIES}::test_calls_on_a_value_of_this_worker"),
        ("chains", f"{REFERENCES}::test_a_reference_passes_along_chains"),
        (
            "leaks",
            f"{REFERENCES}::test_a_value_lives_as_long_as_somebody_refers_to_it",
            f"{ENDS}::test_references_that_are_left_at_the_end",
            f"{ENDED}::test_references_that_are_left_at_the_end",
            f"{ENDS}::test_a_reference_that_is_never_given_up_is_told",
            f"{ENDED}::test_a_reference_that_is_never_given_up",
        ),
        (
            "after the end",
            f"{ENDS}::test_a_reference_after_the_end",
            f"{ENDED}::test_a_reference_that_is_never_given_up",
        ),
        ("pickling", f"{REFERENCES}::test_nothing_but_calls_may_pickle_or_copy_it"),
        (
            "circles",
            f"{REFERENCES}::test_circles_of_references_and_of_objects_are_collected",
        ),
        ("debug info", f"{REFERENCES}::test_debug_info_counts_what_is_there"),
        (
            "backward",
            f"{REFERENCES}::test_backward_on_the_owner",
            f"{REFERENCES}::test_backward_for_a_user_runs_on_the_owner",
        ),
    ),
    "8 proxies": (
        ("methods of tensors", f"{PROXIES}::test_methods_of_a_tensor"),
        ("used many times", f"{PROXIES}::test_a_proxy_is_used_many_times"),
        ("class methods", f"{PROXIES}::test_all_kinds_of_methods_with_keywords"),
        ("no such attribute", f"{PROXIES}::test_a_name_that_the_class_lacks"),
        ("timeouts", f"{PROXIES}::test_the_timeout_covers_the_type_and_the_call"),
    ),
    "8 asynchronous execution": (
        ("simple, made", f"{ASYNC}::test_the_caller_gets_the_value"),
        ("chained", f"{ASYNC}::test_chains_of_callbacks"),
        (
            "nested, fanned out",
            f"{ASYNC}::test_marked_functions_that_call_marked_functions",
        ),
        ("methods", f"{ASYNC}::test_static_and_class_methods"),
        (
            "of references",
            f"{PROXIES}::test_methods_that_are_executed_asynchronously",
        ),
        ("raising", f"{ASYNC}::test_errors_before_there_is_a_future"),
        ("no future", f"{ASYNC}::test_a_result_that_is_no_future"),
    ),
    "8 ends and timeouts": (
        (
            "uneven work",
            f"{ENDS}::test_the_end_waits_for_what_others_still_do",
            f"{ENDED}::test_the_end_waits_for_what_others_still_do",
        ),
        ("at once", f"{ENDS}::test_the_end_at_once", f"{ENDED}::test_the_end_at_once"),
        (
            "an error of the end",
            f"{ENDS}::test_an_error_of_the_end_is_raised_by_a_worker_that_has_ended",
            f"{ENDED}::test_an_error_of_the_end_is_raised_by_a_worker_that_has_ended",
        ),
        (
            "gathering that times out",
            f"{GROUPS}::test_who_is_missing_is_named",
        ),
        (
            "gathering",
            f"{GROUPS}::test_everybody_gets_what_everybody_gave",
            f"{GROUPS}::test_some_of_them_gather_again_and_again",
        ),
        (
            "default, explicit, for ever",
            f"{TIMEOUTS}::test_the_default_is_for_calls_that_name_none",
        ),
        (
            "after the end",
            f"{ENDS}::test_after_the_end_nothing_is_called",
            f"{ENDED}::test_before_the_start_and_after_the_end_nothing_is_called",
        ),
        (
            "started again",
            f"{ENDS}::test_a_worker_starts_again",
            f"{ENDED}::test_they_start_again",
        ),
        (
            "before the start",
            f"{ENDS}::test_before_the_start_nothing_is_called",
            f"{ENDED}::test_before_the_start_and_after_the_end_nothing_is_called",
        ),
        (
            "who is missing",
            f"{ENDS}::test_who_never_comes_to_the_end_is_named",
            f"{ENDED}::test_who_never_comes_to_the_end_is_named",
        ),
    ),
    "8 groups": (
        (
            "barriers of some, from several threads",
            f"{GROUPS}::test_barriers",
            f"{GROUPS}::test_barriers_of_several_threads_at_once",
        ),
    ),
    "8 dead peers": (("an error at the caller", f"{ENDS}::test_a_worker_that_died"),),
    "8 picklers": (
        (
            "reducers of a class, the first one wins",
            f"{SURFACE}::test_reducers_of_classes",
        ),
        (
            "a pickler for a while",
            f"{SURFACE}::test_a_pickler_of_ones_own_for_a_while",
        ),
    ),
}
