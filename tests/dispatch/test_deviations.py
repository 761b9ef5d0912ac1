"""Every row of the table of deviations has a test, and every prediction exists.

`TESTS` names, for each row, tests that fail if we did what upstream does; that they
exist is checked in the files.  Rows about keys, text and values that have none
elsewhere are tested below.
"""

import ast
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.registration import KeyMisuse
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.keys import (
    DispatchKey,
    KeySet,
    full_after,
    is_member,
    set_included,
)
from everyorder.runtime.keys.local import LOCAL
from everyorder.runtime.schema import parse_schema
from tests.coded import code
from tests.dispatch.samples import defined, op, silent
from tests.tools.deviations import DEVIATIONS
from tests.torch.predictions import PREDICTIONS

ROOT = Path(__file__).parents[2]
HERE = "tests/dispatch/"
PYTHON = "../torch_dispatch/"
CORE = "../operators/test_deviations.py"
FUTURES = "../futures/"
EMISSION = "../script/emission/"
MODULES = "../script/modules/"
RUNNING = "../script/executor/"
DEAD_CODE = "../script/passes/test_dead_code.py::test_dead_code"
TRACING = "../script/tracing/"
ARCHIVE = "../script/archive/"
PROGRAMS = "../script/emission/test_programs.py::test_does_what_python_does"
RPC = "../rpc/api/"
IN_MODES = "../autograd/test_views_in_modes.py::"
SAVED = "../autograd/test_saved_hooks.py::"
COMPILE = "../script/emission/test_compile.py::"

