"""Types of what experiments measure: written as JSON into archives, and checked when they are read back."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import msgspec

from pepscope.strict_reading import LARGEST_INTEGER, between

#: Whole numbers of at least 0.
Count: TypeAlias = Annotated[int, between(0, LARGEST_INTEGER)]
#: Finite numbers.
FiniteNumber: TypeAlias = Annotated[float, between(-sys.float_info.max, sys.float_info.max)]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all that an experiment keeps of a task. Fields that only other versions have are ignored.

    A field that earlier versions did not write has a default with the meaning of its absence.
    """
