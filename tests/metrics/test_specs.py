import pytest

from rankdash.errors import SpecError
from rankdash.metrics import parse_measure, parse_measures, parse_metrics, registry


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
        ("P.5", "precision@5"),
        ("recall.100", "recall@100"),
        ("success.1", "hit@1"),
        ("nDCG(dcg='log2')@10", "ndcg@10"),
        ("nDCG(dcg='exp-log2')@10", "ndcg_exp@10"),
        ('nDCG( dcg = "exp-log2" )', "ndcg_exp"),
        ("nDCG(cutoff=5)", "ndcg@5"),
        ("Judged@10", "judged@10"),
        ("SetP", "precision"),
        ("RBP(p=0.95)@10", "rbp(0.95)@10"),
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
        ("ndgc_cut.20", "ndcg@20"),
        ("nDCG(dcg='exp')@5", "ndcg@5"),
        ("nDCG(rel=2)@5", "ndcg@5"),
        ("P(gain=2)@5", "precision@5"),
        ("nDCG(cutoff=5)@10", "ndcg@10"),
        ("rbp(q=0.5)@10", "rbp@10"),
        ("Rprec(cutoff=5)", "r_precision"),
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


@pytest.mark.parametrize(
    ("given", "measures"),
    [
        ("ndcg@5,10", {"ndcg@5": "ndcg@5", "ndcg@10": "ndcg@10"}),
        ("ndcg_cut.10,20,map", {"ndcg_cut.10": "ndcg@10", "ndcg_cut.20": "ndcg@20", "map": "map"}),
        (["P(rel=2)@5,10"], {"P(rel=2)@5": "precision@5", "P(rel=2)@10": "precision@10"}),
        ("ndcg@5,p@3,10", {"ndcg@5": "ndcg@5", "p@3": "precision@3", "p@10": "precision@10"}),
        (["P@5,", "10"], {"P@5": "precision@5", "P@10": "precision@10"}),
        (
            "RBP(p=0.5,rel=2)@10, AP(rel=2)",
            {"RBP(p=0.5,rel=2)@10": "rbp(0.5)@10", "AP(rel=2)": "map"},
        ),
    ],
)
def test_a_list_keeps_what_was_typed_and_repeats_a_metric_at_other_cutoffs(given, measures):
    found = parse_metrics(given)
    assert {typed: measure.spec for typed, measure in found.measures.items()} == measures


@pytest.mark.parametrize("given", ["10", "map,10", "mrr,5@"])
def test_a_bare_number_needs_a_cutoff_before_it(given):
    with pytest.raises(SpecError, match="There is no metric"):
        parse_metrics(given)


@pytest.mark.parametrize("spec", ["rbp(0)@10", "rbp(1)@10"])
def test_a_parameter_at_either_end_of_its_range_is_refused(spec):
    with pytest.raises(SpecError, match="must lie between 0 and 1"):
        parse_measure(spec)


def test_rel_is_the_threshold_of_all_metrics():
    assert parse_metrics("ndcg@10,map").threshold is None
    found = parse_metrics("P(rel=2)@5, nDCG@10, map, RR(rel=2.0)@10")
    assert found.threshold == 2.0
    # NDCG takes labels as they are.
    assert found.implied == ("map",)
    assert found.specs == ("precision@5", "ndcg@10", "map", "mrr@10")
    with pytest.raises(SpecError, match="given as 2 and as 3"):
        parse_metrics("P(rel=2)@5, AP(rel=3)")


@pytest.mark.parametrize("rel", ["0", "-1", "high", "", "1e3", "1.2.3"])
def test_a_threshold_is_a_number_above_0(rel):
    with pytest.raises(SpecError, match="must be a number above 0"):
        parse_metrics(f"P(rel={rel})@5")


def test_where_no_threshold_can_be_set_rel_is_refused_unless_it_says_the_same():
    with pytest.raises(SpecError, match="cannot be part of 'AP\\(rel=2\\)'"):
        parse_measure("AP(rel=2)")
    assert parse_measure("AP(rel=2)", 2.0).spec == "map"
    with pytest.raises(SpecError, match="given as 1 and as 2"):
        parse_measure("AP(rel=2)", 1.0)


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(SpecError, match="There is no metric to evaluate"):
        parse_metrics(" , ")


