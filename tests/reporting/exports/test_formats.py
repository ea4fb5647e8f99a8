"""Files in the formats of other tools, read again: nothing changes, or the cause is named."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import rankdash as rd
from rankdash.core.data.ranking import Ranking
from rankdash.features.report.report_formats import FORMATS
from tests.documented import DOCS, first_names, section
from tests.reporting.exports.test_exports import study_of

# Within an id: letters, Chinese, an ideographic space, and what formats use as a separator.
_EDGE, _INSIDE = "aB9文查é", "aB9文查é:;,\"'|{}\\/# \t\u3000"
IDS = st.builds(
    "".join, st.tuples(st.sampled_from(_EDGE), st.text(_INSIDE, max_size=4), st.sampled_from(_EDGE))
)
LABELS = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, 0.5])
SCORES = st.sampled_from([9.75, 3.5, 0.25, -1.125, 1e-3])


@st.composite
def data_sets(draw: Callable) -> rd.Dataset:
    """Return a data set with ids as above, tied scores, documents with the words of Chinese text,
    and a label for the first document of each query."""
    queries = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    documents = draw(st.lists(IDS, min_size=3, max_size=5, unique=True))
    rows = []
    for query in queries:
        for document in documents[: draw(st.integers(3, len(documents)))]:
            labelled = not rows or rows[-1][0] != query or draw(st.booleans())
            rows.append((query, document, draw(LABELS) if labelled else None, draw(SCORES)))
    pairs = pd.DataFrame(rows, columns=["query_id", "doc_id", "label", "score"])
    return rd.Dataset(
        "shop",
        pd.DataFrame({"query_id": queries, "text": [f"退货 \"{q}\", how?" for q in queries]}),
        pd.DataFrame({
            "doc_id": documents, "title": "", "text": [f"第 {d} 条\n退货" for d in documents],
        }),
        pairs.dropna(subset="label")[["query_id", "doc_id", "label"]],
        Ranking.from_columns(pairs["query_id"], pairs["doc_id"], pairs["score"]),
    )  # fmt: skip


def labels_of(data: rd.Dataset) -> dict[tuple[str, str], float]:
    rows = data.qrels.itertuples(index=False)
    return {(query, doc): label for query, doc, label in rows}


def lists_of(ranking: Ranking) -> dict[str, list[str]]:
    return {query: ranking.documents_of(query)[0] for query in ranking.query_ids}


def written(data: rd.Dataset, name: str, folder: str) -> Path | str:
    """Return the written path, or the text of the refusal."""
    try:
        return rd.export(data, (), Path(folder) / f"made-{name}", name)
    except rd.RankdashError as refusal:
        return str(refusal)


def read(path: Path) -> rd.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.read(path)


def has_blanks(data: rd.Dataset) -> bool:
    used = [*data.queries["query_id"], *data.qrels["doc_id"], *data.candidates.doc_ids]
    return any(blank in each for each in used for blank in " \t")


def has_fractions(data: rd.Dataset) -> bool:
    return bool((data.qrels["label"] % 1 != 0).any())


@pytest.mark.parametrize(
    ("name", "carries"),
    [
        ("trec", lambda data: not has_blanks(data)),
        ("beir", lambda data: not has_blanks(data) and not has_fractions(data)),
        ("ranx", lambda data: not has_fractions(data)),
    ],
)
@given(data=data_sets())
def test_a_format_is_read_as_what_was_written_or_refused_by_name(name, carries, data):
    with TemporaryDirectory() as folder:
        path = written(data, name, folder)
        assert isinstance(path, Path) == carries(data)
        if isinstance(path, str):
            ids = [*data.queries["query_id"], *data.documents["doc_id"]]
            assert any(repr(each) in path for each in ids)
            return
        again = read(path)
    assert labels_of(again) == labels_of(data)
    assert lists_of(again.candidates) == lists_of(data.candidates)
    if name == "beir":
        assert dict(again.query_text()) == dict(data.query_text())
        assert dict(again.document_text()) == dict(data.document_text())


@pytest.mark.parametrize("name", ["mteb", "rank-llm"])
@given(data=data_sets())
def test_a_ranking_for_another_tool_is_read_as_the_same_ranking(name, data):
    with TemporaryDirectory() as folder:
        path = written(data, name, folder)
        assert isinstance(path, Path)
        (file,) = (each for each in path.rglob("*") if each.is_file())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = rd.read_run(file, data)
    assert lists_of(run.ranking) == lists_of(data.candidates)


@given(data=data_sets())
def test_a_request_of_elasticsearch_is_read_as_the_same_labels(data):
    with TemporaryDirectory() as folder:
        path = written(data, "rank-eval", folder)
        assert isinstance(path, Path) != has_fractions(data)
        if isinstance(path, str):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = rd.read(
                path, {q: dict.fromkeys(docs, 0.5) for q, docs in lists_of(data.candidates).items()}
            )
    assert labels_of(again) == labels_of(data)
    texts = data.query_text()
    assert {q: t for q, t in again.query_text().items() if t} == dict(
        texts[texts.index.isin(data.qrels["query_id"])]
    )


@given(data=data_sets())
def test_ratings_of_quepid_have_the_texts_of_the_queries(data):
    with TemporaryDirectory() as folder:
        path = written(data, "quepid", folder)
        assert isinstance(path, Path)
        found = pd.read_csv(path, dtype={"query": str, "docid": str}, keep_default_na=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = rd.read(path, retrieval="rows")
    texts = data.query_text()
    expected = {(texts[query], doc): label for (query, doc), label in labels_of(data).items()}
    assert {(row.query, row.docid): row.rating for row in found.itertuples()} == expected
    texts = again.query_text()
    assert {
        (texts[query], doc): label for (query, doc), label in labels_of(again).items()
    } == expected


def test_ranks_without_scores_are_a_ranking_for_ranx(tmp_path):
    study = study_of()
    data = study.dataset.with_candidates(
        Ranking.from_lists((q, ["d0", "d1", "d2"], [3.0, 2.0, 1.0]) for q in ("q0", "q1")), ""
    )
    again = read(rd.export(data, (), tmp_path / "ranx", "ranx"))
    assert lists_of(again.candidates) == lists_of(data.candidates)
    assert labels_of(again) == labels_of(data)


def test_every_system_is_written_and_read_as_a_system(tmp_path):
    study = study_of()
    runs = [run for system in study.challengers if (run := study.run(system)) is not None]
    for name, runs_read in (("trec", "02-better.trec"), ("beir", "runs/02-better.trec")):
        folder = rd.export(study.dataset, runs, tmp_path / name, name)
        data = read(folder)
        with pytest.warns(UserWarning, match="lacks: 2 of 12"):
            again = rd.read_run(folder / runs_read, data)
        assert lists_of(again.ranking) == lists_of(runs[0].ranking)


def test_candidates_for_rank_llm_have_the_keys_of_its_data_classes(tmp_path):
    study = study_of()
    path = rd.export(study.dataset, (), tmp_path / "made", "rank-llm") / "01-first-stage.jsonl"
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first["query"] == {"text": "how to return q0", "qid": "q0"}
    ranked = [each["docid"] for each in first["candidates"]]
    assert ranked == lists_of(study.dataset.candidates)["q0"]
    scores = [each["score"] for each in first["candidates"]]
    assert scores == sorted(set(scores), reverse=True)
    assert first["candidates"][0]["doc"] == {"contents": "words"}
    textless = rd.Dataset(
        "x", study.dataset.queries, study.dataset.documents.assign(text=None),
        study.dataset.qrels, study.dataset.candidates,
    )  # fmt: skip
    with pytest.raises(rd.RankdashError, match=r"The document 'd.' has no text"):
        rd.export(textless, (), tmp_path / "other", "rank-llm")


def test_predictions_of_mteb_are_of_one_subset_and_split(tmp_path):
    study = study_of()
    folder = rd.export(study.dataset.named("My Task/1"), (), tmp_path / "made", "mteb")
    (file,) = folder.rglob("*_predictions.json")
    assert file.relative_to(folder).as_posix() == "01-first-stage/My-Task-1_predictions.json"
    made = json.loads(file.read_text(encoding="utf-8"))
    assert made["mteb_model_meta"] == {"model_name": "First stage", "revision": None}
    assert list(made["default"]["test"]["q0"]) == lists_of(study.dataset.candidates)["q0"]


def test_a_request_of_elasticsearch_has_one_search_for_all_queries(tmp_path):
    study = study_of()
    file = rd.export(study.dataset, (), tmp_path / "made.json", "rank-eval", metric="ndcg@5")
    made = json.loads(file.read_text(encoding="utf-8"))
    assert made["metric"] == {"dcg": {"k": 5, "normalize": True}}
    assert "{{query}}" in json.dumps(made["templates"])
    first = made["requests"][0]
    assert (first["id"], first["params"]) == ("q0", {"query": "how to return q0"})
    assert {"_index": "shop", "_id": "d3", "rating": 1} in first["ratings"]


def test_a_model_card_has_the_values_of_the_study(tmp_path):
    study = study_of()
    run = study.run(study.challengers[0])
    assert run is not None
    runs = [replace(run, name='a "b": {c}\n- d')]
    file = rd.export(study.dataset, runs, tmp_path / "card.md", "model-card", others=["mrr@10"])
    _, metadata, text = file.read_text(encoding="utf-8").split("---\n", 2)
    (model,) = yaml.safe_load(metadata)["model-index"]
    assert model["name"] == 'a "b": {c} - d'
    (result,) = model["results"]
    values = {each["type"]: each["value"] for each in result["metrics"]}
    expected = rd.evaluate(study.dataset, runs[0], "ndcg@10, mrr@10").means()
    assert values == {name.replace("@", "_at_"): value for name, value in expected.items()}
    assert result["dataset"] == {"name": "Shop", "type": "shop"}
    assert "| NDCG@10 | MRR@10 |" in text
    assert text.rstrip().endswith(".")


def test_queries_with_one_text_are_refused_for_quepid(tmp_path):
    study = study_of(texts=["same", "same", *map(str, range(10))])
    with pytest.raises(rd.RankdashError, match="'q0' and 'q1' have the same text"):
        rd.export(study.dataset, (), tmp_path / "ratings.csv", "quepid")
    formula = study_of(texts=["=1+1", *map(str, range(11))]).dataset
    with pytest.raises(rd.RankdashError, match="could run '=1"):
        rd.export(formula, (), tmp_path / "ratings.csv", "quepid")


def test_a_folder_with_files_is_refused_and_does_not_change(tmp_path):
    study = study_of()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rd.RankdashError, match="is not empty"):
        rd.export(study.dataset, (), tmp_path, "ranx")
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(rd.RankdashError, match="Formats: trec, beir"):
        rd.export(study.dataset, (), tmp_path / "x", "xml")


def test_the_docs_list_every_format():
    table = section(DOCS / "data.md", "## Files for other tools")
    assert first_names(table) == list(FORMATS)
