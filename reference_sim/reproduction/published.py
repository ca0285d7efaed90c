"""Figures that the papers print, read from `reference_sim/published`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_DIRECTORY = Path(__file__).parent.parent / "published"


def published_table(name: str) -> pd.DataFrame:
    """A published table, such as `wei_table2_split_gain`; the comments of its file say where it is printed."""
    import pandas as pd

    return pd.read_csv(_DIRECTORY / f"{name}.csv", comment="#")
