"""Packets that show findings are the same text whether they are written one by one or together."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.encoding.packet_texts import PacketTexts, packets_in_ascii
from pepscope.results.encoding.packets import packet_documents, packets_document
from pepscope.results.encoding.templates import Layout

#: Names that a shell must quote, that are no ASCII, standard input's, and one that is no Unicode.
_CAPTURES = ("a.pcap", 'it\'s "b".pcap.xz', "Köln\x7f.pcap", "-", "no-unicode-\udcff.pcap")

_PACKETS = st.builds(
    EvidencePacket,
    st.sampled_from(_CAPTURES),
    st.integers(1, 40),
    st.integers(0, 2**62),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
_NAMED = st.lists(st.lists(_PACKETS, max_size=5), max_size=6)


@given(_NAMED, st.sampled_from([None, 2]), st.integers(0, 3))
def test_findings_written_together_are_each_as_alone(
    named: list[list[EvidencePacket]], indent: int | None, level: int
) -> None:
    layout = Layout(indent)
    texts = [text.encode("utf-8", "surrogatepass") for text in PacketTexts(layout, level).of(named)]
    assert texts == [b"," + layout.text(packets_document(packets), level)[1:] for packets in [None, *named]]


@given(_NAMED)
def test_packets_in_tables_are_as_json_writes_them(named: list[list[EvidencePacket]]) -> None:
    assert [*packets_in_ascii(named)] == ["null", *(json.dumps(packet_documents(packets)) for packets in named)]
    plain = [
        [EvidencePacket("a.pcap", each.frame, each.time_ns, 'ack\'d "5"') for each in packets] for packets in named
    ]
    assert [*packets_in_ascii(plain)] == ["null", *(json.dumps(packet_documents(packets)) for packets in plain)]
