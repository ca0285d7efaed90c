"""Small labelled corpora for tests: examples, and manifests that are written on the spot."""

from __future__ import annotations

from pathlib import Path

from detector.corpora.validation.labels import Case, Ends
from pepscope.results.verdicts import Verdict

TOP = Path(__file__).parents[4]
EXAMPLE = TOP / "examples" / "labelled"
SPLIT = tuple(TOP / "examples" / "split" / f"{end}.pcap.gz" for end in ("server", "mobile"))
REGULAR = tuple(TOP / "examples" / "regular" / f"{end}.pcap.gz" for end in ("server", "mobile"))
SPLIT_ENDS = Ends("10.157.230.89:48252", "203.0.113.93:5001")


def manifest(directory: Path, text: str) -> Path:
    """A manifest with this text; `SPLIT_A` and the like stand for the captures of the examples."""
    for name, pair in (("SPLIT", SPLIT), ("REGULAR", REGULAR)):
        text = text.replace(f"{name}_A", str(pair[0])).replace(f"{name}_B", str(pair[1]))
    path = directory / "manifest.csv"
    path.write_text(text, encoding="utf-8")
    return path


def case(truth: str = "regular", accepted: str = "", **factors: float | str) -> Case:
    """A label of every connection."""
    verdicts = {Verdict(each) for each in (truth, *accepted.split())}
    return Case(Verdict(truth), frozenset(verdicts), factors=dict(factors))
