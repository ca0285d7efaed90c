"""What was found on some connections, one piece after the other, without figures and sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from pepscope.results.evidence.columns import BoolArray, Form, Int64Array
from pepscope.results.verdicts import FloatArray


class Pieces(Struct, frozen=True):
    """Pieces of evidence as columns of one length, in the order of the connections.

    `owner` is the place of the connection among those asked for, `number` that of the piece among the connection's,
    `form` that of its form among `forms`, of which each has a piece at least.
    """

    forms: Sequence[Form]
    owner: Int64Array
    number: Int64Array
    form: Int64Array
    strength: FloatArray

    def are(self, wanted: Callable[[Form], bool]) -> BoolArray:
        """Which of them are of a form that is wanted."""
        return np.array([wanted(form) for form in self.forms], np.bool_)[self.form]
