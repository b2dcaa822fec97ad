"""Read calls give the same answers from three servers as from one: the same tests, on other servers."""
# ruff: noqa: F401

import pytest

from tests.integration.storage.read.counts.test_counts import (
    test_completion_knows_keys_values_and_fields,
    test_facets_have_the_most_frequent_values_of_each_tag,
    test_facets_of_a_project_without_a_query_are_of_whole_days,
    test_facets_of_an_issue_are_of_all_its_events,
    test_outcomes_are_summed_once_by_interval_without_those_of_no_event,
    test_releases_have_their_counts_and_new_issues,
    test_series_count_each_interval_and_leave_none_out,
)
from tests.integration.storage.read.test_paging import (
    test_changes_of_merged_issues_page_as_one_and_are_apart_again_after_an_unmerge,
    test_pages_together_are_the_whole_list_in_its_order,
)
from tests.integration.storage.read.test_reader import (
    test_a_listed_event_has_its_main_fields,
    test_a_sample_has_the_newest_events_whole,
    test_an_issue_can_be_walked_from_its_latest_event_to_its_oldest,
    test_an_issue_is_counted_by_the_querys_conditions_on_it_and_on_its_events,
    test_an_issue_shows_its_lifetime_counts_and_those_of_the_range,
    test_event_lists_page_through_the_events_of_query_and_range,
    test_first_and_last_event_of_a_project,
    test_issue_lists_have_the_issues_and_figures_of_their_events,
    test_merged_issues_read_as_one,
    test_unknown_ids_are_not_found,
)

pytestmark = pytest.mark.slow
