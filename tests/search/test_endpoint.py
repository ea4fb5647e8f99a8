"""Descriptions of search engines: which are valid, their requests, and the hits that they read."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.errors import DataError
from rankdash.core.search.endpoint import Endpoint, Hit, UnreadableError, presets

PLAIN = {
    "name": "Docs",
    "url": "http://search.example:9200/docs/_search",
    "headers": {"Authorization": {"env": "SEARCH_KEY", "prefix": "ApiKey "}},
    "body": {"query": {"match": {"text": "{query}"}}, "size": "{k}"},
    "hits": "hits.hits",
    "id": "_id",
    "title": "_source.title",
    "text": "_source.text",
    "score": "_score",
    "partial": "timed_out",
}
SQL = {"kind": "postgres", "url": "postgresql://reader@db.example/search", "id": "id"}
SELECT = "SELECT id FROM docs WHERE text ~ %(query)s LIMIT %(k)s"


def changed(**fields: object) -> dict:
    return {name: value for name, value in {**PLAIN, **fields}.items() if value is not None}


@given(st.text(), st.integers(1, 1000))
def test_a_query_is_a_value_of_the_request_and_never_changes_its_structure(query, depth):
    endpoint = Endpoint.of(PLAIN)
    method, target, body = endpoint.request(query, depth)
    assert (method, target) == ("POST", "/docs/_search")
    assert body == {"query": {"match": {"text": query}}, "size": depth}
    assert endpoint.as_dict() == PLAIN


def test_placeholders_are_replaced_once_in_texts_paths_and_parameters():
    endpoint = Endpoint.of(
        {
            "url": "http://a.example/{query}/s?q={query}&x=1",
            "params": {"n": "{k}", "fuzzy": "{query}~2", "on": True},
            "hits": "h",
            "id": "id",
        }
    )
    request = endpoint.request("{k} a/b&c=ü", 5)
    assert request.method == "GET"
    assert request.body is None
    coded = "%7Bk%7D%20a%2Fb%26c%3D%C3%BC"
    assert request.target == (
        f"/{coded}/s?q={coded}&x=1&n=5&fuzzy=%7Bk%7D+a%2Fb%26c%3D%C3%BC~2&on=true"
    )


def test_a_vector_is_a_list_in_the_body():
    fields = {"vector": "packaged/bge-small-en-v1.5", "body": {"vectors": ["{vector}"]}}
    assert Endpoint.of(changed(**fields)).request("q", 3, [0.5, -1.0]).body == {
        "vectors": [[0.5, -1.0]]
    }


def test_the_hash_depends_on_the_request_and_its_interpretation_but_not_on_the_name():
    first = Endpoint.of(PLAIN)
    assert Endpoint.of(json.dumps(PLAIN, indent=3)).request_hash == first.request_hash
    assert Endpoint.of(changed(name="Other")).request_hash == first.request_hash
    others = [changed(text="_source.body"), changed(body={"q": "{query}"}), changed(headers={})]
    assert first.request_hash not in {Endpoint.of(each).request_hash for each in others}


REFUSED = {
    "not JSON": "{",
    "not an object": "[]",
    "unknown field": changed(path="_id"),
    "no URL": changed(url=None),
    "file": changed(url="file:///etc/passwd"),
    "password": changed(url="http://me:pass@a.example/"),
    "placeholder as host": changed(url="http://{query}/"),
    "host list": changed(url="http://a.example,b.example/"),
    "method": changed(method="DELETE"),
    "key in a header": changed(headers={"Authorization": "ApiKey abcdefgh1234"}),
    "key in another header": changed(headers={"X-Api-Token": "abc"}),
    "short key in the URL": changed(url="http://a.example/?subscription-key=0123abcd&q={query}"),
    "key in the parameters": changed(params={"token": "0123abcd"}),
    "key in the URL": changed(url="http://a.example/?api_key=abcdef123456&q={query}"),
    "key in the body": changed(body={"q": "{query}", "key": "sk-abcdef123456"}),
    "variable": changed(headers={"Authorization": {"env": "HOME"}}),
    "other variable": changed(headers={"X-Plain": {"env": "AWS_SECRET_ACCESS_KEY"}}),
    "line break": changed(headers={"X-Plain": "a\r\nHost: b"}),
    "host header": changed(headers={"Host": "b.example"}),
    "path": changed(id="_source.["),
    "no id": changed(id=None),
    "no query": changed(body={"q": "all"}),
    "vector without a model": changed(body={"q": "{vector}"}),
    "model without a vector": changed(vector="packaged/bge-small-en-v1.5"),
    "body of GET": changed(body=["{query}"], hits=3),
    "SQL that writes": {**SQL, "sql": "DELETE FROM docs WHERE text = %(query)s"},
    "SQL without a query": {**SQL, "sql": "SELECT id FROM docs"},
    "no SQL": SQL,
    "parameters of PostgreSQL": {**SQL, "sql": SELECT, "params": {"host": "10.0.0.1"}},
    "URL parameters": {**SQL, "sql": SELECT, "url": f"{SQL['url']}?hostaddr=10.0.0.1"},
    "two hosts": {**SQL, "sql": SELECT, "url": "postgresql://a@b.example,10.0.0.1/search"},
    "socket": {**SQL, "sql": SELECT, "url": "postgresql://a@%2Fvar%2Frun/search"},
    "password of PostgreSQL": {**SQL, "sql": SELECT, "url": "postgresql://a:b@c.example/d"},
    "plain password": {**SQL, "sql": SELECT, "password": "secret"},
}


def test_refusals_name_the_file_the_field_and_a_remedy(approved):
    lines = []
    for name, source in REFUSED.items():
        with pytest.raises(DataError) as refused:
            Endpoint.of(source, "docs.json")
        assert refused.value.remedy
        lines.append(f"{name}: {refused.value}")
    approved("search/refused", "\n".join(lines))


def test_a_placeholder_after_a_percent_sign_is_not_a_parameter():
    """Without a parameter, psycopg sends a text that may contain several statements."""
    for sql in ("select '%%(query)s'; commit; delete from docs", "select '%%%%(query)s'"):
        with pytest.raises(DataError, match="does not use the query"):
            Endpoint.of({**SQL, "sql": sql})
    for sql in ("select %(query)s", "select 5%%%(query)s", "select id %% 2, %%%%%(query)s"):
        assert Endpoint.of({**SQL, "sql": sql}).sql == sql


def test_hits_keep_the_order_of_the_engine_and_ids_become_texts():
    hits = [
        {"_id": 7, "_score": 1, "_source": {"title": ["A", "b"], "text": "one"}},
        {"_id": "x", "_score": 3.5, "_source": {"title": None, "text": ["two", "three"]}},
        {"_id": 7, "_score": 0.5, "_source": {}},
        {"_id": 8.0, "_score": None, "_source": {"text": "half \ud800 pair"}},
        {"_id": "beyond", "_score": 0, "_source": {}},
    ]
    found, repeats = Endpoint.of(PLAIN).read({"hits": {"hits": hits}}, 3)
    assert found[:2] == (Hit("7", "A b", "one", 1.0), Hit("x", "", "two three", 3.5))
    assert found[2][:3] == ("8", "", "half ? pair")
    assert math.isnan(found[2].score)
    assert repeats == 1


def test_a_path_with_a_step_of_zero_does_not_fit():
    endpoint = Endpoint.of(changed(hits="hits[::0]", partial="hits[::0]"))
    with pytest.raises(UnreadableError, match=r"the path hits\[::0\] does not fit"):
        endpoint.read({"hits": [{"_id": "a"}]}, 10)
    assert endpoint.incomplete({"hits": [{"_id": "a"}]}) == ""


def test_columns_are_read_as_hits():
    endpoint = presets()["chroma"]
    answer = {"ids": [["a", "b"]], "documents": [["one", None]], "distances": [[0.1, 0.2]]}
    assert endpoint.read(answer, 10)[0] == (Hit("a", "", "one", 0.1), Hit("b", "", None, 0.2))
    with pytest.raises(UnreadableError, match=r"list at documents\[0\] has another length"):
        endpoint.read({**answer, "documents": [["one"]]}, 10)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "the answer has no list at hits.hits"),
        ({"hits": {"hits": {"a": 1}}}, "the answer has no list at hits.hits"),
        ({"hits": {"hits": [{}]}}, "hit 1 has no id at _id"),
        ({"hits": {"hits": [{"_id": {"$oid": "1"}}]}}, "the id of hit 1 at _id is not a text"),
        ({"hits": {"hits": [{"_id": [1]}]}}, "the id of hit 1 at _id is not a text"),
        ({"hits": {"hits": [{"_id": True}]}}, "the id of hit 1 at _id is not a text"),
        (
            {"hits": {"hits": [{"_id": 1, "_source": {"text": {"en": "a"}}}]}},
            r"object at _source\.text; use a deeper path, such as _source\.text\.en",
        ),
    ],
)
def test_what_cannot_be_read_names_the_path(answer, reason):
    with pytest.raises(UnreadableError, match=reason):
        Endpoint.of(PLAIN).read(answer, 10)


def test_an_empty_list_is_an_answer_and_a_partial_answer_is_none():
    endpoint = Endpoint.of(PLAIN)
    assert endpoint.read({"hits": {"hits": []}}, 10) == ((), 0)
    assert endpoint.incomplete({"timed_out": False}) == ""
    assert endpoint.incomplete({"timed_out": True}) == "partial answer"
    vespa = presets()["vespa"]
    assert vespa.read({"root": {"fields": {"totalCount": 0}}}, 10) == ((), 0)
    assert vespa.incomplete({"root": {"coverage": {"full": False}}})
    assert vespa.incomplete({"root": {"errors": [{"code": 12}]}})
    assert not vespa.incomplete({"root": {"coverage": {"full": True}}})


def test_presets_are_templates_that_name_variables():
    assert len(presets()) == 13
    for name, endpoint in presets().items():
        assert endpoint.name
        assert [place.variable for place in endpoint.places] in ([], ["SEARCH_KEY"]), name
        if endpoint.kind == "http":
            sent = str(endpoint.request("words", 7, [0.25]))
            assert "7" in sent
            assert ("0.25" if endpoint.vector else "words") in sent


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
HITS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "_id": JSON,
            "_score": JSON,
            "_source": st.fixed_dictionaries({}, optional={"title": JSON, "text": JSON}) | JSON,
        },
    )
    | JSON
)


@given(st.builds(lambda hits: {"hits": {"hits": hits}}, HITS) | JSON, st.integers(1, 5))
def test_any_answer_is_read_or_refused(answer, depth):
    endpoint = Endpoint.of(PLAIN)
    try:
        hits, repeats = endpoint.read(answer, depth)
    except UnreadableError as refused:
        assert str(refused)
        return
    assert len(hits) <= depth and repeats >= 0
    assert len({hit.doc_id for hit in hits}) == len(hits)
    for hit in hits:
        assert hit.doc_id and hit.doc_id.encode()
        assert (hit.title + (hit.text or "")).encode() is not None
        assert math.isnan(hit.score) or math.isfinite(hit.score)


@given(
    st.dictionaries(
        st.sampled_from(["name", "kind", "url", "method", "headers", "params", "body", "hits", "id",
                         "text", "partial", "vector", "sql", "password"]),
        JSON | st.sampled_from([*PLAIN.values(), "{query}", "@", "a[", "postgres", SQL["url"]]),
    )
)  # fmt: skip
def test_any_description_is_accepted_or_refused(fields):
    for source in (fields, {**PLAIN, **fields}):
        try:
            endpoint = Endpoint.of(source)
        except DataError as refused:
            assert str(refused)
            continue
        assert Endpoint.of(endpoint.as_dict()).request_hash == endpoint.request_hash
        if endpoint.kind == "http":
            endpoint.request("q", 3, [0.5])
