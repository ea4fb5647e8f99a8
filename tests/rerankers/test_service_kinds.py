"""Every reranker that uses a service, and the judge, with the same faults of the service.

Faults of a single request: `test_remote.py`.
"""

import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers import Corpus, Request, create
from rankdash.core.rerankers.remote import connection
from rankdash.features.judge.judge import Judge
from tests.approved import masked, table
from tests.results import shown

DOCUMENTS = ["get a refund for an item", "an item", "delivery"]
LLM = ("llm-pointwise", "llm-listwise", "llm-pairwise", "judge")
FAULTS = {
    "none": {},
    "busy": {"status": 429},
    "failing": {"status": 500, "text": {"error": {"message": "out of memory"}}},
    "too long": {"status": 400, "text": {"message": "maximum context length is 512 tokens"}},
    "no JSON": {"html": 1},
    "cut": {"cut": 1},
    "not there": {"status": 404},
    "elsewhere": {"redirect": "http://elsewhere.invalid/"},
}


@pytest.fixture
def asked(server):
    """The result of three documents by one kind, as text."""

    def of(kind, *faults, **settings):
        server.forget(settings.pop("service_key", ""))
        free = {"base_url": server.url, "key_variable": "none", "retries": 0, "concurrency": 1}
        settings = {**free, **({} if kind == "endpoint" else {"model": "tiny"}), **settings}
        judge = Judge(settings) if kind == "judge" else None
        reranker = judge or create(kind, settings)
        judge.prepare() if judge else reranker.prepare(Corpus([], []))
        request = Request("q", "get a refund", list("abc"), DOCUMENTS)
        server.fail(*faults)
        try:
            if judge:
                graded = judge.grade("get a refund", DOCUMENTS[0])
                answer, calls = graded.answer, graded.calls
                found = f"{answer.error or answer.grade} {answer.kind}"
            else:
                (scored,) = reranker.score([request])
                calls, found = scored.calls, f"{scored.error or 'no error'} {shown(scored.scores)}"
        except UnavailableError as refused:
            return str(refused)
        told = [f"{each.status} {shown(dict(each.billed))}" for each in calls]
        return f"{found} of {len(server.seen)} requests: {'; '.join(told)}"

    return of


def test_what_kinds_of_services_make_of_faults_is_as_approved(asked, server, approved):
    cases = {}
    for kind in ("endpoint", *LLM):
        for name, fault in FAULTS.items():
            cases[f"{kind}: {name}"] = asked(kind, fault)
        cases[f"{kind}: tried twice"] = asked(kind, {"status": 502}, retries=1)
        with connection.given_keys({"OPENAI_API_KEY": "wrong-key"}):
            key = "none" if kind == "endpoint" else ""
            cases[f"{kind}: a wrong key"] = asked(kind, service_key="right", key_variable=key)
    unlike = {"port": r"(?<=127\.0\.0\.1:)\d{2,}", "reason": r"(?<=cut )\(.*?\)(?=[ .])"}
    approved("rerankers/service_kinds", masked(table(cases), **unlike))


@pytest.mark.parametrize("kind", LLM)
def test_an_answer_longer_than_a_megabyte_is_not_read(asked, server, kind, monkeypatch):
    monkeypatch.setattr(server, "forget", lambda key: None)
    server.reply = lambda body: ("7 " * 1_000_001, {})
    said = asked(kind)
    assert "the answer is too long" in said and "prompt_tokens=" in said
