"""Whether a group of entry points is offered is seen without `importlib.metadata`, wherever it would find one."""

from __future__ import annotations

import sys
import zipfile
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pepscope.plugins import is_offered

GROUP = "pepscope.tests.offered"
METADATA = "Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n"


@pytest.fixture(autouse=True)
def without_other_finders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages that replace `importlib.metadata` add a finder when a test before imports them."""
    own = [each for each in sys.meta_path if each is PathFinder or not hasattr(each, "find_distributions")]
    monkeypatch.setattr(sys, "meta_path", own)


def offering(directory: Path, text: str) -> None:
    metadata = directory / "offering-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(text)


def test_what_is_installed_offers_our_groups_and_no_others() -> None:
    assert is_offered("pepscope.commands")
    assert not is_offered(GROUP)


@pytest.mark.parametrize(
    ("text", "is_there"),
    [(f"[{GROUP}]\none = os\n", True), (f"[ {GROUP} ]\none=os\n", True), ("[other]\na = os\n", False)],
)
def test_a_distribution_in_a_directory(
    text: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offering(tmp_path, text)
    monkeypatch.syspath_prepend(tmp_path)
    assert is_offered(GROUP) is is_there
    assert is_there or not entry_points(group=GROUP)


def test_an_archive_may_offer_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "offering.zip", "w") as archive:
        archive.writestr("offering-1.0.dist-info/METADATA", METADATA)
        archive.writestr("offering-1.0.dist-info/entry_points.txt", f"[{GROUP}]\none = os\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "offering.zip")])
    assert is_offered(GROUP)


def test_another_finder_of_distributions_may_offer_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        @staticmethod
        def find_distributions(*_: object) -> list[object]:
            return []

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert is_offered(GROUP)
