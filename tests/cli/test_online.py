"""`online`: effects of an experiment from a table of outcomes."""

import json

import numpy as np

from tests.online.outcomes import table


def test_the_command(run, tmp_path):
    path = tmp_path / "outcomes.csv"
    table(np.random.default_rng(16), 3000, effect=0.08).to_csv(path, index=False)
    done = run("online", path)
    assert done.code == 0
    assert done.out.startswith("new is better than control: clicks per search rises by ")
    assert "anytime-valid" in done.out
    planned = run("online", path, "--planned", "--json", "--level", "0.9")
    content = json.loads(planned.out)
    assert content["level"] == 0.9 and content["effects"]["new"]["verdict"] == "better"
    assert content["effects"]["new"]["low"] > content["effects"]["new"]["always_low"]
    refused = run("online", path, "--shares", "control=0.6", "new=0.4", "--out", tmp_path / "o.txt")
    assert refused.code == 1 and "No effect is shown" in (tmp_path / "o.txt").read_text()
    assert run("online", path, "--shares", "control").code == 2
    assert run("online", path, "--start", "yesterday").code == 2
    assert run("online", tmp_path / "absent.csv").code == 2
