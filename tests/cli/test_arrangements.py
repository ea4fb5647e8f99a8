"""The same labels and rankings in other arrangements of files: the same numbers."""

import io
import math
import re
import zipfile

import pytest

from rankdash.cli.rankings import names_of

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