def test_titles_for_headings():
    assert parse_measure("ndcg@10").title == "NDCG@10"
    assert parse_measure("rbp(0.95)@10").title == "RBP(0.95)@10"


@pytest.mark.parametrize(
    ("name", "aliases"),
    [
        ("ndcg", "ndcg_cut ndcg_linear"),
        ("ndcg_exp", "ndcg_burges ndcg_exponential"),
        ("ndcg_jk", "ndcg_2002"),
        ("dcg", "dcg_linear"),
        ("dcg_exp", "dcg_burges dcg_exponential"),
        ("mrr", "rr recip_rank reciprocal_rank"),
        ("map", "ap map_cut average_precision"),
        ("map_graded", "ap_graded graded_map"),
        ("map_graded_norm", "ap_graded_norm"),
        ("precision", "p prec set_p setp"),
        ("recall", "r set_recall setr"),
        ("hit", "success hit_rate hits"),
        ("r_precision", "rprec rprecision"),
        ("f1", "f f_1 set_f setf"),
        ("judged", "judged_share"),
    ],
)
def test_the_other_names_of_a_metric(name, aliases):
    assert [parse_measure(alias).spec for alias in aliases.split()] == [name] * len(aliases.split())


def test_how_each_metric_is_written_in_a_list_of_them():
    written = "ndcg@k ndcg_exp@k ndcg_jk@k dcg@k dcg_exp@k mrr@k map@k map_graded@k"
    written += " map_graded_norm@k precision@k recall@k hit@k r_precision f1@k judged@k bpref@k"
    assert [each.spec for each in registry.values()] == [*written.split(), "rbp(p)@k", "err@k"]


def test_what_is_possible_in_brackets_is_said():
    def said(spec):
        with pytest.raises(SpecError) as caught:
            parse_measure(spec)
        return str(caught.value)

    assert "Possible in brackets: dcg='log2', dcg='exp-log2'." in said("ndcg(x=1)@7")
    assert "Possible in brackets: rel=2, p=0.8." in said("rbp(q=0.5)@7")
    assert "Did you mean 'err@7'?" in said("err(x=1)@7")
    assert "Possible" not in said("err(x=1)@7")
    assert "takes no 'x=1' in brackets" in said("err(x=1)")
    assert "takes no '10' in brackets" in said("err(10)")


@pytest.mark.parametrize(
    ("cutoff", "known"), [("1", True), ("000000000000", False), ("9" * 9, True), ("9" * 10, False)]
)
def test_a_cutoff_has_one_to_nine_digits(cutoff, known):
    if known:
        assert parse_measure(f"mrr@{cutoff}").k == int(cutoff)
    else:
        with pytest.raises(SpecError, match="whole number from 1"):
            parse_measure(f"mrr@{cutoff}")


@pytest.mark.parametrize("digits", [20, 21])
def test_a_number_in_brackets_has_at_most_20_digits(digits):
    parses = digits == 20
    for text in ("0." + "1" * digits, "0" * digits + ".5"):
        if parses:
            assert parse_measure(f"rbp({text})").parameter == float(text)
        else:
            with pytest.raises(SpecError, match="must lie between 0 and 1"):
                parse_measure(f"rbp({text})")


@pytest.mark.parametrize(
    "spec", ["map(dcg='log2')@5", "dcg(dcg='exp-log2')@5", "ndcg_jk(dcg='log2')"]
)
def test_a_form_of_ndcg_is_none_of_another_metric(spec):
    with pytest.raises(SpecError, match="takes no 'dcg="):
        parse_measure(spec)


def test_a_metric_without_a_parameter_has_0_and_one_with_has_its_default():
    assert [parse_measure(each).parameter for each in ("map", "rbp", "rbp(0.5)")] == [0, 0.8, 0.5]
    assert [parse_measure(each).k for each in ("map", "mrr@1", "rbp(0.5)@7")] == [None, 1, 7]
