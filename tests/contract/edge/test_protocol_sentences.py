"""Each sentence of the protocol (sections 2 to 9) and of the contract (section 2) about ingest, beside the test that holds it."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[2]
SINGLE = "contract/edge/test_single_event.py"
BATCH = "contract/edge/test_batch.py"
ORDER = "contract/edge/test_order_of_checks.py"
HEADERS = "contract/edge/test_headers.py"
SIZES = "contract/edge/test_sizes.py"
CONNECTIONS = "contract/edge/test_connections.py"
OPENAPI = "contract/edge/test_openapi.py"
ANSWERS = "contract/edge/test_answers.py"
MUTATIONS = "unit/edge/validation/test_mutations.py"
ADMIT = "unit/edge/validation/test_validate.py"
WINDOW = "unit/edge/limits/test_local_window.py"
PROJECTS = "unit/edge/test_projects.py"
PROCESS = "integration/edge/test_process.py"
OUTAGE = "integration/edge/test_outage.py"
WORKERS = "integration/edge/test_workers.py"
STORE = "integration/edge/test_rate_limit_store.py"

REFUSED = "test_mutation_is_refused_with_its_field_and_no_other"
AT_LIMIT = "test_event_at_a_limit_is_accepted"
NULLS = "test_null_is_as_if_left_out_for_every_field_that_is_not_required"
OPTIONAL = "test_every_field_that_is_not_required_may_be_left_out"


class Row(NamedTuple):
    """A section of the protocol (`2.1`) or point of the contract (`contract 2.1`), its sentence, and where it is held."""

    section: str
    sentence: str
    file: str
    test: str


ROWS = [
    Row("2.1", "id: string (uuid-v7), required", MUTATIONS, REFUSED),
    Row("2.1", "timestamp: string (ISO 8601, UTC, ms precision), required", MUTATIONS, REFUSED),
    Row("2.1", "kind: `error` (only value in v0.1), required", MUTATIONS, REFUSED),
    Row("2.1", "platform: `javascript`, `ios`, `android`, required", MUTATIONS, REFUSED),
    Row("2.1", "release: format `<app-name>@<version>+<build>`, required", MUTATIONS, REFUSED),
    Row("2.1", "environment, device, app, error: required", MUTATIONS, REFUSED),
    Row("2.1", "user: omit or null when no user", SINGLE, NULLS),
    Row("2.1", "tags: object<string,string>; max 50 keys", MUTATIONS, REFUSED),
    Row("2.1", "breadcrumbs: up to 100 entries", MUTATIONS, REFUSED),
    Row("2.1", "fingerprint: array, not required", MUTATIONS, REFUSED),
    Row("2.1", "traceId, spanId: reserved; null or omitted in v0.1", SINGLE, NULLS),
    Row("2.2", "os: `ios`, `android`, `web`, `other`, required; osVersion required", MUTATIONS, REFUSED),
    Row("2.2", "model, locale: not required", SINGLE, OPTIONAL),
    Row("2.3", "version required; build not; framework: Framework or null", SINGLE, NULLS),
    Row("2.4", "name, version: required", MUTATIONS, REFUSED),
    Row("2.5", "id string, anonymous boolean, not required", MUTATIONS, REFUSED),
    Row("2.6", "type, message, stack: required", MUTATIONS, REFUSED),
    Row("2.6", "cause: recursive; max depth 10", MUTATIONS, REFUSED),
    Row("2.6", "cause: recursive; max depth 10 (the tenth is accepted)", MUTATIONS, AT_LIMIT),
    Row("2.7", "file string, line int 1-indexed, inApp boolean: required", MUTATIONS, REFUSED),
    Row("2.7", "column: int, 1-indexed", MUTATIONS, REFUSED),
    Row("2.7", "preContext, postContext: max 5", MUTATIONS, REFUSED),
    Row("2.8", "timestamp, type, data: required", MUTATIONS, REFUSED),
    Row("2.8", "type: `nav`, `net`, `log`, `user`, `custom`", MUTATIONS, REFUSED),
    Row("2.8", "data: shape by type", MUTATIONS, REFUSED),
    Row("2.8", "custom: free-form object", SINGLE, "test_breadcrumb_of_each_type_may_lack_the_listed_keys_and_have_others"),
    Row("2.9", "Request body: object with `events`: array of Event, up to 100", BATCH, "test_more_than_100_events_names_the_limit"),
    Row("2.9", "Response body: `accepted` int, `rejected` int, `errors` array", BATCH, "test_bad_events_are_rejected_alone_in_ascending_index"),
    Row("2.11", "only the hash leaves the device", SINGLE, "test_user_of_the_reporting_library_is_accepted_with_its_hashes"),
    Row("4", "Trailing slashes are not significant", SINGLE, "test_trailing_slashes_and_spellings_of_the_path_are_not_significant"),
    Row("4", "Both endpoints take a JSON body and require the headers in section 5", HEADERS, "test_every_faulty_header_is_listed"),
    Row("4.1", "Success: HTTP 202 with an empty JSON object body", SINGLE, "test_event_is_answered_202_with_an_empty_object_byte_for_byte"),
    Row("4.2", "gzip recommended", BATCH, "test_batch_of_100_is_accepted_whole"),
    Row("4.2", "Mixed `platform` values are allowed", BATCH, "test_platforms_may_be_mixed"),
    Row("4.2", "If one event fails validation only that event is rejected", BATCH, "test_bad_events_are_rejected_alone_in_ascending_index"),
    Row("4.3", "Object with `error` = `validationFailed` and `details`", ANSWERS, "test_validation_error_has_its_exact_body"),
    Row("4.3", "`field` (string, dotted path such as a nested field) and `message`", MUTATIONS, REFUSED),
    Row("5", "`Authorization: Bearer <API_KEY>`: yes", HEADERS, "test_missing_or_malformed_token_is_401"),
    Row("5", "`Svc-Sdk`: format `<sdk-name>/<sdk-version>`", HEADERS, "test_sdk_of_another_form_is_refused"),
    Row("5", "unknown SDKs are accepted", HEADERS, "test_unknown_sdks_are_accepted"),
    Row("5", "multipart and form-encoded bodies are not accepted", HEADERS, "test_other_content_types_are_refused_by_name"),
    Row("5", "`Content-Encoding: gzip`: gzip body supported", SINGLE, "test_gzip_body_is_accepted"),
    Row("5", "`Idempotency-Key`: reserved", SINGLE, "test_idempotency_key_header_is_reserved_and_passed_over"),
    Row("5", "`svc_pk_` followed by 26 characters, Crockford base32, lowercase", HEADERS, "test_token_in_upper_case_is_unknown"),
    Row("5", "The prefix `sk_` is reserved", HEADERS, "test_missing_or_malformed_token_is_401"),
    Row("5", "A missing, malformed or unknown token gives HTTP 401", HEADERS, "test_unknown_token_is_401"),
    Row("7", "202 event(s) accepted `{}`", SINGLE, "test_event_is_answered_202_with_an_empty_object_byte_for_byte"),
    Row("7", "400: the violated limit is named in `details`", MUTATIONS, "test_every_limit_of_section_8_is_named_by_its_title_and_number"),
    Row("7", "401 `error` = `unauthorized`", HEADERS, "test_unknown_token_is_401"),
    Row("7", "413 single event or batch larger than 1 MB, `error` = `payloadTooLarge`", SIZES, "test_event_may_have_1048576_bytes_and_not_one_more"),
    Row("7", "429: header `Retry-After` (seconds, rounded up) is set; `retryAfterMs` int", WORKERS, "test_refusal_says_in_the_header_and_the_body_when_to_come_back"),
    Row("7", "500 server fault `error` = `internal`", ANSWERS, "test_error_of_our_own_is_500_without_a_word_of_its_cause"),
    Row("8", "single event payload (decoded) 1 MB", SIZES, "test_event_may_have_1048576_bytes_and_not_one_more"),
    Row("8", "batch payload (decoded, after gzip decode) 1 MB", SIZES, "test_batch_may_have_1048576_bytes_and_not_one_more"),
    Row("8", "events per batch 100", BATCH, "test_more_than_100_events_names_the_limit"),
    Row("8", "breadcrumbs per event 100; stack frames per error 100; cause chain depth 10; tag keys 50", MUTATIONS, REFUSED),
    Row("8", "tag key length 64 chars; tag value length 200 chars", MUTATIONS, REFUSED),
    Row("8", "preContext / postContext lines per frame 5 each", MUTATIONS, REFUSED),
    Row("8", "Events exceeding a count/length limit are rejected with 400 naming the limit", MUTATIONS, REFUSED),
    Row("8", "Rate limit: per-token sliding window; default 5000 requests per minute, configurable per project", WINDOW, "test_window_admits_exactly_what_a_list_of_the_last_60_s_would"),
    Row("8", "It counts requests, not events", ANSWERS, "test_batch_is_one_request_of_the_rate_limit"),
    Row("9.1", "The API version is the first path segment: `/v1/...`", ORDER, "test_paths_that_do_not_exist_are_404_for_every_method"),
    Row("9.3", "unknown fields (a client may be newer than the server)", SINGLE, "test_event_is_forwarded_byte_for_byte_with_unknown_fields"),
    Row("9.5", "A client may omit any field marked not required", SINGLE, OPTIONAL),
    Row("contract 2.1", "path and method", ORDER, "test_unknown_path_is_404_before_the_token"),
    Row("contract 2.1", "token (401); an unauthenticated body is not read", ORDER, "test_missing_token_is_401_without_reading_the_body"),
    Row("contract 2.1", "rate limit (429) before headers", ORDER, "test_rate_limit_is_checked_before_headers_and_body"),
    Row("contract 2.1", "headers (400) before size", ORDER, "test_headers_are_checked_before_the_size"),
    Row("contract 2.1", "size (413) before JSON", ORDER, "test_size_is_checked_before_json"),
    Row("contract 2.1", "with the project registry not loaded the answer is 503", ORDER, "test_unknown_token_is_503_until_the_registry_is_loaded"),
    Row("contract 2.2", "202 also when every event in it is rejected", BATCH, "test_batch_of_bad_events_alone_is_answered_202"),
    Row("contract 2.2", "`errors` is in ascending `index`, one entry per rejected event", BATCH, "test_bad_events_are_rejected_alone_in_ascending_index"),
    Row("contract 2.2", "400 is for a bad wrapper", BATCH, "test_bad_wrapper_is_400_with_its_field"),
    Row("contract 2.3", "`details` lists every violation", MUTATIONS, "test_all_violations_are_listed_in_the_order_of_the_schema"),
    Row("contract 2.3", "up to 20", MUTATIONS, "test_at_most_20_violations_are_listed"),
    Row("contract 2.4", "`application/json` may carry parameters", HEADERS, "test_json_content_type_may_carry_parameters"),
    Row("contract 2.4", "A content encoding other than gzip or identity is 400", HEADERS, "test_other_encodings_are_refused_by_name"),
    Row("contract 2.4", "A body that isn't valid gzip is 400", SIZES, "test_body_that_is_not_valid_gzip_is_400"),
    Row("contract 2.5", "1 MB is 1,048,576 bytes, of the decoded body", SIZES, "test_incompressible_body_of_the_limit_s_size_is_accepted"),
    Row("contract 2.5", "Inflating stops one byte past it", SIZES, "test_bomb_of_a_gigabyte_adds_less_than_8_mb_of_memory"),
    Row("contract 2.6", "either case; kept in lower case", SINGLE, "test_upper_case_id_is_kept_in_lower_case"),
    Row("contract 2.6", "other precisions than milliseconds are accepted", SINGLE, "test_other_precisions_and_a_zero_offset_are_accepted"),
    Row("contract 2.6", "`null` for a field that isn't required is as if it were left out", SINGLE, NULLS),
    Row("contract 2.6", "Empty strings are accepted, an empty `stack` too", SINGLE, "test_empty_strings_and_an_empty_stack_are_accepted"),
    Row("contract 2.6", "the keys listed for its type may be missing", SINGLE, "test_breadcrumb_of_each_type_may_lack_the_listed_keys_and_have_others"),
    Row("contract 2.6", "Lengths count code points", MUTATIONS, AT_LIMIT),
    Row("contract 2.6", "A lone surrogate escape is replaced by U+FFFD", SINGLE, "test_lone_surrogate_escape_becomes_the_replacement_character"),
    Row("contract 2.6", "Fields the schema doesn't know are kept", SINGLE, "test_event_is_forwarded_byte_for_byte_with_unknown_fields"),
    Row("contract 2.7", "`platform` `python`", SINGLE, "test_platforms_of_the_protocol_and_our_own_are_accepted"),
    Row("contract 2.7", "Lenient projects", MUTATIONS, "test_lenient_project_takes_what_fleets_send"),
    Row("contract 2.7", "can name SDKs by pattern", ANSWERS, "test_project_is_lenient_to_the_sdks_that_it_names_and_to_no_others"),
    Row("contract 2.7", "Everyone else gets the letter of the protocol", MUTATIONS, REFUSED),
    Row("contract 2.8", "The same id in another project is another event", SINGLE, "test_equal_ids_of_a_project_meet_in_the_partition_of_the_contract"),
    Row("contract 2.9", "acknowledged by all in-sync Kafka replicas", PROCESS, "test_accepted_events_stand_in_the_topic_as_sent_in_their_partition"),
    Row("contract 2.9", "synced to the edge's own bounded disk spool", OUTAGE, "test_no_accepted_event_is_lost_when_kafka_goes_away_under_load"),
    Row("contract 2.9", "Kafka away and the spool full: 503, `Retry-After`", OUTAGE, "test_full_spool_is_503_with_retry_after_and_drains_when_kafka_is_back"),
    Row("contract 2.9", "An event answered 202 is never lost", OUTAGE, "test_no_accepted_event_is_lost_when_the_edge_is_killed_during_the_outage"),
    Row("contract 2.11", "a refused request doesn't count against the window", WINDOW, "test_refused_requests_do_not_count"),
    Row("contract 2.11", "It holds across the workers of one machine", WORKERS, "test_rate_limit_is_exact_over_all_workers"),
    Row("contract 2.11", "across machines when `SVC_RATE_LIMIT_STORE` names a Redis or Valkey", STORE, "test_limit_holds_over_machines_that_share_a_store"),
    Row("contract 2.12", "`OPTIONS` and the CORS headers", HEADERS, "test_preflight_lets_a_page_of_any_origin_send_the_headers_of_section_5"),
    Row("contract 2.13", "Unknown path 404, before any look-up, not counted by the rate limit", ORDER, "test_unknown_path_does_not_count_against_the_rate_limit"),
    Row("contract 2.13", "not a warning in the log", PROCESS, "test_log_is_json_without_tokens_or_tracebacks"),
    Row("contract 2.13", "wrong method 405 with `Allow`", ORDER, "test_wrong_method_is_405_with_allow_before_the_token"),
    Row("contract 2.14", "Every event or request refused is counted by project, SDK and reason", PROCESS, "test_refusals_become_outcome_records_of_their_project"),
]  # fmt: skip


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}: {row.sentence}")
def test_sentence_is_held_by_a_test_that_exists(row: Row) -> None:
    assert row.test in names_in(row.file)


def test_every_section_about_ingest_has_a_sentence() -> None:
    sections = {row.section for row in ROWS}
    assert sections >= {
        "2.1",
        "2.2",
        "2.3",
        "2.4",
        "2.5",
        "2.6",
        "2.7",
        "2.8",
        "2.9",
        "4.1",
        "4.2",
        "4.3",
        "5",
        "7",
        "8",
    }
    assert sections >= {f"contract 2.{point}" for point in range(1, 15) if point != 10}
