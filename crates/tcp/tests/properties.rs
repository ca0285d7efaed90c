//! What holds whatever the network does: a transfer delivers what was sent, windows are kept, nothing panics.

use crate::wire::{End, Fate, Wire};
use pepscope_path::{MILLISECOND, SECOND};
use pepscope_tcp::{
    Connection, ContentId, DelayedAcknowledgement, Ecn, EcnMode, Event, Flags, Recovery, RetransmissionSettings, Run,
    Segment, Settings, State, Timestamps,
};
use proptest::prelude::*;

fn any_recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![Just(Recovery::Tahoe), Just(Recovery::Reno), Just(Recovery::NewReno), Just(Recovery::Sack)]
}

fn any_ecn() -> impl Strategy<Value = EcnMode> {
    prop_oneof![Just(EcnMode::Off), Just(EcnMode::Standard), Just(EcnMode::EveryPacket)]
}

prop_compose! {
    fn any_settings()(
        maximum_segment_size in 100u16..1461,
        receive_buffer_bytes in 1_500u64..60_000,
        send_buffer_bytes in 1_500u64..60_000,
        initial_window_segments in 1u32..12,
        window_scale in prop::option::of(0u8..15),
        (timestamps, sack, limited_transmit, duplicate_sack) in any::<(bool, bool, bool, bool)>(),
        (ecn, recovery) in (any_ecn(), any_recovery()),
        delayed in prop::option::of((1u32..5, 1u64..500)),
        quick_acknowledgements in 0u32..20,
        initial_sequence_number in prop_oneof![any::<u32>(), (u32::MAX - 50_000)..=u32::MAX],
        timestamp_offset in prop_oneof![any::<u32>(), (u32::MAX - 5_000)..=u32::MAX],
    ) -> Settings {
        Settings {
            maximum_segment_size, receive_buffer_bytes, send_buffer_bytes, initial_window_segments, window_scale,
            timestamps, sack, limited_transmit, duplicate_sack, ecn, recovery,
            delayed_acknowledgement: delayed.map(|(every, timeout)| DelayedAcknowledgement {
                every,
                timeout: timeout * MILLISECOND,
            }),
            quick_acknowledgements, initial_sequence_number, timestamp_offset,
            retransmission: RetransmissionSettings { maximum: 4 * SECOND, ..RetransmissionSettings::default() },
            handshake_retries: 60,
            retransmission_retries: 60,
            ..Settings::default()
        }
    }
}

/// Runs that one end sends: content, first offset and length.
fn any_runs() -> impl Strategy<Value = Vec<Run>> {
    prop::collection::vec((0u32..3, 0u64..1000, 1u64..20_000), 0..6).prop_map(|runs| {
        runs.into_iter()
            .map(|(content, content_offset, bytes)| Run { content: ContentId(content), content_offset, bytes })
            .collect()
    })
}

/// The same bytes with what is contiguous in one run.
fn merged(runs: &[Run]) -> Vec<Run> {
    let mut result: Vec<Run> = Vec::new();
    for run in runs {
        match result.last_mut() {
            Some(last) if last.content == run.content && last.content_offset + last.bytes == run.content_offset => {
                last.bytes += run.bytes;
            }
            _ => result.push(*run),
        }
    }
    result
}

/// An application that writes its runs, reads all, and closes once it has written everything.
struct Application {
    to_write: Vec<Run>,
    place: usize,
    read: Vec<Run>,
    read_limit: u64,
}

impl Application {
    fn new(to_write: Vec<Run>, read_limit: u64) -> Self {
        Self { to_write, place: 0, read: Vec::new(), read_limit }
    }

    fn serve(&mut self, connection: &mut Connection, now: u64) {
        while let Some(run) = connection.read(self.read_limit) {
            self.read.push(run);
        }
        if connection.state() == State::Listen || connection.state() == State::SynSent {
            return;
        }
        while let Some(run) = self.to_write.get(self.place).copied() {
            let written = connection.write(run.content, run.content_offset, run.bytes);
            if written < run.bytes {
                self.to_write[self.place] =
                    Run { content_offset: run.content_offset + written, bytes: run.bytes - written, ..run };
                return;
            }
            self.place += 1;
        }
        connection.close(now);
    }
}

