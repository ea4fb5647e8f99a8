"""Two rerankers one after the other: the input of the second, separate stages, failures."""

import itertools
import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.rerankers import Capabilities, Corpus, Request, Scored, create, get
from rankdash.core.rerankers.kinds.cascade import Cascade, kind, nested_settings
from rankdash.core.rerankers.remote.connection import Place
from tests.approved import table
from tests.results import shown
from tests.runs.stub import Stub, failed


def fixed(known, tokens=False, fail=()):
    """Return a reranker with a fixed score for each document id."""

    def usual(request):
        scores = np.array([known[doc] for doc in request.doc_ids], dtype=np.float64)
        counts = np.full(len(scores), 10) if tokens else None
        return Scored(scores, counts, None if counts is None else counts + 1, 0.25)

    return Stub(dict.fromkeys(fail, failed("no luck")), usual)


def request(docs="abcd", query="q"):
    return Request(query, "text", list(docs), [f"text of {doc}" for doc in docs])


def cascade(first, second, top=2):
    return Cascade({"top": top}, first, second)


def order(scored, docs="abcd"):
    return "".join(docs[place] for place in np.argsort(-scored.scores, kind="stable"))


FIRST = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2}
SECOND = {"a": 9.0, "b": -50.0, "c": -40.0, "d": 9.0}


def test_what_two_stages_make_of_documents_is_as_approved(approved):
    """The second stage's scores are raw; on one scale the first stage's would rank above them."""

    def ranked(first, second, top=2, queries="q"):
        found = cascade(first, second, top).score([request(query=name) for name in queries])
        asked = [docs for call in second.calls for docs in call.values()]
        lines = [f"the second is asked {shown(asked)}"]
        for each in found:
            lines += [each.error or order(each), shown(each), shown(each.tokens_computed)]
        return "\n".join(lines)

    counting = [(one, two) for one in (True, False) for two in (True, False)]
    cases = {
        "the second reads the best of the first": ranked(fixed(FIRST), fixed(SECOND)),
        "a query that fails in a stage fails, the others do not": ranked(
            fixed(FIRST, fail=["p"]), fixed(SECOND, fail=["r"]), queries="pqr"
        ),
        "a document that is not scored": ranked(fixed(FIRST | {"d": np.nan}), fixed(SECOND)),
        **{
            f"counting tokens {one}, {two}": ranked(
                fixed(FIRST, tokens=one), fixed(SECOND, tokens=two)
            )
            for one, two in counting
        },
    }
    approved("rerankers/cascade", table(cases))


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=12),
    st.lists(st.floats(-1e300, 1e300), min_size=12, max_size=12),
    st.integers(1, 14),
)
def test_stages_never_mix_whatever_the_scores(first, second, top):
    docs = "abcdefghijkl"[: len(first)]
    one, other = dict(zip(docs, first, strict=True)), dict(zip(docs, second, strict=False))
    (found,) = cascade(fixed(one), fixed(other), top).score([request(docs)])
    before = sorted(docs, key=lambda doc: -one[doc])
    best = sorted(sorted(before[:top]), key=lambda doc: -other[doc])
    assert list(order(found, docs)) == best + before[top:]
    assert np.isfinite(found.scores).all()
    below = [found.scores[docs.index(doc)] for doc in before[top:]]
    steps = np.diff([min(found.scores[docs.index(doc)] for doc in best), *below])
    equal = [False, *(one[a] == one[b] for a, b in itertools.pairwise(before[top:]))]
    assert [step < 0 for step in steps] == [not same for same in equal[: len(steps)]]


def test_both_are_prepared_and_tell_what_they_did():
    first, second = fixed(FIRST), fixed(SECOND)
    first.details = lambda: {"runtime": "x"}
    both = cascade(first, second)
    both.prepare(Corpus([], []))
    assert first.loaded == second.loaded == 1
    assert both.details() == {"first_runtime": "x"}
    assert both.fingerprint() == ""
    assert math.isnan(both.unknown_share(["x"]))
    first.unknown_share = lambda texts: 0.4
    assert both.unknown_share(["x"]) == 0.4
    for share, told in ((0.3, 0.4), (0.5, 0.5), (math.nan, 0.4)):
        second.unknown_share = lambda texts, share=share: share
        assert both.unknown_share(["x"]) == cascade(second, first).unknown_share(["x"]) == told


def test_one_stage_is_enough_to_need_something_and_both_have_to_promise_it():
    checked, needs = [], ("needs_text", "needs_network", "across_queries")

    def stage(name, place, need):
        able = Capabilities(deterministic=not need, **dict.fromkeys(needs, need))
        return replace(
            get("bm25"), name=name, settings=(), varying=None, key=lambda settings: place,
            capabilities=able, check=lambda settings: checked.append(name),
        )  # fmt: skip

    both = kind([stage("plain", Place("", "x"), False), stage("other", Place("B", "y"), True)])
    for first, second in itertools.product(("plain", "other"), repeat=2):
        given = {"first": first, "second": second, "first_settings": "", "second_settings": ""}
        able, plain = both.able(given), first == second == "plain"
        assert [getattr(able, name) for name in needs] == [not plain] * 3
        assert able.deterministic == plain
        found = both.key(given)
        assert found is None if plain else found.variable == "B", "the other one needs no key"
        both.check(given)
    assert checked == ["plain", "plain", "plain", "other", "other", "plain", "other", "other"]


def test_settings_of_the_stages_from_lines_or_json():
    lines = create("bm25", nested_settings("k1=1.5\n b = 0.5 ", "first_settings"))
    assert (lines.settings["k1"], lines.settings["b"]) == (1.5, 0.5)
    assert nested_settings('{"max_length": 64}', "second_settings") == {"max_length": 64}


def test_what_it_needs_hangs_on_its_stages(monkeypatch):
    made = get("cascade")
    remote = dict(create("cascade").settings) | {"second": "endpoint"}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-4711")
    two = remote | {"first": "llm-pointwise"}
    assert made.key(two).variable == "COHERE_API_KEY", "the one that is not there is asked for"
    assert not made.able(remote).cacheable
    requests = [request("abcdefgh")] * 3
    assert made.estimate(create("cascade").settings, requests).calls == 0
    few, more = (made.estimate(remote | {"top": top}, requests) for top in (2, 8))
    assert (few.calls, few.tokens_in < more.tokens_in) == (3, True)
