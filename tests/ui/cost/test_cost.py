"""The Cost page: the published example to the cent, no in words, sliders, scenarios, prices."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.store import Workspace
from rankdash.ui.sidebar.view import PAGES
from rankdash.words import methods
from tests.stored import keep_lists, keep_rows

# Of 100 queries, so many have their relevant document first: hit@1 0.72 and 0.87.
BEFORE, AFTER = 72, 87


def first_places(workspace: Workspace, before: int, after: int, n: int = 100) -> tuple[str, str]:
    """A data set of n queries and a run, with so many relevant documents in first place."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},question {q},d{d},words of document {d},{int(d == 0)},{score}\n"
        for q in range(n)
        for d, score in ((0, 2 if q < before else 0), (1, 1))
    )
    dataset_id = keep_rows(workspace, rows, "Shop")
    order = [("d0", "d1") if q < after else ("d1", "d0") for q in range(n)]
    lists = ((f"q{q}", docs, [2.0, 1.0]) for q, docs in enumerate(order))
    return dataset_id, keep_lists(workspace, dataset_id, lists, "better.trec", "better").id


@pytest.fixture
def opened(workspace: Workspace, app: AppTest):
    """The Cost page on the published example: hit@1, $1 for 1,000 search units."""

    def on(before: int = BEFORE, after: int = AFTER, n: int = 100, **params: str) -> AppTest:
        dataset_id, run_id = first_places(workspace, before, after, n)
        prices = {"prices": [
            {"key": "flat", "provider": "Flat", "unit": "search", "amount": 1.0,
             "source": "a test", "as_of": "2026-11-21"},
            {"key": "euro", "provider": "Euro", "unit": "search", "amount": 1.0, "currency": "EUR",
             "source": "a test", "as_of": "2020-01-01"},
        ]}  # fmt: skip
        workspace.set_setting("prices", json.dumps(prices))
        chosen = {"data": dataset_id, "metric": "hit", "k": "1", "price": f"{run_id}=flat",
                  "value_per_search": "0.010"}  # fmt: skip
        for name, value in (chosen | params).items():
            app.query_params[name] = value
        return app.switch_page(str(PAGES / "cost.py")).run()

    return on


def text(app: AppTest) -> str:
    blocks = [*app.markdown, *app.caption, *app.info, *app.warning]
    drawn = [each for each in htmls(app) if "light-dark(" not in each]
    return "\n".join([*(block.value for block in blocks), *drawn])


def htmls(app: AppTest) -> list[str]:
    return [str(each.value) for each in app.get("html")]


def answer(app: AppTest) -> str:
    return next(each.value for each in app.markdown if each.value.startswith("**"))


def test_the_published_example_to_the_cent(opened):
    app = opened(part="simple")
    page = text(app)
    for figure in ("20.8333%", "$208.33", "$100.00", "108.33%"):
        assert figure in page
    # The same numbers behind the answer: 0.48 % of value for 1 % of quality.
    assert re.search(r"at least \*\*0\.48%\*\* more value", answer(app))
    # By t and the delta method the change is 9.04 % at least: below the 10 % from which it pays.
    assert "(95%: 0.29% … 1.11%)" in answer(app)
    assert "**better probably pays under these assumptions.**" in answer(app)


def figures(app: AppTest) -> set[str]:
    """The titles of the rows of the table."""
    [table] = [each for each in htmls(app) if "rd-figures" in each and "caveats" in each]
    return set(re.findall(r"<tr><td class='[^']*'><span>([^<]+)</span>", table))


MONEY = {"value a month", "net a month", "return on the cost"}


@pytest.mark.parametrize(
    ("params", "shown", "said"),
    [
        ({"price": "", "value_per_search": "0.01"}, set(), "has no price"),
        ({"value_per_search": "0.01"}, {"break-even"},
         "It pays if 1% more Hit@1 is worth at least **\\$0.048**"),
        ({"price": ""}, {"break-even price"}, "It pays while 1,000 searches cost at most"),
    ],
)  # fmt: skip
def test_no_value_net_or_return_until_price_and_value_are_set(opened, params, shown, said):
    app = opened(**params)
    assert not MONEY & figures(app) and shown <= figures(app)
    assert said.replace("\\", "") in answer(app).replace("\\", "")
    [button] = [each for each in app.button if each.label == "Use example values"]
    button.click().run()
    assert figures(app) >= MONEY
    assert answer(app).startswith("**Example values.**")
    assert any("Example values" in each.value for each in app.markdown if "badge" in each.value)
    assert app.query_params["example"] in ("yes", ["yes"])
    exported = app.get("download_button")
    assert exported
    next(each for each in app.button if each.label == "Remove the example values").click().run()
    assert not MONEY & figures(app) and "example" not in app.query_params


