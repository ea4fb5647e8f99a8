"""Data sets by name: what is fetched, what is left aside, and what is said where it cannot be.

The hub is a server of this test that speaks its wire; ir_datasets is the real package, which finds
the file it would download already in its folder.
"""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

import rankdash as rd
from rankdash import allowed
from rankdash.cli import main
from rankdash.errors import DataError, LimitError
from rankdash.loading import load
from rankdash.readers import sources_at, sources_by_name
from rankdash.readers.by_name import __main__ as fetching
from rankdash.readers.by_name import irds, start, thinning
from rankdash.readers.by_name.fetching import Fetched
from rankdash.readers.by_name.start import is_name
from rankdash.readers.parse.limits import ReadLimits
from tests.loopback import HUB_REVISION, hub, silent_server
from tests.readers.formats.test_tools import parquet
from tests.sets import ROOT

NOWHERE = "http://127.0.0.1:9"
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([fetching.__name__])


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


CORPUS = [{"_id": f"d{n}", "title": f"T{n}", "text": f"text {n}"} for n in range(6)]
QUERIES = [{"_id": "q1", "text": "text 1"}, {"_id": "q2", "text": "text 2"}]
TEXTS = {
    "README.md": b"---\n---\n# A card",
    "tiny.py": b"raise SystemExit('no code of a repository runs')",
    "corpus/corpus-00000-of-00001.parquet": parquet(CORPUS),
    "queries/queries-00000-of-00001.parquet": parquet(QUERIES),
}
LABELS = {
    "test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n",
}
ROWS = {
    f"data/{split}-00000-of-00001.parquet": parquet(
        [{"query": f"{split} {n}", "document": f"about {split} {n}", "label": n} for n in (0, 1)]
    )
    for split in ("train", "test")
}


def fetch(arguments: list[str], said: str, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if largest := environment.get("LARGEST_FILE"):
        import resource

        # As on a disk that is nearly full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    with Path(said).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(fetching.main(arguments))


class Forked:
    """A process of `python -m rankdash.readers.by_name` that has imported what takes longest."""

    stdin = None

    def __init__(self, command, *, stdout, env, **_streams) -> None:
        self._process = _FORKS.Process(target=fetch, args=(command[3:], stdout.name, env))
        with pytest.MonkeyPatch.context() as patch:
            # A new process runs the __main__ of its parent, where a test of pages leaves the app.
            patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
            self._process.start()
        self.poll, self.kill = lambda: self._process.exitcode, self._process.kill

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("fetch", seconds)
        return self.poll()


# In place of the module `subprocess` in `start`, and there alone.
FORKING = SimpleNamespace(
    Popen=Forked, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired
)


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch) -> None:
    """Caches of its own, and no server outside this machine."""
    monkeypatch.setattr(start, "subprocess", FORKING)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.setenv("NO_PROXY", "*")


