"""Data sets by name: the downloaded files, the ignored ones, and the errors.

The hub is a server of this test with the same HTTP API; ir_datasets is the real package, with the
file that it would download already in its folder.
"""

import itertools
import multiprocessing
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from rankdash.app.command import main
from rankdash.core.base import allowed
from rankdash.core.base.errors import DataError, LimitError
from rankdash.core.readers import sources_at, sources_by_name
from rankdash.core.readers.by_name import fetching, thinning
from rankdash.core.readers.by_name.start import Fetched, is_name
from rankdash.core.readers.loading import load
from rankdash.core.readers.parse.limits import ReadLimits
from tests.approved import masked, table
from tests.loopback import HUB_REVISION, hub, silent_server
from tests.readers.reading import zipped
from tests.readers.samples import lines, parquet
from tests.sets import ROOT

NOWHERE = "http://127.0.0.1:9"
POPEN = subprocess.Popen
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([fetching.__name__])


CORPUS = [{"_id": f"d{n}", "title": f"T{n}", "text": f"text {n}"} for n in range(6)]
QUERIES = [{"_id": "q1", "text": "text 1"}, {"_id": "q2", "text": "text 2"}]
TEXTS = {
    "README.md": b"---\n---\n# A card",
    "tiny.py": b"raise SystemExit('no code of a repository runs')",
    "corpus/corpus-00000-of-00001.parquet": parquet(CORPUS),
    "queries/queries-00000-of-00001.parquet": parquet(QUERIES),
}
LABELS = {"test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"}
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

        # A limit for files, as on a disk that is nearly full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    with Path(said).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(fetching.main(arguments))


class Forked:
    """A process of `by_name.fetching` with the slow imports already done."""

    stdin = None

    def __init__(self, command, *, stdout, env, **_streams) -> None:
        self._process = _FORKS.Process(target=fetch, args=(command[3:], stdout.name, env))
        with pytest.MonkeyPatch.context() as patch:
            # A new process runs the __main__ of its parent, which is the app after a test of pages.
            patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
            self._process.start()
        self.poll, self.kill = lambda: self._process.exitcode, self._process.kill

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("fetch", seconds)
        return self.poll()


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch) -> None:
    """Use separate caches, and no server outside this machine."""
    monkeypatch.setattr(subprocess, "Popen", Forked)
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
        ("1", "COHERE_API_KEY", None),
        ("1", "HF_TOKEN", "Bearer hf_operators"),
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
    # Another host gets the file's request without the token.
    assert set(elsewhere) == {None}


REFUSED = {
    "me/gone": (404, "RepoNotFound"),
    "me/gated": (403, "GatedRepo"),
    "me/older": (404, "RevisionNotFound"),
    "me/odd": (400, ""),
}


class Huge(bytes):
    def __len__(self) -> int:
        return 6_000_000_000


def test_what_cannot_be_opened_is_explained(monkeypatch, approved):
    held = {
        "me/it": ROWS,
        "me/code": {"load.py": b"", "a.png": b""},
        "me/huge": {"data/rows.parquet": Huge()},
    }
    names = ["hf:me/it/nowhere", "hf:me/code/nowhere", "hf:me/code", "hf:me/huge"]
    names += [f"hf:{name}@old" for name in REFUSED]
    names += ["hf:", "hf:only", "hf:a/../b", "hf:a b/c", "ftp:x"]
    with hub(held, REFUSED) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        said = {name: str(refused(name)) for name in names}
        monkeypatch.setenv("HF_TOKEN", "hf_operators")
        monkeypatch.setenv(allowed.SHARED, allowed.YES)
        said["hf:me/gated, for visitors"] = str(refused("hf:me/gated"))
    assert not asked, "nothing is fetched of what is refused"
    for nobody in (NOWHERE, "http://no-such-host.invalid"):
        monkeypatch.setenv("HF_ENDPOINT", nobody)
        said[f"hf:me/it, from {nobody}"] = str(refused("hf:me/it"))
    text = masked(table(said), hub=re.escape(address), reason=r"(?<=reached )\(.*?\)(?=, so)")
    approved("readers/by_name.en", text)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX systems")
