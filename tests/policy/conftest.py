"""Studies of the samples with the runs that are shipped with them, and of the real sets."""

import functools
from collections.abc import Callable

import pytest

from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from tests.sets import SETS, loaded
from tests.study.builders import study_on


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Study]:
    """Return the function from a language to its sample with the shipped runs."""

    @functools.cache
    def study(language: str) -> Study:
        workspace = Workspace(tmp_path_factory.mktemp(language))
        import_workspace.bring_in(workspace, runs_of(SAMPLES[language]), "the sample")
        [row] = workspace.datasets()
        runs = [workspace.run(each.id) for each in workspace.runs(row.id)]
        return study_on(workspace.dataset(row.id), *runs, others=())

    return study


def real(name: str, run: Callable[..., Run] | None = None) -> Study:
    """Return a study of a real set and its MiniLM ranking; skip the test if the set is missing.
    run: from the data set, its run instead."""
    if name not in SETS:
        pytest.skip("the labelled sets are not beside the project")
    found = loaded(name)
    made = run_from_ranking(
        "MiniLM", found.dataset.id, found.rankings["rerank_minilm"], "minilm.trec"
    )
    return study_on(found.dataset, made if run is None else run(found.dataset), others=())
