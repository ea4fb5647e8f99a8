from functools import partial

from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRequest
from rankdash.core.runs.on_ray.cluster import VARIABLE, Actors
from tests.results import results


def test_a_job_is_queued_with_all_that_was_asked_for_and_forgotten_once_it_is_deleted(
    workspace, dataset, submit
):
    own = jobs.new_id()
    how = {"depth": 1, "sample": 1, "seed": 9, "without_text": "empty", "grid": jobs.new_id()}
    assert submit("bm25", {"k1": "1.5"}, own, name="mine", **how) == own
    (row,) = jobs.list(workspace, dataset.id)
    assert (row.id, row.state, row.name, row.reranker) == (own, "queued", "mine", "bm25")
    assert (row.settings["k1"], row.settings["b"]) == (1.5, 0.75)
    assert {name: getattr(row, name) for name in how} == how
    assert jobs.list(workspace, "another") == ()
    plain = submit()
    jobs.cancel(workspace, own)
    jobs.delete(workspace, own)
    assert [(row.id, row.name) for row in jobs.list(workspace)] == [(plain, "bm25")]


def test_what_is_refused_before_it_is_queued_is_as_approved(
    workspace, dataset, submit, tmp_path, monkeypatch, approved
):
    """Invalid settings; a model that does not exist; a runtime that is not installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    for name, architecture in (("text", "BertModel"), ("pairs", "BertForSequenceClassification")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(f'{{"architectures": ["{architecture}"]}}')
        for file in ("model.safetensors", "tokenizer.json"):
            (tmp_path / name / file).touch()
    wishes = [
        *(("bm26", {}), ("bm25", {"k1": "much"}), ("bm25", {"k2": 1}), ("precomputed", {})),
        *(("cross-encoder", {"model": model}) for model in ("./gone", ".", "./text", "two words")),
        *(("bi-encoder", {"model": model}) for model in ("./gone", "./pairs")),
        ("cascade", {"second": "cross-encoder", "second_settings": "model=./gone"}),
        ("bi-encoder", {"runtime": "openvino-bf16"}),
        # Valid settings, or errors that are not checked before the run.
        *(("cross-encoder", {"model": model})
          for model in ("./pairs", "some-one/a-model_v1.5", "ms-marco-MiniLM-L6-v2")),
        ("bi-encoder", {"runtime": "onnx"}),
    ]  # fmt: skip
    cases = {f"{kind} {settings}": partial(submit, kind, settings) for kind, settings in wishes}
    cases |= {f"{name} 0": partial(submit, **{name: 0}) for name in ("depth", "sample")}
    cases["data set"] = partial(jobs.submit, workspace, JobRequest("nope", "bm25"))
    cases["a cluster"] = partial(submit, actors=Actors(2, 1))
    monkeypatch.setattr(
        "rankdash.core.rerankers.neural.runtimes.installed", lambda name: name == "onnx"
    )
    approved("runs/refused", results(cases, lambda _id: "queued"))
    assert len(jobs.list(workspace)) == 4


def test_a_model_without_its_packages_is_refused_before_it_is_queued(submit, no_models, approved):
    kinds = ("bi-encoder", "cross-encoder", "late-interaction", "cascade", "bm25")
    cases = {kind: partial(submit, kind) for kind in kinds}
    approved("runs/without_packages", results(cases, lambda _id: "queued"))
