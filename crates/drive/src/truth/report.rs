//! Everything that is known of a run, as JSON.

use pepscope_path::{Direction, Hop, HopCounts, Nanoseconds};
use pepscope_tcp::{FlowResult, Outcome, Statistics};
use serde_json::{json, Value};

use super::applications::{datagrams_of, messages_of};
use super::delays::DelaySummary;
use crate::capture::addresses::{Endpoint, FlowKind};
use crate::element::PathElement;
use crate::scenario::Scenario;
use crate::simulation::Simulation;

/// Version of the report's form.
const FORM: u32 = 1;

/// What really happened in `simulation`, which was built from `scenario` and has run.
///
/// Times are seconds of true time since the start. For each flow: where it is split (the hops at which connections end),
/// what was written and read at either end and whether that is the same, and the true one-way delays of each leg. A
/// clock's parameters stand under `scenario.record.taps`: it shows
/// `start_time_s + t + offset_s + drift_ppm * 1e-6 * t` plus all steps before true time `t`.
#[must_use]
pub fn report(scenario: &Scenario, simulation: &Simulation) -> Value {
    let ends: Vec<&str> = simulation.hops().filter(|(_, hop)| hop.ends_connections()).map(|(name, _)| name).collect();
    let mut stations = vec!["server"];
    stations.extend(&ends);
    let acknowledging: Vec<&str> =
        simulation.hops().filter(|(_, hop)| hop.acknowledges()).map(|(name, _)| name).collect();
    stations.push("mobile");
    let flows: Vec<Value> = simulation
        .server()
        .flows()
        .zip(simulation.mobile().flows())
        .filter(|(server, _)| !simulation.mobile().is_dormant(server.flow))
        .map(|(server, mobile)| flow(scenario, simulation, &server, &mobile, &stations))
        .collect();
    let mut report = json!({
        "form": FORM,
        "pepscope": env!("CARGO_PKG_VERSION"),
        "scenario": scenario.resolved,
        "simulated_s": seconds(simulation.now()),
        "events": simulation.events(),
        "split_at": acknowledging,
        "flows": flows,
        "hops": simulation.hops().map(|(name, hop)| hop_report(simulation, name, hop)).collect::<Vec<_>>(),
        "captures": simulation.captures().iter().map(|(name, path, counts)| json!({
            "tap": name,
            "file": path.file_name().map(|file| file.to_string_lossy()),
            "written_packets": counts.written_packets,
            "missed_packets": counts.missed_packets,
        })).collect::<Vec<_>>(),
        "voice": {
            "sent_by_server": speech(simulation.server().spoken()),
            "sent_by_mobile": speech(simulation.mobile().spoken()),
            "heard_by_server": heard(simulation.server().heard()),
            "heard_by_mobile": heard(simulation.mobile().heard()),
        },
    });
    if let Some(datagrams) = datagrams_of(scenario, simulation) {
        report["datagrams"] = datagrams;
    }
    report
}

fn hop_report(simulation: &Simulation, name: &str, hop: &PathElement) -> Value {
    let now = simulation.now();
    let mut report = json!({
        "name": name,
        "down": counts(&hop.counts(Direction::Down), hop.capacity_bits(now, Direction::Down)),
        "up": counts(&hop.counts(Direction::Up), hop.capacity_bits(now, Direction::Up)),
    });
    match hop {
        PathElement::Proxy(proxy) if proxy.tells_clients_apart() => {
            let counts = proxy.admissions();
            report["connections"] = json!({
                "served": counts.served,
                "most_at_once": counts.most_at_once,
                "waited": counts.waited,
                "refused": counts.refused,
                "dropped": counts.dropped,
                "bypassed": counts.bypassed,
                "reused": counts.reused,
            });
        }
        PathElement::Acknowledger(acknowledger) => {
            let totals = acknowledger.totals();
            report["acknowledged"] = json!({
                "acknowledgements": totals.acknowledgements,
                "retransmitted_segments": totals.retransmitted_segments,
                "most_held_bytes": totals.most_held_bytes,
            });
        }
        _ => {}
    }
    report
}

fn flow(
    scenario: &Scenario,
    simulation: &Simulation,
    server: &FlowResult,
    mobile: &FlowResult,
    stations: &[&str],
) -> Value {
    let delays = simulation.delays();
    let description = scenario.traffic.flows.get(server.flow as usize);
    let legs = stations.windows(2).enumerate().map(|(leg, ends)| {
        let delay = |direction| delays.summary(leg, server.flow, direction).map(delay);
        json!({
            "from": ends[0],
            "to": ends[1],
            "one_way_delay_down": delay(Direction::Down),
            "one_way_delay_up": delay(Direction::Up),
        })
    });
    let version_6 = description.is_some_and(|flow| flow.version_6);
    let mut report = json!({
        "flow": server.flow,
        "user": server.user,
        "kind": description.map(|flow| flow.kind),
        "class": scenario.class(),
        "start_s": seconds(mobile.start_ns),
        "delivered_exactly": {
            "down": is_same(server, mobile),
            "up": is_same(mobile, server),
        },
        "server": end(server),
        "mobile": end(mobile),
        "legs": legs.collect::<Vec<_>>(),
        "addresses": addresses(scenario, FlowKind::Tcp { flow: server.flow, version_6 }, server.user),
    });
    let messages = messages_of(simulation.streams(), server.flow);
    if let Some(messages) = messages {
        report["messages"] = messages;
    }
    report
}