TESTS: dict[str, str] = {
    # Remote calls
    "a worker that ended without a word, or was cut off": (
        f"{RPC}test_ends.py::test_a_worker_that_died"
    ),
    "a graceful shutdown to which somebody never comes": (
        f"{RPC}test_ends.py::test_who_never_comes_to_the_end_is_named"
    ),
    "packets that are lost": (
        f"{RPC}test_ends.py::test_lost_packets_delay_and_lose_nothing"
    ),
    "whoever reaches the port of a worker": (
        "../rpc/agent/test_rendezvous.py::test_a_wrong_key_is_not_heard"
    ),
    "the class of an error of a remote call": (
        f"{RPC}test_errors.py::test_an_error_has_the_class_of_the_original_and_is_a_runtime_error"
    ),
    "letters beyond ASCII in the text of a remote error": (
        f"{RPC}test_errors.py::test_texts_of_several_lines_and_other_letters_arrive_as_they_are"
    ),
    "timeouts below a millisecond": (
        f"{RPC}test_timeouts.py::test_less_than_a_millisecond_is_one"
    ),
    "negative timeouts": (f"{RPC}test_timeouts.py::test_what_is_no_timeout"),
    "the default timeout, read again": (
        f"{RPC}test_timeouts.py::test_the_default_is_for_calls_that_name_none"
    ),
    "several references whose making timed out": (
        f"{RPC}test_timeouts.py::test_a_reference_whose_making_was_not_answered_in_time_is_dead"
    ),
    "the type of a value, asked once without waiting": (
        f"{RPC}test_rref.py::test_a_type_is_kept_and_never_a_future"
    ),
    "`remote` of what cannot be called": (
        f"{RPC}test_remote_calls.py::test_what_cannot_be_called_is_refused_at_once"
    ),
    "a reference to a tuple": (
        f"{RPC}test_rref.py::test_a_reference_to_a_tuple_is_sent"
    ),
    "names of workers with a hyphen": (f"{RPC}test_ends.py::test_names_with_hyphens"),
    "an asynchronously executed function whose future has an error": (
        f"{RPC}test_async_execution.py::test_a_future_that_is_completed_with_an_error_raises_it"
    ),
    "keywords of a remote call that are no texts": (
        f"{RPC}test_remote_calls.py::test_what_are_no_arguments_is_refused_at_once"
    ),
    "functions of remote calls that have no name": (
        f"{RPC}test_remote_calls.py::test_functions_without_a_name_travel_whole"
    ),
    "`backward` of a reference": (
        f"{RPC}test_rref.py::test_backward_for_a_user_runs_on_the_owner"
    ),
    "requests that wait for one another": (
        f"{RPC}test_remote_calls.py::test_calls_in_a_circle_end_though_all_threads_wait"
    ),
    # Remote calls of programs
    "a program with remote calls, saved": (
        "../rpc/script/test_graphs.py::test_a_program_is_saved_and_loaded"
    ),
    "arguments by name of a program's remote call": (
        "../rpc/script/test_calls.py::test_arguments_by_name_are_held_against_the_schema"
    ),
    "an argument without default that a program's remote call gives by name": (
        "../rpc/script/test_wrong_calls.py::test_what_is_said_of_a_wrong_program"
    ),
    "an argument of a program's remote call by place and by name": (
        "../rpc/script/test_calls.py::test_arguments_by_name_are_held_against_the_schema"
    ),
    "a worker of another type, or a timeout that is an int, in a program": (
        "../rpc/script/test_wrong_calls.py::test_what_is_said_of_a_wrong_program"
    ),
    "`to_here()` of a program without a timeout": (
        "../rpc/script/test_references.py::test_the_timeout_of_to_here"
    ),
    "what another worker's function gives a program": (
        "../rpc/script/test_calls.py::test_results_are_held_against_their_types"
    ),
    "a reference to a module, passed on by its owner": (
        "../rpc/script/test_references_in_worlds.py::test_remote_script_module"
    ),
    "dictionaries and lists that are annotated with Any": (
        "../rpc/script/test_calls_in_worlds.py::test_args_and_kwargs_contain_different_types"
    ),
    # Programs
    "the middle of a chain of comparisons": PROGRAMS,
    "the target of an augmented assignment": PROGRAMS,
    "an empty list without annotation": PROGRAMS,
    "a loop over a list that grows or shrinks": PROGRAMS,
    "a loop over a dictionary that grows or shrinks": PROGRAMS,
    "numbers and texts of the module around a function": (
        f"{COMPILE}test_constants_around_a_function_are_those_of_then"
    ),
    "variables of one name and two types": PROGRAMS,
    # Classes and special forms of scripts
    "`len` of an await in a script": (
        f"{EMISSION}test_wrong_forms.py::test_what_is_said_of_a_wrong_program"
    ),
    "`wait()` of an await in a script": (
        f"{EMISSION}test_objects.py::test_forms_by_other_names"
    ),
    "values of class bodies in a script": (
        f"{EMISSION}test_classes.py::test_constants_properties_and_static_methods"
    ),
    "objects of classes without `__eq__` or `__bool__` in a script": (
        f"{EMISSION}test_classes.py::"
        "test_objects_without_methods_are_compared_by_identity_and_true"
    ),
    "members of enums that are numbers or texts in a script": (
        f"{EMISSION}test_objects.py::test_members_that_are_numbers"
    ),
    "a sub-class in a script": (
        f"{EMISSION}test_wrong_forms.py::test_what_is_said_of_a_wrong_program"
    ),
    # Keys
    "guards of HIP, VE and MTIA": "test_dispatch_table.py::test_rules",
    "names of runtime keys": "test_deviations.py::test_every_runtime_key_can_be_read",
    "kernels at building blocks": "test_library.py::test_building_blocks_are_refused",
    "aliases as members of aliases": "test_deviations.py::test_no_alias_is_a_member",
    "has() of keys without bits": "test_deviations.py::test_has_of_keys_without_bits",
    "full_after() of an alias": "test_deviations.py::test_after_an_alias",
    "switching a per-backend key on and off": (
        "test_deviations.py::test_a_switch_leaves_nothing_behind"
    ),
    # Schemas
    "the order of alias sets": "test_deviations.py::test_printed",
    "`Tensor!`": "test_deviations.py::test_printed",
    "a wildcard beside other sets": "test_deviations.py::test_printed",
    "a wildcard before other sets": "test_deviations.py::test_printed",
    "annotated elements that are optional": "test_deviations.py::test_printed",
    "default lists of equal integers": "test_deviations.py::test_printed",
    "default texts of other types": "test_deviations.py::test_printed",
    "Scalar in a union": "test_deviations.py::test_printed",
    "complex defaults without j": "test_deviations.py::test_printed",
    "numbers too small for a double": "test_deviations.py::test_printed",
    "`NoneType?`": "test_deviations.py::test_printed",
    "unions with None": "test_deviations.py::test_printed",
    "a union of one type": "test_deviations.py::test_printed",
    "hexadecimal numbers": "test_deviations.py::test_refused",
    "integers beyond 64 bits": "test_deviations.py::test_refused",
    "two arguments of one name": "test_deviations.py::test_refused",
    "a list without default behind a default": "test_deviations.py::test_refused",
    "alias annotations inside Dict, Union, tuples": "test_deviations.py::test_refused",
    "PURE_FUNCTION with alias annotations": (
        "test_deviations.py::test_a_pure_function_is_not_annotated"
    ),
    "tags of an operator that loses its schema": (
        "test_defining.py::test_tags_are_sorted_and_go_with_the_definition"
    ),
    # Registration
    "dispatchers": "test_threads.py::test_dispatchers_do_not_know_each_other",
    "stale tables": "test_dispatch_table.py::test_rules",
    "dump_table": "test_deviations.py::test_the_live_table_is_dumped",
    "DEF and FRAGMENT libraries of namespace `_`": (
        "test_arguments.py::test_a_library_that_cannot_be"
    ),
    "DEF and FRAGMENT libraries with a key": (
        "test_arguments.py::test_a_library_that_cannot_be"
    ),
    "impl() in a library of namespace `_`": (
        "test_library.py::test_impl_in_the_wildcard_namespace"
    ),
    "define() with a kernel that does not fit": (
        "test_failure_safety.py::test_a_failing_call_changes_nothing"
    ),
    "an alias fallback where one key is taken": (
        "test_failure_safety.py::test_a_failing_call_changes_nothing"
    ),
    "a definition of more than 64 arguments": (
        "test_failure_safety.py::test_a_failing_call_changes_nothing"
    ),
    "impl() for several keys, one of them refused": (
        "test_failure_safety.py::test_a_failing_call_changes_nothing"
    ),
    "ends of registrations": "test_registration.py::test_closing_is_idempotent",
    "libraries that are garbage collected": (
        "test_registration.py::test_a_lost_library_is_taken_down_by_the_next_writer"
    ),
    "closed libraries": "test_library.py::test_a_closed_library_refuses_everything",
    "typed signatures": (
        "test_checks.py::test_a_signature_is_forgotten_with_its_last_kernel"
    ),
    "kernels of Python functions": "test_kernel.py::test_a_typed_function",
    "override warnings": (
        "test_library.py::test_overriding_warns_with_the_real_previous_kernel"
    ),
    "listeners that register": (
        "test_listeners.py::test_3_15_registering_inside_a_listener_is_refused"
    ),
    "listeners that raise": (
        "test_listeners.py::test_3_15_an_error_abandons_and_those_told_hear_the_reverse"
    ),
    "second definitions": (
        "test_merging.py::test_2020_a_definition_may_be_repeated_without_its_kind"
    ),
    "built-in fallbacks of the autograd keys": "test_dispatcher.py::test_the_fallbacks",
    "teaching tool: register() twice": (
        "../examples/test_teaching.py::test_registering_again_replaces"
    ),
    # Calls
    "operators that are gone": (
        "test_handle.py::"
        "test_a_handle_is_a_name_and_works_again_when_the_operator_is_back"
    ),
    "calls beside registrations in other threads": (
        "test_threads.py::test_calls_beside_registrations_see_published_states_only"
    ),
    "calls of which every key fell through or is excluded": (
        "test_caller.py::test_5_2_all_keys_fell_through"
    ),
    "the dispatch trace": "test_watch.py::test_the_trace_is_indented_by_nesting",
    "the stack of a boxed kernel": (
        "test_calling_kernels.py::test_5_6_the_stack_is_balanced"
    ),
    "the number of returns": ("test_calling_kernels.py::test_5_7_returns_are_checked"),
    "defaults filled into a call": "test_handle.py::test_normalizing_a_call",
    "which overload a call means": (
        "test_namespace.py::test_the_overload_is_the_first_by_name_that_fits"
    ),
    "None for a bool": "test_deviations.py::test_refused_values",
    "a text for str[]": "test_deviations.py::test_refused_values",
    "pairs for a Dict": "test_deviations.py::test_refused_values",
    "values for a Stream": "test_deviations.py::test_refused_values",
    "NumPy numbers for Scalar": "test_deviations.py::test_accepted_values",
    "one number for SymInt[N]": "test_deviations.py::test_accepted_values",
    "values for Any": "test_deviations.py::test_accepted_values",
    "lists and dictionaries that are written to, as in `t[](a!)`": (
        "test_calling_kernels.py::test_kernels_get_the_very_list_that_they_write_to"
    ),
    # Tensors
    "`y.mul_(y)` under autograd": (
        "../autograd/test_inplace.py::test_writes_to_tensors_and_to_views"
    ),
    "a detached input, returned by the `forward` of a Function, that is written to": (
        f"{IN_MODES}test_a_detached_input_is_not_written_to"
    ),
    "an output of a Function that `mark_non_differentiable` lists, and that shows an "
    "input": f"{IN_MODES}test_a_constant_output_does_not_require_grad",
    "`detach()` of a tensor of inference mode, written to outside of that mode": (
        f"{IN_MODES}test_a_detached_tensor_of_inference_mode_is_one_of_it"
    ),
    "the node of an input that is not a leaf, in `backward(inputs=...)`": (
        "../autograd/test_hooks.py::test_the_node_of_an_input_does_not_run"
    ),
    "writes between partly overlapping tensors": (
        "../operators/declare/test_allocate_outputs.py::test_a_shifted_array_is_read_as_it_was"
    ),
    "a tensor compared with a list": (
        "../operators/bindings/test_python_bindings.py::test_comparing_with_a_list_is_refused"
    ),
    "a number that is assigned through a mask of uint8": (
        "../operators/test_indexing.py::test_bytes_are_a_mask_in_reading_and_writing"
    ),
    "a nested list as a subscript, `x[[[0, 1], [1, 0]]]`": (
        "../operators/test_indexing.py::test_a_nested_list_is_one_index"
    ),
    "complex numbers of NumPy's, alone or in lists, as real elements": (
        "../tensors/test_from_data.py::test_complex_numbers_are_no_real_ones"
    ),
    "numbers of NumPy's uint16, uint32 and uint64, alone or in lists": (
        "../tensors/test_from_data.py::test_data_decides_the_dtype"
    ),
    "None for a tensor that an operator of ours requires": (
        "../opinfo/test_undefined.py::test_none_is_no_tensor"
    ),
    "read-only memory that a tensor shares": (
        "../tensors/test_construction.py"
        "::test_read_only_arrays_are_shared_with_a_warning"
    ),
    "tensors on the CPU and on meta in one call": (
        "../operators/test_several_tensors.py::test_a_grid_is_of_one_device"
    ),
    "elements of another dtype that are assigned at an index, `x[i] = y`": (
        "../operators/test_several_tensors.py"
        "::test_wider_elements_are_converted_at_an_index"
    ),
    "a bool, or a tensor of fractions, for an integer that an operator of ours takes": (
        "../operators/test_integers.py::test_a_bool_is_no_integer"
    ),
    "`.numpy()` of what requires grad, in a kernel": (
        "../tensors/test_interop.py::test_a_kernel_below_autograd_may_use_numpy"
    ),
    # Operators
    "how results lie that are not computed element by element": (
        f"{CORE}::test_results_lie_row_by_row"
    ),
    "`out=` of another shape": (f"{CORE}::test_out_with_elements_is_not_resized"),
    "`out=` of another dtype": (f"{CORE}::test_out_of_a_wider_dtype"),
    "targets of several results that share memory, as `out=(v, v)`": (
        "../operators/bindings/test_out_of_several.py"
        "::test_one_tensor_is_not_two_targets"
    ),
    "`device(...)` of `mkldnn`, `opengl`, `opencl` and `ideep`": (
        f"{CORE}::test_libraries_are_not_devices"
    ),
    "index tensors of int8 and int16": f"{CORE}::test_every_integer_is_a_place",
    "a condition of uint8, `where(x, a, b)`": f"{CORE}::test_a_condition_is_bool",
    "writes to windows of `unfold` that share elements, as "
    "`x.unfold(0, 3, 2).add_(1)`": (
        f"{CORE}::test_windows_that_share_elements_are_not_written"
    ),
    "classes of several results": f"{CORE}::test_values_and_indices_have_one_class",
    "operators of one kernel upstream that consist of others here": (
        f"{PYTHON}test_composed.py::test_a_mode_sees_the_parts"
    ),
    "`conj()`, and `conj_physical`, `resolve_conj`, `is_conj`, `is_neg`": (
        f"{CORE}::test_conj_is_computed"
    ),
    "classes of exceptions": (f"{CORE}::test_refusals_are_runtime_errors_and_more"),
    "a number for an operand of an operator of two": (
        f"{CORE}::test_a_number_on_either_side"
    ),
    "a Python bool in a difference, `x - True`": (
        f"{CORE}::test_a_python_bool_is_a_number"
    ),
    "a number as a bound of `clamp` that the elements cannot hold": (
        "../operators/bindings/test_python_bindings.py::test_a_number_as_a_bound_is_never_another"
    ),
    "dimensions of a tensor that has none": (
        f"{CORE}::test_dimensions_of_what_has_none"
    ),
    "integers in convolutions and in means of windows": (
        f"{CORE}::test_integers_in_windows"
    ),
    "options that are left out: nuclear norms, `output_size` of "
    "`repeat_interleave`, tensors as bounds of `linspace`": (
        f"{CORE}::test_options_that_are_left_out"
    ),
    "`batch_norm` of one dimension": (f"{CORE}::test_batch_norm_of_a_line"),
    "an index without elements, of another dtype": (
        f"{CORE}::test_the_dtype_of_an_empty_index"
    ),
    "`sum_to_size` where nothing is summed": (f"{CORE}::test_nothing_to_sum"),
    "which of equal elements `topk` finds first": (
        f"{CORE}::test_the_first_of_equal_elements"
    ),
    "last digits of what cancels, or of large exponents": (
        f"{CORE}::test_what_cancels"
    ),
    "`acos` of complex128": (f"{CORE}::test_acos_near_one"),
    "functions of complex numbers that upstream lacks, `xlogy`": (
        f"{CORE}::test_xlogy_of_complex_numbers"
    ),
    "an output that `saved_tensors_hooks` packs": (
        f"{SAVED}test_pack_receives_inputs_themselves_and_outputs_without_history"
    ),
    "`utils.checkpoint.checkpoint`": (
        "../utils/test_checkpoint.py::test_what_is_not_offered_is_refused_by_name"
    ),
    "a tensor that `saved_tensors_hooks` or a `checkpoint` saved, and is modified": (
        f"{SAVED}test_saved_elements_that_were_modified_are_refused"
    ),
    "a backward pass in `inference_mode` that runs a `checkpoint` again": (
        "../utils/test_checkpoint.py::"
        "test_the_function_runs_again_outside_of_inference_mode"
    ),
    "`autograd.graph.get_gradient_edge`": (
        f"{SAVED}test_a_gradient_edge_is_refused_by_name"
    ),
    "`allow_mutation_on_saved_tensors`": (
        f"{SAVED}test_mutation_of_saved_tensors_is_refused_by_name"
    ),
    "complex numbers with the default dtype float16 or bfloat16": (
        "../tensors/test_default_dtype.py::test_complex_numbers_follow_in_width"
    ),
    "`FloatTensor(...)` of a tensor of another dtype": (
        "../operators/bindings/test_typed.py::test_constructors_take_sizes_and_data"
    ),
    "`set_printoptions`": "../tensors/test_print_options.py::test_the_text_follows",
    "`set_printoptions(edgeitems=0)`": (
        "../tensors/test_print_options.py::"
        "test_no_element_prints_without_items_at_the_ends"
    ),
    "`asarray` of bytes without a dtype": (
        "../tensors/test_from_memory.py::test_bytes_are_read_and_not_converted"
    ),
    "`asarray` of an `array.array`, or of a memoryview of numbers": (
        "../tensors/test_from_memory.py::test_elements_are_converted_if_they_have_to_be"
    ),
    "gradients that upstream does not have, or loses": (
        f"{CORE}::test_gradients_that_upstream_lacks"
    ),
    "the gradient of `scatter_reduce` with amax or amin": (
        "../operators/test_index_writes.py::"
        "test_the_gradient_of_an_extreme_is_shared_by_those_that_took_part"
    ),
    "the gradient of the determinant of a singular matrix": (
        "../autograd/test_linalg.py::test_the_gradient_of_a_determinant_of_zero"
    ),
    "the gradient of the Cholesky factor of complex matrices": (
        "../autograd/test_linalg.py::test_the_gradient_of_a_factor_is_hermitian"
    ),
    "eigenvalues and singular values of numbers that are not finite": (
        "../operators/test_linalg.py::"
        "test_what_is_not_finite_has_no_singular_or_eigenvalues"
    ),
    "what `torch.linalg` computes on other devices, and gradients of its factors": (
        "../operators/test_linalg.py::test_other_devices_have_no_kernel"
    ),
    "`einsum` of one operand, and `dropout` that does not train": (
        f"{CORE}::test_results_of_their_own"
    ),
    "what a meta tensor is asked": (
        f"{CORE}::test_meta_tensors_are_refused_what_others_are"
    ),
    # Dispatch to Python
    "results of a class of tensors without a handler": (
        f"{PYTHON}test_subclasses.py::test_results_of_a_class_without_a_handler"
    ),
    "`tensor(...)` and `from_numpy` inside of a mode": (
        f"{PYTHON}test_subclasses.py::test_what_is_made_of_data_is_no_call"
    ),
    "a handler that is a plain method": (
        f"{PYTHON}test_bad_input.py::test_a_class_whose_handler_is_a_plain_method"
    ),
    "the handler of a mode that is a classmethod": (
        f"{PYTHON}test_bad_input.py::test_a_mode_whose_handler_is_no_method"
    ),
    "handlers inside of one another without end": (
        f"{PYTHON}test_fallback.py::test_a_class_that_calls_itself_without_end"
    ),
    "a handler that leaves modes entered, or leaves others": (
        f"{PYTHON}test_modes.py::test_a_handler_that_leaves_a_mode_entered"
    ),
    "modes left in another order": (
        f"{PYTHON}test_modes.py::test_leaving_in_the_wrong_order"
    ),
    "the key Python without mode or handler": (
        f"{PYTHON}test_fallback.py::test_python_by_hand_and_nobody_to_ask"
    ),
    "results of several values": (
        f"{PYTHON}test_torch_dispatch_call.py::test_what_does_not_fit"
    ),
    "the module of an operator that a handler sees": (
        "test_handle.py::test_an_operator_of_the_runtime"
    ),
    "what modes see of `1 - x`, `norm`, `batch_norm`, `dropout`, `backward of mean`": (
        f"{PYTHON}test_everyday.py::test_a_mode_sees_the_operators_of_torch"
    ),
    "what handlers see of `linear`, `conv2d` and `softmax` in `inference_mode`": (
        f"{PYTHON}test_decompositions.py::test_parts_are_seen_in_inference_mode"
    ),
    "`op._schema.name`": (
        f"{PYTHON}test_decompositions.py::test_names_that_published_classes_use"
    ),
    "names of overloads": (f"{PYTHON}test_decompositions.py::test_names_of_overloads"),
    "`reduction` of losses, as handlers see it": (
        f"{PYTHON}test_everyday.py::test_a_reduction_is_seen_as_the_call_says_it"
    ),
    "`__torch_function__` and `TorchFunctionMode`": (
        f"{PYTHON}test_decompositions.py::test_functions_are_not_handed_to_classes"
    ),
    "several interpreters": (
        f"{PYTHON}test_context.py::test_a_tensor_is_handled_in_the_context_that_made_it"
    ),
    "the version of what a custom operator writes to": (
        "../custom/test_schema_kernels.py::test_a_call_is_one_version"
    ),
    # Futures
    "keyword arguments of an eager await": (
        f"{FUTURES}test_awaits.py::test_keyword_arguments_are_honoured"
    ),
    "an attribute that the value of an await lacks": (
        f"{FUTURES}test_await_attributes.py::test_a_missing_attribute"
    ),
    "two threads that wait for one await": f"{FUTURES}test_awaits.py::test_two_threads",
    "`type()` of an eager await": f"{FUTURES}test_awaits.py::test_its_type",
    "the error of a future": f"{FUTURES}test_future.py::test_an_error_is_no_value",
    "an error as the second completion of a future": (
        f"{FUTURES}test_future.py::test_a_second_completion"
    ),
    "`set_exception` of no exception": (
        f"{FUTURES}test_future.py::test_what_is_no_exception"
    ),
    "errors that callbacks hand on": (
        f"{FUTURES}test_callbacks.py::test_an_error_that_a_chain_hands_on"
    ),
    "`value()` of a future that is not complete": (
        f"{FUTURES}test_future.py::test_a_value_that_is_not_there"
    ),
    "a state that fits a module in part": (
        "../nn/test_module.py::test_a_state_that_does_not_fit_changes_nothing"
    ),
    "lists and dictionaries that are attributes of a compiled module": (
        f"{MODULES}test_compiled.py::test_lists_are_those_of_the_compiled_module"
    ),
    "a module that is at two places of a compiled module": (
        f"{MODULES}test_compiled.py::test_it_is_a_module"
    ),
    "a chain of modules in a script": (
        f"{MODULES}test_compiled.py::test_a_chain_of_any_types"
    ),
    "deriving from ScriptModule, and `script_method`": (
        f"{MODULES}test_compiled.py::test_deriving_and_script_method_are_refused"
    ),
    "names that a compiled module has for Python, as attributes (`graph`, `code`)": (
        f"{MODULES}test_module_shape.py::test_what_each_attribute_is"
    ),
    # Archives
    "kinds of nodes of plug-ins in the text of a program": (
        f"{ARCHIVE}test_code.py::test_a_kind_that_nobody_describes_has_all_operands"
    ),
    "the data of an archive": f"{ARCHIVE}test_hostile.py::test_nothing_runs",
    "what of an archive is compiled when it is loaded": (
        f"{ARCHIVE}test_round_trip.py::test_a_function_with_a_loop"
    ),
    "classes that are loaded": (
        f"{ARCHIVE}test_round_trip.py::test_objects_have_a_class_of_their_own"
    ),
    "saving to a path where writing fails": (
        f"{ARCHIVE}test_container.py::test_an_interrupted_save_leaves_the_old_file"
    ),
    "classes of futures": f"{FUTURES}test_future.py::test_one_class",
    "timeouts of `wait`": f"{FUTURES}test_future.py::test_a_wait_that_ends_in_time",
    "devices of a future": f"{FUTURES}test_future.py::test_devices_are_the_cpu",
    "an exit or Ctrl-C in a callback": (
        f"{FUTURES}test_callbacks.py::test_a_callback_that_exits_loses_no_other_one"
    ),
    "`__call__` of a class of modules in a script": (
        f"{MODULES}test_assigned.py::test_a_script_runs_what_python_runs"
    ),
    "`forward` of a module that is a method of another module": (
        f"{MODULES}test_assigned.py::test_forward_of_another_object_is_refused"
    ),
    "a bound method under a second name, `self.act = self.helper`, in a script": (
        f"{MODULES}test_assigned.py::test_a_script_runs_what_python_runs"
    ),
    "a 0-dim tensor as an index in a script, `t[k]`": (
        "../script/emission/test_subscripts.py::test_a_part_is_what_it_is_in_python"
    ),
    "lists, bools and `slice()` as indices in a script": (
        "../script/emission/test_subscripts.py::test_a_part_is_what_it_is_in_python"
    ),
    "`full(size, True)` in a script": (
        "../script/emission/test_eager_forms.py::test_a_call_does_what_it_does_in_python"
    ),
    "`manual_seed` in a script": (
        "../script/emission/test_eager_forms.py::test_a_seed_decides_the_numbers_of_a_script"
    ),
    "`__getstate__` and `__setstate__` of what is saved": (
        f"{ARCHIVE}test_jit.py::test_attributes_are_saved_whatever_the_state_is"
    ),
    "special methods of a container's subclass in a script (`__len__`, `in`)": (
        f"{MODULES}test_assigned.py::test_special_methods_of_a_class_are_its_own"
    ),
    "`_unwrap_optional` of None in a script": (
        "../script/jit/test_values.py::test_unwrapping_gives_the_value_or_raises"
    ),
    "`if` in a comprehension": (
        "../script/emission/test_common_programs.py::test_a_program_does_what_python_does"
    ),
    "a list as the default of a parameter in a script": (
        "../script/jit/test_values.py::test_a_list_as_a_default_is_new_in_each_call"
    ),
    "`and` and `or` of a tensor and a bool, as a value in a script": (
        "../script/emission/test_common_programs.py::test_a_tensor_and_a_bool_are_a_condition_only"
    ),
    "a function that a `CompilationUnit` defines again": (
        "../script/jit/test_script.py::test_a_function_that_is_defined_again_is_the_last_one"
    ),
    "displays in a value of a declared type (`[[] for _ in xs]`, `[None] * n`)": (
        "../script/emission/test_common_programs.py::test_what_is_returned_takes_the_declared_type"
    ),
    "tuples within a list or a dictionary where lists are asked for, at the boundary": (
        "../script/jit/test_values.py::test_tuples_within_a_list_of_the_caller_are_refused"
    ),
    "`script` of a list or a dictionary": (
        "../script/emission/test_common_programs.py::test_lists_and_dictionaries_are_shared_as_they_are"
    ),
    "a tensor where a primitive takes a number (`min(2, x)`) in a script": (
        "../script/emission/test_common_programs.py::test_primitives_do_not_read_tensors"
    ),
    "functions that `no_grad()` and its like decorate, in a script": (
        "../script/emission/test_decorated.py::test_a_script_runs_in_the_mode"
    ),
    "a class as an attribute of a module, `self.kind = Point`": (
        f"{MODULES}test_interfaces.py::test_objects_are_of_the_interfaces_that_they_have"
    ),
    # Programs that run
    "`raise` of a program, outside of it": (
        f"{RUNNING}test_backtrace.py::test_a_program_raises_the_class_that_it_names"
    ),
    "what an operator raises within a program": (
        f"{RUNNING}test_backtrace.py"
        "::test_an_operator_raises_its_own_exception_with_a_note"
    ),
    "the error of a forked task, for who waits": (
        f"{RUNNING}test_backtrace.py"
        "::test_frames_of_tasks_stay_below_those_of_who_waits"
    ),
    "lists and dictionaries at the boundary of a program": (
        f"{RUNNING}test_python_interop.py::test_lists_and_objects_are_the_callers_own"
    ),
    "integers of a list where floats are asked for, at the boundary": (
        f"{RUNNING}test_python_interop.py::test_values_that_do_not_fit"
    ),
    "an eager await or future that gives another type than its parameter says": (
        f"{RUNNING}test_later.py::test_what_an_await_of_python_gives_is_looked_at"
    ),
    "an await that a program made": (
        f"{RUNNING}test_later.py::test_awaits_run_when_they_are_waited_for"
    ),
    "`isinstance(x, int)` of True, where x may be anything": (
        f"{RUNNING}test_node_kernels.py::test_isinstance"
    ),
    "an operator that is registered anew, under a compiled function": (
        f"{RUNNING}test_operators.py::test_an_operator_with_another_schema_is_refused"
    ),
    # Passes
    "a fork that nobody waits for, and whose body has effects": DEAD_CODE,
    "a step that raises, and whose value nobody uses (`a // 0`, `a[7]`)": DEAD_CODE,
    "random numbers that nobody uses": (
        "../script/passes/test_dead_code.py::test_numbers_are_drawn"
    ),
    "a loop without effects that stops by its condition alone": DEAD_CODE,
    "tensors computed of constants alone": (
        "../script/passes/test_folding.py::test_tensors_are_not_computed_early"
    ),
    "`__exit__` of a block that raises": (
        f"{RUNNING}test_with.py::test_managers_of_python"
    ),
    # Tracing
    "sizes that a traced function reads": (
        f"{TRACING}test_checking.py::test_a_shape_that_was_kept_is_found"
    ),
    "a trace that computes something else than its function": (
        f"{TRACING}test_checking.py::test_another_way_of_python_is_found_at_its_first_node"
    ),
    "examples that a traced function writes to": (
        f"{TRACING}test_recorder.py::"
        "test_arguments_that_are_written_to_are_those_of_the_call"
    ),
    "a constant of a trace that requires grad": (
        f"{TRACING}test_recorder.py::test_gradients_flow_through_a_trace"
    ),
    "grad mode that a traced function switches": (
        f"{TRACING}test_recorder.py::test_grad_mode_is_that_of_the_caller"
    ),
    "operators of a backward pass within a trace": (
        f"{TRACING}test_recorder.py::test_a_backward_pass_is_recorded"
    ),
}


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / HERE / file).read_text())
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef))


