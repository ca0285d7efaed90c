"""Tables that are kept with the papers: what they print in `published`, what audits found in `audited`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def published_table(paper: str, name: str) -> pd.DataFrame:
    """A published table, such as `table2_split_gain` of `wei`; the comments of its file say where it is printed."""
    return recorded_table(paper, "published", name)


def recorded_table(paper: str, folder: str, name: str) -> pd.DataFrame:
    """A table that is kept with a paper; the comments of its file say where it comes from."""
    import pandas as pd

    return pd.read_csv(Path(__file__).parent / paper / folder / f"{name}.csv", comment="#")
