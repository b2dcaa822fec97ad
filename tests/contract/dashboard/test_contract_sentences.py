"""Each sentence of the contract (section 4) about reading, beside the test that holds it."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[2]
ANSWERS = "contract/dashboard/test_answers.py"
BOTH = "contract/dashboard/test_read_api.py"
TRIALS = "contract/dashboard/test_trials.py"
SHAPE = "unit/dashboard/http/test_error_shape.py"
SIGN_IN = "unit/dashboard/auth/test_sign_in.py"
PROJECTS = "unit/dashboard/test_projects_api.py"
CHANGES = "unit/dashboard/test_changes.py"
RULES = "unit/dashboard/test_rules_api.py"
RULE_TESTS = "unit/dashboard/test_rule_tests.py"
CONDITIONAL = "unit/dashboard/http/test_responses.py"
OPENAPI = "unit/dashboard/http/test_openapi.py"
READER = "integration/storage/reader/test_reader.py"
PAGING = "integration/storage/reader/test_paging.py"
COUNTS = "integration/storage/reader/test_counts.py"
LIVES = "integration/control/test_issue_changes.py"
STATES = "integration/storage/reader/test_issue_states.py"
LANGUAGE = "unit/query/test_docs.py"
PARSE = "unit/query/test_parse.py"
PROCESS = "integration/dashboard/test_process.py"

FIELDS = "test_every_answer_has_the_fields_that_the_contract_names"
CONTROLS = "test_a_patch_answers_the_changed_issue_and_the_next_read_shows_it"
WAYS = "test_every_way_of_writing_is_understood"


class Row(NamedTuple):
    """What the sentence is about, the sentence, and where it is held."""

    about: str
    sentence: str
    file: str
    test: str


ROWS = [
    Row("all", "On the dashboard's port, under `/api/v1`", PROCESS, "test_it_is_ready_with_real_servers_and_creates_projects_that_others_see"),
    Row("all", "camelCase JSON, times ISO 8601 UTC with milliseconds", ANSWERS, "test_keys_are_camel_case_and_times_utc_with_milliseconds"),
    Row("all", "Auth: the dashboard's session cookie", SIGN_IN, "test_session_reads_the_api"),
    Row("all", "or HTTP Basic with user `admin` and the admin password", SIGN_IN, "test_wrong_user_is_refused"),
    Row("all", "Auth (of every operation)", SHAPE, "test_without_credentials_every_operation_is_401"),
    Row("all", "Errors are `{\"error\": CODE, \"details\"?: [...]}`", SHAPE, "test_bad_parameter_is_400_and_named"),
    Row("all", "Errors (trouble below)", SHAPE, "test_error_below_is_said_in_the_same_shape"),
    Row("all", "Errors (paths and methods)", SHAPE, "test_wrong_method_is_405_with_allow"),
    Row("all", "Lists page with `limit` (default 50, at most 500)", ANSWERS, "test_lists_have_50_entries_unless_told_otherwise_and_at_most_500"),
    Row("all", "and `cursor`; the answer carries `nextCursor` (null at the end)", BOTH, "test_pages_of_issues_and_events_hold_each_once"),
    Row("all", "`start` and `end` are ISO times (default: the last 14 days)", ANSWERS, "test_a_range_is_the_last_14_days_of_the_events_time_by_default"),
    Row("all", "`start` and `end` (which of them is in the range)", ANSWERS, "test_an_end_is_not_in_its_range_and_a_start_is"),
    Row("all", "of the event's time (section 2, point 10)", "unit/query/test_event_view.py", "test_a_time_that_no_clock_can_mean_gives_way_to_that_of_receipt"),
    Row("all", "The OpenAPI document is at `/api/v1/openapi.json`", OPENAPI, "test_answers_about_what_exists_conform_to_the_document"),
    Row("projects", "`GET /projects`: id, name, createdAt, tokens, rateLimitPerMinute, retentionDays", PROJECTS, "test_projects_are_listed_with_what_the_contract_names"),
    Row("projects", "`POST /projects`: the project; 201 with `token`", PROJECTS, "test_created_project_answers_its_token"),
    Row("projects", "`PATCH /projects/{project}`: the project", PROJECTS, "test_update_keeps_what_is_left_out"),
    Row("projects", "`POST .../tokens`: 201 with `token` · `DELETE .../tokens/{token}`", PROJECTS, "test_token_is_made_and_revoked"),
    Row("issues", "`GET /projects/{project}/issues?query&start&end&sort&limit&cursor`", BOTH, "test_issues_of_a_query"),
    Row("issues", "`{\"issues\": [Issue], \"nextCursor\"}`", ANSWERS, FIELDS),
    Row("issues", "`sort` is `lastSeen` (default), `firstSeen`, `events`, `users`, `trend`", ANSWERS, "test_the_greatest_comes_first_in_every_order"),
    Row("issue", "`GET /issues/{issue}` Issue", BOTH, "test_an_issue_and_what_counts_in_a_range"),
    Row("issue", "`PATCH /issues/{issue}` Issue", CHANGES, CONTROLS),
    Row("issue", "PATCH takes `status`, `resolvedIn`, `ignoreUntil`, `assignee`", CHANGES, "test_a_bad_change_names_its_field"),
    Row("issue", "`resolvedIn` (a release, `\"next\"` or null)", LIVES, "test_a_fix_holds_for_older_releases_and_not_for_newer_ones"),
    Row("issue", "a GET right after it shows the change", CONDITIONAL, "test_a_read_right_after_a_change_shows_it"),
    Row("bulk", "`POST /projects/{project}/issues:bulk`: the same change to many issues", LIVES, "test_many_issues_are_changed_together_and_a_foreign_one_stops_all"),
    Row("merge", "merge, unmerge: at once, reversible, no event rewritten", LIVES, "test_counts_are_right_at_every_step_though_the_worker_is_killed_in_between"),
    Row("merge", "merged issues read as one", READER, "test_merged_issues_read_as_one"),
    Row("merge", "(their changes, too)", BOTH, "test_what_happened_to_merged_issues_reads_as_one"),
    Row("activity", "`GET /issues/{issue}/activity`", PAGING, "test_activity_pages_through_the_changes_newest_first"),
    Row("activity", "`POST /issues/{issue}/comments`", CHANGES, "test_each_control_of_the_page_makes_its_change"),
    Row("events", "`GET /issues/{issue}/events?query&limit&cursor`, newest first", ANSWERS, "test_events_come_newest_first"),
    Row("events", "`event` is an id, `latest` or `oldest`; the event as sent, its neighbours, grouping", BOTH, "test_an_event_between_its_neighbours"),
    Row("events", "`\"grouping\": {\"version\", \"rule\", \"parts\"}`", ANSWERS, "test_grouping_says_version_rule_and_parts"),
    Row("events", "events of a project", BOTH, "test_events_of_a_query"),
    Row("events", "(one whose stored content is damaged)", TRIALS, "test_a_damaged_event_is_an_error_that_names_its_neighbours"),
    Row("tags", "top 10 values a key", ANSWERS, "test_tags_have_their_ten_most_frequent_values"),
    Row("tags", "of a project, of an issue; completion by prefix", BOTH, "test_tags_and_completion"),
    Row("stats", "`{\"series\": [{\"time\",\"events\",\"users\"}]}` by interval", BOTH, "test_counts_over_time"),
    Row("stats", "(no interval is left out)", COUNTS, "test_series_count_each_interval_and_leave_none_out"),
    Row("releases", "release, firstSeen, lastSeen, events, newIssues, regressions", COUNTS, "test_releases_say_what_they_brought"),
    Row("outcomes", "counts by outcome and SDK", ANSWERS, "test_outcomes_are_counted_by_outcome_and_sdk"),
    Row("rules", "`GET/PUT .../grouping-rules`: ordered rules", RULES, "test_rules_come_back_in_their_order_without_an_error"),
    Row("rules", "the test says which past events they would match", TRIALS, "test_rules_do_the_same_to_the_same_past_events"),
    Row("rules", "and into how many issues they would fall", RULE_TESTS, "test_a_rule_for_everything_makes_one_issue_of_all"),
    Row("Issue", "its fields", ANSWERS, FIELDS),
    Row("Issue", "`trend` (24 hourly or 14 daily counts)", ANSWERS, "test_a_trend_has_24_hourly_or_14_daily_counts"),
    Row("Issue", "`events` and `users` are for the asked range and query; `totalEvents` and `totalUsers` for the issue's life", ANSWERS, "test_counts_are_for_range_and_query_and_totals_for_life"),
    Row("Issue", "(the query's conditions on the issue, too)", BOTH, "test_an_issue_is_counted_where_it_is_what_the_query_asks_of_issues"),
    Row("Issue", "assignee, resolvedIn, ignoreUntil (null where there is none)", ANSWERS, "test_an_empty_fact_is_null_and_not_left_out"),
    Row("language", "the same wherever `query` stands", SHAPE, "test_query_that_does_not_parse_is_400_with_the_position"),
    Row("language", "words and `\"quoted phrases\"` search type and message", LANGUAGE, "test_what_the_page_says_holds"),
    Row("language", "`key:value`, `is`, fields, `tags[key]:value`, `-`, `*`, lists, comparisons, `has:key`, `AND`, `OR`, parentheses", LANGUAGE, WAYS),
    Row("language", "every field that it names", LANGUAGE, "test_every_field_is_on_the_page"),
    Row("language", "400 with the position and what was expected", LANGUAGE, "test_refusals_name_place_and_expectation"),
    Row("language", "`assignee`", BOTH, "test_issues_of_a_query"),
    Row("language", "a key that no event of the project has is no error: `warnings`", BOTH, "test_a_key_that_no_event_has_is_named_with_the_nearest_on_every_call"),
    Row("all", "Overload is 503 with `Retry-After`, never a 4xx", "unit/storage/reader/test_execute.py", "test_a_server_that_is_unreachable_or_busy_may_answer_later"),
    Row("all", "a change that was made is answered as made", "unit/control/test_issue_changes.py", "test_a_change_that_was_made_is_answered_though_clickhouse_does_not_answer"),
    Row("all", "`Idempotency-Key` with another body is 409 `conflict`", "unit/dashboard/test_idempotency.py", "test_the_same_key_makes_a_change_once_and_no_other"),
    Row("language", "(any text is a query or refused)", PARSE, "test_any_text_gives_a_tree_or_a_query_error"),
]  # fmt: skip


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.about}: {row.sentence}")
def test_sentence_is_held_by_a_test_that_exists(row: Row) -> None:
    assert row.test in names_in(row.file)


def test_every_call_of_the_contract_has_a_sentence() -> None:
    calls = {
        "projects",
        "issues",
        "issue",
        "bulk",
        "merge",
        "activity",
        "events",
        "tags",
        "stats",
        "releases",
    }
    assert {row.about for row in ROWS} >= calls | {"outcomes", "rules", "Issue", "language", "all"}