def test_every_deviation_has_a_test_and_no_test_is_of_none() -> None:
    rows = [each.what for each in DEVIATIONS]
    assert len(set(rows)) == len(rows)
    assert set(TESTS) == set(rows)
    for where in TESTS.values():
        file, _, name = where.partition("::")
        assert name in functions_of(file), where


def test_every_row_says_everything() -> None:
    for each in DEVIATIONS:
        *texts, _ = astuple(each)
        assert all(texts)
        assert not any(text.endswith(".") for text in texts), "rows of a table"
        assert each.upstream != each.ours


def test_predictions_exist_and_every_one_is_of_a_row() -> None:
    named = [each.predicted_by for each in DEVIATIONS if each.predicted_by]
    assert len(set(named)) == len(named)
    assert set(named) == set(PREDICTIONS)


# Keys


def test_every_runtime_key_can_be_read() -> None:
    for name in ("QuantizedHIP", "SparseCsrXLA", "NestedTensorMTIA", "AutogradVE"):
        assert DispatchKey.parse(name).name == name


def test_no_alias_is_a_member() -> None:
    aliases = [key for key in DispatchKey if key.is_alias]
    assert not any(is_member(key, alias) for key in aliases for alias in aliases)


def test_has_of_keys_without_bits() -> None:
    everything = KeySet.from_bits((1 << 62) - 1)
    assert not everything.has(DispatchKey.Undefined)
    assert not everything.has(DispatchKey.Autograd)


