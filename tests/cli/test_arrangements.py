"""The same labels and rankings in other arrangements of files: the same numbers."""

import io
import math
import re
import warnings
import zipfile
from pathlib import Path

import pytest

import rankdash as rd
from rankdash.cli.rankings import names_of
from rankdash.readers import files

LABELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq2 0 d1 1\nq2 0 d4 0\n"
FIRST = "q1 Q0 d3 1 3 x\nq1 Q0 d2 2 2 x\nq1 Q0 d1 3 1 x\nq2 Q0 d4 1 2 x\nq2 Q0 d1 2 1 x\n"
BEST = "q1 Q0 d1 1 3 x\nq1 Q0 d2 2 2 x\nq1 Q0 d3 3 1 x\nq2 Q0 d1 1 2 x\nq2 Q0 d4 2 1 x\n"
# NDCG with linear gain by hand: q1 has labels 0, 1, 2 in this order, q2 0, 1.
WORST = ((1 / math.log2(3) + 2 / math.log2(4)) / (2 + 1 / math.log2(3)) + 1 / math.log2(3)) / 2


def rows(run: str, extra: str = "") -> str:
    lines = [line.split() for line in run.splitlines()]
    ending = f",{extra}" if extra else ""
    body = "".join(f"{q},{doc},{score}.5{ending}\n" for q, _, doc, _, score, _ in lines)
    return f"query_id,doc_id,score{',label' if extra else ''}\n{body}"


def packed(**files: str) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture
def folder(write):
    """Labels and a first stage."""
    write("set/labels.qrels", LABELS)
    return write("set/initial.trec", FIRST).parent


@pytest.fixture
def means(run):
    """NDCG@10 of every system of `evaluate`."""

    def evaluated(labels, *rankings):
        done = run(
            "evaluate", "--qrels", labels, "--run", *rankings,
            "--metrics", "ndcg@10", "--format", "json",
        )  # fmt: skip
        assert done.code == 0, done.err
        systems = done.json["systems"].items()
        return {name: pytest.approx(each["mean"]["ndcg@10"]) for name, each in systems}

    return evaluated


def test_two_endings_of_one_name_in_each_of_two_folders_are_four_systems(write, means, run):
    labels = write("labels.qrels", LABELS)
    files = [
        write("a/x.trec", FIRST),
        write("a/x.csv", rows(BEST)),
        write("b/x.trec", BEST),
        write("b/x.csv", rows(FIRST)),
    ]
    assert list(names_of([str(file) for file in files])) == [
        "a/x.trec", "a/x.csv", "b/x.trec", "b/x.csv",
    ]  # fmt: skip
    found = means(labels, *files)
    assert found == {"a/x.trec": WORST, "a/x.csv": 1, "b/x.trec": 1, "b/x.csv": WORST}
    first, *others = files
    done = run(
        "compare", "--qrels", labels, "--baseline", first, "--challenger", *others,
        "--format", "json", "--resamples", "100",
    )  # fmt: skip
    assert [row["mean"] for row in done.json["comparisons"]] == [
        pytest.approx(mean) for mean in (WORST, 1, 1, WORST)
    ]


def test_a_stem_that_is_the_whole_name_of_another_file_hides_neither(write):
    files = [write(f"a/{name}", FIRST) for name in ("x.trec", "x.csv", "x.trec.trec")]
    assert list(names_of([str(file) for file in files]).values()) == files


def test_an_archive_is_its_own_ranking_and_not_the_file_of_its_stem(write, folder, means):
    archive = write("new/initial.zip", packed(**{"run.trec": BEST}))
    assert means(folder, archive) == {"initial": 1}


def test_a_file_without_scores_is_refused_though_the_folder_ranks_under_its_stem(
    write, folder, run
):
    pairs = write("new/initial.csv", "query_id,doc_id\nq1,d1\nq1,d2\nq2,d1\n")
    done = run("evaluate", "--qrels", folder, "--run", pairs)
    assert done.code == 2
    assert "initial.csv: The file holds no ranking" in done.err


