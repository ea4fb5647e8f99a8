"""The samples that come with rankdash: one for each language of the interface, which opens with its
finished runs."""

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
    """Language → the id of the data set of its sample."""
    return {
        language: archive.datasets_in(runs_of(folder))[0]
        for language, folder in SAMPLES.items()
        if runs_of(folder).is_file()
    }


def open_sample(store: Workspace, language: str) -> str:
    """Put a sample with its runs into the workspace and return its id. What is there already stays
    as it is."""
    file = runs_of(SAMPLES[language])
    (dataset_id,) = import_workspace.bring_in(store, file, file.name).datasets
    rows = {row.id: row.name for row in store.datasets()}
    name = rows.pop(dataset_id)
    if name in rows.values():
        # That of an earlier version is another data set and stays.
        store.rename_dataset(dataset_id, text.free(name, rows.values()))
    return dataset_id


def open_once(store: Workspace) -> None:
    """Put the samples into a workspace that never held a data set; a deleted one stays deleted."""
    if store.setting(_OPENED) is None and not store.datasets():
        for language in ids():
            open_sample(store, language)
    store.set_setting(_OPENED, "yes")


def lacking(stored: Collection[str], language: str) -> list[str]:
    """The languages whose sample is not among the stored data sets, that of the interface first."""
    own_first = sorted(ids(), key=lambda each: each != language)
    return [each for each in own_first if ids()[each] not in stored]


def offered(rows: Mapping[str, DatasetRow], language: str) -> str | None:
    """The data set to begin with: the sample of the language, unless the oldest data set is a
    person's own."""
    oldest = next(iter(rows.values()), None)
    if oldest is not None and oldest.source == "sample" and ids().get(language) in rows:
        return ids()[language]
    return None


def follow(store: Workspace, before: str, language: str) -> None:
    """Go from the sample of the language before to that of another one, where it is here and no
    person chose the data set."""
    sample_id = ids().get(language)
    if (
        address.by_hand("data")
        or address.one("data") != ids().get(before)
        or sample_id not in {row.id for row in store.datasets()}
    ):
        return
    address.settle("data", sample_id)
    for name in address.OF_A_DATA_SET:
        address.settle(name, None)


def called(row: DatasetRow) -> str:
    """What a list of data sets calls it: the samples are told from a person's own."""
    if row.source != "sample":
        return row.name
    if row.id in ids().values():
        return _("{name} (sample)", name=row.name)
    return _("{name} (sample of an earlier version)", name=row.name)
