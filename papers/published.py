"""Values that the papers print, read from the folder `published` of each paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def published_table(paper: str, name: str) -> pd.DataFrame:
    """A published table, such as `table2_split_gain` of `wei`; the comments of its file say where it is printed."""
    import pandas as pd

    return pd.read_csv(Path(__file__).parent / paper / "published" / f"{name}.csv", comment="#")
