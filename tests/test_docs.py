"""Documents agree with the code: generated pages are current, links lead somewhere, commands and settings exist."""

import re
import shlex
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec
import pytest
from multidict import CIMultiDict

from cli.__main__ import hoisted, svc
from dashboard.api.api_routes import OPERATIONS
from dashboard.role_table import with_roles
from edge.http.ingest_openapi import document
from edge.http.request_headers import read_headers
from edge.validation.validate import STRICT, validate
from schemas.environment import variables
from schemas.generate.__main__ import FILES
from storage.tables.analyst_views import VIEWS

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
GUIDES = [page for page in PAGES if page.name != "CHANGELOG.md" and "decisions" not in page.parts]
"""Pages whose commands people paste; the others describe the past."""
GENERATED = [*FILES.items(), ("docs/reference.md", with_roles)]
HEALTH = {"/healthz", "/readyz", "/metrics"}
PATHS = {
    "127.0.0.1:8080": {*msgspec.json.decode(document())["paths"], *HEALTH},
    "127.0.0.1:8081": {*(f"/api/v1{operation.path}" for operation in OPERATIONS), *HEALTH},
}
"""The paths that edge and dashboard answer, by their default address."""


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command in `sh` blocks, without assignments before it and with `svc` for its path."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>")
            lexer.whitespace_split = True
            words = list(lexer)
            while words:
                end = next((at for at, word in enumerate(words) if word in {"|", "&", "&&"}), len(words))
                command, words = words[:end], words[end + 1 :]
                # Redirections of files come last.
                command = list(takewhile(lambda word: word not in {"<", ">", ">>"}, command))
                while command and re.match(r"[A-Z_]+=", command[0]):
                    del command[0]
                if command:
                    yield [command[0].removeprefix(".venv/bin/"), *command[1:]]


COMMANDS = [
    (str(page.relative_to(ROOT)), words)
    for page in GUIDES
    for words in commands(page.read_text(encoding="utf-8"))
]


def of(program: str) -> pytest.MarkDecorator:
    """One test for each use of a program in the guides."""
    uses = [(page, words[1:]) for page, words in COMMANDS if words[0] == program]
    return pytest.mark.parametrize(
        "words", [words for _, words in uses], ids=[f"{page}: {shlex.join(words)}" for page, words in uses]
    )


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize(("name", "generate"), GENERATED)
def test_a_generated_file_is_current(name: str, generate: Callable[[], str]) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == generate()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_repository_lead_to_files_and_headings(page: Path) -> None:
    links = re.findall(
        r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")
    )
    missing = [
        f"{target}#{anchor}"
        for target, anchor in links
        for file in [page.parent / target if target else page]
        if not file.exists()
        or (
            anchor
            and anchor not in map(slug, re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.MULTILINE))
        )
    ]
    assert missing == []


def test_every_document_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8"))
    listed = {(index.parent / target).resolve() for target in linked}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts}
    assert pages - listed == {index}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_analysts_is_in_the_reference(view: str) -> None:
    assert re.search(rf"^(### |\| .*`){view}\b", FILES["docs/reference.md"](), re.MULTILINE)


def test_the_readme_shows_how_to_start_to_test_and_to_send() -> None:
    used = {(words[0], *words[1:2]) for page, words in COMMANDS if page == "README.md"}
    assert used >= {("make", "demo"), ("make", "test"), ("svc", "projects"), ("svc", "send"), ("curl", "-i")}


@of("make")
def test_make_has_the_target(words: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words[0] in targets


@of("svc")
def test_svc_understands_the_command(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in words:
        if "/" in word and word.endswith((".gz", ".jsonl", ".json")):
            assert (ROOT / word).exists()
        elif word.endswith((".gz", ".jsonl", ".json")):
            (tmp_path / word).touch()
            monkeypatch.chdir(tmp_path)
        elif word == "dist":
            (tmp_path / word).mkdir()
            monkeypatch.chdir(tmp_path)
    command: click.Command = svc
    left = hoisted(words)
    while isinstance(command, click.Group) and (left or not command.invoke_without_command):
        found = command.get_command(click.Context(command), left[0])
        assert found is not None, f"no command {left[0]}"
        command, left = found, left[1:]
    for option in command.params:
        if isinstance(option, click.Option) and option.prompt and not {*option.opts} & {*left}:
            left = [option.opts[0], *([] if option.is_flag else ["x"]), *left]
    command.make_context(command.name, left)


@of("curl")
def test_curl_line_sends_an_accepted_event_to_an_existing_path(words: list[str]) -> None:
    url = urlsplit(next(word for word in words if word.startswith("http")))
    if url.netloc not in PATHS:
        return
    assert re.sub(r"/projects/\d+/", "/projects/{project}/", url.path) in PATHS[url.netloc]
    if "-d" in words:
        headers = dict(words[n + 1].split(": ") for n, word in enumerate(words) if word == "-H")
        assert headers.pop("Authorization") == "Bearer $SVC_TOKEN"
        assert not read_headers(CIMultiDict(headers)).gzip
        event = (ROOT / words[words.index("-d") + 1].removeprefix("@")).read_bytes()
        assert validate(event, STRICT)[1] == event


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    known = {suffixed for name in variables() for suffixed in (name, f"{name}_FILE")}
    named = set(re.findall(r"\bSVC_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))
    assert named - known - {"SVC_EDGE_SERVICE_HOST"} == set(), "the last is a variable of Kubernetes"


def test_the_tests_that_the_security_page_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    tests = [
        *(ROOT / "tests/unit/dashboard/auth").glob("*.py"),
        *(ROOT / "tests/integration/dashboard").glob("*.py"),
    ]
    written = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    assert named
    assert {name for name in named if f"def {name}(" not in written} == set()
