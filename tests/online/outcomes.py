"""Made-up outcomes of an experiment."""

import numpy as np
import pandas as pd


def table(rng, units, *, effect=0.0, most=8):
    """A table of clicks: units of several searches, whose rates differ between units."""
    sizes = rng.integers(1, most + 1, units)
    unit = np.repeat(np.arange(units), sizes)
    arm = rng.random(units) < 0.5
    rate = np.clip(rng.beta(2, 6, units) + effect * arm, 0, 1)
    return pd.DataFrame(
        {
            "session": [f"s{each}" for each in unit],
            "arm": np.where(arm, "new", "control")[unit],
            "query_id": [f"q{each}" for each in rng.integers(0, 30, len(unit))],
            "clicks": (rng.random(len(unit)) < rate[unit]).astype(int),
            "time": 1.76e9 + np.arange(len(unit)) * 60.0,
        }
    )
