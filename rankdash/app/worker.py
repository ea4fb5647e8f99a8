"""`python -m rankdash.app.worker`: the worker with the services of the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankdash.core.base.shipped import starting

if TYPE_CHECKING:
    from rankdash.core.runs.worker import Services


def services() -> Services:
    """Return the services of the features for the worker."""
    from rankdash.core.runs.worker import Services
    from rankdash.features.judge.asking import Judging
    from rankdash.features.queries.occlusion import Explainer

    return Services(
        quick=[lambda around: Explainer(*around).serve],
        idle=[lambda around: Judging(*around).serve],
    )


if __name__ == "__main__":
    with starting():
        from rankdash.core.runs.worker import main

        registered = services()
    raise SystemExit(main(registered))
