"""What is said of pairs that may be two transfers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.options import DetectOptions
from detector.pairing.match import Ground
from detector.verdict.mispairing import allow_for_mispairing
from detector.verdict.weighing import judge
from tests.detector.corpus import pairs


@pytest.mark.parametrize(
    ("ground", "given", "helps"),
    [
        (Ground.SEQUENCE_NUMBERS_OTHER_TIME, False, True),
        (Ground.SEQUENCE_NUMBERS_OTHER_TIME, True, False),  # other content is doubted by any clock
        (Ground.LENGTHS_OTHER_TIME, False, False),
    ],
)
def test_an_option_is_named_where_it_would_help(ground: Ground, *, given: bool, helps: bool) -> None:
    pair = replace(pairs("spl_ha_dl_srcip")[0], pairing_ground=str(ground), options=DetectOptions(same_transfers=given))
    assert ("--same-transfers" in allow_for_mispairing(judge(()), pair).reason) is helps