def test_a_download_that_fills_the_disk_says_so(monkeypatch):
    monkeypatch.setenv("LARGEST_FILE", "20000")
    with hub({"me/it": {"rows.csv": b"query,document,label\n" * 5000}}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        problem = refused("hf:me/it")
    assert problem.message.startswith("The download of hf:me/it stopped: [Errno ")
    assert "Free space on the disk, or set HF_HOME" in problem.remedy


def test_one_split_is_fetched_or_the_one_that_the_name_says(monkeypatch):
    with hub({"me/rows": ROWS}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        usual = load(sources_at(["hf:me/rows"]))
        assert {file.split("/")[3][:5] for file in asked} == {"test-"}
        named = load(sources_at(["hf:me/rows/data/train-00000-of-00001.parquet@main"]))

    assert sorted(usual.dataset.queries["text"]) == ["test 0", "test 1"]
    (split,) = [found for found in usual.report.warnings if found.code == "one_split"]
    assert "rankdash uses test and ignores train" in split.text
    assert sorted(named.dataset.queries["text"]) == ["train 0", "train 1"]


def test_a_hub_that_never_answers_what_takes_too_long_nobody_waits_for_is_ended(monkeypatch):
    def gone() -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    with silent_server() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert address in str(refused("hf:me/it"))
        late = refused("hf:me/it", seconds=0.5).message
        assert late == "The download of hf:me/it timed out (1 min)."
        with pytest.raises(KeyboardInterrupt):
            sources_by_name(["hf:me/it"], waiting=gone)


def test_a_file_that_is_called_like_a_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hf:a").write_text("query,document,label\na,b,1\n")
    assert not is_name("hf:a") and is_name("hf:a/b") and not is_name("C:/data")
    assert len(sources_at(["hf:a"])) == 1


def test_a_data_set_of_ir_datasets_is_read_by_a_process_that_imports_none_of_it(
    tmp_path, monkeypatch
):
    pytest.importorskip("ir_datasets", reason="the extra ir_datasets is not installed")
    monkeypatch.setattr(subprocess, "Popen", POPEN)
    # The file that ir_datasets would download.
    folder = tmp_path / "irds" / "beir" / "scifact"
    folder.mkdir(parents=True)
    texts = {"corpus": CORPUS, "queries": QUERIES}
    members = {
        f"scifact/{name}.jsonl": lines([{**row, "metadata": {}} for row in rows])
        for name, rows in texts.items()
    }
    (folder / "source.zip").write_bytes(
        zipped({**members, "scifact/qrels/test.tsv": LABELS["test.tsv"]})
    )
    program = (
        "import sys, rankdash as rd; data = rd.read('ir_datasets:beir/scifact/test');"
        "print(data.name, sorted(data.qrels['doc_id']), data.documents.loc[1].tolist(),"
        " [n for n in ('torch', 'ir_datasets', 'huggingface_hub') if n in sys.modules])"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "beir scifact test ['d1', 'd2'] ['d1', 'T1', 'text 1'] []\n"


def test_what_ir_datasets_cannot_open_is_explained(monkeypatch, approved):
    pytest.importorskip("ir_datasets", reason="the extra ir_datasets is not installed")
    # Every server is requested through a proxy that does not exist, also if there is a network.
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, NOWHERE)
    monkeypatch.setenv("NO_PROXY", "")
    names = ("beir/scifat/test", "beir/scifact", "beir/nfcorpus/test", "trec-fair-2021/eval",
             "disks45/nocr/trec-robust-2004")  # fmt: skip
    said = {name: str(refused(f"ir_datasets:{name}")) for name in names}
    approved("readers/ir_datasets.en", masked(table(said), folder=re.escape(str(Path.home()))))


@pytest.fixture
def registered(tmp_path) -> Iterator[str]:
    """The name of an ir_datasets data set made of local files, with a ranking; the size of the
    corpus is unknown."""
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


def test_labels_ranking_and_documents_of_ir_datasets(tmp_path, monkeypatch, registered):
    for most, read in ((5, ["d1", "d2", "d4"]), (6, [f"d{n}" for n in range(6)])):
        monkeypatch.setattr(fetching, "MOST_DOCUMENTS", most)
        (tmp_path / f"made {most}").mkdir()
        fetched = fetching.fetch_from_ir_datasets(registered, tmp_path / f"made {most}")
        found = {file.path.stem: pd.read_parquet(file.path) for file in fetched}
        assert found["qrels"].to_numpy().tolist() == [["q1", "d1", 2.0], ["q2", "d2", -1.0]]
        assert found["first stage"].to_numpy().tolist() == [["q1", "d4", 9.5], ["q1", "d1", 8.0]]
        assert list(found["queries"]["query"]) == ["one", "two"]
        notes = {note.code for file in fetched for note in file.notes}
        assert (sorted(found["documents"]["doc_id"]), "partly_read" in notes) == (read, most == 5)
    # Rows above the limit are refused during the download.
    with monkeypatch.context() as limited, pytest.raises(LimitError, match="more than 1 rows of q"):
        limited.setattr(fetching, "ReadLimits", lambda: ReadLimits(rows=1))
        fetching.fetch_from_ir_datasets(registered, tmp_path / "made 6")


def test_a_file_that_must_be_asked_for_is_named(tmp_path, registered):
    (tmp_path / "docs.tsv").unlink()
    (tmp_path / "made").mkdir()
    with pytest.raises(DataError, match=r"requested from its owner: .*docs\.tsv"):
        fetching.fetch_from_ir_datasets(registered, tmp_path / "made")


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


def test_of_a_large_corpus_what_is_labelled_or_ranked_is_read(tmp_path, monkeypatch, approved):
    monkeypatch.setattr(thinning, "MOST_DOCUMENTS", 5)
    ranked = b"q1 Q0 d1 1 9 x\nq1 Q0 d2 2 8 x\nq1 Q0 d4 3 7 x\n"

    def shards(*sizes: int, **others: bytes) -> dict[str, bytes]:
        starts = itertools.accumulate(sizes, initial=0)
        texts = {
            f"corpus-{place:05}-of-{len(sizes):05}.parquet": parquet(CORPUS[start : start + size])
            for place, (start, size) in enumerate(zip(starts, sizes, strict=False))
        }
        return {**texts, **others}

    cases = {
        "as many texts as are read": shards(5, ranking=ranked),
        "one more": shards(6, ranking=ranked),
        "the shards of one table count together": shards(3, 2, ranking=ranked),
        "and one more in them": shards(3, 3, ranking=ranked),
        "a shard without a wanted text is left out": shards(5, 1, ranking=ranked),
        "nothing says what is wanted": shards(6),
        "ids that are numbers, of labels and of a ranking": {
            "corpus.jsonl": lines([{"_id": n, "text": f"text {n}"} for n in range(6)]),
            "queries.jsonl": lines(QUERIES),
            "qrels.tsv": b"query-id\tcorpus-id\tscore\nq1\t1\t1\nq2\t2\t1\n",
            "ranking": b"q1 Q0 1 1 9 x\nq1 Q0 4 2 8 x\n",
        },
    }
    said = {}
    for case, contents in cases.items():
        folder = tmp_path / case
        (folder / "made").mkdir(parents=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        files = [Fetched(folder / name, name, "set") for name in contents]
        texts = []
        for found in thinning.thinned(files, folder / "made"):
            is_table = found.path.suffix == ".parquet"
            read = pd.read_parquet(found.path)["text"].tolist() if is_table else "as it was"
            texts += [f"{found.name}: {read}", *(note.text for note in found.notes)]
        said[case] = "\n".join(texts)
        assert all((folder / name).read_bytes() == content for name, content in contents.items())
    approved("readers/thinned.en", table(said))


def test_fetching_ends_with_the_process_that_asked_and_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", POPEN)
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
