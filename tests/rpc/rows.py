"""The rows of what remote calls have to do, and the tests that play them.

True only here: the list, by section of the specification: `(row, tests...)`.  A test
is `file::name`, under `tests/rpc` unless it begins with another folder of `tests`.
What is left out is in `LEFT_OUT`, with the reason.  Rows of scripts (3.1 to 3.11 but
3.8) are where scripts have them.

When a row comes or goes, its section's number in `surface/test_rows_covered` does, too.
"""

from tests.rpc.rows_of_groups import (
    ASYNC,
    CALLS,
    ENDED,
    ENDS,
    ERRORS,
    FUTURES,
    IDENTITY,
    PROXIES,
    REFERENCES,
    SECTION_8,
    TIMEOUTS,
    Rows,
)

TIMELINES = "surface/test_timelines"
LAYERS = "surface/test_layers"
FAULTY = "agent/test_faulty"
REGISTERED = "agent/test_registered_only"

# What is not there, and why.
LEFT_OUT: dict[str, str] = {
    "process groups": (
        "there are no collective operations of tensors between workers, so there is "
        "nothing to start before or after remote calls; `_all_gather` and `_barrier` "
        "are there, and have tests"
    ),
    "distributed autograd": (
        "gradients do not cross workers: there are no contexts, and no optimizer that "
        "uses them; `backward` of a reference runs on its owner"
    ),
    "device maps": (
        "a tensor arrives on the device that it had, and `to` moves it: a map from one "
        "device to another is refused"
    ),
    "retries of control messages by a count of five": (
        "every message is delivered once or its peer is lost: lost packets are sent "
        "again until then, and nothing above the channel retries"
    ),
    "the global interpreter lock as a metric": (
        "nothing here is written in another language, so nobody waits for it apart"
    ),
}

