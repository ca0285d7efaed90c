"""The compiled keys of packets against their NumPy reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.pairing.packet_sketch import Form
from pepscope import _core
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT
from tests.detector.generated_streams import packets_of
from tests.detector.pairing.reference_packet_keys import KeyFields, packet_keys

FORMS = [KeyFields(form.value.stamps, form.value.ip_id, form.value.places) for form in Form]


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(0, 120), st.sampled_from(FORMS), st.sampled_from([1, 5, 48]))
def test_keys_are_those_of_the_reference(seed: int, count: int, form: KeyFields, most: int) -> None:
    random = np.random.default_rng(seed)
    packets = packets_of(random, count).replaced(
        acknowledgement_offset=random.choice([0, 1448, NO_ACKNOWLEDGEMENT], count),
        payload_hash=random.integers(0, 3, count).astype(np.uint32),
    )
    found, wanted = _core.packet_keys(packets, *form, most), packet_keys(packets, form, most)
    assert [column.tolist() for column in found] == [column.tolist() for column in wanted]


def test_generated_packets_have_keys_of_every_form() -> None:
    """Or the comparison above would compare nothing."""
    for form in FORMS:
        made = [packets_of(np.random.default_rng(seed), 120) for seed in range(20)]
        whole = [
            each.replaced(acknowledgement_offset=each.sequence_offset, payload_hash=each.tsval + np.uint32(1))
            for each in made
        ]
        counts = [len(_core.packet_keys(each, *form, 48)[0]) for each in whole]
        assert sum(count > 5 for count in counts) > 5
