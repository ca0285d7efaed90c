"""The compiled keys of packets against their NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.pairing.packet_sketch import Form
from pepscope import _core
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT
from tests.detector.corpus import capture
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


@pytest.mark.parametrize("forms", [FORMS[:2], FORMS[2:3], FORMS[3:]])
def test_keys_of_the_connections_of_a_capture_are_those_of_their_packets(forms: list[KeyFields]) -> None:
    captured = capture("reg_dl_par20.mob.pcap.gz")
    numbers = [4, 0, 17]
    found = captured.packet_keys(numbers, [tuple(form) for form in forms], 48)
    assert len(found) == len(forms)
    for form, (values, holders, directions) in zip(forms, found, strict=True):
        each = [_core.packet_keys(captured.packets(number), *form, 48) for number in numbers]
        assert values.tolist() == [value for own, _ in each for value in own.tolist()]
        assert directions.tolist() == [way for _, own in each for way in own.tolist()]
        assert holders.tolist() == [number for number, (own, _) in zip(numbers, each, strict=True) for _ in own]
        assert len(values) > 48


def test_keys_are_made_for_one_form_or_two() -> None:
    captured = capture("reg_dl_par20.mob.pcap.gz")
    assert [len(column) for columns in captured.packet_keys([], [(True, True, False)], 48) for column in columns] == [
        0
    ] * 3
    with pytest.raises(ValueError, match="one or two, got 3"):
        captured.packet_keys([0], [(True, True, False)] * 3, 48)
    with pytest.raises(IndexError):
        captured.packet_keys([10_000], [(True, True, False)], 48)
