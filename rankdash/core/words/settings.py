"""Settings that describe themselves, in words: the conventions and the statistics in force."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import plain
from rankdash.core.base.settings import Setting
from rankdash.core.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.core.statistics.settings import STATISTICS_SETTINGS, StatisticsSettings

_BY_ITSELF = "auto"


def rules_in_words(rules: Conventions, statistics: StatisticsSettings) -> list[tuple[str, str]]:
    """(title, what holds) for every convention and every setting of the statistics."""
    return [*in_words(CONVENTION_SETTINGS, rules), *in_words(STATISTICS_SETTINGS, statistics)]


def rule_meanings() -> list[str]:
    """What each of `rules_in_words` decides, in their order."""
    return [_(each.meaning) for each in (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS)]


def in_words(settings: Sequence[Setting], values: object) -> list[tuple[str, str]]:
    """(title, what holds) for every setting; values: an object with the settings as attributes."""
    sentences = []
    for setting in settings:
        value = getattr(values, setting.name)
        sentences.append((_(setting.title), options_of(setting, (value,))[key_of(value)]))
    return sentences


def options_of(setting: Setting, numbers: Sequence[float | None]) -> dict[str, str]:
    """Value as written in the address → words."""
    default = setting.default
    if setting.choices:
        return {value: _(meaning) for value, meaning in setting.choices.items()}
    if isinstance(default, bool):
        return {key_of(False): _("no"), key_of(True): _("yes")}
    known = {value for value in (default, *numbers) if isinstance(value, (int, float))}
    words = {
        key_of(value): plain(value) if isinstance(value, float) else str(value)
        for value in sorted(known)
    }
    return {_BY_ITSELF: _(setting.unset), **words} if default is None else words


def key_of(value: object) -> str:
    if value is None:
        return _BY_ITSELF
    return f"{value:g}" if isinstance(value, float) else str(value)
