"""A study whose labels came by draws: what they say is an estimate, and its means are none."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus, status_of_draws
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE


def with_draws(study: Study, draws: pd.DataFrame) -> Study:
    """The study with the estimates of its labels, for which the grades of its judge are the guess;
    as it is where every document has a label that a metric looks at.

    draws: query_id, doc_id, cannot_tell, draw and probability of the labels; NaN for those that
    were there before. What cannot be told counts as not relevant.
    """
    ids = ["query_id", "doc_id"]
    once = draws.drop_duplicates(ids)
    untold = once[once["cannot_tell"]].assign(label=0.0)
    drawn = pd.concat([study.dataset.qrels.merge(once, on=ids, how="left"), untold])
    drawn = drawn.drop_duplicates(ids, ignore_index=True)
    found = status_of_draws(
        {study.name(system): study.ranking(system) for system in study.chosen},
        drawn,
        study.specs,
        threshold=study.conventions.threshold,
        level=study.statistics.level,
        judge=study.judge,
    )
    if found is not None and found.complete and _all_labelled(study):
        return study
    return replace(study, labelling=found or LabelStatus("weight", (), 0, (), (), math.nan))


def only_estimates(study: Study) -> bool:
    """Return whether the labels were sampled and some that the metric needs are missing.
    Then means, counts and rank shifts of them are wrong, and the estimates are all there is."""
    found = study.labelling
    return found is not None and not (found.complete and _all_labelled(study))


def sampled_from(study: Study) -> int:
    """Return of how many documents the labels are a sample; 0 if they are not, or of unknown
    documents."""
    found = study.labelling
    return found.pairs if found is not None and only_estimates(study) else 0


def as_estimated(study: Study) -> Study:
    """Return the study by the metric of its estimates, if they are all there is."""
    if study.labelling is None or not study.labelling.estimates or not only_estimates(study):
        return study
    measure = parse_measure(study.labelling.estimates[0].metric)
    return replace(study, metric=replace(measure, k=None).spec, cutoff=measure.k)


def estimate_of(study: Study, challenger: str) -> Estimate | None:
    """Return the estimate of a challenger against the baseline; None if the labels were sampled for
    other systems."""
    names = study.name(study.baseline), study.name(challenger)
    found = () if study.labelling is None else study.labelling.estimates
    return next((each for each in found if (each.baseline, each.challenger) == names), None)


def _all_labelled(study: Study) -> bool:
    judged = f"judged@{study.cutoff or 10}"
    return all(study.evaluate(each, (judged,)).mean(judged) == 1 for each in study.chosen)


# Systems against the first stage, and the loss that leaving it in place may cost.


def first_stage_kind(study: Study, challenger: str) -> str:
    """The kind of verdict on a challenger against the first stage, among all systems chosen: the
    study's own where that is its baseline."""
    based = replace(
        study,
        baseline=FIRST_STAGE,
        challengers=tuple(system for system in study.chosen if system != FIRST_STAGE),
        # Other metrics count for the correction alone.
        others=() if study.statistics.family == "metric" else study.others,
    )
    return str(based.comparison.row(challenger, study.spec)["verdict"])


TOLERANCE = 0.01
"""The acceptable loss, as a share of the mean of reranking everything."""
