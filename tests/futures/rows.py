"""The rows of what futures and awaits have to do, and the tests that play them.

True only here: the list, by section: `(row, tests...)`.  A test is `module::name`, in
this folder unless a folder is named.  A row that cannot hold here has its reason in
place of a test.

When a row comes or goes, its section's number in `test_rows_covered` does, too.
"""

Rows = tuple[tuple[str, ...], ...]

SCRIPT = "of scripts: there is no compiler in this area"

# section -> its rows
ROWS: dict[str, Rows] = {
    "0": (
        ("0.9 who measures", "test_combining::test_who_measures"),
        ("0.13 values only", "test_layers::test_no_messages_and_no_sockets"),
        (
            "0.20 made when first needed",
            "test_await_attributes::test_a_lazy_module",
            "test_await_attributes::test_an_attribute_waits_once",
        ),
        ("0.21 acts as its value", "test_await_attributes::test_a_lazy_module"),
        (
            "0.22 nothing in parallel",
            "test_awaits::test_nothing_runs_before_the_first_wait",
        ),
        ("0.23 the example", "test_await_attributes::test_the_founding_example"),
        (
            "0.24 three functions",
            "test_awaits::test_arguments_are_owned",
            "test_awaits::test_the_result_is_kept",
            "test_awaits::test_of_a_value",
        ),
    ),
    "1.1": (
        ("names", "test_awaits::test_names"),
        ("instances", "test_awaits::test_names"),
        ("no constructor", "test_awaits::test_the_class_makes_none"),
        ("subscripts", "test_awaits::test_subscripts"),
        ("the bare name in an annotation", SCRIPT),
        ("awaits of awaits", "test_awaits::test_nested_awaits"),
        ("members", "test_awaits::test_members"),
        ("texts", "test_awaits::test_a_text_never_waits"),
    ),
    "1.2": (
        ("what can be called", "test_awaits::test_what_cannot_be_called"),
        ("no function", "test_awaits::test_without_a_function"),
        ("keyword arguments", "test_awaits::test_keyword_arguments_are_honoured"),
        ("not run", "test_awaits::test_nothing_runs_before_the_first_wait"),
        ("positional arguments", "test_awaits::test_arguments_are_owned"),
        ("of a value", "test_awaits::test_of_a_value"),
        ("what can be waited for", "test_awaits::test_what_is_no_await"),
        ("type", "test_awaits::test_its_type"),
        (
            "not copied",
            "test_awaits::test_an_await_stays",
            "test_awaits::test_an_await_is_not_unpickled",
            "test_future::test_a_future_is_not_unpickled",
        ),
    ),
    "1.3": (
        (
            "the thread that waits",
            "test_awaits::test_two_threads",
            "test_awaits::test_after_an_error_another_thread_runs_it",
        ),
        ("the same object", "test_awaits::test_the_result_is_kept"),
        ("None is a result", "test_awaits::test_the_result_is_kept"),
        ("errors", "test_awaits::test_errors_are_not_kept"),
        (
            "itself",
            "test_awaits::test_a_function_that_waits_for_its_own_await",
            "test_awaits::test_without_an_end",
        ),
        (
            "two threads",
            "test_awaits::test_two_threads",
            "test_awaits::test_the_result_of_an_inner_run_is_not_seen_by_other_threads",
        ),
    ),
    "1.4": (
        ("a miss waits", "test_await_attributes::test_an_attribute_waits_once"),
        ("own names", "test_await_attributes::test_its_own_names_come_first"),
        ("missing attributes", "test_await_attributes::test_a_missing_attribute"),
        (
            "operators",
            "test_await_attributes::test_operators_are_not_the_values",
            "test_await_attributes::test_with_is_not_the_values",
        ),
        (
            "identity",
            "test_await_attributes::test_equality_hash_truth_and_text_are_its_own",
        ),
        (
            "explicit special methods",
            "test_await_attributes::test_explicit_special_methods_are_the_values",
        ),
        ("setting", "test_await_attributes::test_attributes_are_not_set"),
        ("tensors", "test_await_attributes::test_a_tensor"),
        ("awaits of awaits", "test_await_attributes::test_an_await_of_an_await"),
    ),
    "1.8": (
        ("the boundary of scripts", SCRIPT),
        ("awaits in containers and modules", SCRIPT),
        ("tracing", SCRIPT),
    ),
    "2.1": (
        ("classes", "test_future::test_one_class"),
        ("text", "test_future::test_a_text_never_waits_nor_asks_the_value"),
        ("devices", "test_future::test_devices_are_the_cpu"),
        ("the type of scripts", SCRIPT),
    ),
    "2.2": (
        ("done", "test_future::test_done_with_a_value_and_with_an_error"),
        (
            "wait",
            "test_future::test_waiting_on_the_same_thread",
            "test_future::test_waiting_on_another_thread",
        ),
        ("timeouts", "test_future::test_a_wait_that_ends_in_time"),
        ("value", "test_future::test_a_value_that_is_not_there"),
        (
            "set_result twice",
            "test_future::test_a_second_completion",
            "test_future::test_one_of_many_completes_it",
        ),
        (
            "set_exception",
            "test_future::test_an_error_is_raised_itself",
            "test_future::test_what_is_no_exception",
        ),
        ("the place of the error", "test_future::test_an_error_is_no_value"),
        (
            "then",
            "test_callbacks::test_then",
            "test_callbacks::test_callbacks_run_on_the_completing_thread",
        ),
        (
            "at once",
            "test_callbacks::test_of_a_complete_future_a_callback_runs_at_once",
        ),
        (
            "order",
            "test_callbacks::test_callbacks_run_in_the_order_in_which_they_were_registered",
            "test_callbacks::test_what_follows_from_a_callback_comes_before_the_next_one",
        ),
        ("not flat", "test_callbacks::test_a_future_of_a_future"),
        (
            "errors of callbacks",
            "test_callbacks::test_a_callback_that_raises",
            "test_callbacks::test_a_callback_that_ends_an_iteration",
        ),
        (
            "errors of the parent",
            "test_callbacks::test_an_error_alone_does_not_fail_what_follows",
        ),
        (
            "arguments of callbacks",
            "test_callbacks::test_callbacks_with_the_wrong_number_of_arguments",
        ),
        ("not callable", "test_callbacks::test_what_cannot_be_called"),
        ("logged", "test_callbacks::test_errors_of_done_callbacks_are_logged"),
        ("not pickled", "test_future::test_a_future_stays"),
        (
            "collect_all",
            "test_combining::test_collect_all",
            "test_combining::test_collect_all_of_none",
            "test_combining::test_collect_all_with_an_error",
            "test_combining::test_what_is_no_future",
        ),
        (
            "wait_all",
            "test_combining::test_wait_all",
            "test_combining::test_wait_all_ends_at_the_first_error",
        ),
        (
            "locks",
            "test_callbacks::test_callbacks_run_outside_of_the_lock",
        ),
    ),
    "2.3": (("fork and wait", SCRIPT),),
    "2.4": (
        ("set_exception", "test_future::test_an_error_is_raised_itself"),
        (
            "set_exception, then",
            "test_callbacks::test_an_error_that_a_chain_hands_on",
        ),
        (
            "set_exception, many threads",
            "test_future::test_waiting_on_another_thread",
        ),
        ("done", "test_future::test_done_with_a_value_and_with_an_error"),
        ("done of an error", "test_future::test_done_with_a_value_and_with_an_error"),
        ("wait", "test_future::test_waiting_on_the_same_thread"),
        ("wait, many threads", "test_future::test_waiting_on_another_thread"),
        ("completed twice", "test_future::test_a_second_completion"),
        ("pickled", "test_future::test_a_future_stays"),
        ("then", "test_callbacks::test_then"),
        ("chained then", "test_callbacks::test_a_chain"),
        (
            "then, wrong argument",
            "test_callbacks::test_callbacks_with_the_wrong_number_of_arguments",
        ),
        (
            "then, no argument",
            "test_callbacks::test_callbacks_with_the_wrong_number_of_arguments",
        ),
        ("then, raising", "test_callbacks::test_a_callback_that_raises"),
        (
            "add_done_callback",
            "test_callbacks::test_errors_of_done_callbacks_are_logged",
        ),
        (
            "add_done_callback, order",
            "test_callbacks::test_callbacks_run_in_the_order_in_which_they_were_registered",
        ),
        (
            "add_done_callback, errors ignored",
            "test_callbacks::test_errors_of_done_callbacks_are_logged",
        ),
        (
            "add_done_callback, no argument",
            "test_callbacks::test_callbacks_with_the_wrong_number_of_arguments",
        ),
        (
            "interleaving order",
            "test_callbacks::test_callbacks_run_in_the_order_in_which_they_were_registered",
        ),
        (
            "interleaving errors",
            "test_callbacks::test_an_error_that_a_chain_hands_on",
        ),
        ("collect_all", "test_combining::test_collect_all"),
        (
            "wait_all and None",
            "test_combining::test_wait_all",
            "test_combining::test_what_is_no_future",
        ),
    ),
    "10": (
        ("D1", "test_awaits::test_keyword_arguments_are_honoured"),
        ("D2", "test_await_attributes::test_a_missing_attribute"),
        ("D3", SCRIPT),
        ("D4", SCRIPT),
        ("D5", "test_future::test_an_error_is_no_value"),
        ("D6", "test_future::test_a_second_completion"),
        ("D18", SCRIPT),
    ),
    "11.1": (
        ("once", "test_awaits::test_errors_are_not_kept"),
        ("failing", "test_awaits::test_errors_are_not_kept"),
        ("itself", "test_awaits::test_a_function_that_waits_for_its_own_await"),
    ),
    "13": (
        ("set_error_if_needed", "test_future::test_an_error_if_needed"),
        ("then_async", "test_callbacks::test_then_async_flattens"),
    ),
    "P1": (
        (
            "runs until it succeeds",
            "test_awaits::test_the_function_runs_until_it_succeeds_and_never_again",
        ),
    ),
}
