"""Fast input on a slow connection: no choice and no text is lost."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Notes
from tests.stored import keep_lists, keep_rows

from .conftest import serving, shop_lists, shop_rows

pytestmark = pytest.mark.thorough


class Line:
    """The connection to the server, which can delay messages."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.waits: dict[str, list[str | bytes]] = {"up": [], "down": []}
        self.slow: set[str] = set()
        page.route_web_socket(re.compile("_stcore/stream"), self._open)

    def _open(self, client: WebSocketRoute) -> None:
        server = client.connect_to_server()
        self.ends = {"up": server, "down": client}
        client.on_message(lambda message: self._pass("up", message))
        server.on_message(lambda message: self._pass("down", message))

    def _pass(self, way: str, message: str | bytes) -> None:
        if way in self.slow:
            self.waits[way].append(message)
        else:
            self.ends[way].send(message)

    def hold(self, way: str) -> None:
        """Delay messages. way: "up" from the browser, "down" from the server."""
        self.slow.add(way)

    def answered(self, kind: str) -> None:
        """Wait until an answer of this kind is delayed."""
        while not any(ForwardMsg.FromString(each).HasField(kind) for each in self.waits["down"]):
            self.page.wait_for_timeout(20)

    def release(self, way: str) -> None:
        self.slow.discard(way)
        while self.waits[way]:
            self.ends[way].send(self.waits[way].pop(0))
        # Wait until the page is idle, when the received messages are drawn.
        self.page.evaluate(
            "() => new Promise((drawn) => setTimeout(() => requestIdleCallback(drawn), 300))"
        )


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app with a data set of 16 queries, and two runs."""
    home = tmp_path_factory.mktemp("home")
    store = Workspace.open(home)
    dataset_id = keep_rows(store, shop_rows(16), "Shop")
    for name, step in (("better", 1), ("worse", 3)):
        keep_lists(store, dataset_id, shop_lists(16, step), name)
    with serving(home) as started:
        yield started


@pytest.fixture
def line(visit) -> Line:
    return Line(visit.page)


def quickly(visit, line: Line, *does: Callable[[], object]) -> None:
    """Do three actions: the second before the answer to the first arrives, the third after it and
    before the server receives the second."""
    first, second, third = does
    line.hold("down")
    first()
    line.answered("script_finished")
    line.hold("up")
    second()
    line.release("down")
    third()
    line.release("up")
    visit.settle()


def cutoff(visit) -> Locator:
    return visit.page.get_by_role("slider", name="Cutoff k")


def test_a_click_before_the_address_has_followed_the_choice_keeps_the_choice(visit, line):
    visit.open("?metric=ndcg&k=3")
    line.hold("down")
    cutoff(visit).press("ArrowRight")
    line.answered("script_finished")
    # The browser still shows k=3.
    visit.open_settings()
    line.release("down")
    visit.settle()
    visit.sees("Resamples")
    expect(cutoff(visit)).to_have_attribute("aria-valuetext", "5")
    assert "k=5" in visit.params.split("&")
    # The back button is not such a click.
    visit.page.go_back()
    expect(cutoff(visit)).to_have_attribute("aria-valuetext", "3")
    visit.settle()
    assert "k=3" in visit.params.split("&")


def test_tags_are_typed_one_after_another(visit, line, app):
    visit.open("queries?k=3")
    for fold in ("Details", "Tags and note"):
        visit.page.get_by_text(fold, exact=True).click()
        visit.settle()
    tags = visit.page.get_by_role("combobox", name=re.compile("Tags"))
    # Scrolling closes the list of choices.
    tags.evaluate("(each) => each.scrollIntoView({block: 'center'})")
    visit.settle()

    def tag(word: str) -> None:
        tags.fill(word)
        tags.press("Enter")

    quickly(visit, line, *(partial(tag, word) for word in ("alpha", "beta", "gamma")))
    store = Workspace.open(app.home)

    def stored() -> set[str]:
        return {tag for note in Notes(store).all(store.datasets()[0].id) for tag in note.tags}

    # The page does not move while a busy server has not stored the last tag.
    visit.until(lambda: stored() == {"alpha", "beta", "gamma"})


def test_going_back_twice_at_once_is_two_steps(visit, line):
    visit.open("?metric=ndcg&k=2")
    for k in ("3", "5"):
        cutoff(visit).press("ArrowRight")
        visit.page.wait_for_url(re.compile(f"k={k}(&|$)"))
        visit.settle()
    line.hold("down")
    visit.page.go_back()
    line.answered("script_finished")
    visit.page.go_back()
    line.release("down")
    visit.settle()
    expect(cutoff(visit)).to_have_attribute("aria-valuetext", "2")
    assert "k=2" in visit.params.split("&")
    # A click before the page has followed does not undo it either.
    visit.page.go_forward()
    expect(cutoff(visit)).to_have_attribute("aria-valuetext", "3")
    visit.settle()
    line.hold("down")
    visit.page.go_back()
    line.answered("script_finished")
    visit.open_settings()
    line.release("down")
    visit.sees("Resamples")
    visit.settle()
    expect(cutoff(visit)).to_have_attribute("aria-valuetext", "2")
    assert "k=2" in visit.params.split("&")


def test_a_click_before_the_choices_are_ready_does_not_lose_them(visit):
    """The page requests the code of each kind of widget at its first use."""
    late = []
    visit.page.route(
        re.compile(r"/(Multiselect|Slider|Selectbox|ButtonGroup)\.[^/]*\.js"),
        lambda route: late.append(route),
    )
    visit.page.goto(visit.url + "queries?q=q1&k=3&outcome=helped")
    visit.page.get_by_text("Details", exact=True).click()
    visit.sees("Document movements")
    asked = visit.params
    assert late, "nothing was held back"
    for each in late:
        each.continue_()
    slider = visit.page.get_by_role("slider", name="Cutoff k")
    expect(slider).to_have_attribute("aria-valuetext", "3")
    visit.settle()
    # The next click sends the choices of the page to the server.
    visit.page.get_by_text("Details", exact=True).click()
    visit.settle()
    visit.go("Overview")
    assert {"k=3", "base=first-stage"} < set(visit.params.split("&"))
    assert next(each for each in asked.split("&") if each.startswith("system=")) in visit.params
