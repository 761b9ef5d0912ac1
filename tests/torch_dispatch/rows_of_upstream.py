"""Upstream's tests of dispatch to Python, and ours; see `rows`."""

UPSTREAM = (
    (
        "test_override_aten_ops_with_multiple_libraries",
        "test_rows_upstream::test_overriding_operators_with_several_libraries",
    ),
    ("test_error_if_fn_not_callable", "dispatch/test_library::test_what_is_no_kernel"),
    (
        "test_error_for_unsupported_ns_or_kind",
        "dispatch/test_arguments::test_a_library_that_cannot_be",
    ),
    (
        "test_override_cpu_sum",
        "test_rows_upstream::test_overriding_operators_with_several_libraries",
    ),
    (
        "test_override_cuda_with_jiterator",
        "there is no jiterator; kernels at CUDA: tests/cuda",
    ),
    (
        "test_extend_library_with_dispatch_key_arg",
        "dispatch/test_library::test_a_key_that_is_not_the_library_s",
    ),
    ("test_create_new_library", "test_rows_upstream::test_libraries_of_one_namespace"),
    (
        "test_create_new_library_fragment_no_existing",
        "test_rows_upstream::test_libraries_of_one_namespace",
    ),
    (
        "test_create_new_library_fragment_with_existing",
        "test_rows_upstream::test_libraries_of_one_namespace",
    ),
    (
        "test_alias_analysis",
        "test_rows_upstream::test_what_a_definition_promises_of_memory",
    ),
    (
        "test_returning_symint",
        "test_rows_upstream::test_symbolic_integers_are_integers",
    ),
    (
        "test_basic",
        "test_rows_upstream::test_forward_saved_and_backward",
        "examples/test_logging_tensor::test_forward_and_backward_to_the_letter",
    ),
    (
        "test_out",
        "test_handling::test_out_reaches_the_handler_by_name",
        "test_handling::test_what_is_written_to_is_the_result",
    ),
    ("test_kwarg_only", "programs::defaults"),
    ("test_kwarg_only_and_positional_default", "programs::defaults"),
    ("test_produce_real_type", "programs::defaults"),
    (
        "test_optional_tensor_list",
        "programs::lists",
        "test_rows_upstream::test_lists_of_optional_tensors",
    ),
    ("test_list_ret", "programs::results", "test_handling::test_what_fits"),
    (
        "test_invalid_ret",
        "programs::results",
        "test_handling::test_what_does_not_fit",
        "test_rows_upstream::test_a_result_that_detach_may_not_have",
    ),
    (
        "test_detach_appears_twice_when_called_once",
        "test_detach::test_detach_is_heard_once",
    ),
    (
        "test_storage",
        "test_rows_upstream::test_the_storage_of_a_wrapper",
        "test_wrapper_lost::test_a_wrapper_stores_nothing",
    ),
    (
        "test_make_wrapper_subclass_noalloc",
        "test_subclasses::test_a_wrapper_allocates_nothing",
    ),
    (
        "test_make_wrapper_subclass_propagates_metadata",
        "test_subclasses::test_a_wrapper_has_the_metadata_that_it_is_given",
    ),
    (
        "test_version",
        "test_detach::test_a_detached_tensor_counts_versions_with_its_origin",
    ),
    (
        "test_subclass_priority",
        "programs::order_of_classes",
        "test_handling::test_the_order",
    ),
    ("test_format", "test_wrapper_lost::test_how_they_print"),
    (
        "test_wrapper_subclass_serializes",
        "test_copying_of_classes::test_a_wrapper_survives",
    ),
    (
        "test_deepcopy_wrapper_subclass",
        "test_copying_of_classes::test_a_wrapper_survives",
    ),
    (
        "test_deepcopy_non_wrapper_subclass",
        "test_copying_of_classes::test_elements_survive",
    ),
    (
        "test_deepcopy_wrapper_subclass_with_clone_returning_different_type",
        "test_copying_of_classes::test_a_class_may_say_itself_what_survives",
    ),
    ("test_custom_autograd", "test_subclasses::test_a_custom_function_with_wrappers"),
    (
        "test_subclass_creation",
        "test_rows_upstream::test_one_class_for_a_tensor",
        "test_subclasses::test_a_tensor_of_another_class_is_refused",
    ),
    ("test_new_ones", "test_rows_upstream::test_factories_of_a_subclass"),
    ("test_like", "test_rows_upstream::test_factories_of_a_subclass"),
    (
        "test_index_put_where_only_index_is_subclass",
        "test_handling::test_only_the_list_has_a_subclass",
        "test_handling::test_indexing_where_only_the_index_is_a_subclass",
    ),
    (
        "test_torch_dispatch_mode_basic",
        "programs::modes_hear_everything",
        "test_modes::test_factories_are_heard",
    ),
    ("test_torch_dispatch_mode_unrelated_tensors", "programs::modes_hear_everything"),
    (
        "test_nested_push_logging_tensor_mode",
        "programs::modes_in_modes",
        "examples/test_logging_mode::test_nested_modes_agree_about_the_numbers",
    ),
    (
        "test_capture_logs_with_torch_dispatch_mode",
        "examples/test_logging_mode::test_factories_plain_tensors_and_the_backward_pass",
    ),
    ("test_torch_dispatch_mode_subclass_priority", "programs::modes_before_classes"),
    (
        "test_mode_with_make_subclass",
        "test_rows_upstream::test_making_a_subclass_is_hidden_from_modes",
    ),
    (
        "test_make_subclass_with_modes",
        "test_rows_upstream::test_making_a_subclass_is_hidden_from_modes",
    ),
    (
        "test_torch_dispatch_mode_respects_no_dispatch",
        "programs::hidden_modes",
        "test_modes::test_no_dispatch_also_hides_a_mode_that_is_entered_inside",
    ),
    (
        "test_shallow_copy_and_detach",
        "test_rows_upstream::test_a_mode_sees_no_tensor_that_it_does_not_know",
        "test_detach::test_a_mode_hears_of_data",
    ),
    (
        "test_exception_handling",
        "programs::handlers_that_raise",
        "test_modes::test_the_stack_and_keys_after_a_mode",
    ),
    ("test_with_mode_created_separately", "programs::modes_in_modes"),
    ("test_with_nested_modes", "programs::modes_in_modes"),
    ("test_nesting_same_mode", "programs::a_mode_twice"),
    ("test_notimplemented_mode", "programs::a_class_that_calls_again"),
    (
        "test_error_using_class_method_on_mode",
        "test_bad_input::test_a_mode_whose_handler_is_no_method",
    ),
    ("test_get_cur_mode", "programs::modes_in_modes", "test_modes::test_introspection"),
    ("test_get_mode_stack", "test_modes::test_introspection"),
    ("test_all_same_mode", "programs::a_mode_twice", "test_modes::test_introspection"),
    (
        "test_tolist_numpy_with_torch_dispatch_mode",
        "test_rows_upstream::test_elements_of_a_subclass_and_of_plain_tensors_in_a_mode",
    ),
    (
        "test_subclass_autograd_device_check",
        "test_rows_upstream::test_a_gradient_on_another_device_than_a_subclass_says",
    ),
    ("test_none_wrapping", "test_handling::test_none_is_an_undefined_tensor"),
    (
        "test_autograd_in_attr",
        "test_fallback::test_reentrant_dispatch_records_inside_of_a_handler",
    ),
    (
        "test_dispatch_super_call",
        "programs::super_calls",
        "test_rows_upstream::test_a_super_call_does_not_record",
    ),
    (
        "test_dispatch_super_call_list_arg",
        "programs::super_calls",
        "test_rows_upstream::test_a_super_call_does_not_record",
    ),
    (
        "test_dispatch_super_call_dont_autograd",
        "test_rows_upstream::test_a_super_call_does_not_record",
    ),
    ("test_set_data", "test_detach::test_setting_data_asks_nobody"),
    (
        "test_multiple_ops_subclass",
        "test_rows_upstream::test_several_operators_in_a_handler",
    ),
    ("test_is_contiguous_slow_path", "test_policies::test_the_handler_tells"),
    ("test_fancy_strides", "test_policies::test_fancy_strides"),
    ("test_strides_slow_path", "test_policies::test_the_handler_tells"),
    ("test_sizes_slow_path", "test_policies::test_the_handler_tells"),
    ("test_dim_slow_path", "test_policies::test_the_handler_tells"),
    ("test_device_slow_path", "test_policies::test_the_handler_tells"),
    ("test_layout_slow_path", "test_policies::test_the_handler_tells"),
    (
        "test_standard_is_not_subclass",
        "test_rows_upstream::test_plain_tensors_are_not_like_subclasses",
    ),
    (
        "TestPythonDispatcher.test_basic",
        "test_rows_calls::test_the_python_dispatcher_looks_on",
    ),
    (
        "TestPythonDispatcher.test_lstsq",
        "test_rows_calls::test_the_python_dispatcher_looks_on",
    ),
)