/// A stream of numbers that decides the fate of each segment.
fn fates(seed: u64, lost: u64, reordered: u64, repeated: u64, marked: u64) -> impl FnMut() -> Fate {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let draw = (state >> 20) % 100;
        let delay = (state >> 40) % 200 * MILLISECOND;
        if draw < lost {
            Fate::Lose
        } else if draw < lost + reordered {
            Fate::Delay(delay)
        } else if draw < lost + reordered + repeated {
            Fate::Repeat
        } else if draw < lost + reordered + repeated + marked {
            Fate::Mark
        } else {
            Fate::Deliver
        }
    }
}

/// No data beyond the farthest edge that the peer offered; window probes carry one byte.
fn check_windows(wire: &Wire) {
    for end in [End::Client, End::Server] {
        let (us, peer) = match end {
            End::Client => (&wire.client, &wire.server),
            End::Server => (&wire.server, &wire.client),
        };
        let our_initial = us.settings().initial_sequence_number;
        let scaled = us.settings().window_scale.is_some() && peer.settings().window_scale.is_some();
        let shift = if scaled { peer.settings().offered_window_scale().unwrap_or(0) } else { 0 };
        let mut edge = 0;
        for sent in &wire.sent {
            let segment = sent.segment;
            if sent.from == end {
                let last = u64::from(segment.sequence.wrapping_sub(our_initial)) + u64::from(segment.payload_bytes);
                let fits = segment.payload_bytes <= 1 || last <= edge;
                assert!(fits, "{end:?} sent up to {last} where {edge} was offered");
                assert!(segment.payload_bytes <= us.settings().maximum_segment_size);
            } else if segment.flags.has(Flags::ACK) {
                let shift = if segment.flags.has(Flags::SYN) { 0 } else { shift };
                let acknowledged = u64::from(segment.acknowledgement.wrapping_sub(our_initial));
                edge = edge.max(acknowledged + (u64::from(segment.window) << shift));
            } else {
                edge = edge.max(1 + u64::from(segment.window));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_transfer_delivers_exactly_what_was_sent(
        client in any_settings(),
        server in any_settings(),
        down in any_runs(),
        up in any_runs(),
        seed in any::<u64>(),
        (lost, reordered, repeated, marked) in (0u64..25, 0u64..25, 0u64..15, 0u64..15),
        read_limits in (1u64..5_000, 1u64..5_000),
        delay_ms in 1u64..300,
        byte_time in 0u64..20_000,
    ) {
        let mut wire = Wire::new(client, server);
        wire.reads = false;
        wire.delay = delay_ms * MILLISECOND;
        wire.byte_time = byte_time;
        let mut draw = fates(seed, lost, reordered, repeated, marked);
        wire.rule = Box::new(move |_, _, _| draw());
        let mut applications =
            [Application::new(up.clone(), read_limits.0), Application::new(down.clone(), read_limits.1)];
        wire.connect();
        let is_over = |wire: &Wire| {
            [&wire.client, &wire.server].iter().all(|end| matches!(end.state(), State::Closed | State::TimeWait))
        };
        let mut steps = 0;
        while !is_over(&wire) {
            prop_assert!(wire.step(), "nothing more happens: {:?} {:?}", wire.client.state(), wire.server.state());
            for (end, application) in [End::Client, End::Server].into_iter().zip(&mut applications) {
                let now = wire.now;
                application.serve(wire.end(end), now);
            }
            wire.flush();
            steps += 1;
            prop_assert!(steps < 50_000, "it does not end: {:?} {:?}", wire.client, wire.server);
        }
        let closed: Vec<Event> = wire.events.iter().map(|(_, _, event)| *event).filter(|event| {
            matches!(event, Event::Closed | Event::Reset | Event::TimedOut)
        }).collect();
        prop_assert_eq!(closed, [Event::Closed, Event::Closed]);
        prop_assert_eq!(merged(&applications[0].read), merged(&down));
        prop_assert_eq!(merged(&applications[1].read), merged(&up));
        check_windows(&wire);
    }

    #[test]
    fn no_segment_and_no_order_of_calls_makes_an_end_panic(
        settings in any_settings(),
        is_client in any::<bool>(),
        operations in prop::collection::vec(
            (0u8..14, any::<u32>(), any::<u32>(), any::<u16>(), any::<u8>(), 0u64..2_000),
            1..120,
        ),
    ) {
        let mut end = if is_client { Connection::client(settings, 1, 0) } else { Connection::server(settings, 1, 0) };
        let initial = settings.initial_sequence_number;
        let mut now = 0;
        let mut written = 0;
        let mut received = 0;
        if is_client {
            end.connect(now);
        }
        // A peer that starts at 0 and knows our numbers, so that much of what it sends is plausible.
        let syn = Segment {
            flags: if is_client { Flags::SYN | Flags::ACK } else { Flags::SYN },
            acknowledgement: initial.wrapping_add(1),
            window: 20_000,
            timestamps: settings.timestamps.then_some(Timestamps { value: 1, echo_reply: 0 }),
            sack_permitted: true,
            window_scale: Some(3),
            ..Segment::default()
        };
        end.handle_segment(now, &syn);
        for (operation, first, second, small, bits, time) in operations {
            now += time * MILLISECOND;
            let mut segment = Segment {
                flags: Flags::ACK,
                sequence: 1 + first % 30_000,
                acknowledgement: initial.wrapping_add(second % 30_000),
                window: small,
                payload_bytes: if bits & 1 == 0 { 0 } else { small % 1500 },
                content_offset: u64::from(first % 30_000),
                timestamps: (bits & 2 == 0).then_some(Timestamps { value: 1 + first % 8, echo_reply: second }),
                ecn: if bits & 4 == 0 { Ecn::NotCapable } else { Ecn::Congestion },
                ..Segment::default()
            };
            for (mask, flag) in [(8, Flags::FIN), (16, Flags::ECE), (32, Flags::CWR)] {
                if bits & mask == mask && bits & 64 == 64 {
                    segment.flags |= flag;
                }
            }
            match operation {
                0..=3 => end.handle_segment(now, &segment),
                4 | 5 => {
                    for block in [first, second, first ^ second] {
                        let left = initial.wrapping_add(block % 30_000);
                        segment.sack.push(left, left.wrapping_add(u32::from(small) % 4000));
                    }
                    segment.acknowledgement = initial.wrapping_add(1 + second % 4000);
                    end.handle_segment(now, &segment);
                }
                6 => {
                    segment.flags = if bits & 1 == 0 { Flags::SYN } else { Flags::RST | Flags::ACK };
                    segment.sequence = first;
                    end.handle_segment(now, &segment);
                }
                7 => {
                    segment.sequence = first;
                    segment.acknowledgement = second;
                    end.handle_segment(now, &segment);
                }
                8 | 9 => written += end.write(ContentId(u32::from(bits & 1)), u64::from(first), u64::from(small)),
                10 => {
                    while let Some(run) = end.read(u64::from(small) + 1) {
                        received += run.bytes;
                    }
                }
                11 => end.window_limit((bits & 1 == 0).then_some(u64::from(small))),
                12 => {
                    now = now.max(end.poll_timeout().min(now + 200 * SECOND));
                    end.handle_timeout(now);
                }
                _ if bits == 7 => end.close(now),
                _ if bits == 9 => end.abort(now),
                _ => end.handle_timeout(now),
            }
            let mut sent = 0;
            while let Some(out) = end.poll_transmit(now) {
                sent += 1;
                prop_assert!(sent < 5_000, "endless transmission of {out:?}");
                prop_assert!(u32::from(out.payload_bytes) + out.option_bytes() <= 1480);
            }
            while end.poll_event().is_some() {}
            prop_assert!(end.bytes_acknowledged() <= written);
            prop_assert!(received + end.readable() <= end.bytes_received());
            prop_assert!(end.readable() <= settings.receive_buffer_bytes);
            prop_assert!(end.congestion_window() > 0);
        }
    }
}