def refused(*names: str, **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        sources_by_name(names, **options)
    return caught.value


def test_a_data_set_of_the_hub_is_read_from_its_data_files_alone(monkeypatch):
    with hub({"BeIR/tiny": TEXTS, "BeIR/tiny-qrels": LABELS}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        sources = sources_at(["hf:BeIR/tiny", "hf:BeIR/tiny-qrels"])

    loaded = load(sources)
    assert len(loaded.dataset.documents) == 6 and len(loaded.dataset.qrels) == 2
    assert loaded.dataset.name == "tiny"
    (note, _) = [found for found in loaded.report.notes if found.code == "by_name"]
    assert address in note.text and "BeIR/tiny" in note.text and HUB_REVISION[:12] in note.text
    assert not [file for file in asked if file.endswith((".py", ".md"))]


@pytest.mark.parametrize(
    ("shared", "listed", "sent"),
    [
        ("", "", "Bearer hf_operators"),
        ("1", "", None),
        ("1", "COHERE_API_KEY", None),
        ("1", "HF_TOKEN", "Bearer hf_operators"),
        ("1", "*", "Bearer hf_operators"),
    ],
)
def test_the_token_of_the_hub_is_sent_for_visitors_only_if_it_is_listed(
    monkeypatch, shared, listed, sent
):
    monkeypatch.setenv("HF_TOKEN", "hf_operators")
    monkeypatch.setenv(allowed.SHARED, shared)
    monkeypatch.setenv(allowed.KEYS, listed)
    tokens, elsewhere = [], []
    with (
        hub({"me/rows": ROWS}, tokens=elsewhere) as (store, _),
        hub({"me/rows": ROWS}, tokens=tokens, redirect=store) as (address, _),
    ):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert len(sources_at(["hf:me/rows"])) == 1
    assert set(tokens) == {sent}
    # Another host gets the file's request without it.
    assert set(elsewhere) == {None}


def test_visitors_are_told_that_the_token_of_the_hub_is_not_for_them(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_operators")
    monkeypatch.setenv(allowed.SHARED, allowed.YES)
    with hub({}, {"me/it": (403, "GatedRepo")}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        problem = refused("hf:me/it")
    assert problem.remedy == (
        "Load its files, or ask the server administrator to allow the token of the hub: "
        "--allow-key HF_TOKEN."
    )


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX systems")
def test_a_download_that_fills_the_disk_says_so(monkeypatch):
    monkeypatch.setenv("LARGEST_FILE", "20000")
    with hub({"me/it": {"rows.csv": b"query,document,label\n" * 5000}}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        problem = refused("hf:me/it")
    assert problem.message.startswith("The download of hf:me/it stopped: [Errno ")
    assert problem.remedy == (
        "Free space on the disk, or set HF_HOME to a folder on another disk. Then load it again: "
        "downloaded parts are kept."
    )


def test_one_split_is_fetched_or_the_one_that_the_name_says(monkeypatch):
    with hub({"me/rows": ROWS}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        usual = load(sources_at(["hf:me/rows"]))
        assert {file.split("/")[3][:5] for file in asked} == {"test-"}
        named = load(sources_at(["hf:me/rows/data/train-00000-of-00001.parquet@main"]))

    assert sorted(usual.dataset.queries["text"]) == ["test 0", "test 1"]
    (split,) = [found for found in usual.report.warnings if found.code == "one_split"]
    assert "test is used, not train" in split.text
    assert sorted(named.dataset.queries["text"]) == ["train 0", "train 1"]


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        (
            "hf:me/it/nowhere",
            ROWS,
            "me/it has no folder or file 'nowhere'. Its folders are: data.",
        ),
        (
            "hf:me/it/nowhere",
            {"load.py": b""},
            "me/it has no folder or file 'nowhere'. It has no folders.",
        ),
        (
            "hf:me/it",
            {"load.py": b"", "a.png": b""},
            "me/it holds no supported data file. It has: load.py, a.png. Where the hub has "
            "converted it, open hf:me/it@refs/convert/parquet.",
        ),
    ],
)
def test_what_a_repository_lacks_is_said(monkeypatch, name, files, said):
    with hub({"me/it": files}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert str(refused(name)) == said


def test_more_than_is_fetched_is_refused_before_it_is_fetched(monkeypatch):
    class Huge(bytes):
        def __len__(self) -> int:
            return 6_000_000_000

    with hub({"me/it": {"data/rows.parquet": Huge()}}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        problem = str(refused("hf:me/it"))
    assert problem == (
        "me/it has 6,000 MB of data; at most 5,000 MB are downloaded. Open a folder of it, as "
        "hf:me/it/FOLDER: data."
    )
    assert not asked


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        (
            404,
            "RepoNotFound",
            "The hub at {hub} has no data set 'me/it', or it is private. Check the name; for a "
            "private data set set HF_TOKEN.",
        ),
        (
            403,
            "GatedRepo",
            "The hub gives the data set 'me/it' only to those who accepted its terms. Accept them "
            "on its page and set HF_TOKEN, or load its files.",
        ),
        (
            404,
            "RevisionNotFound",
            "The data set 'me/it' has no revision 'old'. Remove what follows @ for the newest one.",
        ),
    ],
)
def test_what_the_hub_refuses_is_explained(monkeypatch, code, reason, said):
    with hub({}, {"me/it": (code, reason)}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert str(refused("hf:me/it@old")) == said.format(hub=address)


def test_a_refusal_for_no_known_reason_is_told_with_the_way_round_it(monkeypatch):
    with hub({}, {"me/it": (400, "")}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        problem = refused("hf:me/it@old")
    assert problem.message.startswith(f"The hub at {address} cannot be reached (")
    assert problem.message.endswith("), so me/it cannot be opened.")
    assert str(problem).endswith(
        " Check the connection, or download the data set on a machine that reaches it (hf download "
        "me/it --repo-type dataset) and load its files."
    )


@pytest.mark.parametrize("address", [NOWHERE, "http://no-such-host.invalid"])
def test_a_hub_that_is_not_there_is_said_at_once(monkeypatch, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    problem = str(refused("hf:me/it"))
    assert address in problem and "cannot be reached" in problem
    assert "hf download me/it --repo-type dataset" in problem


def test_a_hub_that_accepts_and_never_answers_is_given_up(monkeypatch):
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    with silent_server() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert address in str(refused("hf:me/it"))


def test_what_takes_too_long_is_ended_and_what_nobody_waits_for_too(monkeypatch):
    def gone() -> None:
        raise KeyboardInterrupt

    with silent_server() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        late = refused("hf:me/it", seconds=0.5).message
        assert late == "hf:me/it did not arrive in time (1 min)."
        with pytest.raises(KeyboardInterrupt):
            sources_by_name(["hf:me/it"], waiting=gone)


@pytest.mark.parametrize("name", ["hf:", "hf:only", "hf:a/../b", "hf:a b/c", "ftp:x"])
def test_what_is_no_name_is_answered_with_how_to_write_one(name):
    assert refused(name).remedy == (
        "Write hf:ORGANIZATION/NAME, such as hf:BeIR/scifact, where needed with a folder "
        "(hf:ORGANIZATION/NAME/FOLDER) or a revision (hf:ORGANIZATION/NAME@REVISION)."
        if name.startswith("hf:")
        else "Write ir_datasets:NAME, such as ir_datasets:beir/scifact/test, or "
        "hf:ORGANIZATION/NAME, such as hf:BeIR/scifact."
    )


def test_a_file_that_is_called_like_a_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hf:a").write_text("query,document,label\na,b,1\n")
    assert not is_name("hf:a") and is_name("hf:a/b") and not is_name("C:/data")
    assert len(sources_at(["hf:a"])) == 1


def beir_zip(home: Path) -> None:
    """What ir_datasets would download for beir/scifact."""
    file = home / "beir" / "scifact" / "source.zip"
    file.parent.mkdir(parents=True)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("scifact/corpus.jsonl", lines([{**row, "metadata": {}} for row in CORPUS]))
        archive.writestr(
            "scifact/queries.jsonl", lines([{**row, "metadata": {}} for row in QUERIES])
        )
        archive.writestr("scifact/qrels/test.tsv", LABELS["test.tsv"])


def test_a_data_set_of_ir_datasets_is_read(tmp_path, capsys):
    pytest.importorskip("ir_datasets", reason="the extra ir_datasets is not installed")
    beir_zip(tmp_path / "irds")

    with pytest.warns(UserWarning, match="BM25 retrieved up to 6 of all 6 documents"):
        data = rd.read("ir_datasets:beir/scifact/test")

    assert data.name == "beir scifact test"
    assert sorted(data.qrels["doc_id"]) == ["d1", "d2"] and len(data.documents) == 6
    documents = data.documents.set_index("doc_id")
    assert documents.loc["d1", "title"] == "T1" and documents.loc["d1", "text"] == "text 1"
    assert main(["check", "ir_datasets:beir/scifact/test"]) == 0
    assert "Loaded by its name from ir_datasets: beir/scifact/test." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("beir/scifat/test", "no data set 'beir/scifat/test'. Near it are: beir/scifact/test"),
        ("beir/scifact", "no labelled queries. Open a subset of it: beir/scifact/test"),
        ("beir/nfcorpus/test", "cannot be fetched from"),
        ("trec-fair-2021/eval", "cannot be fetched from"),
        ("disks45/nocr/trec-robust-2004", "cannot be fetched from trec.nist.gov: no connection."),
    ],
)
def test_what_ir_datasets_cannot_open_is_explained(monkeypatch, name, said):
    pytest.importorskip("ir_datasets", reason="the extra ir_datasets is not installed")
    # Every server is asked through a proxy that is not there, also where a network is.
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, NOWHERE)
    monkeypatch.setenv("NO_PROXY", "")
    problem = refused(f"ir_datasets:{name}")
    assert said in str(problem) and problem.remedy


@pytest.fixture
def registered(tmp_path) -> Iterator[str]:
    """The name of a data set of ir_datasets made of files here, with a ranking; the corpus is of
    unknown size."""
    ir_datasets = pytest.importorskip("ir_datasets", reason="the extra is not installed")
    formats = pytest.importorskip("ir_datasets.formats")
    local = ir_datasets.util.LocalDownload
    files = {
        "docs.tsv": "".join(f"d{n}\ttext {n}\n" for n in range(6)),
        "queries.tsv": "q1\tone\nq2\ttwo\nq3\tnobody labelled\n",
        "qrels": "q1 0 d1 2\nq2 0 d2 -1\n",
        "run": "q1 Q0 d4 1 9.5 x\nq1 Q0 d1 2 8 x\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = ir_datasets.Dataset(
        formats.TsvDocs(local(tmp_path / "docs.tsv"), namespace="mine"),
        formats.TsvQueries(local(tmp_path / "queries.tsv"), namespace="mine"),
        formats.TrecQrels(local(tmp_path / "qrels"), {2: "yes", -1: "no"}),
        formats.TrecScoredDocs(local(tmp_path / "run")),
    )
    ir_datasets.registry.register("mine/test", made)
    yield "mine/test"
    del ir_datasets.registry._registered["mine/test"]


def frames(fetched: list[Fetched]) -> dict[str, pd.DataFrame]:
    return {file.path.stem: pd.read_parquet(file.path) for file in fetched}


@pytest.mark.parametrize("most", [5, 6])
def test_labels_ranking_and_documents_of_ir_datasets(tmp_path, monkeypatch, registered, most):
    monkeypatch.setattr(irds, "MOST_DOCUMENTS", most)
    (tmp_path / "made").mkdir()

    fetched = irds.fetch(registered, tmp_path / "made")

    found = frames(fetched)
    assert found["qrels"].to_numpy().tolist() == [["q1", "d1", 2.0], ["q2", "d2", -1.0]]
    assert found["first stage"].to_numpy().tolist() == [["q1", "d4", 9.5], ["q1", "d1", 8.0]]
    assert list(found["queries"]["query"]) == ["one", "two"]
    notes = {note.code for file in fetched for note in file.notes}
    if most == 6:
        assert len(found["documents"]) == 6 and "partly_read" not in notes
    else:
        assert sorted(found["documents"]["doc_id"]) == ["d1", "d2", "d4"]
        assert "partly_read" in notes


def test_a_file_that_must_be_asked_for_is_named(tmp_path, registered):
    (tmp_path / "docs.tsv").unlink()
    (tmp_path / "made").mkdir()
    with pytest.raises(DataError, match=r"without asking for it: .*docs\.tsv"):
        irds.fetch(registered, tmp_path / "made")


def test_more_rows_than_are_read_are_refused_while_they_come(tmp_path, monkeypatch, registered):
    monkeypatch.setattr(irds, "ReadLimits", lambda: ReadLimits(rows=1))
    (tmp_path / "made").mkdir()
    with pytest.raises(LimitError, match="more than 1 rows of qrels"):
        irds.fetch(registered, tmp_path / "made")


@pytest.mark.parametrize(
    ("name", "package"),
    [("ir_datasets:beir/scifact/test", "ir_datasets"), ("hf:me/it", "huggingface_hub")],
)
def test_a_package_that_is_missing_is_named_with_how_to_get_it(
    tmp_path, monkeypatch, capsys, name, package
):
    (tmp_path / f"{package}.py").write_text("raise ModuleNotFoundError('gone', name='it')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["check", name]) == 2
    said = capsys.readouterr().err
    assert f"needs the package {package}" in said and f"pip install {package}" in said


def test_the_process_that_asks_imports_none_of_it(tmp_path):
    pytest.importorskip("ir_datasets", reason="the extra ir_datasets is not installed")
    beir_zip(tmp_path / "irds")
    program = (
        "import sys, rankdash as rd; rd.read('ir_datasets:beir/scifact/test');"
        "print([n for n in ('torch', 'ir_datasets', 'huggingface_hub') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=dict(os.environ),
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("written", [".parquet", ".jsonl"])
def test_of_a_large_corpus_what_is_labelled_or_ranked_is_read(tmp_path, monkeypatch, written):
    monkeypatch.setattr(thinning, "MOST_DOCUMENTS", 5)
    contents = {
        f"corpus{written}": (parquet if written == ".parquet" else lines)(CORPUS),
        "queries.jsonl": lines(QUERIES),
        "qrels.tsv": LABELS["test.tsv"],
        "bm25.trec": b"q1 Q0 d1 1 9 x\nq1 Q0 d4 2 8 x\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = [Fetched(tmp_path / name, name, "set") for name in contents]
    (tmp_path / "made").mkdir()

    found = thinning.thinned(files, tmp_path / "made")

    (corpus, *others) = found
    assert sorted(pd.read_parquet(corpus.path)["_id"]) == ["d1", "d2", "d4"]
    (note,) = corpus.notes
    assert note.text.startswith("set has 6 texts. Only the 3 that have a label or a rank were read")
    assert others == files[1:]
    assert (tmp_path / f"corpus{written}").read_bytes() == contents[f"corpus{written}"]


def test_ids_that_are_numbers_are_found_in_a_large_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(thinning, "MOST_DOCUMENTS", 2)
    rows = [{"_id": n, "text": f"text {n}"} for n in range(5)]
    (tmp_path / "corpus.jsonl").write_bytes(lines(rows))
    (tmp_path / "bm25.trec").write_bytes(b"q1 Q0 1 1 9 x\nq1 Q0 3 2 8 x\n")
    (tmp_path / "made").mkdir()
    files = [Fetched(tmp_path / name, name, "set") for name in ("corpus.jsonl", "bm25.trec")]
    (corpus, _run) = thinning.thinned(files, tmp_path / "made")
    assert pd.read_parquet(corpus.path)["text"].tolist() == ["text 1", "text 3"]


def test_a_small_corpus_is_read_whole(tmp_path):
    (tmp_path / "corpus.parquet").write_bytes(parquet(CORPUS))
    (tmp_path / "qrels.tsv").write_bytes(LABELS["test.tsv"])
    files = [Fetched(tmp_path / name, name, "set") for name in ("corpus.parquet", "qrels.tsv")]
    assert thinning.thinned(files, tmp_path) == files


@pytest.mark.parametrize(
    ("most", "shards", "labels", "read"),
    [
        (6, [6], True, [6]),
        (5, [6], True, [3]),
        # The shards of one table count together.
        (5, [3, 3], True, [2, 1]),
        (6, [3, 3], True, [3, 3]),
        # A shard of which nothing is wanted is left out.
        (5, [5, 1], True, [3]),
        # Nothing says what is wanted.
        (5, [6], False, [6]),
    ],
)
def test_a_corpus_is_thinned_above_a_number_of_texts_and_by_what_mentions_them(
    tmp_path, monkeypatch, most, shards, labels, read
):
    monkeypatch.setattr(thinning, "MOST_DOCUMENTS", most)
    start = 0
    names = []
    for place, size in enumerate(shards):
        names.append(f"corpus-{place:05}-of-{len(shards):05}.parquet")
        (tmp_path / names[-1]).write_bytes(parquet(CORPUS[start : start + size]))
        start += size
    if labels:
        names.append("bm25.trec")
        (tmp_path / "bm25.trec").write_bytes(b"q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\nq1 Q0 d4 3 7 x\n")
    (tmp_path / "made").mkdir()
    found = thinning.thinned([Fetched(tmp_path / n, n, "set") for n in names], tmp_path / "made")
    tables = [each for each in found if each.path.suffix == ".parquet"]
    assert [len(pd.read_parquet(each.path)) for each in tables] == read
    assert len([note for each in tables for note in each.notes]) == (sum(read) < 6)


def test_fetching_ends_with_the_process_that_asked_and_leaves_no_files(tmp_path):
    environment = {**os.environ, "HF_HUB_ETAG_TIMEOUT": "600", "TMPDIR": str(tmp_path)}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        environment["HF_ENDPOINT"] = f"http://127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-m", "rankdash", "check", "hf:me/rows"]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as asking:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(60)
                assert connection.recv(65536)
                assert list(tmp_path.glob("rankdash-*"))
                asking.kill()
                # The end of the connection is the end of the process, which is sent no answer.
                assert connection.recv(65536) == b""
    assert not list(tmp_path.glob("rankdash-*"))