def test_example_values_change_nothing_that_the_user_set(opened):
    app = opened(example="yes")
    assert not answer(app).startswith("**Example values.**")
    assert answer(app) == answer(opened())


@pytest.mark.parametrize(
    ("after", "value", "said"),
    [(60, "0.010", "loses money"), (87, "1", "more than ten times the cost")],
)
def test_no_return_below_0_or_above_a_thousand_percent_is_printed(opened, after, value, said):
    for part in ("simple", "scenarios", "swings"):
        page = text(opened(72, after, part=part, value_per_search=value))
        assert said in page
        assert not re.search(r"\d,\d{3}(\.\d+)?%", page)


def test_a_worse_system_does_not_pay_at_any_price_and_says_so(opened):
    app = opened(72, 60)
    assert "does not pay at any price" in answer(app)
    assert not re.search(r"\b(nan|inf|None)\b", text(app))


def test_a_gain_that_may_be_nothing_is_worth_its_whole_interval(opened):
    app = opened(72, 74, value_per_search="0.05", correction="none")
    said = answer(app).replace("\\", "")
    assert said.startswith("**Not proven that better pays.** Hit@1 changes by +2.8%, but its ")
    # By t and the delta method -1.19 % at least, at 0.05 for each of 100,000 searches a day.
    assert re.search(r"The value is \$4,225 \(-\$1,815 … \$[\d,]+\) a month, for \$3,042\.", said)
    assert "… never" in said


def test_what_costs_more_than_it_brings_at_its_upper_end_does_not_pay_proven_or_not(opened):
    said = answer(opened(72, 73, value_per_search="0.005"))
    assert said.startswith("**better does not pay under these assumptions.** Hit@1 changes by +1.4")
    assert "but its interval includes 0" in said


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"searches_per_day": "10", "traffic_share": "0"}, "nothing to gain"),
        ({"value_per_search": "0"}, "A search is worth nothing here"),
        (
            {"currency": "EUR", "value_per_search": "0.02"},
            "**Break-even only: better has no price (no exchange rate).** It pays while",
        ),
    ],
)
def test_what_has_no_answer_says_why(opened, params, said):
    page = text(opened(**params))
    assert said in page
    assert not re.search(r"\b(nan|inf|None)\b", page)


def test_a_slider_changes_the_answer_and_the_link(opened):
    app = opened()
    before = answer(app)
    app.select_slider(key="cost.value_per_search").set_value(0.001).run()
    assert answer(app) != before
    assert "does not pay under these assumptions" in answer(app)
    assert app.query_params["value_per_search"] in ("0.001", ["0.001"])


def test_a_slider_that_was_moved_is_not_put_back_by_the_answer(opened):
    # What the server sends takes back the presses that a person has made since.
    app = opened(elasticity="0.25")
    slider = app.slider(key="cost.elasticity")
    assert slider.proto.set_value and slider.value == 0.25
    app.slider(key="cost.elasticity").set_value(0.75).run()
    slider = app.slider(key="cost.elasticity")
    assert slider.value == 0.75 and not slider.proto.set_value
    app.select_slider(key="cost.value_per_search").set_value(0.001).run()
    assert not app.select_slider(key="cost.value_per_search").proto.set_value
    assert not app.slider(key="cost.elasticity").proto.set_value


def test_a_number_beyond_a_slider_moves_its_end_and_back(opened):
    app = opened(elasticity="7")
    (slider,) = [each for each in app.slider if "Value gained for each" in each.label]
    assert slider.value == 7 and slider.max == 7
    slider.set_value(0.5).run()
    assert app.slider(key="cost.elasticity").value == 0.5
    assert app.slider(key="cost.elasticity").max < 7


def test_a_link_restores_the_scenario(opened):
    app = opened(elasticity="0.25", monthly_cost="400", setup_cost="1000")
    assert app.slider(key="cost.elasticity").value == 0.25
    assert "months to pay back" in text(app)
    assert "searches a day on." in answer(app) or "does not pay" in answer(app)