ROWS: dict[str, Rows] = {
    "0": (
        (
            "0.8 futures hold values, never messages",
            f"{FUTURES}::test_a_call_gives_a_future_of_the_value",
            f"{LAYERS}::test_messages_are_known_below_the_agent_only",
        ),
        (
            "0.9 a profiler needs a future of anything",
            "futures/test_combining::test_who_measures",
            f"{LAYERS}::test_what_programs_see_knows_values_only",
        ),
        (
            "0.10 the owner's future is complete when the value is there",
            f"{REFERENCES}::test_a_fetch_waits_for_the_value_to_be_made",
            f"{REFERENCES}::test_a_value_is_made_on_its_owner_and_fetched",
        ),
        (
            "0.11 messages are seen by no program, profiler or reference",
            f"{LAYERS}::test_messages_are_known_below_the_agent_only",
            f"{LAYERS}::test_a_layer_that_knew_a_message_would_be_seen",
        ),
        (
            "0.12 programs complete futures of functions executed asynchronously",
            f"{ASYNC}::test_the_caller_gets_the_value",
            f"{ASYNC}::test_no_thread_waits_for_what_comes_later",
        ),
        (
            "0.13 the future of everybody, with its name and its methods",
            f"{FUTURES}::test_a_call_gives_a_future_of_the_value",
            f"{FUTURES}::test_a_future_is_completed_once",
            "futures/test_layers::test_no_messages_and_no_sockets",
        ),
    ),
    "3.8": (
        ("keywords", f"{CALLS}::test_keywords_name_all_arguments_of_a_call"),
        (
            "operators, then compiled functions, then functions of Python",
            f"{CALLS}::test_operators_are_called_by_their_schema",
            f"{CALLS}::test_compiled_functions_are_called_by_their_names",
            f"{CALLS}::test_functions_of_python",
        ),
        (
            "absent and empty arguments, lists",
            f"{CALLS}::test_arguments_may_be_absent_empty_or_a_list",
        ),
        (
            "what cannot be called",
            f"{CALLS}::test_what_cannot_be_called_is_refused_at_once",
        ),
        (
            "arguments of an operator that fit no overload",
            f"{ERRORS}::test_an_operator_with_the_wrong_arguments_is_refused_at_the_caller",
        ),
    ),
    "4.5": (
        (
            "class, text, frames",
            f"{ERRORS}::test_an_error_has_the_class_of_the_original_and_is_a_runtime_error",
            f"{ERRORS}::test_its_text_says_where_it_was_raised_and_what_it_was",
        ),
        (
            "un-escaping",
            f"{ERRORS}::test_texts_of_several_lines_and_other_letters_arrive_as_they_are",
        ),
        (
            "classes that one text does not make",
            f"{ERRORS}::test_an_error_that_cannot_be_built_again_is_told",
        ),
        ("KeyError", f"{ERRORS}::test_a_key_error"),
        (
            "SystemExit and KeyboardInterrupt",
            f"{ERRORS}::test_what_ends_a_program_ends_a_call_only",
        ),
        (
            "a function that the callee lacks",
            f"{ERRORS}::test_a_function_that_the_other_worker_lacks",
        ),
        (
            "arguments that cannot be pickled",
            f"{CALLS}::test_an_argument_that_cannot_be_pickled_is_refused_at_the_caller",
        ),
        (
            "results that cannot be pickled",
            f"{ERRORS}::test_a_result_that_cannot_be_pickled",
        ),
        (
            "operators and compiled functions",
            f"{ERRORS}::test_an_operator_that_fails",
            f"{ERRORS}::test_a_compiled_function_that_fails",
            f"{ERRORS}::test_a_compiled_function_with_the_wrong_arguments",
        ),
        (
            "the same each time",
            f"{ERRORS}::test_a_future_gives_the_same_error_each_time",
            f"{ERRORS}::test_a_reference_whose_making_failed_tells_each_time",
        ),
    ),
    "4.6": (
        ("the text", f"{TIMEOUTS}::test_a_call_that_takes_too_long"),
        (
            "-1, 0, and fractions of a millisecond",
            f"{TIMEOUTS}::test_the_default_is_for_calls_that_name_none",
            f"{TIMEOUTS}::test_less_than_a_millisecond_is_one",
        ),
        ("what is no timeout", f"{TIMEOUTS}::test_what_is_no_timeout"),
        (
            "the callee goes on, the answer is dropped",
            f"{TIMEOUTS}::test_the_other_worker_goes_on_and_its_answer_is_dropped",
        ),
        (
            "a new default",
            f"{TIMEOUTS}::test_a_new_default_is_for_later_calls",
        ),
    ),
    "4.7": (
        (
            "one value, any number of users",
            f"{REFERENCES}::test_a_value_lives_as_long_as_somebody_refers_to_it",
            f"{REFERENCES}::test_many_references_at_once",
        ),
        (
            "a reference of its own",
            f"{REFERENCES}::test_a_value_of_its_own_is_the_owners_until_it_is_shared",
            f"{REFERENCES}::test_one_that_is_never_shared_is_freed_without_the_collector",
        ),
        (
            "remote to another worker and to itself",
            f"{REFERENCES}::test_a_value_is_made_on_its_owner_and_fetched",
            f"{REFERENCES}::test_remote_to_itself_keeps_a_value_here",
        ),
        (
            "sharing in the four ways",
            f"{TIMELINES}::test_an_owner_shares_with_a_user",
            f"{TIMELINES}::test_a_user_shares_with_the_owner",
            f"{TIMELINES}::test_a_user_shares_with_a_third_worker",
            f"{TIMELINES}::test_an_owner_shares_with_itself",
        ),
        (
            "deleting",
            f"{REFERENCES}::test_dropped_at_once",
            f"{REFERENCES}::test_circles_of_references_and_of_objects_are_collected",
        ),
        (
            "fetched before it is made",
            f"{REFERENCES}::test_a_fetch_waits_for_the_value_to_be_made",
        ),
        (
            "owner and confirmation",
            f"{IDENTITY}::test_owners_of_references_are_infos",
            f"{REFERENCES}::test_a_user_is_confirmed_when_the_owner_has_answered",
            f"{REFERENCES}::test_users_are_confirmed_when_the_function_runs",
        ),
        (
            "to_here and local_value",
            f"{REFERENCES}::test_each_fetch_is_a_copy_of_then",
            f"{REFERENCES}::test_the_value_itself_is_asked_of_its_owner_only",
            f"{REFERENCES}::test_the_owner_changes_what_others_fetch",
        ),
        ("text", f"{REFERENCES}::test_the_text_of_a_reference_is_its_numbers"),
        (
            "classes",
            f"{REFERENCES}::test_annotations_name_the_type_of_a_value",
        ),
        ("pickling", f"{REFERENCES}::test_nothing_but_calls_may_pickle_or_copy_it"),
        (
            "dead ones, also several",
            f"{TIMEOUTS}::test_a_reference_whose_making_was_not_answered_in_time_is_dead",
        ),
        (
            "the type of the value",
            f"{REFERENCES}::test_types_of_values",
            f"{REFERENCES}::test_a_type_is_kept_and_never_a_future",
        ),
        (
            "proxies",
            f"{PROXIES}::test_all_kinds_of_methods_with_keywords",
            f"{PROXIES}::test_a_name_that_the_class_lacks",
            f"{PROXIES}::test_methods_that_are_executed_asynchronously",
            f"{PROXIES}::test_the_timeout_covers_the_type_and_the_call",
        ),
        ("debug info", f"{REFERENCES}::test_debug_info_counts_what_is_there"),
        (
            "what scripts see of a value",
            f"{REFERENCES}::test_what_scripts_see_of_a_value",
            f"{REFERENCES}::test_a_hint_belongs_to_compiled_modules",
        ),
    ),
    "4.8": (
        ("the mark", f"{ASYNC}::test_here_a_marked_function_gives_its_future"),
        (
            "under static and class methods, over scripts",
            f"{ASYNC}::test_static_and_class_methods",
            f"{ASYNC}::test_over_a_compiled_function",
            f"{ASYNC}::test_a_marked_function_is_not_compiled",
        ),
        (
            "whoever completes the future answers",
            f"{ASYNC}::test_no_thread_waits_for_what_comes_later",
            f"{ASYNC}::test_chains_of_callbacks",
        ),
        ("no future", f"{ASYNC}::test_a_result_that_is_no_future"),
        ("errors before", f"{ASYNC}::test_errors_before_there_is_a_future"),
        (
            "errors of the future",
            f"{ASYNC}::test_a_future_that_is_completed_with_an_error_raises_it",
        ),
        ("errors of callbacks", f"{ASYNC}::test_a_callback_that_raises"),
        (
            "a future of an unmarked function",
            f"{ASYNC}::test_a_future_of_an_unmarked_function_is_refused",
        ),
    ),
    "4.11": (
        (
            "options, and what is none",
            f"{FAULTY}::test_it_is_a_backend",
            f"{FAULTY}::test_what_no_fault_is",
            f"{FAULTY}::test_without_faults_it_is_as_any",
        ),
        ("calls that fail", f"{FAULTY}::test_attempts_that_fail"),
        ("creations that fail", f"{FAULTY}::test_creations_that_fail_are_dead"),
        (
            "requests that come late",
            f"{FAULTY}::test_requests_that_come_late",
            f"{FAULTY}::test_fetches_of_what_is_there_come_late",
        ),
        (
            "control messages that fail arrive in the end",
            f"{FAULTY}::test_control_messages_arrive_in_the_end",
        ),
    ),
    "4.12": (
        (
            "functions, classes, methods, wrappers",
            f"{CALLS}::test_classes_and_their_methods",
            f"{CALLS}::test_a_wrapper_goes_by_the_name_of_what_it_wraps",
        ),
        (
            "functions without a name",
            f"{CALLS}::test_functions_without_a_name_travel_whole",
        ),
        (
            "tensors at any depth, strides, requires_grad",
            f"{CALLS}::test_tensors_in_containers_at_any_depth",
            f"{CALLS}::test_strides_and_requires_grad_are_kept",
            f"{CALLS}::test_a_tensor_that_occurs_twice_is_one_tensor",
        ),
        (
            "references at any depth",
            f"{REFERENCES}::test_references_deep_in_arguments_and_results",
        ),
        (
            "keywords are texts",
            f"{CALLS}::test_what_are_no_arguments_is_refused_at_once",
        ),
        (
            "workers that run registered functions only",
            f"{REGISTERED}::test_it_runs_what_is_registered_and_reads_what_runs_no_code",
            f"{REGISTERED}::test_nothing_else_runs_there_or_is_asked_by_it",
        ),
    ),
    **SECTION_8,
    "10": (
        ("D5", f"{ASYNC}::test_a_future_that_is_completed_with_an_error_raises_it"),
        (
            "D11",
            f"{TIMEOUTS}::test_less_than_a_millisecond_is_one",
            f"{TIMEOUTS}::test_what_is_no_timeout",
        ),
        (
            "D13",
            f"{TIMEOUTS}::test_a_reference_whose_making_was_not_answered_in_time_is_dead",
        ),
        ("D14", f"{REFERENCES}::test_a_type_is_kept_and_never_a_future"),
        (
            "D15",
            f"{ERRORS}::test_an_error_has_the_class_of_the_original_and_is_a_runtime_error",
        ),
        (
            "D16",
            f"{ERRORS}::test_texts_of_several_lines_and_other_letters_arrive_as_they_are",
        ),
        ("D17", f"{REFERENCES}::test_a_reference_to_a_tuple_is_sent"),
        ("D19", f"{CALLS}::test_what_cannot_be_called_is_refused_at_once"),
        (
            "D20",
            f"{ENDS}::test_names_with_hyphens",
            f"{ENDED}::test_a_name_that_is_taken",
        ),
    ),
    "11": (
        (
            "11.2 remote",
            f"{TIMELINES}::test_making_a_value_on_another_worker",
            f"{TIMELINES}::test_making_a_value_that_fails_makes_a_reference_all_the_same",
        ),
        (
            "11.3 sharing",
            f"{TIMELINES}::test_a_user_shares_with_a_third_worker",
            f"{TIMELINES}::test_a_user_shares_with_the_owner",
            f"{TIMELINES}::test_an_owner_shares_with_a_user",
            f"{TIMELINES}::test_an_owner_shares_with_itself",
        ),
        ("11.4 lost messages", f"{ENDS}::test_lost_packets_delay_and_lose_nothing"),
        (
            "11.5 the end with references under way",
            f"{ENDS}::test_references_that_are_left_at_the_end",
            f"{ENDED}::test_references_that_are_left_at_the_end",
        ),
        (
            "11.6 asynchronous execution",
            f"{TIMELINES}::test_an_answer_is_sent_by_whoever_completes_the_future",
        ),
    ),
}
