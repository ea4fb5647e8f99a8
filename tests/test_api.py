"""`import rankdash as rd`: a fast import, types, and the same numbers as other surfaces."""

import dataclasses
import html
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest

import rankdash as rd
from rankdash import api
from rankdash.core.base.errors import DataError
from tests import documented
from tests.documented import DOCS, section
from tests.marked import Markup

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"


@pytest.fixture(scope="module")
def data() -> rd.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.read(SAMPLE)


@pytest.mark.parametrize(
    "file", [DOCS / "python.md", ROOT / "README.md"], ids=lambda file: file.name
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_ten_lines_of_the_docs_run(file, monkeypatch, capsys, tmp_path):
    """With a reranker without a model; tests/cli runs the models."""
    heading = "## From Python" if file.parent == DOCS else "## Python"
    (code,) = documented.code(section(file, heading), "python")
    assert len([line for line in code.splitlines() if line]) <= 10
    assert code.count('"report.html"') == 1
    monkeypatch.chdir(ROOT)
    target = tmp_path / "report.html"
    code = code.replace('data, "bi-encoder"', 'data, "bm25", k1=0.1').replace("bi-encoder", "bm25")
    code = code.replace('"report.html"', repr(str(target)))
    names: dict[str, object] = {}
    exec(code, names)
    said = capsys.readouterr().out
    assert "from 0.666 to" in said
    run = names["run"]
    assert run.name in said and run.id not in said
    assert run.name in target.read_text(encoding="utf-8")
    if "comparison" in names:
        assert eval(code.splitlines()[-1], names)._repr_html_().count("<tr") == 5
        assert run.depth == 10


def test_the_import_alone_loads_nothing():
    code = (
        "import sys, rankdash, rankdash as rd; assert 'read' in dir(rd)\n"
        "print(sorted({'pandas', 'numpy', 'torch', 'streamlit', 'scipy'} & set(sys.modules)))\n"
        "rd.read\n"
        "print(sorted({'torch', 'streamlit', 'plotly', 'transformers'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n[]\n"


def test_every_name_that_is_offered_is_there_and_no_other():
    assert rd.__all__ == api.__all__
    for name in rd.__all__:
        assert getattr(rd, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'raed'"):
        rd.raed  # noqa: B018 - a wrong name on purpose


def test_metrics_are_spelled_as_on_the_command_line_and_rel_is_their_threshold(data):
    found = rd.evaluate(data, metrics="P(rel=2)@5, nDCG(dcg='exp-log2')@5,10, map")
    assert list(found.means()) == ["precision@5", "ndcg_exp@5", "ndcg_exp@10", "map"]
    assert found.conventions.threshold == 2.0
    same = rd.evaluate(data, metrics="P@5", conventions=rd.Conventions(threshold=2.0))
    assert found.mean("P(rel=2)@5") == found.mean("P.5") == same.mean("P@5")
    assert found.mean("P@5") != rd.evaluate(data, metrics="P@5").mean("P@5")
    with pytest.raises(rd.RankdashError, match="are set: 3 and 2"):
        rd.evaluate(data, metrics="P(rel=2)@5", conventions=rd.Conventions(threshold=3.0))
    study = rd.study_of(data, (), metric="AP(rel=2)", others=["P@5,10"])
    assert study.specs == ("map", "precision@5", "precision@10")
    assert study.conventions.threshold == 2.0


def test_a_report_is_written_and_the_function_keeps_its_name(data, tmp_path):
    import rankdash.core.study.study  # noqa: F401 - a package of that name would hide the function

    run = rd.rerank(data, "bm25", depth=10)
    twin = dataclasses.replace(run, id="twin")
    target = rd.report(
        data, [run, twin], tmp_path / "r.html", metric="mrr@5", sections=["verdict", "cost"],
        assumptions={"searches_per_day": 321.0}, title="Ours", language="zh",
    )  # fmt: skip
    text = target.read_text(encoding="utf-8")
    assert '<html lang="zh">' in text
    assert "<h1 dir=auto>Ours</h1>" in text
    assert f"{run.name} (2)" in text
    assert "MRR@5" in text
    assert 'id="cost"' in text
    assert 'id="latency"' not in text
    assert "321" in text


def test_a_failed_query_is_no_zero(data):
    run = rd.rerank(data, "bm25")
    rows = run.queries.copy()
    lost = list(rows["query_id"][:6])
    rows.loc[rows["query_id"].isin(lost), "state"] = "failed"
    kept = [q for q in run.ranking.query_ids if q not in lost]
    ranking = type(run.ranking).from_lists((q, *run.ranking.documents_of(q)) for q in kept)
    broken = rd.Run("id", "broken", data.id, ranking, "bm25", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rd.evaluate(data, broken, "ndcg@10")
    assert np.isnan(found.wide().loc[lost, "ndcg@10"]).all()
    comparison = rd.compare({"all": rd.evaluate(data, run, "ndcg@10"), "broken": found})
    assert comparison.baseline == "all"
    assert comparison.excluded("broken", "ndcg@10")["failed"] == 6
    assert comparison.row("broken", "ndcg@10")["delta"] == 0


def test_what_is_odd_is_a_warning_and_what_cannot_be_is_refused(data, tmp_path):
    with pytest.warns(UserWarning, match="without a relevant document") as seen:
        rd.read(SAMPLE)
    # The warning names the line of the caller, not a line of the package.
    assert seen[0].filename == __file__
    (tmp_path / "other.trec").write_text("elsewhere Q0 d1 1 2.0 x\nelsewhere Q0 d2 2 1.0 x\n")
    with pytest.raises(DataError, match="ranking other that have a label: none of 1"):
        rd.read_run(tmp_path / "other.trec", data)
    (tmp_path / "some.trec").write_text("q01 Q0 ord-002 1 2.0 x\nq01 Q0 ord-004 2 1.0 x\n")
    with pytest.warns(
        UserWarning, match="Labelled queries that the ranking some lacks: 167 of 168"
    ):
        run = rd.read_run(tmp_path / "some.trec", data, name="mine")
    assert run.name == "mine"


def test_the_recipe_of_the_docs_logs_the_means_and_the_change(data, monkeypatch):
    blocks = documented.code(section(DOCS / "python.md", "## Other libraries"), "python")
    (code,) = (each for each in blocks if "mlflow" in each)
    names: dict[str, Callable] = {}
    exec(code, names)
    run = rd.rerank(data, "bm25", depth=10)
    evaluations = {"first": rd.evaluate(data), "bm25": rd.evaluate(data, run)}
    comparison = rd.compare(evaluations)
    logs: dict[str, dict[str, float]] = {}

    class Mlflow:
        """The parts of mlflow in the recipe, which refuses names with an @."""

        @staticmethod
        @contextmanager
        def start_run(run_name: str) -> Iterator[None]:
            logs[run_name] = {}
            yield

        @staticmethod
        def log_metrics(values: dict[str, float]) -> None:
            assert all(re.fullmatch(r"[\w./: -]+", name) for name in values)
            (log,) = logs.values()
            log.update(values)

    monkeypatch.setitem(sys.modules, "mlflow", Mlflow)
    names["log"](comparison, "bm25")
    assert logs["bm25"]["ndcg_at_10.mean"] == evaluations["bm25"].mean("ndcg@10")
    assert logs["bm25"]["ndcg_at_10.delta"] == comparison.row("bm25", "ndcg@10")["delta"]


def typeset(part: Element) -> str:
    """Return the text that MathJax does not ignore."""
    if "mathjax_ignore" in part.get("class", "").split():
        return ""
    return (part.text or "") + "".join(typeset(each) + (each.tail or "") for each in part)


def test_markup_in_a_text_is_text_in_a_notebook(data):
    # A new class that a notebook shows in HTML needs a case here.
    shown = {name for name in dir(rd) if hasattr(getattr(rd, name), "_repr_html_")}
    assert shown == {"Comparison", "Dataset", "Evaluation", "Run", "Study"}
    markup = Markup("http://127.0.0.1:9")
    texts = [markup.short("a name") for _ in range(7)]
    marked = rd.Dataset(
        texts[3],
        data.queries.assign(text=texts[0]),
        data.documents.assign(text=texts[1], title=texts[2]),
        data.qrels,
        data.candidates,
    )
    found = rd.evaluate(marked, metrics="ndcg@10")
    assert not markup.within(found._repr_html_())
    assert "<td>0.6664</td>" in found._repr_html_()
    run = dataclasses.replace(rd.rerank(marked, "bm25", depth=3), name=texts[0])
    pages = [each._repr_html_() for each in (marked, run, rd.study_of(marked, run))]
    pages.append(rd.compare({texts[0]: found, **dict.fromkeys(texts[1:], found)})._repr_html_())
    named = {"table", "thead", "tbody", "tr", "th", "td", "p", "div"}
    for page in pages:
        root = fromstring(f"<div>{page}</div>")
        assert {part.tag for part in root.iter()} <= named
        assert {name for part in root.iter() for name in part.attrib} <= {
            "border",
            "class",
            "style",
        }
        assert "$" not in typeset(root)
        assert all(each.isprintable() or each == "\n" for each in page)
    assert html.escape(texts[3], quote=False) in pages[0].replace("&quot;", '"')
    assert html.escape(texts[1], quote=False) in page


def test_a_study_has_what_the_pages_show_and_is_checked(data):
    # Numbers of NumPy are accepted.
    run = rd.rerank(data, "bm25", depth=np.int64(10), k1=0.3)
    assert run.depth == 10
    study = rd.study_of(data, run, metric="mrr@5", others=["ndcg@10"])
    assert isinstance(study, rd.Study)
    assert list(study.evaluations[run.id].means()) == ["mrr@5", "ndcg@10"]
    assert run.settings["k1"] == 0.3
    assert study.headroom(run.id) is not None
    assert set(study.reasons(run.id).index) <= set(data.queries["query_id"])
    turned = rd.study_of(data, [], baseline=run)
    assert turned.names == {run.id: run.name}


def test_labels_that_look_wrong_are_compared_with_runs_and_a_judge(data):
    run = rd.rerank(data, "bm25", depth=20, k1=0.1, b=0.2)
    grades = data.qrels.rename(columns={"label": "grade"}).assign(error="")
    sure = rd.Judgements("same as the labels", (0.0, 3.0), grades)
    one, two, three = (
        {each.reason: each.listed for each in found.checks}
        for found in (
            rd.doubtful_labels(data),
            rd.doubtful_labels(data, [run]),
            rd.doubtful_labels(data, run, sure),
        )
    )
    assert "ranked_low" not in one and one["few_words"] == two["few_words"]
    # The judge agrees with every label.
    assert two["ranked_low"] > 0 == three["ranked_low"]


def test_a_run_is_printed_in_a_line(data):
    run = rd.rerank(data, "bm25", depth=3)
    assert repr(run) == f"Run('bm25', 168 of 168 queries done, id={run.id})"
    assert str([run]) == f"[{run!r}]"


def slips(data: rd.Dataset, run: rd.Run, folder: Path) -> dict[str, Callable[[], object]]:
    """Return calls with a wrong argument, by the kind of error."""
    other, target = rd.evaluate(data, run), folder / "no.html"
    elsewhere = dataclasses.replace(run, dataset_id="elsewhere")
    return {
        "not a list": lambda: rd.read([SAMPLE, SAMPLE]),
        "not a whole number": lambda: rd.read(5),
        "No files were provided": lambda: rd.read(),
        "columns must be a dictionary": lambda: rd.read(SAMPLE, columns=["a"]),
        "retrieved must be a whole number": lambda: rd.read(SAMPLE, retrieved="many"),
        "argument data must be a Dataset, not text": lambda: rd.read_run(data, "x.trec"),
        "data must be a Dataset, not text": lambda: rd.rerank("folder", "bm25"),
        "reranker must be text": lambda: rd.rerank(data, 5),
        "depth must be a whole number": lambda: rd.rerank(data, "bm25", depth="all"),
        "run must be a Run": lambda: rd.evaluate(data, "run.trec"),
        "metrics must be text or a list": lambda: rd.evaluate(data, run, 5),
        "conventions must be a Conventions": lambda: rd.evaluate(data, conventions="trec_eval"),
        "evaluations must be a dictionary": lambda: rd.compare([other]),
        "evaluations must be an Evaluation": lambda: rd.compare({"a": other, "b": 1}),
        "runs must be a Run, not text": lambda: rd.study_of(data, "x"),
        "baseline must be a Run": lambda: rd.study_of(data, run, baseline="x"),
        "metric must be text": lambda: rd.study_of(data, run, metric=5),
        "assumptions must be a dictionary": lambda: rd.study_of(data, run, assumptions=5),
        "path must be text": lambda: rd.report(data, run, 5),
        "contains no ranking": lambda: rd.read_run(SAMPLE / "qrels.tsv", data),
        "contains no documents": lambda: rd.evaluate(data, type(run.ranking).from_lists([])),
        "'bm52'": lambda: rd.rerank(data, "bm52"),
        "list of metrics is empty": lambda: rd.evaluate(data, metrics=""),
        "'ndgc@10'.*ndcg": lambda: rd.study_of(data, run, metric="ndgc@10"),
        "nothing to compare": lambda: rd.compare({}),
        "compared with itself": lambda: rd.study_of(data, [run, run]),
        "system cannot be compared with itself": lambda: rd.report(data, run, target, baseline=run),
        "another data set": lambda: rd.study_of(data, elsewhere),
        "to another data set|of another data set": lambda: rd.report(data, elsewhere, target),
        "Unknown section 'prices'": lambda: rd.report(data, run, target, sections=["prices"]),
        "Unknown language 'fr'": lambda: rd.report(data, run, target, language="fr"),
        "Unknown assumption 'a'": lambda: rd.report(data, run, target, assumptions={"a": 1.0}),
        "does not exist": lambda: rd.report(data, run, folder / "none" / "r.html"),
        "cannot be read": lambda: rd.report(data, run, target, logo=folder / "none.png"),
        "study must be a Study, not a whole number": lambda: rd.standings(5),
        "judge must be": lambda: rd.doubtful_labels(data, judge=5),
        "runs must be a Run, not a whole number": lambda: rd.doubtful_labels(data, [1]),
    }


def test_a_wrong_argument_is_a_rankdash_error_that_names_it(data, tmp_path):
    for said, call in slips(data, rd.rerank(data, "bm25", depth=3), tmp_path).items():
        with pytest.raises(rd.RankdashError, match=said):
            call()
    assert [*tmp_path.iterdir()] == []


def test_a_policy_is_the_content_of_its_file(data):
    run = rd.rerank(data, "bm25", k1=0.1)
    study = rd.study_of(data, run)
    content = rd.policy(study, run, depth=10)
    assert content["steps"] == [{"rerank": content["steps"][0]["rerank"]}]
    assert content["steps"][0]["rerank"]["depth"] == 10
    assert content["expected"]["ndcg@10"]["mean"] == pytest.approx(
        study.comparison.row(run.id, "ndcg@10")["mean"], abs=0.1
    )
    with pytest.raises(DataError, match="No query has a metric value"):
        rd.policy(rd.study_of(data, dataclasses.replace(run, queries=run.queries.assign(
            latency_ms=np.nan))), deadline_ms=9)  # fmt: skip
