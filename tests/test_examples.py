"""What Hypothesis draws: the same examples each time, or others from a seed that is printed."""

from hypothesis import settings

from tests.__main__ import arguments


def test_no_example_has_a_deadline_and_a_failure_is_repeated_from_the_source_or_the_seed(
    pytestconfig,
):
    chosen = settings.get_current_profile_name()
    assert chosen == (pytestconfig.getoption("--hypothesis-profile") or "same")
    assert settings.default.deadline is None
    assert settings.default.derandomize == (chosen != "random")


def test_new_examples_are_drawn_from_a_seed_that_is_printed(capsys):
    first, second = arguments(["--random", "-x"]), arguments(["-x", "--random"])
    assert first[:2] == second[:2] == ["-x", "--hypothesis-profile=random"]
    assert first[2] != second[2]
    assert first[2] in capsys.readouterr().out
    assert arguments(["-x"]) == ["-x"]
