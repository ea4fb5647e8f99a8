import pytest

from rankdash.errors import SettingError, StoreError, UnavailableError
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.queue import Owner, Queue


@pytest.fixture
def dataset(workspace, make_dataset):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    return dataset


def test_a_job_is_queued_with_all_that_was_asked_for_and_forgotten_once_it_is_deleted(
    workspace, dataset
):
    settings, own, grid = {"k1": "1.5"}, jobs.new_id(), jobs.new_id()
    how = {"depth": 1, "sample": 1, "seed": 9, "without_text": "empty", "grid": grid}
    wish = JobRequest(dataset.id, "bm25", settings, name="mine", **how)
    assert jobs.submit(workspace, wish, own) == own
    (row,) = jobs.list(workspace, dataset.id)
    assert (row.id, row.state, row.name, row.reranker) == (own, "queued", "mine", "bm25")
    assert (row.settings["k1"], row.settings["b"]) == (1.5, 0.75)
    assert {name: getattr(row, name) for name in how} == how
    assert jobs.list(workspace, "another") == ()
    plain = jobs.submit(workspace, JobRequest(dataset.id, "bm25"))
    jobs.cancel(workspace, own)
    jobs.delete(workspace, own)
    assert [(row.id, row.name) for row in jobs.list(workspace)] == [(plain, "bm25")]


def test_a_job_a_judge_and_an_explanation_are_work_that_waits(workspace, dataset):
    run = run_from_ranking("given", dataset.id, dataset.candidates, "given")
    workspace.save_run(run)
    about = {"model": "m", "template": "", "settings": {}, "top": 1, "systems": [], "depth": 1}
    judges, explanations = StoredJudges(workspace), Explanations(workspace)
    for table, ask in (
        (Queue(workspace), lambda: jobs.submit(workspace, JobRequest(dataset.id, "bm25"))),
        (judges, lambda: judges.submit(
            dataset_id=dataset.id, name="j", pairs=[("q0", "d0")], **about)),
        (explanations, lambda: explanations.ask(Asked(run.id, "q0", "d0", "term"))),
    ):  # fmt: skip
        assert not jobs.any_waits(workspace)
        ask()
        assert jobs.any_waits(workspace)
        assert table.claim(Owner()) is not None


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (lambda id_: JobRequest(id_, "bm26"), SettingError, "Did you mean 'bm25'"),
        (lambda id_: JobRequest(id_, "bm25", {"k1": "much"}), SettingError, "must be a number"),
        (lambda id_: JobRequest(id_, "bm25", {"k2": 1}), SettingError, "no setting 'k2'"),
        (lambda id_: JobRequest(id_, "bm25", depth=0), SettingError, "depth must be at least 1"),
        (lambda id_: JobRequest(id_, "bm25", sample=0), SettingError, "sample must be at least 1"),
        (lambda id_: JobRequest(id_, "precomputed"), UnavailableError, "read from a file"),
        (lambda id_: JobRequest("nope", "bm25"), StoreError, "no data set 'nope'"),
    ],
)
def test_a_wrong_wish_is_refused_before_it_is_queued(workspace, dataset, request_, error, message):
    with pytest.raises(error, match=message):
        jobs.submit(workspace, request_(dataset.id))
    assert jobs.list(workspace) == ()


def wishes_for_what_is_not_here(folder):
    text, pairs = folder / "text", folder / "pairs"
    for place, architecture in ((text, "BertModel"), (pairs, "BertForSequenceClassification")):
        place.mkdir()
        (place / "config.json").write_text(f'{{"architectures": ["{architecture}"]}}')
        for name in ("model.safetensors", "tokenizer.json"):
            (place / name).touch()
    gone = str(folder / "gone")
    return [
        ("cross-encoder", {"model": gone}, "no folder"),
        ("cross-encoder", {"model": str(folder)}, r"no complete model: it lacks config\.json"),
        ("cross-encoder", {"model": str(text)}, "architecture is BertModel"),
        ("cross-encoder", {"model": "two words"}, "neither a folder nor a name"),
        ("bi-encoder", {"model": gone}, "no folder"),
        ("bi-encoder", {"model": str(pairs)}, "scores pairs of texts"),
        ("cascade", {"second": "cross-encoder", "second_settings": f"model={gone}"}, "no folder"),
    ]


def test_a_model_that_is_plainly_not_here_is_refused_before_it_is_queued(
    workspace, dataset, tmp_path
):
    folder = tmp_path / "models"
    folder.mkdir()
    for kind, settings, message in wishes_for_what_is_not_here(folder):
        with pytest.raises(UnavailableError, match=message):
            jobs.submit(workspace, JobRequest(dataset.id, kind, settings))
    assert jobs.list(workspace) == ()
    for model in (str(folder / "pairs"), "some-one/a-model_v1.5", "ms-marco-MiniLM-L6-v2"):
        jobs.submit(workspace, JobRequest(dataset.id, "cross-encoder", {"model": model}))
    assert len(jobs.list(workspace)) == 3


def test_a_runtime_that_is_not_installed_is_refused_before_it_is_queued(
    workspace, dataset, monkeypatch
):
    monkeypatch.setattr("rankdash.rerankers.neural.runtimes.installed", lambda name: name == "onnx")
    with pytest.raises(UnavailableError, match="openvino is not installed"):
        jobs.submit(workspace, JobRequest(dataset.id, "bi-encoder", {"runtime": "openvino-bf16"}))
    assert jobs.submit(workspace, JobRequest(dataset.id, "bi-encoder", {"runtime": "onnx"}))


@pytest.mark.parametrize("kind", ["bi-encoder", "cross-encoder", "late-interaction", "cascade"])
def test_a_model_without_its_packages_is_refused_before_it_is_queued(
    workspace, dataset, no_models, kind
):
    with pytest.raises(UnavailableError, match=r'pip install "rankdash\[models\]"'):
        jobs.submit(workspace, JobRequest(dataset.id, kind))
    assert jobs.submit(workspace, JobRequest(dataset.id, "bm25"))
