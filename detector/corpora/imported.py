"""What processes that judge a corpus have imported before the first of them starts."""

from __future__ import annotations

#: pyarrow imports pandas where it is installed.
IMPORTED = ("detector.corpora.survey", "detector.corpora.judging", "pyarrow.parquet", "pandas")
