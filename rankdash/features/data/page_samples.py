"""The samples of rankdash: one for each language of the interface, with finished runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from rankdash.core.base import text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.workspace import DatasetRow, Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.kit.widgets import address

_OPENED = "sample opened"


@cache
def ids() -> Mapping[str, str]:
    """Return language → the id of the data set of its sample."""
    return {
        language: archive.datasets_in(runs_of(folder))[0]
        for language, folder in SAMPLES.items()
        if runs_of(folder).is_file()
    }


def open_sample(store: Workspace, language: str) -> str:
    """Add a sample with its runs to the workspace and return its id. Existing data stay
    unchanged."""
    file = runs_of(SAMPLES[language])
    (dataset_id,) = import_workspace.bring_in(store, file, file.name).datasets
    rows = {row.id: row.name for row in store.datasets()}
    name = rows.pop(dataset_id)
    if name in rows.values():
        # The sample of an earlier version is another data set and stays.
        store.rename_dataset(dataset_id, text.free(name, rows.values()))
    return dataset_id


def open_once(store: Workspace) -> None:
    """Add the samples to a workspace that never contained a data set; a deleted sample stays
    deleted."""
    if store.setting(_OPENED) is None and not store.datasets():
        for language in ids():
            open_sample(store, language)
    store.set_setting(_OPENED, "yes")


def lacking(stored: Collection[str], language: str) -> list[str]:
    """Return the languages whose sample is not stored, the language of the interface first."""
    own_first = sorted(ids(), key=lambda each: each != language)
    return [each for each in own_first if ids()[each] not in stored]


def offered(rows: Mapping[str, DatasetRow], language: str) -> str | None:
    """Return the id of the sample to open first, in the user's language. None if the oldest data
    set is not a sample, or this sample is not stored."""
    oldest = next(iter(rows.values()), None)
    if oldest is not None and oldest.source == "sample" and ids().get(language) in rows:
        return ids()[language]
    return None


def follow(store: Workspace, before: str, language: str) -> None:
    """Open the sample in the new language after a change of language. Do nothing if the user chose
    the data set, or if this sample is not stored. before: the previous language."""
    sample_id = ids().get(language)
    if (
        address.by_hand("data")
        or address.one("data") != ids().get(before)
        or sample_id not in {row.id for row in store.datasets()}
    ):
        return
    address.set_default("data", sample_id)
    for name in address.OF_A_DATA_SET:
        address.set_default(name, None)


def called(row: DatasetRow) -> str:
    """Return the name of a data set in lists; samples are marked."""
    if row.source != "sample":
        return row.name
    if row.id in ids().values():
        return _("{name} (sample)", name=row.name)
    return _("{name} (sample of an earlier version)", name=row.name)
