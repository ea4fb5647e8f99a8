"""Specs of metrics: one spelling of each; for an invalid spec the nearest and the possible ones."""

import pytest

from rankdash.core.base.errors import SpecError
from rankdash.core.metrics import parse_measure, parse_metrics, registry
from tests.results import results

SPELLED = """
ndcg@10|nDCG@10| NDCG @ 10 |ndcg-exp@5|recip_rank|RR@10|P@5|p@1|R@100|success@3|AP|Rprec|f1@10
ndcg_cut_10|ndcg_cut.10|P_5|map_cut_100|judged@10|rbp|rbp(0.8)@10|rbp(0.95)@10|RBP(p=0.5)|ndcg@010
P.5|recall.100|success.1|nDCG(dcg='log2')@10|nDCG(dcg='exp-log2')@10|nDCG( dcg = "exp-log2" )
nDCG(cutoff=5)|Judged@10|SetP|RBP(p=0.95)@10|map|mrr@1|rbp(0.5)@7|mrr@999999999
"""
OTHER_NAMES = """
ndcg_cut ndcg_linear ndcg_burges ndcg_exponential ndcg_2002 dcg_linear dcg_burges dcg_exponential
rr recip_rank reciprocal_rank ap map_cut average_precision ap_graded graded_map ap_graded_norm
p prec set_p setp r set_recall setr success hit_rate hits rprec rprecision f f_1 set_f setf
judged_share
"""
WRONG = """
ndgc@10|recal@5|mpa|ndcg@0|ndcg@-3|ndcg@ten|ndcg@1.5|ndcg@|ndcg@٣|r_precision@10|rbp(1)@10
rbp(0)@10|rbp(1.2.3)|ndcg(10)|ndgc_cut.20|nDCG(dcg='exp')@5|nDCG(rel=2)@5|P(gain=2)@5
nDCG(cutoff=5)@10|rbp(q=0.5)@10|Rprec(cutoff=5)|@10|Ranking!|ndcg(10|{0}@10|ndcg(x=1)@7
rbp(q=0.5)@7|err(x=1)@7|err(x=1)|err(10)|mrr@000000000000|mrr@9999999999|map(dcg='log2')@5
dcg(dcg='exp-log2')@5|ndcg_jk(dcg='log2')|AP(rel=2)
"""
LISTS: tuple[object, ...] = (
    "ndcg@5,10", "ndcg_cut.10,20,map", ["P(rel=2)@5,10"], "ndcg@5,p@3,10", ["P@5,", "10"],
    "RBP(p=0.5,rel=2)@10, AP(rel=2)", "ndcg@10,map", "P(rel=2)@5, nDCG@10, map, RR(rel=2.0)@10",
    "10", "map,10", "mrr,5@", "P(rel=2)@5, AP(rel=3)", " , ",
    *(f"P(rel={rel})@5" for rel in ("0", "-1", "high", "", "1e3", "1.2.3")),
)  # fmt: skip


def split(text: str) -> list[str]:
    return [each for line in text.strip("\n").split("\n") for each in line.split("|")]


def parsed(spec: str, threshold: float | None = None) -> tuple[object, ...]:
    found = parse_measure(spec, threshold)
    assert parse_measure(found.spec) == found
    return found.spec, found.title, found.k, found.parameter


def listed(given: object) -> dict[str, object]:
    found = parse_metrics(given)
    return {typed: measure.spec for typed, measure in found.measures.items()} | {
        "threshold": found.threshold, "implied": found.implied, "specs": found.specs
    }  # fmt: skip


def test_a_spec_is_parsed_or_the_nearest_is_named(approved):
    specs = [*split(SPELLED), *OTHER_NAMES.split(), *split(WRONG)]
    cases = {spec: lambda spec=spec: parsed(spec) for spec in specs}
    cases |= {"an empty spec": lambda: parsed("")}
    cases |= {f"AP(rel=2) at {at}": lambda at=at: parsed("AP(rel=2)", at) for at in (1.0, 2.0)}
    cases |= {f"list: {given}": lambda given=given: listed(given) for given in LISTS}
    approved("metrics/specs", results(cases))


@pytest.mark.parametrize("spec", ["", "@10", "Ranking!", "ndcg(10", "{0}@10", "ndcg@" + "9" * 5000])
def test_whatever_is_given_the_nearest_is_a_spec_that_exists(spec):
    with pytest.raises(SpecError) as caught:
        parse_measure(spec)
    assert parse_measure(str(caught.value.params["nearest"])).metric in registry.values()
    assert spec in str(caught.value)


@pytest.mark.parametrize("name", list(registry))
def test_every_metric_parses_by_name_and_describes_itself(name):
    definition = parse_measure(name).metric
    assert definition is registry[name]
    assert definition.title and definition.meaning and definition.formula and definition.reference
    assert definition.meaning.endswith(".") and "\n" not in definition.meaning
    assert definition.spec.startswith(name)


def test_a_list_of_specs_in_one_string():
    found = parse_metrics("ndcg@10, MRR,, p@1,ndcg_cut_10")
    assert found.specs == ("ndcg@10", "mrr", "precision@1")
    assert parse_metrics(["map", "ap"]).specs == parse_metrics("map").specs


@pytest.mark.parametrize("digits", [20, 21])
def test_a_number_in_brackets_has_at_most_20_digits(digits):
    parses = digits == 20
    for text in ("0." + "1" * digits, "0" * digits + ".5"):
        if parses:
            assert parse_measure(f"rbp({text})").parameter == float(text)
        else:
            with pytest.raises(SpecError, match="must be between 0 and 1"):
                parse_measure(f"rbp({text})")
