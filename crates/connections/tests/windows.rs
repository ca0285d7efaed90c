//! Windows: scale, zero and open, probes, keep-alives, duplicate acknowledgements.

use crate::transcript::*;
use pepscope_connections::mark;
use pepscope_wire::segment::Segment;

fn window(segment: Segment<'static>, window: u16) -> Segment<'static> {
    Segment { window, ..segment }
}

#[test]
fn windows_are_scaled_when_both_sides_offer_it() {
    let (connections, _) = after_handshake(&[window(up(30_000, RST | ACK, 0, 0, 0), 0)]);
    assert_eq!(columns(&connections).window_bytes, [500, 500, 64_000, 0]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.window_min_bytes, summary.up.window_max_bytes), (64_000, 64_000), "without SYN and RST");
    assert_eq!((summary.down.window_min_bytes, summary.down.window_max_bytes), (0, 0));

    let mut one_sided = NUMBERS.handshake();
    one_sided[1].options.window_scale = None;
    assert_eq!(columns(&analyse(&one_sided)).window_bytes, [500, 500, 500]);
    let without_syn = analyse(&[&NUMBERS.handshake()[1..], &[down(30_000, ACK, 0, 0, 10)]].concat());
    assert_eq!(columns(&without_syn).window_bytes, [500, 500, 64_000], "the client's scale is unknown");
}

#[test]
fn zero_windows_are_counted_by_onset() {
    let (connections, marks) = after_handshake(&[
        window(down(30_000, ACK, 0, 0, 0), 0),
        window(down(31_000, ACK, 0, 0, 0), 0),
        window(down(32_000, ACK, 0, 0, 0), 10),
        window(down(33_000, ACK, 0, 0, 0), 0),
    ]);
    let zero = mark::ZERO_WINDOW;
    assert_eq!(marks[1..], [zero, mark::WINDOW_UPDATE, mark::WINDOW_UPDATE | zero]);
    assert_eq!(marks[0] & zero, zero);
    assert_eq!(connections.summary(0).map(|summary| summary.down.zero_windows), Some(2));
}

#[test]
fn probes_and_keep_alives_are_not_data() {
    let data = [up(30_000, ACK, 0, 0, 100), down(50_000, ACK, 0, 100, 0)];
    let closed = window(down(51_000, ACK, 0, 100, 0), 0);
    let probes = [up(300_000, ACK, 99, 0, 0), up(600_000, ACK, 99, 0, 1), up(900_000, ACK, 100, 0, 1)];
    let (connections, marks) = after_handshake(&[&data[..], &[closed], &probes].concat());
    assert_eq!(marks[3..], [mark::ZERO_WINDOW_PROBE; 3]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.zero_window_probes, summary.up.stream_bytes, summary.up.retransmitted_packets), (3, 100, 0));

    let copies = probes.map(|probe| Segment { time_ns: probe.time_ns + 16_000, ..probe });
    let (connections, _) =
        after_handshake(&[&data[..], &[closed, probes[1], copies[1], probes[2], copies[2]]].concat());
    assert_eq!(connections.summary(0).map(|summary| summary.up.zero_window_probes), Some(2), "copies were not sent");

    let (connections, marks) = after_handshake(&[&data[..], &probes[..2]].concat());
    assert_eq!(marks[2..], [mark::KEEP_ALIVE; 2]);
    assert_eq!(columns(&connections).sequence_offset[5..], [99, 99]);
}

#[test]
fn a_probe_byte_that_was_taken_in_is_part_of_the_stream() {
    let (connections, _) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        window(down(50_000, ACK, 0, 100, 0), 0),
        up(300_000, ACK, 100, 0, 1),
        down(320_000, ACK, 0, 101, 0),
        up(330_000, ACK, 101, 0, 99),
        down(350_000, ACK, 0, 200, 0),
    ]);
    let Some(summary) = connections.summary(0) else { unreachable!() };
    assert_eq!((summary.up.stream_bytes, summary.up.missed_bytes), (200, 0));
}

#[test]
fn duplicate_acknowledgements_need_outstanding_data() {
    let (_, marks) = after_handshake(&[
        up(30_000, ACK, 0, 0, 100),
        down(50_000, ACK, 0, 100, 0),
        down(51_000, ACK, 0, 100, 0),
        up(60_000, ACK, 100, 0, 100),
        down(61_000, ACK, 0, 100, 0),
        window(down(62_000, ACK, 0, 100, 0), 600),
        down(63_000, ACK, 0, 100, 50),
    ]);
    assert_eq!(marks, [0, 0, 0, 0, mark::DUPLICATE_ACK, mark::WINDOW_UPDATE, 0]);
}

#[test]
fn a_scale_whose_options_were_cut_is_unknown() {
    let shifts = |opening: &[Segment<'static>]| {
        let connections = analyse(opening);
        let Some(summary) = connections.summary(0) else { unreachable!() };
        (summary.up.window_shift, summary.down.window_shift)
    };
    let cut = |segment: Segment<'static>| Segment {
        options: Default::default(),
        options_raw: &segment.options_raw[..segment.options_raw.len().min(2)],
        header_truncated: true,
        options_truncated: true,
        ..segment
    };
    let whole = NUMBERS.handshake();
    assert_eq!(shifts(&whole), (Some(7), Some(7)));
    let [syn, answer, ack] = [whole[0], whole[1], whole[2]];
    assert_eq!(shifts(&[cut(syn), answer, ack]), (None, Some(7)), "the answer offers what the SYN offered");
    assert_eq!(
        columns(&analyse(&[cut(syn), answer, ack, down(30_000, ACK, 0, 0, 9)])).window_bytes[2..],
        [500, 64_000]
    );
    assert_eq!(shifts(&[syn, cut(answer), ack]), (None, None));
    assert_eq!(shifts(&[cut(syn), cut(answer), ack]), (None, None));
    assert_eq!(shifts(&whole[1..]), (None, Some(7)));
    assert_eq!(shifts(&whole[2..]), (None, None));
    let mut plain = answer;
    plain.options.window_scale = None;
    assert_eq!(shifts(&[cut(syn), plain, ack]), (Some(0), Some(0)), "one side that does not offer is enough");
}