def test_after_an_alias() -> None:
    with pytest.raises(KeyMisuse, check=code("NoPriority")):
        full_after(DispatchKey.Autograd)


def test_a_switch_leaves_nothing_behind() -> None:
    before = LOCAL.included
    set_included(DispatchKey.SparseMeta, True)
    set_included(DispatchKey.SparseMeta, False)
    assert LOCAL.included == before


# Schemas


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("Tensor(b|a) x", "Tensor(a|b) x"),
        ("Tensor! x", "Tensor! x"),
        ("Tensor(a|*) x", "Tensor(*) x"),
        ("Tensor(*|a) x", "Tensor(*) x"),
        ("Tensor(a)?[] x", "Tensor(a)?[] x"),
        ("int[] x=[1, 1]", "int[] x=[1, 1]"),
        ('int x="a"', 'int x="a"'),
        ("Union(str, Scalar, int[]) x", None),
        ("complex x=2", None),
        ("float x=1e-999", "float x=0."),
        ("NoneType? x", "NoneType x"),
        ("Union(int, None, str) x", "Union(int, str)? x"),
        ("Union(int, str)? x", "Union(int, str)? x"),
        ("Union(int, int) x", "int x"),
    ],
)
def test_printed(written: str, printed: str | None) -> None:
    schema = parse_schema(f"t::f({written}) -> ()")
    text = str(schema)
    assert str(parse_schema(text)) == text
    assert parse_schema(text) == schema
    if printed is not None:
        assert text == f"t::f({printed}) -> ()"


