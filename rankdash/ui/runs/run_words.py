"""What runs are called on screen besides their names."""

from __future__ import annotations

from collections.abc import Mapping

from rankdash.i18n import gettext as _
from rankdash.rerankers import kinds
from rankdash.runs.combining import KIND as COMBINED


def reranker_title(name: str) -> str:
    """The title of a kind of reranker; its name where it is one that is not known here, as of a
    plugin that was taken away."""
    if name == COMBINED:
        return _("Combined runs")
    title = next((kind.title for kind in kinds() if kind.name == name), None)
    return name if title is None else _(title)


def setting_titles(reranker: str) -> dict[str, str]:
    """Setting → what the form calls it; a name that is not in it has no other word."""
    settings = next((kind.settings for kind in kinds() if kind.name == reranker), ())
    return {setting.name: _(setting.title) for setting in settings}


def settings_in_words(settings: Mapping[str, object]) -> str:
    """Settings as they were given, in one line; those left empty are left out."""
    return ", ".join(f"{name}={value}" for name, value in settings.items() if value != "")
