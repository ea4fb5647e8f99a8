"""Real search engines: the sample fetched through the presets, with the ids of their clients.

They need packages that rankdash does not need; `docs/engines/index.md` lists them.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.search.endpoint import Endpoint, presets
from rankdash.core.search.fetching import fetch, trial
from tests.documented import DOCS, text_of

from .conftest import DEPTH
from .drive import KEY

# They embed queries, and start servers.
pytestmark = [pytest.mark.thorough, pytest.mark.model]
POLICY = Policy(concurrency=4)


@dataclass(frozen=True)
class Case:
    """A preset, or the endpoint on a page of the docs, and an engine that answers it.

    answers: of which request, for an engine with several.
    """

    engine: str
    preset: str
    answers: str = ""


CASES = {
    each.preset: each
    for each in (
        Case("chroma", "chroma"),
        Case("postgres", "postgres", "any word"),
        Case("postgres", "pgvector", "pgvector"),
        Case("typesense", "typesense"),
        Case("groonga", "groonga"),
        Case("anserini", "anserini"),
        Case("qdrant", "qdrant"),
        Case("osmem", "elasticsearch"),
        Case("osmem", "opensearch"),
    )
}


def endpoint_of(name: str) -> dict[str, Any]:
    """Return a preset, or the endpoint on the page of an engine without one."""
    if name in presets():
        return presets()[name].as_dict()
    [found] = re.findall(r"```json\n(.*?)```", text_of(DOCS / "engines" / f"{name}.md"), re.DOTALL)
    return json.loads(found)


@pytest.mark.parametrize("name", CASES)
def test_the_sample_is_fetched_with_the_ids_of_the_client(name, engine, monkeypatch):
    case = CASES[name]
    running = engine(case.engine)
    monkeypatch.setenv("SEARCH_KEY", KEY)
    written = endpoint_of(name)
    url = re.sub(r"(?<=://)((\w+@)?)[^/]+", rf"\g<1>127.0.0.1:{running.port}", written["url"])
    url = url.replace("COLLECTION_ID", running.facts.get("collection", ""))
    endpoint = Endpoint.of({**written, "url": url.replace("https:", "http:")})
    answers = running.facts["answers"]
    expected = answers[case.answers] if case.answers else answers
    queries = {each["id"]: each["text"] for each in running.sample["queries"]}
    texts = {each["id"]: each["text"] for each in running.sample["documents"]}
    first, second = (fetch(endpoint, queries, DEPTH, POLICY) for _ in range(2))
    assert [each.reason for each in first if each.state != "done"] == []
    assert {each.query_id: [hit.doc_id for hit in each.hits] for each in first} == expected
    assert len(first) == len(queries) == 168
    # None of these engines answers differently when it is asked again.
    assert [each.hits for each in first] == [each.hits for each in second]
    found = [hit for each in first for hit in each.hits]
    assert all(texts[hit.doc_id] in (hit.text or "") for hit in found)
    shown = trial(endpoint, queries["q01"], 3, POLICY)
    assert shown.status == 200
    assert [hit.doc_id for hit in shown.hits] == expected["q01"][:3]
    assert KEY not in repr(shown)
