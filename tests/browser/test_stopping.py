"""A paid run with a conclusive result: its card shows result and cost, and the user stops it."""

import re

import pytest
from playwright.sync_api import expect

from tests.rerankers.loopback import running

from .conftest import RUN_MS

pytestmark = pytest.mark.thorough


def test_a_paid_run_is_stopped_when_its_card_says_that_it_is_conclusive(visit):
    page = visit.page
    with running() as server:
        server.fault_of = lambda body: {"slow": 0.3}
        visit.open("run")
        visit.choose_reranker("Rerank service")
        page.get_by_text("More settings", exact=True).click()
        for label, value in (
            ("Base URL", server.url),
            ("Key of the service, if it needs one", "sk-typed"),
            ("Price per 1,000 search units, $", "2"),
        ):
            field = page.get_by_label(label, exact=True).last
            field.fill(value)
            field.press("Enter")
            expect(field).to_have_value(value)
            visit.settle()
        choice = page.get_by_role("combobox", name="Stop early")
        expect(choice).to_have_value("show the interim result; you can stop the run")
        page.get_by_role("button", name="Start 1 run").click()
        visit.sees(re.compile(r"The first interval of the change needs 20 labelled queries"))
        conclusive = visit.sees(re.compile(r"Conclusive after \d+ of 168 queries"), timeout=RUN_MS)
        expect(conclusive).to_contain_text(re.compile(r"Cost: about \$0\.\d+ of \$0\.33"))
        page.get_by_role("button", name="Stop the run").click()
        visit.sees(re.compile("Done: "), timeout=RUN_MS)
    assert 20 <= len(server.seen) < 168
    page.get_by_role("button", name="Compare", exact=True).click()
    visit.settle()
    visit.sees("stopped by its result")
