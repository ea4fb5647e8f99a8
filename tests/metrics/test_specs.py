import pytest

from rankdash.errors import SpecError
from rankdash.metrics import parse_measure, parse_measures, registry


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("ndcg@10", "ndcg@10"),
        ("nDCG@10", "ndcg@10"),
        (" NDCG @ 10 ", "ndcg@10"),
        ("ndcg-exp@5", "ndcg_exp@5"),
        ("recip_rank", "mrr"),
        ("RR@10", "mrr@10"),
        ("P@5", "precision@5"),
        ("p@1", "precision@1"),
        ("R@100", "recall@100"),
        ("success@3", "hit@3"),
        ("AP", "map"),
        ("Rprec", "r_precision"),
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", "ndcg@10"),
        ("P_5", "precision@5"),
        ("map_cut_100", "map@100"),
        ("f1@10", "f1@10"),
        ("judged@10", "judged@10"),
        ("rbp", "rbp"),
        ("rbp(0.8)@10", "rbp@10"),
        ("rbp(0.95)@10", "rbp(0.95)@10"),
        ("RBP(p=0.5)", "rbp(0.5)"),
        ("ndcg@010", "ndcg@10"),
    ],
)
def test_spec_in_its_one_spelling(spec, canonical):
    assert parse_measure(spec).spec == canonical
    assert parse_measure(canonical) == parse_measure(spec)


@pytest.mark.parametrize("name", list(registry))
def test_every_metric_parses_by_name_and_describes_itself(name):
    definition = parse_measure(name).metric
    assert definition is registry[name]
    assert definition.title and definition.meaning and definition.formula and definition.reference
    assert definition.meaning.endswith(".") and "\n" not in definition.meaning
    assert definition.spec.startswith(name)


@pytest.mark.parametrize(
    ("spec", "nearest"),
    [
        ("ndgc@10", "ndcg@10"),
        ("recal@5", "recall@5"),
        ("mpa", "map"),
        ("ndcg@0", "ndcg@10"),
        ("ndcg@-3", "ndcg@10"),
        ("ndcg@ten", "ndcg@10"),
        ("ndcg@1.5", "ndcg@10"),
        ("ndcg@", "ndcg@10"),
        ("ndcg@٣", "ndcg@10"),
        ("ndcg@" + "9" * 5000, "ndcg@10"),
        ("r_precision@10", "r_precision"),
        ("rbp(1)@10", "rbp(0.8)"),
        ("rbp(1.2.3)", "rbp(0.8)"),
        ("ndcg(10)", "ndcg@10"),
    ],
)
def test_a_wrong_spec_names_the_nearest(spec, nearest):
    with pytest.raises(SpecError) as caught:
        parse_measure(spec)
    assert f"Did you mean {nearest!r}?" in str(caught.value)
    assert spec in str(caught.value)


@pytest.mark.parametrize("spec", ["", "@10", "Ranking!", "ndcg(10", "{0}@10"])
def test_whatever_is_given_the_nearest_is_a_spec_that_exists(spec):
    with pytest.raises(SpecError) as caught:
        parse_measure(spec)
    assert parse_measure(str(caught.value.params["nearest"])).metric in registry.values()
    assert str(caught.value)


def test_a_list_of_specs_in_one_string():
    measures = parse_measures("ndcg@10, MRR,, p@1,ndcg_cut_10")
    assert [measure.spec for measure in measures] == ["ndcg@10", "mrr", "precision@1"]
    assert parse_measures(["map", "ap"]) == parse_measures("map")


def test_titles_for_headings():
    assert parse_measure("ndcg@10").title == "NDCG@10"
    assert parse_measure("rbp(0.95)@10").title == "RBP(0.95)@10"
