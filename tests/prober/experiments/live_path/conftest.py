"""A live path for each module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.prober.experiments.live_path.live import Live, live

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("live")) as made:
        yield made