def test_a_scenario_is_saved_compared_and_taken_back(opened, workspace: Workspace):
    app = opened(part="scenarios", elasticity="0.25")
    next(each for each in app.text_input if "Save these" in each.label).set_value("careful")
    next(each for each in app.button if each.label == "Save").click().run()
    assert json.loads(workspace.setting("scenarios"))["careful"]["elasticity"] == 0.25
    (table,) = [each for each in htmls(app) if "pessimistic" in each]
    names = re.findall(r"<tr><td class=''><span>([^<]+)</span>", table)
    assert names == ["pessimistic", "as set now (expected)", "optimistic", "careful"]
    next(each for each in app.button if each.label == "Restore the defaults").click().run()
    assert app.slider(key="cost.elasticity").value == 1.0
    next(each for each in app.button if each.label == "Use it").click().run()
    assert app.slider(key="cost.elasticity").value == 0.25
    next(each for each in app.button if each.label == "Delete").click().run()
    assert "careful will be deleted permanently." in text(app)
    assert "careful" in json.loads(workspace.setting("scenarios"))
    assert app.button(key="delete.confirm")


@pytest.mark.parametrize("part", ["swings", "map", "options", "depth", "units", "assumptions"])
def test_every_part_is_drawn(opened, part):
    app = opened(part=part)
    assert not app.exception
    charts = app.get("plotly_chart")
    # A run from a file ranks the candidates, so it can be cut at any depth too.
    assert charts or part == "assumptions"
    assert app.get("arrow_data_frame") or app.dataframe


def test_an_old_price_and_an_estimate_are_marked(opened):
    app = opened(also="euro", currency="EUR", value_per_search="0.01")
    marks = next(each for each in htmls(app) if "caveats" in each)
    rows = [
        re.findall(r"<td.*?>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", marks)[1:]
    ]
    of_euro = {
        re.sub("<.*?>", "", title): re.sub("<.*?>", "", euro) for title, *_rest, euro in rows
    }
    # A price alone has no quality, and says so.
    assert of_euro == {
        "Hit@1": "not measured",
        "price": "€1.00/1,000 units",
        "1,000 searches": "€1.00",
        "cost a month": "€3,042",
        "value a month": "gain not known",
        "p95 added": "–",
        "caveats": "old price and tokens estimated",
    }
    app.query_params["part"] = "assumptions"
    app.run()
    meanings = list(app.dataframe[0].value.iloc[:, 2])
    assert meanings[-4:] == [
        "a test, 2026-11-21",
        "tokens estimated: this run counted none",
        "a test, 2020-01-01 · ⚠ older than 180 days: check it · no exchange rate",
        "tokens estimated: this run counted none",
    ]


def test_how_intervals_are_made_stands_beside_the_assumptions_and_on_overview(opened):
    app = opened(part="assumptions")
    assert methods.cost() in text(app)
    app.session_state["overview.definitions"] = True
    app.switch_page(str(PAGES / "overview.py")).run()
    assert methods.cost() in text(app)


@pytest.mark.parametrize("largest", ["searches_per_day", "value_per_search", "monthly_cost"])
def test_the_largest_amounts_are_written_out(opened, largest):
    for part in ("swings", "map", "assumptions", "scenarios", "units"):
        app = opened(part=part, **{largest: "1e10"})
        assert not app.exception
        cells = [cell for each in app.dataframe for cell in each.value.to_numpy().ravel()]
        cells = [cell for cell in cells if isinstance(cell, str)]
        heads = [str(column) for each in app.dataframe for column in each.value.columns]
        assert not re.search(r"\d[eE][+-]?\d", text(app) + " ".join([*cells, *heads]))
        assert part != "assumptions" or any("10,000,000,000" in each for each in cells)


def test_amounts_can_be_those_of_a_year(opened):
    app = opened(part="swings")
    month = answer(app)
    app.selectbox(key="address.per").set_value("year").run()
    assert "costs $36,500" in answer(app).replace("\\", "")
    assert "costs $3,042" in month.replace("\\", "")
    assert "net a year" in htmls(app)[0]
    assert app.query_params["per"] in ("year", ["year"])


def test_a_filter_of_the_queries_page_is_no_assumption(opened):
    app = opened(share="0.5")
    assert "$100.00" in text(opened(part="simple"))
    assert app.slider(key="cost.traffic_share").value == 1.0


