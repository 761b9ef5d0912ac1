"""All laws, in the order in which they are checked and told.

True only here: which laws there are.  A law of one operator may read of it only what
its shape holds (see `invariants.shape`), for that is what verdicts are remembered by;
`callers_belong_to_their_entry`, which reads the entry's memory, is never remembered.
"""

from invariants.laws import (
    extractor,
    masks,
    runs,
    signatures,
    steps,
    structure,
    table,
    thread,
)

OPERATOR_LAWS = (
    structure.operators_are_filed_under_their_names,
    structure.registrations_belong_to_their_operator,
    structure.readings_tell_what_is_registered,
    structure.an_operator_has_one_definition,
    structure.definitions_stand_in_order,
    structure.a_class_has_one_rule,
    structure.the_total_counts_what_is_live,
    structure.no_kernel_list_is_empty,
    structure.a_registration_is_listed_once,
    structure.kernels_are_listed_under_their_key,
    structure.keys_stand_in_order,
    structure.kernels_stand_at_keys_that_take_them,
    extractor.without_a_schema_no_argument_is_looked_at,
    extractor.the_schema_says_which_arguments_count,
    signatures.typed_kernels_agree,
    signatures.typed_kernels_fit_the_schema,
    table.tables_hold_the_fallbacks_of_the_state,
    table.callers_belong_to_their_entry,
    table.slots_run_what_the_rules_say,
    table.slots_say_which_rule_filled_them,
    table.a_slot_without_kernel_says_missing,
    masks.masks_leave_out_what_falls_through,
    masks.a_mask_a_backend_only_where_two_differ,
    masks.one_mask_for_all_only_where_none_differ,
    masks.masks_hold_every_backend,
)

# Each with the one part of a state that it looks at.
STATE_LAWS = (
    ("namespaces", structure.no_namespace_is_empty),
    ("claims", structure.claims_are_sorted_and_one_a_namespace),
    ("fallbacks", structure.fallbacks_stand_where_their_tokens_say),
    ("subscriptions", structure.listeners_are_subscribed_once),
)

# Each with the changes that it speaks about (see `invariants.step`).
STEP_LAWS = (
    (("fail",), steps.a_failed_step_changes_nothing),
    (("use",), steps.a_use_changes_nothing),
    (("again",), steps.closing_twice_changes_nothing),
    (("add",), steps.an_add_adds_exactly_its_tokens),
    (("remove",), steps.a_removal_removes_exactly_its_tokens),
    (("add",), steps.the_newest_kernel_comes_first),
    (("add", "remove"), steps.survivors_keep_their_order),
    (("add", "remove"), steps.bystanders_are_left_alone),
)

# These two need no state, so that they can be asked of every call, step and look.
MEMORY_LAWS = (runs.what_is_gone_is_dead,)
THREAD_LAWS = (
    runs.calls_restore_their_thread,
    thread.deeds_leave_the_thread_alone,
    runs.kernels_run_without_the_lock,
)

RUN_LAWS = (
    runs.teardown_leaves_nothing,
    runs.open_handles_own_what_is_live,
    *MEMORY_LAWS,
    *THREAD_LAWS,
    runs.calls_run_what_the_state_says,
)

LAWS = (
    *OPERATOR_LAWS,
    *(each for _, each in STATE_LAWS),
    *(each for _, each in STEP_LAWS),
    *RUN_LAWS,
)
