"""Which packets show which finding: one line a finding."""

from __future__ import annotations

from collections.abc import Mapping

from detector.methods import (
    ack_timing,
    content,
    delayed_ack,
    early_fin,
    handshake,
    one_place,
    progress,
    receive_window,
    single_vantage,
    teardown,
)
from detector.methods.identity import findings as identity
from detector.methods.identity.transport import TransportFinding
from detector.presentation.telling_packets import (
    acknowledgements,
    datagrams,
    one_vantage,
    openings_and_ends,
    segments,
    streams,
    windows,
)
from detector.presentation.telling_packets.telling import Pointer, one_by_one
from pepscope.results.transfer_findings import TransferFinding

_Ack = ack_timing.AckTimingFinding
_Identity = identity.IdentityFinding
_Handshake = handshake.HandshakeFinding
_EarlyFin = early_fin.EarlyFinFinding
_Progress = progress.ProgressFinding
_Window = receive_window.ReceiveWindowFinding
_Content = content.ContentFinding
_Encryption = content.EncryptionFinding

#: By the method's name and the finding.
POINTERS: Mapping[str, Mapping[str, Pointer]] = {
    ack_timing.NAME: {
        _Ack.ACKS_BEFORE_DATA: one_by_one(acknowledgements.before_data),
        _Ack.ACKS_BEFORE_RECEIVERS: one_by_one(acknowledgements.before_receivers_own),
        _Ack.ACKS_NEARER_THAN_HANDSHAKE: one_by_one(acknowledgements.fastest_round_trips),
        _Ack.ACKS_NEARER_THAN_PATH: one_by_one(acknowledgements.fastest_round_trips),
        _Ack.ACKS_CROSS_WHOLE_PATH: one_by_one(acknowledgements.fastest_round_trips),
        _Ack.ACKS_AFTER_DATA: acknowledgements.behind_data,
        _Ack.ACK_TIMING_UNKNOWN: acknowledgements.behind_data,
    },
    progress.NAME: {
        _Progress.SENDER_IN_STEP: acknowledgements.behind_data,
        _Progress.SENDER_AHEAD: one_by_one(acknowledgements.most_ahead),
        _Progress.SENDER_FAR_AHEAD: one_by_one(acknowledgements.most_ahead),
        _Progress.SENDER_BEYOND_BUFFERS: one_by_one(acknowledgements.most_ahead),
        _Progress.STORED_BEFORE_FORWARDED: one_by_one(acknowledgements.before_first_arrival),
        _Progress.HELD_BEFORE_FORWARDED: one_by_one(acknowledgements.fastest_bytes),
        _Progress.PROGRESS_UNKNOWN: one_vantage.bulk,
    },
    receive_window.NAME: {
        _Window.WINDOW_ALTERNATES: one_by_one(windows.shut_and_open),
        _Window.WINDOW_SHUT_ONCE: one_by_one(windows.shut_and_open),
        _Window.SLOW_READER: one_by_one(windows.shut_and_open),
        _Window.WINDOW_REGULATED: one_by_one(windows.shut_and_open),
        _Window.ALTERNATION_UNEXPLAINED: one_by_one(windows.shut_and_open),
        _Window.WINDOW_UNREMARKABLE: one_by_one(windows.shut_and_open),
        _Window.WINDOW_OPEN_RECEIVER_BEHIND: windows.transfer_ends,
        _Window.TOO_SHORT: windows.transfer_ends,
    },
    identity.NAME: {
        _Identity.SAME_PACKETS: segments.same,
        _Identity.SAME_DATA: segments.same,
        _Identity.TOO_ALIKE: segments.same,
        _Identity.PARTLY_SAME: segments.other,
        _Identity.OTHER_PACKETS: segments.other,
        _Identity.TOO_FEW_SEGMENTS: segments.either,
        _Identity.ACKS_NOBODY_SENT: one_by_one(segments.made_acknowledgements),
        _Identity.ACKS_AHEAD: one_by_one(segments.acknowledgements_ahead),
        _Identity.OTHER_ACKNOWLEDGEMENTS: one_by_one(segments.made_acknowledgements),
        _Identity.MAKER_CHANGES: one_by_one(segments.around_change),
        **dict.fromkeys(TransportFinding, one_by_one(datagrams.carried_bytes)),
    },
    handshake.METHOD.name: {
        _Handshake.HANDSHAKE_OF_ANOTHER_STACK: openings_and_ends.handshake,
        _Handshake.HANDSHAKE_MADE_ANEW: openings_and_ends.handshake,
        _Handshake.HANDSHAKE_SAME_SEGMENTS: openings_and_ends.handshake,
        _Handshake.HANDSHAKE_REWRITTEN: openings_and_ends.handshake,
        _Handshake.NEEDS_SECOND_CAPTURE: one_by_one(openings_and_ends.own_handshake),
        handshake.WithoutServerFinding.ANSWERED_WITHOUT_SERVER: one_by_one(openings_and_ends.own_handshake),
    },
    early_fin.NAME: {
        _EarlyFin.FIN_BEFORE_SENT: openings_and_ends.ends_of_streams,
        _EarlyFin.FIN_BEFORE_FORWARDED: openings_and_ends.ends_of_streams,
        _EarlyFin.FIN_IN_ORDER: openings_and_ends.ends_of_streams,
    },
    teardown.NAME: {
        TransferFinding.ACKNOWLEDGED_BEYOND_ABORT: one_by_one(openings_and_ends.abort),
        TransferFinding.ABORT_END_TO_END: one_by_one(openings_and_ends.abort),
    },
    delayed_ack.NAME: {
        TransferFinding.ACKS_NOT_FROM_RECEIVER: one_by_one(one_vantage.held_acknowledgements),
        TransferFinding.ACKS_ONLY_FROM_RECEIVER: one_by_one(one_vantage.held_acknowledgements),
        delayed_ack.DelayedAckFinding.NO_ACK_DELAY: one_by_one(one_vantage.held_acknowledgements),
    },
    content.METHOD.name: {
        TransferFinding.OTHER_BYTES: one_by_one(streams.differing_bytes),
        TransferFinding.REWRITTEN_HEADERS: streams.first_bytes,
        TransferFinding.SERVED_FROM_CACHE: one_by_one(streams.request_and_answer),
        _Content.PROXY_REQUEST_CONSUMED: streams.first_request,
        _Content.RECOMPRESSED: streams.first_answer,
        _Content.OTHER_BODY: streams.first_answer,
        _Content.OTHER_SIZE: openings_and_ends.ends_of_streams,
        _Content.SAME_CONTENT: streams.first_bytes,
        _Content.NO_COUNTERPART: one_by_one(openings_and_ends.own_handshake),
        _Encryption.TLS_ENDED: streams.first_bytes,
        _Encryption.ENCRYPTED_LEG: streams.first_bytes,
        _Encryption.ENCRYPTED_CANDIDATE: streams.first_bytes,
    },
    one_place.NAME: {one_place.OneVantagePointFinding.ONE_VANTAGE_POINT: one_by_one(one_vantage.in_common)},
    single_vantage.NAME: {
        single_vantage.SingleVantageFinding.HINTS_OF_SPLIT: one_by_one(one_vantage.hints),
        single_vantage.SingleVantageFinding.NEEDS_SECOND_CAPTURE: one_by_one(one_vantage.hints),
    },
}

#: Findings that say what is missing, which no packet shows; by method.
WITHOUT_PACKETS: Mapping[str, frozenset[str]] = {
    identity.NAME: frozenset({_Identity.NOT_ALIGNED, _Identity.NEEDS_SECOND_CAPTURE}),
    receive_window.NAME: frozenset({_Window.WINDOW_NOT_CAPTURED, _Window.NEEDS_SENDER_CAPTURE}),
    handshake.METHOD.name: frozenset({_Handshake.NO_HANDSHAKE}),
    content.METHOD.name: frozenset({_Content.NO_PAYLOAD}),
    early_fin.NAME: frozenset({_EarlyFin.NO_FIN}),
    teardown.NAME: frozenset({teardown.TeardownFinding.NO_ABORT, teardown.TeardownFinding.NEEDS_SECOND_CAPTURE}),
    single_vantage.NAME: frozenset({single_vantage.SingleVantageFinding.BOTH_ENDS_CAPTURED}),
}