@pytest.mark.parametrize(
    "arguments",
    [
        "int x=0x10",
        "int x=99999999999999999999",
        "Tensor x, int x",
        "int x=1, int[] y",
        "Dict(str, Tensor(a!)) x",
    ],
)
def test_refused(arguments: str) -> None:
    library = Library("test", "DEF", dispatcher=silent())
    with pytest.raises(SchemaError):
        library.define(f"f({arguments}) -> ()")


def test_a_pure_function_is_not_annotated() -> None:
    library = Library("test", "DEF", dispatcher=silent())
    with pytest.raises(SchemaError):
        library.define("f(Tensor(a!) x) -> ()", "PURE_FUNCTION")


# Registration


def test_the_live_table_is_dumped() -> None:
    """A table that is patched behind the dispatcher's back shows what it is."""
    d = Dispatcher(builtin_fallbacks=False)
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU", debug="real")
    entry = d.entry("test::foo")
    assert entry is not None
    token = entry.implementations[DispatchKey.CPU][0]
    library.impl("foo", lambda x: x, "CUDA", debug="planted")
    planted = d.entry("test::foo")
    assert planted is not None
    kernels = tuple(token for _ in planted.table.kernels)
    table = planted.table._replace(kernels=kernels)
    operators = {"test::foo": planted._replace(table=table, memo={})}
    d.state = d.state._replace(namespaces={"test": operators})
    assert d.dump_table("test::foo") == "CPU: real [kernel]\nCUDA: real [kernel]\n"


# Values


def bound(written: str, value: Any) -> Any:
    d = silent()
    library = defined(d, f"foo({written} x) -> ()")
    found = op(d).bind((value,), {})
    library.close()
    return found[0]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("bool", None),
        ("str[]", "abc"),
        ("Dict(str, int)", [("a", 1)]),
        ("Stream", 3),
    ],
)
def test_refused_values(written: str, value: Any) -> None:
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        bound(written, value)


THING = object()


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        ("Scalar", np.float32(1.5), 1.5),
        ("SymInt[3]", 5, [5, 5, 5]),
        ("Any", THING, THING),
    ],
)
def test_accepted_values(written: str, value: Any, expected: Any) -> None:
    assert bound(written, value) == expected