def test_prices_with_hostile_names_stay_text(opened, workspace: Workspace):
    app = opened()
    name = "=1+1 <img src=x onerror=alert(1)> [a](http://x.y) **b** $1$"
    row = {"key": "flat", "provider": name, "unit": "search", "amount": 1.0,
           "source": name, "as_of": "2026-11-21"}  # fmt: skip
    workspace.set_setting("prices", json.dumps({"prices": [row | {"key": "k"}, row]}))
    for part in ("swings", "options", "units", "assumptions"):
        app.query_params["part"], app.query_params["also"] = part, ["k"]
        app.run()
        assert not app.exception
        assert "<img" not in text(app)
        assert not any("](http" in each.value for each in [*app.markdown, *app.caption])


def test_what_an_llm_no_longer_reads_can_pay_without_any_gain(opened):
    app = opened(72, 72, passages="10", llm_price="15")
    assert answer(app).startswith("**better pays under these assumptions.**")
    assert "even if better ranking has no value" in answer(app)
    # Two of ten passages hold what the ten held: (10 - 2) x 400 tokens.
    assert "the LLM reads 3,200 fewer tokens a search" in text(app)


def test_prices_that_cost_the_same_are_one_line_and_machines_have_their_traffic(
    opened, workspace: Workspace
):
    app = opened(part="units")
    common = {"source": "a test", "as_of": "2026-11-21"}
    prices = [
        {"key": "flat", "provider": "Flat", "unit": "search", "amount": 1.0, **common},
        {"key": "twin", "provider": "Twin", "unit": "search", "amount": 1.0, **common},
        {"key": "tokens", "provider": "Tokens", "unit": "tokens", "amount": 0.05, **common},
        {"key": "machine", "provider": "Machine", "unit": "hour", "amount": 2.95,
         "searches_per_second": 20, **common},
    ]  # fmt: skip
    workspace.set_setting("prices", json.dumps({"prices": prices}))
    app.run()
    assert list(app.dataframe[0].value.columns[1:]) == [
        "Flat = Twin: $1.00/1,000 units", "Tokens: $0.05/M tokens"
    ]  # fmt: skip
    page = text(app).replace("\\", "")
    # $2.95 an hour, 730 hours a month; 0.82 searches a second at $1 for 1,000.
    assert "1 machine at 20.0 searches per second (as the price list says, not measured)" in page
    assert "$2,154 a month" in page
    assert "**70,800 searches a day**" in page


def test_overview_says_what_it_costs_and_judges_it_by_the_targets(opened):
    app = opened()
    app.session_state["overview.targets"] = True
    app.switch_page(str(PAGES / "overview.py")).run()
    board = next(each for each in htmls(app) if "rd-board" in each)
    assert "$1.00<small>tokens estimated</small>" in board
    table = next(each for each in htmls(app) if "cost of a million tokens" in each)
    # Two documents of few tokens at $1 for 1,000 searches are dear by the token.
    assert "▼ missed" in table
    assert "p95, ms" in table
    limit = next(each for each in app.number_input if each.label == "cost of a million tokens")
    limit.set_value(1_000_000.0)
    next(each for each in app.button if each.key == "targets.save").click().run()
    assert not app.exception
    table = next(each for each in htmls(app) if "cost of a million tokens" in each)
    assert "★ excellent" in table


@pytest.mark.parametrize("relevant", [0, 1])
def test_a_single_query_has_an_answer_in_words(workspace: Workspace, app: AppTest, relevant: int):
    rows = (
        f"query_id,query,doc_id,document,label,score\nq,what,a,one,{relevant},1\nq,what,b,two,0,2"
    )
    dataset_id = keep_rows(workspace, rows, "One")
    keep_lists(workspace, dataset_id, [("q", ["a", "b"], [2.0, 1.0])], "better.trec", "better")
    app.query_params["data"] = dataset_id
    app.run()
    for part in ("swings", "map", "options", "depth", "units", "scenarios", "simple"):
        app.query_params["part"] = part
        app.switch_page(str(PAGES / "cost.py")).run()
        assert not app.exception
        assert answer(app)
        assert not re.search(r"\b(nan|inf)\b", text(app), re.IGNORECASE)


def test_few_queries_give_no_return_until_both_qualities_are_typed(opened):
    app = opened(2, 4, n=4, part="simple")
    assert "The gain is not known. Type the quality with and without reranking." in text(app)
    assert "(gain − cost) / cost" not in text(app)
    app.number_input(key="cost.quality_before").set_value(0.5).run()
    assert "The gain is not known." in text(app)
    app.number_input(key="cost.quality_after").set_value(0.6).run()
    assert "The gain is not known." not in text(app)
    # 100,000 searches at $0.01 and 20 %, for $1 for 1,000.
    assert ">$200.00</td>" in text(app) and ">100.00%</td>" in text(app)
