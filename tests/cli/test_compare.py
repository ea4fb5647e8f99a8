"""`compare`: challengers against a baseline, from files to a verdict."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def sides(tmp_path: Path) -> Callable[..., Path]:
    """Writes labels and runs of queries with one relevant document each: `name=[ranks]`."""

    def write(**systems: list[int]) -> Path:
        queries = max(len(ranks) for ranks in systems.values())
        labels = "".join(f"q{i} 0 good 1\n" for i in range(queries))
        (tmp_path / "labels.qrels").write_text(labels)
        for name, ranks in systems.items():
            rows = [
                f"q{i} Q0 {'good' if rank == place else f'bad{rank}'} {rank} {20 - rank} {name}\n"
                for i, place in enumerate(ranks)
                if place
                for rank in range(1, place + 1)
            ]
            (tmp_path / f"{name}.trec").write_text("".join(rows))
        return tmp_path

    return write


@pytest.fixture
def compared(run: Callable) -> Callable:
    def command(folder: Path, *challengers: str, options: tuple[str, ...] = ()):
        return run(
            "compare", "--qrels", folder / "labels.qrels", "--baseline", folder / "base.trec",
            "--challenger", *(folder / f"{name}.trec" for name in challengers),
            *options,
        )  # fmt: skip

    return command


def rows_of(outcome) -> dict[tuple[str, str], dict]:
    return {(row["system"], row["metric"]): row for row in outcome.json["comparisons"]}


def test_the_table_says_change_interval_p_tally_and_verdict(sides, compared):
    outcome = compared(
        sides(base=[2] * 30, up=[1] * 20 + [2] * 6 + [3] * 4), "up",
        options=("--metric", "mrr@10"),
    )  # fmt: skip
    assert outcome.code == 0
    assert outcome.err == ""
    head, base, up = outcome.out.splitlines()[:3]
    assert head.split()[:3] == ["MRR@10", "mean", "Δ"]
    assert base.split()[0] == "base"
    assert "Leaderboard" not in outcome.out
    assert "+0.3111" in up
    assert up.split()[-6:] == ["20", "6", "4", "30", "0", "better"]
    assert "up is better than base: MRR@10 rises by 62.2%" in outcome.out
    assert "seed 20261121" in outcome.out


def test_json_holds_unrounded_numbers_the_settings_and_the_verdict(sides, compared):
    folder = sides(base=[2, 3] * 15, up=[1] * 30, down=[5] * 30)
    outcome = compared(
        folder, "up", "down",
        options=("--metric", "mrr@10", "--metric", "hit@1", "--format", "json", "--seed", "5"),
    )  # fmt: skip
    rows = rows_of(outcome)
    assert len(rows) == 6
    up = rows["up", "mrr@10"]
    assert up["delta"] == pytest.approx(1 - (1 / 2 + 1 / 3) / 2, abs=1e-12)
    assert up["delta_low"] <= up["delta"] <= up["delta_high"]
    assert [up["helped"], up["same"], up["hurt"]] == [30, 0, 0]
    assert up["p_corrected"] == pytest.approx(2 * up["p"])
    assert up["verdict"]["kind"] == "better"
    assert rows["down", "mrr@10"]["verdict"]["kind"] == "worse"
    assert rows["base", "mrr@10"]["p"] is None
    settings = outcome.json["settings"]
    assert settings["seed"] == 5
    assert settings["missing"] == "zero"
    assert outcome.json["baseline"] == "base"


def test_every_option_of_the_statistics_is_obeyed(sides, compared):
    folder = sides(base=[2, 3, 4] * 10, up=[1, 3, 6] * 10, other=[3, 3, 3] * 10)
    options = {
        "--level": "0.9", "--interval": "percentile", "--test": "t", "--correction": "bh",
        "--family": "all", "--resamples": "500", "--seed": "9", "--tie-band": "0.1",
        "--worthwhile": "0.4",
    }  # fmt: skip
    flat = [text for pair in options.items() for text in pair]
    outcome = compared(folder, "up", "other", options=(*flat, "--format", "json"))
    settings = outcome.json["settings"]
    for option, value in options.items():
        assert str(settings[option[2:].replace("-", "_")]) == value
    assert rows_of(outcome)["up", "ndcg@10"]["hurt"] == 0


def test_conventions_are_those_of_evaluate(sides, compared):
    folder = sides(base=[2] * 12, up=[1] * 6)
    zero = rows_of(compared(folder, "up", options=("--format", "json")))["up", "ndcg@10"]
    skip = rows_of(compared(folder, "up", options=("--format", "json", "--missing", "skip")))
    skip = skip["up", "ndcg@10"]
    assert [zero["paired"], zero["missing"]] == [12, 6]
    assert [skip["paired"], skip["left_out"]] == [6, {"missing": 6}]
    told = compared(folder, "up", options=("--missing", "skip"))
    assert "Excluded on both sides for up: 6 missing from a ranking." in told.out
    assert "up lacks 6 queries, which count 0." in compared(folder, "up").out


@pytest.mark.parametrize(
    ("base", "up", "told"),
    [
        ([2] * 5, [1] * 5, "5, where at least 6 are needed"),
        ([2] * 20, [2] * 20, "score the same on every one of the 20 queries"),
        ([1] * 10 + [0] * 10, [0] * 10 + [1] * 10, "no answered query in common"),
        ([2] * 20, [1, 4] * 10, "Not proven"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json", "markdown", "latex"])
def test_what_proves_nothing_is_told_in_words_and_never_as_nan(
    sides, compared, base, up, told, form
):
    outcome = compared(
        sides(base=base, up=up), "up", options=("--metric", "mrr@10", "--format", form)
    )
    assert outcome.code == 0
    assert "nan" not in outcome.out.lower()
    if form != "latex":
        assert told in outcome.out.replace("\\", "")


def test_without_labels_or_with_unknown_settings_one_line_says_so(sides, compared, tmp_path):
    folder = sides(base=[2] * 9, up=[1] * 9)
    wrong = compared(folder, "up", options=("--test", "anova"))
    assert wrong.code == 2
    assert wrong.err.splitlines() == [
        "error: 'anova' is not a choice for test. Choices: sign-flip, t, wilcoxon."
    ]
    assert compared(folder, "up", options=("--level", "95")).code == 2
    assert compared(folder, "up", options=("--metric", "ndgc@10")).code == 2
    (folder / "labels.qrels").write_text("other 0 good 1\n")
    strangers = compared(folder, "up")
    assert strangers.code == 2
    assert strangers.err.count("\n") == 1


def test_an_unproven_change_says_what_could_have_been_seen(sides, compared):
    outcome = compared(sides(base=[2] * 20, up=[1, 4] * 10), "up", options=("--metric", "mrr@10"))
    # Between them stand the blanks of the table.
    head, base, up, _blank, *said = outcome.out.splitlines()
    assert head.split("  ")[0] == "MRR@10"
    assert base.split()[:2] == ["base", "0.5000"]
    assert up.split() == [
        *("up", "0.6250", "+0.1250", "-0.0551", "to", "+0.3051", "+25.0%", "0.2079"),
        *("10", "0", "10", "20", "0", "not", "proven"),
    ]
    assert said == [
        "Not proven that up differs from base: MRR@10 goes from 0.500 to 0.625 over 20 queries, "
        "but with 95% confidence the true change may be anything between -0.055 and +0.305. "
        "Between 24 and 230 more queries like these would prove a true change in the middle half "
        "of the interval, in 80% of all cases. A smaller change needs more.",
        "  Caveat: 38% of the top 10 have no label (base: 50%). They count as not relevant.",
        "  Caveat: base lists at most 2 documents per query and the other ranking 4: "
        "MRR@10 also measures how many documents each lists.",
        "Minimum detectable change with up: 0.2541 (80% power at 95% confidence).",
        "",
        "Intervals: 95%, Student's t over queries, wider if skewed. p: two-sided sign-flip "
        "randomisation test, 10,000 resamples, seed 20261121; not corrected; * significant at 5%. "
        "Same: changes up to 0.005. Minimum practically relevant gain: not set. Ties: by the "
        "ranking's own rule (files: document id, descending).",
    ]


def test_several_challengers_are_a_leaderboard_with_the_caveats_of_each(sides, compared):
    """Ordered by the first metric, also where the second one says otherwise."""
    folder = sides(base=[2] * 30, down=[5] * 30, up=[1] * 30, nearly=[1] * 28 + [2, 3])
    metrics = ("--metric", "mrr@10", "--metric", "judged@1")
    told = compared(folder, "down", "nearly", "up", options=metrics).out
    title, _blank, *lines = told.splitlines()
    assert title == "Leaderboard by MRR@10, best first"
    best_first = ["up", "nearly", "base", "down"]
    assert [line.split()[0] for line in lines[1:5]] == best_first
    second = next(at for at, line in enumerate(lines) if line.startswith("Judged@1 "))
    assert [line.split()[0] for line in lines[second + 1 : second + 5]] == best_first
    # Below the verdict of the first metric, and below no other.
    verdict = next(at for at, line in enumerate(lines) if line.startswith("up is better"))
    assert lines[verdict + 1 : verdict + 4] == [
        "  Caveat: 0% of the top 10 have no label (base: 50%). They count as not relevant.",
        "  Caveat: up lists at most 1 document per query and the other ranking 2: "
        "MRR@10 also measures how many documents each lists.",
        "  Caveat: The lead over nearly (+0.039) is not proven.",
    ]
    assert "Caveat" not in "\n".join(lines[second:])

    found = compared(folder, "down", "nearly", "up", options=(*metrics, "--format", "json")).json
    assert found["leaderboard"] == best_first
    assert {name: [each["code"] for each in own] for name, own in found["caveats"].items()} == {
        "down": ["unlabelled", "short_lists"],
        "nearly": ["unlabelled", "short_lists"],
        "up": ["unlabelled", "short_lists", "lead"],
    }
    for form, pattern in (("markdown", r"\| (\w+) \| \d"), ("latex", r"(\w+) & \d")):
        written = compared(folder, "down", "nearly", "up", options=(*metrics, "--format", form)).out
        assert re.findall(f"(?m)^{pattern}", written) == best_first * 2
    sentences = [
        f"  Caveat: {each['sentence']}" for own in found["caveats"].values() for each in own
    ]
    assert sentences == [line for line in lines if line.startswith("  Caveat")]


def test_the_verdicts_on_real_sets(run: Callable, shared_data: Path):
    kinds = {}
    for name in ("medquad", "cmrc_zh"):
        folder = shared_data / name
        outcome = run(
            "compare", "--qrels", folder / "qrels.tsv", "--baseline", folder / "initial.trec",
            "--challenger", *sorted(folder.glob("rerank_*.trec")), "--format", "json",
        )  # fmt: skip
        kinds |= {
            (name, system): row["verdict"]["kind"]
            for (system, _), row in rows_of(outcome).items()
            if "verdict" in row
        }
    assert kinds == {
        ("medquad", "rerank_minilm"): "better",
        ("cmrc_zh", "rerank_minilm"): "worse",
        ("cmrc_zh", "rerank_bm25_title"): "better",
    }


@pytest.mark.parametrize(
    ("lacked", "said"),
    [(1, "lacks 1 query, which counts 0"), (2, "lacks 2 queries, which count 0")],
)
def test_a_query_that_a_ranking_lacks_counts_0_and_has_not_failed(sides, compared, lacked, said):
    folder = sides(base=[2] * 30, up=[0] * lacked + [1] * (30 - lacked))
    outcome = compared(folder, "up", options=("--metric", "mrr@10"))
    assert f"up {said}." in outcome.out
    assert "failed" not in outcome.out
    found = rows_of(compared(folder, "up", options=("--format", "json")))["up", "ndcg@10"]
    assert (found["paired"], found["missing"], found["left_out"]) == (30, lacked, {})