def test_a_file_without_an_ending_is_itself_beside_a_folder_that_holds_its_name(write, means):
    write("set/labels.qrels", LABELS)
    write("set/a/dense.trec", FIRST)
    plain = write("set/dense", BEST)
    assert means(plain.parent, plain) == {"dense": 1}


def test_every_ranking_of_an_archive_counts_whether_or_not_the_labels_come_with_one(
    write, folder, means
):
    archive = write("new/two.zip", packed(**{"a.trec": BEST, "b.trec": FIRST}))
    assert means(folder / "labels.qrels", archive) == {"two": 1, "two/b": WORST}
    assert means(folder, archive) == {"two": 1, "two/b": WORST}


@pytest.mark.parametrize("side", ["baseline", "challenger"])
def test_labels_in_the_file_of_a_ranking_do_not_count_in_a_report(write, run, tmp_path, side):
    labels = write("labels.qrels", LABELS)
    files = {
        "baseline": write("before.trec", FIRST),
        "challenger": write("after.trec", BEST),
    }
    content = FIRST if side == "baseline" else BEST
    files[side] = write("labelled.csv", rows(content, extra="3"))
    target = tmp_path / "report.html"
    done = run(
        "report", "--qrels", labels, "--baseline", files["baseline"],
        "--challenger", files["challenger"], "--sections", "systems", "--out", target,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "labelled more than once" not in done.err
    shown = re.sub(r"(<[^>]+>\s*)+", "|", target.read_text("utf-8"))
    assert re.findall(r"NDCG@10\|[^|]+\|(\d\.\d+)", shown)[:2] == [f"{WORST:.3f}", "1.000"]


TEXTS = (("apple pie", "bake it"), ("bread", "knead it"), ("cake", "whisk it"))


def by_text(order, *, best: bool) -> str:
    """Rows of texts alone: each query has one document that answers it and one that does not."""
    lines = [
        f"{query},{text},{score}\n"
        for query, answer in order
        for text, score in ((answer, 0.75 if best else 0.25), (f"sell the {query}", 0.5))
    ]
    return f"query,document,score\n{''.join(lines)}"


@pytest.fixture
def labelled_texts(write):
    lines = [f"{query},{text},1\n{query},sell the {query},0\n" for query, text in TEXTS]
    return write("labels.csv", f"query,document,label\n{''.join(lines)}")


@pytest.mark.parametrize("order", [TEXTS, TEXTS[::-1], TEXTS[1:]])
def test_a_run_by_text_in_another_order_is_of_the_same_queries(labelled_texts, write, means, order):
    run = write("run.csv", by_text(order, best=True))
    mean = len(order) / len(TEXTS)
    assert means(labelled_texts, run) == {"run": mean}
    with pytest.warns(UserWarning, match="so BM25 ordered the documents that they list"):
        data = rd.read(labelled_texts)
    with warnings.catch_warnings():
        # That a query is missing is said.
        warnings.simplefilter("ignore" if len(order) < len(TEXTS) else "error")
        evaluation = rd.evaluate(data, rd.read_run(run, data), metrics="ndcg@10")
    assert evaluation.mean("ndcg@10") == pytest.approx(mean)


def test_runs_by_text_in_other_orders_are_combined_query_by_query(write, run, tmp_path):
    files = [
        write("a.csv", by_text(TEXTS, best=True)),
        write("b.csv", by_text(TEXTS[::-1], best=True)),
    ]
    out = tmp_path / "fused.trec"
    assert run("fuse", "--run", *files, "--out", out).code == 0
    first = [line.split() for line in out.read_text().splitlines() if line.split()[3] == "1"]
    assert [(query, doc) for query, _, doc, *_ in first] == [
        ("q1", "d1"),
        ("q2", "d3"),
        ("q3", "d5"),
    ]
    assert all(float(score) == pytest.approx(2 / 61, abs=1e-6) for *_, score, _tag in first)


def test_ids_that_were_made_for_texts_are_not_ids_of_labels_by_chance(write, run, tmp_path):
    texts = write("run.csv", by_text(TEXTS, best=True))
    labels = write("labels.qrels", "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 1\n")
    other = write("other.trec", "q1 Q0 d1 1 1.5 x\nq2 Q0 d3 1 1.5 x\n")
    for command in (
        ("evaluate", "--qrels", labels, "--run", texts),
        ("report", "--qrels", labels, "--baseline", texts, "--challenger", other,
         "--out", tmp_path / "report.html"),
        ("fuse", "--run", texts, other, "--out", tmp_path / "fused.trec"),
        ("fuse", "--run", other, texts, "--out", tmp_path / "fused.trec"),
    ):  # fmt: skip
        done = run(*command)
        assert done.code == 2, command
        assert "run.csv: The file names its queries by their text" in done.err
    data = rd.read(labels, other)
    with pytest.raises(rd.RankdashError, match="names its queries by their text"):
        rd.read_run(texts, data)


def test_whole_scores_beside_labels_are_scores_and_no_more_labels(write, folder, means):
    grades = "query_id,doc_id,score\nq1,d1,3\nq1,d2,2\nq1,d3,1\nq2,d1,3\nq2,d4,2\nq2,d9,1\n"
    graded = write("set/llm.csv", grades)
    # Within the folder and beside it; the labels are those of the label file alone.
    assert means(folder, folder / "initial.trec") == {"initial": WORST}
    assert means(folder, graded) == {"llm": 1}
    assert means(folder / "labels.qrels", graded) == {"llm": 1}
    assert len(rd.read(folder).qrels) == 5


@pytest.mark.parametrize("names", [("initial.csv", "initial.trec"), ("dense.trec", "sparse.trec")])
def test_a_first_stage_that_could_be_another_is_said(write, names, recwarn):
    labels = write("labels.qrels", LABELS)
    files = [write(name, rows(FIRST) if name.endswith("csv") else FIRST) for name in names]
    rd.read(labels, *files)
    first, second = names
    other = second if second.startswith("initial") else Path(second).stem
    assert [str(each.message) for each in recwarn] == [
        f"{first}: {Path(first).stem} is the first-stage ranking; the others are added as "
        f"systems: {other}. To start from another ranking, load the files again and choose it "
        "under First-stage ranking; on the command line: rerank --first-stage NAME."
    ]
    recwarn.clear()
    rd.read(labels, *files, first_stage=names[1])
    assert [str(each.message) for each in recwarn] == []


@pytest.mark.parametrize(
    ("other", "same", "warning"),
    [
        ("d1 ", "d1", "a.csv, line 2: Ids in the column doc_id with blanks around them, which"),
        (
            "cafe\u0301",
            "caf\u00e9",
            "Labelled documents with a different spelling in the ranking a: 1.",
        ),
    ],
    ids=["blank", "accent"],
)
def test_a_document_that_the_ranking_spells_otherwise_is_said(write, run, other, same, warning):
    labels = write("labels.csv", f"query_id,doc_id,label\nq1,{same},1\nq1,d2,0\nq2,d3,1\n")
    ranking = write("a.csv", f"query_id,doc_id,score\nq1,{other},0.75\nq1,d2,0.5\nq2,d3,0.25\n")
    done = run("evaluate", "--qrels", labels, "--run", ranking)
    assert done.code == 0
    assert warning in done.err


def test_queries_whose_accents_are_encoded_otherwise_are_told_so(write, run):
    labels = write("labels.qrels", "caf\u00e9 0 d1 1\nq2 0 d2 1\n")
    ranking = write("a.trec", "cafe\u0301 Q0 d1 1 0.5 x\nq2 Q0 d2 1 0.5 x\n")
    done = run("evaluate", "--qrels", labels, "--run", ranking)
    assert done.err == (
        "warning: Labelled queries that the ranking a lacks: 1 of 2, such as 'caf\u00e9'. They "
        "differ only in how accents are encoded (composed or not): write the ids alike in all "
        "files. (such as caf\u00e9)\n"
    )


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_every_file_is_read_once(write, run, tmp_path, monkeypatch, command):
    read = []
    real = files.tables_of
    monkeypatch.setattr(
        files, "tables_of", lambda source, limits: read.append(source.name) or real(source, limits)
    )
    labels = write("labels.qrels", LABELS)
    runs = [write("a.trec", FIRST), write("b.trec", BEST), write("c.csv", rows(BEST))]
    options = {
        "evaluate": ("--run", *runs),
        "compare": ("--baseline", runs[0], "--challenger", *runs[1:]),
        "report": ("--baseline", runs[0], "--challenger", *runs[1:], "--out", tmp_path / "r.html",
                   "--sections", "systems"),
    }  # fmt: skip
    assert run(command, "--qrels", labels, *options[command]).code == 0
    assert sorted(read) == ["a.trec", "b.trec", "c.csv", "labels.qrels"]


def test_whole_scores_of_a_file_beside_a_data_set_are_no_labels_in_python_either(write):
    labels = write("labels.qrels", LABELS)
    graded = write(
        "llm.csv", "query_id,doc_id,score\nq1,d1,3\nq1,d2,2\nq1,d3,1\nq2,d1,3\nq2,d4,2\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = rd.read(labels, retrieval="rows")
    assert rd.evaluate(data, rd.read_run(graded, data), "ndcg@10").mean("ndcg@10") == 1


def with_texts(run: str) -> str:
    """Rows in which each query and document has its id and a text."""
    lines = [line.split() for line in run.splitlines()]
    body = "".join(f"{q},ask {q},{d},say {d},{score}.5\n" for q, _, d, _, score, _ in lines)
    return f"query_id,query,doc_id,document,score\n{body}"


def test_rows_with_texts_and_scores_are_a_ranking_for_each_file(write, means):
    write("set/labels.qrels", LABELS)
    folder = write("set/rows.csv", with_texts(FIRST)).parent
    assert means(
        folder, write("best.csv", with_texts(BEST)), write("worst.csv", with_texts(FIRST))
    ) == {
        "best": 1,
        "worst": WORST,
    }


def test_labels_by_text_take_the_ids_of_a_run_and_other_runs_by_text_follow(
    labelled_texts, write, means
):
    lines = [
        f"Q-{place},{query},{doc},{score}\n"
        for place, (query, answer) in enumerate(TEXTS)
        for doc, score in ((answer, 0.75), (f"sell the {query}", 0.5))
    ]
    named = write("named.csv", f"query_id,query,document,score\n{''.join(lines)}")
    by_id = write("by_id.csv", "query_id,document,score\nQ-2,whisk it,0.5\n")
    texts = write("texts.csv", by_text(TEXTS[::-1], best=True))
    third = pytest.approx(1 / 3)
    assert means(labelled_texts, named, by_id, texts) == {"named": 1, "by_id": third, "texts": 1}


def test_a_file_is_fused_with_itself_however_often(write, run, tmp_path):
    file, out = write("a.trec", BEST), tmp_path / "fused.trec"
    assert run("fuse", "--run", file, file, file, "--out", out).code == 0
    order = [line.split()[2] for line in out.read_text().splitlines()]
    assert order == ["d1", "d2", "d3", "d1", "d4"]


def test_an_archive_and_a_file_that_would_share_a_name_are_two_systems(write, means, folder):
    archive = write("two.zip", packed(**{"a.trec": BEST, "b.trec": FIRST}))
    files = [write("two/b.trec", BEST), write("three/b.trec", BEST)]
    assert means(folder, archive, *files) == {
        "two": 1, "two/b (2)": WORST, "two/b": 1, "three/b": 1,
    }  # fmt: skip


def test_rows_that_are_refused_are_counted_once(write, run, tmp_path):
    write("set/labels.qrels", LABELS)
    ranking = write("set/initial.trec", FIRST + "q2 Q0 d1 1 9 x\n")
    best = write("best.trec", BEST)
    for source in (("--data", ranking.parent), ("--qrels", ranking.parent)):
        done = run("report", *source, "--baseline", ranking, "--challenger", best, "--out",
                   tmp_path / "r.html", "--sections", "systems")  # fmt: skip
        assert done.code == 0, done.err
        assert done.err.count("holds the document already: 1 (line 6)") == 1
