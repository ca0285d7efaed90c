"""Garbage is looked for again once modules are imported, whatever importing raised."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pepscope.processes.garbage import garbage_kept


@pytest.fixture(autouse=True)
def _garbage_is_looked_for() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_looked_for_afterwards_as_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with garbage_kept():
        assert not gc.isenabled()
    assert gc.isenabled() is enabled


def test_a_module_that_cannot_be_imported_leaves_it_on() -> None:
    with pytest.raises(ModuleNotFoundError), garbage_kept():
        raise ModuleNotFoundError("numpy")
    assert gc.isenabled()
