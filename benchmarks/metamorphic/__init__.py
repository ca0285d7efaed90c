"""Metamorphic tests: change what captures, clocks and middleboxes may, and hold the verdict to what that allows.

- `records.py`, `writing.py`: a capture as arrays, one row a packet; captures in every link layer.
- `losses.py`, `clocks.py`, `rewriting.py`, `offloads.py`: the edits.
- `changes.py`: each change: its random draws, where it may act, why the truth stays valid.
- `pairs.py`, `simulated.py`: labelled pairs, from manifests and from the simulator.
- `case.py`, `score.py`, `run.py`, `report.py`: one case; a verdict against the truth; many cases; tables.
"""