/// Whether everything that the one wrote was read by the other, byte for byte.
fn is_same(writer: &FlowResult, reader: &FlowResult) -> bool {
    writer.application.written_bytes == reader.application.read_bytes
        && writer.application.written_digest == reader.application.read_digest
}

/// Server's and mobile's address and port as each tap shows them.
pub(super) fn addresses(scenario: &Scenario, kind: FlowKind, user: u16) -> Value {
    scenario
        .record
        .taps
        .iter()
        .map(|tap| {
            let book = scenario.traffic.address_book(tap.settings.translation);
            let ends = book.ends(kind, user);
            let both = json!({ "server": endpoint(ends.server), "mobile": endpoint(ends.mobile) });
            (tap.settings.name.clone(), both)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn endpoint(endpoint: Endpoint) -> Value {
    json!({ "address": endpoint.address.to_string(), "port": endpoint.port })
}

fn end(result: &FlowResult) -> Value {
    let application = &result.application;
    json!({
        "outcome": match result.outcome {
            Outcome::Open => "open",
            Outcome::Closed => "closed",
            Outcome::Aborted => "aborted",
            Outcome::Reset => "reset",
            Outcome::TimedOut => "timed-out",
        },
        "connected_s": result.connected_ns.map(seconds),
        "peer_finished_s": result.peer_finished_ns.map(seconds),
        "ended_s": result.ended_ns.map(seconds),
        "written_bytes": application.written_bytes,
        "read_bytes": application.read_bytes,
        "first_read_s": application.first_read_ns.map(seconds),
        "last_read_s": application.last_read_ns.map(seconds),
        "answers": application.answers,
        "answer_time_s": seconds(application.answer_time_ns),
        "longest_answer_s": seconds(application.longest_answer_ns),
        "tcp": statistics(&result.statistics),
    })
}

fn statistics(totals: &Statistics) -> Value {
    let mut written = json!({
        "segments_sent": totals.segments_sent,
        "segments_received": totals.segments_received,
        "data_segments_sent": totals.data_segments_sent,
        "payload_bytes_sent": totals.payload_bytes_sent,
        "retransmitted_segments": totals.retransmitted_segments,
        "retransmitted_bytes": totals.retransmitted_bytes,
        "timeouts": totals.timeouts,
        "fast_retransmits": totals.fast_retransmits,
        "corruption_retransmits": totals.corruption_retransmits,
        "mark_reactions": totals.mark_reactions,
        "window_probes": totals.window_probes,
        "duplicate_acknowledgements": totals.duplicate_acknowledgements,
        "out_of_order_segments": totals.out_of_order_segments,
        "duplicate_segments": totals.duplicate_segments,
        "marks_received": totals.marks_received,
        "stale_timestamps": totals.stale_timestamps,
        "outside_window": totals.outside_window,
    });
    // Counts of Linux hosts alone; where there is nothing to tell, truth stays as it was before they existed.
    for (name, count) in
        [("tail_loss_probes", totals.tail_loss_probes), ("undone_reductions", totals.undone_reductions)]
    {
        if count > 0 {
            written[name] = json!(count);
        }
    }
    written
}

fn delay(summary: &DelaySummary) -> Value {
    json!({
        "segments": summary.count(),
        "mean_s": summary.mean_s(),
        "minimum_s": seconds(summary.minimum_ns()),
        "median_s": summary.quantile_s(0.5),
        "quantile_95_s": summary.quantile_s(0.95),
        "quantile_99_s": summary.quantile_s(0.99),
        "maximum_s": seconds(summary.maximum_ns()),
    })
}

pub(crate) fn counts(counts: &HopCounts, capacity_bits: Option<u64>) -> Value {
    let mut report = json!({
        "offered_packets": counts.offered_packets,
        "offered_bytes": counts.offered_bytes,
        "delivered_packets": counts.delivered_packets,
        "delivered_bytes": counts.delivered_bytes,
        "overflowed_packets": counts.overflowed_packets,
        "lost_packets": counts.lost_packets,
        "marked_packets": counts.marked_packets,
        "capacity_bits": capacity_bits,
    });
    // Only hops that copy packets have such.
    if counts.duplicated_packets > 0 {
        report["duplicated_packets"] = counts.duplicated_packets.into();
    }
    report
}

fn speech(spoken: impl Iterator<Item = pepscope_tcp::VoiceCounts>) -> Value {
    let (mut speech_frames, mut silence_descriptors) = (0, 0);
    for counts in spoken {
        speech_frames += counts.speech_frames;
        silence_descriptors += counts.silence_descriptors;
    }
    json!({ "speech_frames": speech_frames, "silence_descriptors": silence_descriptors })
}

fn heard(receptions: &[pepscope_tcp::VoiceReception]) -> Value {
    json!({
        "frames": receptions.iter().map(|reception| reception.frames).sum::<u64>(),
        "missing_frames": receptions.iter().map(|reception| reception.missing_frames).sum::<u64>(),
    })
}

pub(super) fn seconds(time: Nanoseconds) -> f64 {
    time as f64 * 1e-9
}
