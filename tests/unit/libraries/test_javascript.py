"""The JavaScript library: its tests under Node, its size, and what arrives of random errors."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from edge.http.request_headers import read_headers
from edge.validation.validate import STRICT, checked_text, open_batch, validate
from tests.unit.libraries.cases import FOLDER
from tests.unit.libraries.thrown import FOLLOW, Module, Thrown
from tests.unit.svc.conftest import TOKEN
from tests.unit.svc.ingest import Ingest, Reply

LIBRARY = Path(__file__).parents[3] / "svc-js"
SOURCES = sorted([*LIBRARY.glob("*.js"), *LIBRARY.glob("*.d.ts")])
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None and "CI" not in os.environ, reason="there is no Node here")
ERRORS = 1_000


def node(
    *arguments: str | Path, ingest: Ingest | None = None, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Node, with the library's variables for a server."""
    assert NODE is not None, "Node is missing"
    variables = {"PATH": os.environ["PATH"], **environment}
    if ingest is not None:
        variables |= {"SVC_TOKEN": TOKEN, "SVC_INGEST_URL": ingest.url}
    return subprocess.run(
        [NODE, *arguments], env=variables, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


@needs_node
def test_its_own_tests_pass() -> None:
    done = node("--test", *sorted(FOLDER.glob("*.test.mjs")))
    assert done.returncode == 0, re.sub(r"(?s)^ok .*?\n  \.\.\.\n", "", done.stdout, flags=re.MULTILINE)[
        :5_000
    ]


def loaded(name: str) -> Iterator[str]:
    """A module and those that it imports."""
    yield name
    for imported in re.findall(
        r'^import .*"\./(.+)";$', (LIBRARY / name).read_text(encoding="utf-8"), re.MULTILINE
    ):
        yield from loaded(imported)


def test_a_page_loads_at_most_12_kilobytes() -> None:
    modules = {*loaded("svc.js")}
    assert modules == {"svc.js", "scope.js", "stack.js", "transport.js", "hooks.js"}
    assert sum(len(gzip.compress((LIBRARY / name).read_bytes(), 9)) for name in modules) <= 12 * 1_024


def test_every_export_is_declared() -> None:
    source = (LIBRARY / "svc.js").read_text(encoding="utf-8")
    declared = (LIBRARY / "svc.d.ts").read_text(encoding="utf-8")
    names = r"^export (?:async |declare )?(?:const|function) (\w+)"
    internal = {"runtime", "newId", "resolve"}
    assert {*re.findall(names, source, re.MULTILINE)} - internal == {
        *re.findall(names, declared, re.MULTILINE)
    }


def test_every_option_is_declared() -> None:
    source = (LIBRARY / "svc.js").read_text(encoding="utf-8")
    declared = (LIBRARY / "svc.d.ts").read_text(encoding="utf-8")
    defaults = source.partition("const DEFAULTS = {\n")[2].partition("\n};")[0]
    options = declared.partition("export interface Options {\n")[2].partition("\n}")[0]
    assert re.findall(r"^  (\w+)[:(]", defaults, re.MULTILINE) == re.findall(
        r"^  (\w+)\?", options, re.MULTILINE
    )


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_lines_have_at_most_110_characters(source: Path) -> None:
    assert max(map(len, source.read_text(encoding="utf-8").splitlines())) <= 110


PROGRAM = """
import { readFileSync } from "node:fs";
import * as svc from "LIBRARY/node.js";
import * as thrown from "./thrown.mjs";

const next = (event) => new Promise((resolve) => process.once(event, resolve));
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});
svc.init({ release: "shop@1.4.2+318" });
for (const [number, { follows, tags }] of JSON.parse(readFileSync("plan.json", "utf8")).entries()) {
  svc.clearTags();
  svc.setTags({ ...tags, number });
  const act = thrown[`t${number}`];
  if (follows === "handled") {
    try {
      act();
    } catch (error) {
      svc.captureException(error);
    }
  } else if (follows === "uncaught") {
    setImmediate(act);
    await next("uncaughtException");
  } else {
    (async () => act())();
    await next("unhandledRejection");
  }
  if (number % 100 === 99) await svc.flush();
}
"""


def sent_as(expected: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    """The error that arrived in the form of the expected one: of its stack as many frames, which may be any if None."""
    frames = expected["stack"]
    stack = [[frame.get("function"), frame["line"], frame.get("column")] for frame in error["stack"]]
    form = {"type": error["type"], "message": error["message"], "stack": frames and stack[: len(frames)]}
    if "cause" in error:
        form["cause"] = sent_as(expected.get("cause", {"stack": None}), error["cause"])
    return form


def accepted(ingest: Ingest) -> Iterator[bytes]:
    """The events that the edge would accept."""
    for request in ingest.requests:
        read_headers(CIMultiDict(request.headers))
        for raw in open_batch(checked_text(request.body)):
            event_id, text = validate(raw, STRICT)
            assert (event_id, bytes(text)) == (json.loads(bytes(raw))["id"], bytes(raw))
            yield bytes(text)


@needs_node
def test_random_errors_arrive_as_they_were_thrown(ingest: Ingest, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    module = Module(random.Random(seed))
    for _ in range(ERRORS):
        module.add()
    (tmp_path / "thrown.mjs").write_text("\n".join(module.lines), encoding="utf-8", errors="surrogatepass")
    plan = [{"follows": thrown.follows, "tags": thrown.tags} for thrown in module.thrown]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "program.mjs").write_text(PROGRAM.replace("LIBRARY", str(LIBRARY)))
    done = node("program.mjs", ingest=ingest, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}"
    sent = [json.loads(event) for event in accepted(ingest)]
    events = {int(event["tags"]["number"]): event for event in sent}
    assert len(sent) == len(events) == ERRORS
    assert len({event["id"] for event in sent}) == ERRORS
    for number, thrown in enumerate(module.thrown):
        error, event = thrown.error, events[number]
        assert sent_as(error, event["error"]) == error, f"seed {seed}, error {number}"
        assert event["tags"] == expected_tags(thrown, number), f"seed {seed}, error {number}"


def expected_tags(thrown: Thrown, number: int) -> dict[str, str]:
    trimmed = {"trimmed": "causes"} if thrown.has_more_causes else {}
    return {**thrown.tags, "number": str(number), "handled": FOLLOW[thrown.follows], **trimmed}


ENDINGS = {
    "throw": "throw new TypeError('boom', { cause: new RangeError('inner') });",
    "a rejection": "Promise.reject(new TypeError('boom'));",
    "a rejection without an error": "Promise.reject({ a: 1 });",
    "an exit": "if (svc) svc.captureException(new TypeError('boom')); process.exit(3);",
    "the end of the work": "if (svc) svc.captureException(new TypeError('boom'));",
    "a handled rejection": "process.on('unhandledRejection', () => {}); Promise.reject(new TypeError('boom'));",
}


def patient(folder: Path) -> Path:
    """The library, which waits longer for the last answers: a busy machine may take seconds to start its thread."""
    shutil.copytree(LIBRARY, folder)
    source = (folder / "node.js").read_text(encoding="utf-8")
    assert "SHUTDOWN_MS = 2000;" in source
    (folder / "node.js").write_text(source.replace("SHUTDOWN_MS = 2000;", "SHUTDOWN_MS = 60_000;"))
    return folder


@needs_node
@pytest.mark.parametrize("text", ENDINGS.values(), ids=ENDINGS)
def test_a_process_ends_as_without_the_library_and_its_error_arrives(
    text: str, ingest: Ingest, tmp_path: Path
) -> None:
    library = patient(tmp_path / "svc-js")
    start = f"import * as library from '{library}/node.js'; const svc = process.env.SVC_TOKEN && library;\n"
    program = tmp_path / "program.mjs"
    program.write_text(start + "if (svc) svc.init({ release: 'shop@1.4.2+318' });\n" + text)
    without = node(program)
    done = node(program, ingest=ingest)
    assert (done.returncode, done.stdout, done.stderr) == (without.returncode, without.stdout, without.stderr)
    (event,) = ingest.events
    assert (event["error"]["type"], event["error"]["message"]) in {
        ("TypeError", "boom"),
        ("Object", '{"a":1}'),
    }
    assert event["tags"] == {"handled": "yes" if "captureException" in text else "no"}


@needs_node
def test_a_program_without_a_server_ends_with_a_warning(tmp_path: Path) -> None:
    program = tmp_path / "program.mjs"
    program.write_text(f"""
        import * as svc from "{LIBRARY}/node.js";
        svc.init({{ token: "{TOKEN}", release: "shop@1.4.2+318", ingestUrl: "http://127.0.0.1:1" }});
        svc.captureException(new Error("m"));
    """)
    done = node(program)
    assert (done.returncode, done.stderr) == (0, "svc: the last events are lost: no answer\n")


@needs_node
def test_a_program_that_ends_before_a_retry_says_so(ingest: Ingest, tmp_path: Path) -> None:
    ingest.answers.append(Reply(429, {}, {"Retry-After": "60"}))
    program = tmp_path / "program.mjs"
    program.write_text(f"""
        import * as svc from "{LIBRARY}/node.js";
        const {{ fetch }} = globalThis;
        const answered = new Promise((resolve) => {{
          globalThis.fetch = async (...args) => {{
            const {{ status, headers }} = await fetch(...args);
            return {{ status, headers, text: async () => setImmediate(resolve) && "{{}}" }};
          }};
        }});
        svc.init({{ release: "shop@1.4.2+318" }});
        svc.captureException(new Error("m"));
        svc.flush();
        await answered;
        process.exit();
    """)
    done = node(program, ingest=ingest)
    assert (done.returncode, done.stderr) == (0, "svc: 1 events are lost: they could be sent only later\n")
    assert len(ingest.requests) == 1


AWKWARD = """
    class Awkward extends Error {
      get message() { throw new Error("no message"); }
      get stack() { svc.captureException(this); return "at f (a.js:1:1)"; }
    }
    svc.setUser("jo");
    svc.setUser({ get id() { throw new Error("no id"); } });
    svc.setTags(null);
    svc.setTag(Symbol("s"), 1);
    svc.addBreadcrumb(null);
    svc.addBreadcrumb(5);
    svc.addBreadcrumb({ data: { get x() { throw new Error("no x"); } } });
    svc.track();
    svc.captureException();
    svc.captureException(new Awkward());
    svc.captureException(new Proxy({}, { get() { throw new Error("nothing"); } }));
    svc.captureException(new Error("m"), { tags: 7, user: "jo", fingerprint: {} });
    const endless = { a: 1 };
    endless.b = endless;
    svc.captureException(new Error("m", { cause: endless }), { tags: { endless } });
    const own = new AggregateError([], "own");
    own.errors.push(own);
    own.cause = own;
    svc.captureException(own);
    svc.init({ token: 5, capture: 7, beforeSend: "x", unheard: 1, ingestUrl: "ftp://h", release: null });
    svc.init(null);
    svc.captureException(new Error("without a token"));
    svc.flush("soon");
"""


@needs_node
def test_misuse_reaches_neither_the_program_nor_the_server_as_an_error(
    ingest: Ingest, tmp_path: Path
) -> None:
    program = tmp_path / "program.mjs"
    program.write_text(f"""
        import * as svc from "{LIBRARY}/node.js";
        const before = () => {{ {AWKWARD} }};
        before();
        svc.init({{ release: "shop@1.4.2+318", capture: {{ console: true }} }});
        const token = process.env.SVC_TOKEN;
        {AWKWARD.replace("svc.init({ token", "await svc.flush(); delete process.env.SVC_TOKEN; svc.init({ token")}
    """)
    done = node(program, ingest=ingest)
    assert (done.returncode, done.stdout) == (0, "")
    assert {line.partition(" ")[0] for line in done.stderr.splitlines()} == {"svc:"}
    sent = {event["id"]: event for event in map(json.loads, accepted(ingest))}
    assert {crumb["type"] for event in sent.values() for crumb in event.get("breadcrumbs", [])} == {"custom"}
    assert {event["error"]["type"] for event in sent.values()} >= {
        "undefined",
        "Awkward",
        "Error",
        "AggregateError",
    }


NATIVE = """
    let handler = () => {};
    let background;
    globalThis.ErrorUtils = { getGlobalHandler: () => handler, setGlobalHandler: (next) => { handler = next; } };
    globalThis.HermesInternal = {
      enablePromiseRejectionTracker: ({ onUnhandled }) => { globalThis.reject = onUnhandled; },
    };
    for (const name of ["crypto", "CompressionStream", "Blob", "process"]) {
      Object.defineProperty(globalThis, name, { value: undefined });
    }
    AbortSignal.timeout = undefined;
    const svc = await import("svc-js");
    const { listeners } = await import("react-native");
    svc.init({ token: TOKEN, ingestUrl: URL, release: "shop@1.4.2+318", identity: true, capture: { sessions: true } });
    svc.setUser({ id: "1", linkBy: { email: "jo@example.com" } });
    handler(new TypeError("uncaught"), true);
    reject(1, new RangeError("rejected"));
    for (const change of listeners) change("background");
    svc.captureException(new Error("handled"));
    await svc.flush();
"""


@needs_node
def test_react_native_needs_no_more_than_it_has(ingest: Ingest, tmp_path: Path) -> None:
    stub = tmp_path / "node_modules" / "react-native"
    stub.mkdir(parents=True)
    (stub / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (stub / "index.js").write_text("""
        export const listeners = [];
        export const AppState = { addEventListener: (_type, listener) => listeners.push(listener) };
        const constants = { reactNativeVersion: { major: 0, minor: 82, patch: 1 }, Model: "Pixel 8" };
        export const Platform = { OS: "android", Version: 35, constants };
    """)
    shutil.copytree(LIBRARY, tmp_path / "node_modules" / "svc-js")
    (tmp_path / "program.mjs").write_text(
        f"const [TOKEN, URL] = {json.dumps([TOKEN, ingest.url])};\n{NATIVE}"
    )
    done = node("--conditions=react-native", "program.mjs", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "svc: linkBy needs WebCrypto, which only https pages have\n")
    sent = {event["error"]["message"]: event for event in map(json.loads, accepted(ingest))}
    assert {message: event["tags"]["handled"] for message, event in sent.items()} == {
        "uncaught": "no", "rejected": "no", "handled": "yes",
    }  # fmt: skip
    event = sent["handled"]
    assert event["device"] == {"os": "android", "osVersion": "35", "model": "Pixel 8"}
    assert event["app"]["framework"] == {"name": "react-native", "version": "0.82.1"}
    assert event["user"] == {"id": "1"}
    assert [crumb["data"] for crumb in event["breadcrumbs"]] == [{"action": "background", "target": "app"}]
