//! What applications said to each other, and when.

use pepscope_tcp::{DatagramFlowResult, DatagramTransport, MessageRecord};
use serde_json::{json, Value};

use super::report::{addresses, seconds};
use crate::assembly::ApplicationStreams;
use crate::capture::addresses::FlowKind;
use crate::scenario::Scenario;
use crate::simulation::Simulation;

/// The messages of a flow in the order in which they were written; `None` where no application writes.
///
/// `written_s` is when its protocol gave a message to the connection (or sent the datagram), `read_s` when the peer's had
/// read it whole, and `bytes` what was written since the message before it.
pub(super) fn messages_of(written: &ApplicationStreams, flow: u32) -> Option<Value> {
    let place = written.by_flow.binary_search_by_key(&flow, |(number, _)| *number).ok()?;
    let contents = written.by_flow[place].1;
    let ends = ["mobile", "server"].into_iter().zip(contents);
    let mut all: Vec<(&str, MessageRecord)> = ends
        .flat_map(|(from, content)| written.streams.messages(content).into_iter().map(move |record| (from, record)))
        .collect();
    all.sort_by_key(|(_, record)| record.written_ns);
    let listed = all.iter().map(|(from, record)| {
        json!({
            "from": from,
            "name": record.message.name,
            "bytes": record.bytes,
            "written_s": seconds(record.written_ns),
            "read_s": record.read_ns.map(seconds),
        })
    });
    Some(listed.collect())
}

/// What became of the flows of datagrams, which nothing splits; `None` where there are none.
pub(super) fn datagrams_of(scenario: &Scenario, simulation: &Simulation) -> Option<Value> {
    let ends = simulation.server().datagram_flows().zip(simulation.mobile().datagram_flows());
    let flows: Vec<Value> = ends
        .map(|(server, mobile)| {
            let (flow, has_ports) = (server.flow, server.transport == DatagramTransport::Udp);
            json!({
                "flow": flow,
                "user": server.user,
                "kind": scenario.traffic.flows.get(flow as usize).map(|described| described.kind),
                "transport": if has_ports { "udp" } else { "icmp" },
                "server": counts(&server),
                "mobile": counts(&mobile),
                "ended_s": mobile.ended_ns.map(seconds),
                "addresses": addresses(scenario, FlowKind::Datagrams { flow, has_ports }, server.user),
                "messages": messages_of(simulation.streams(), flow),
            })
        })
        .collect();
    (!flows.is_empty()).then_some(flows.into())
}

fn counts(result: &DatagramFlowResult) -> Value {
    json!({
        "sent_datagrams": result.sent_datagrams,
        "sent_bytes": result.sent_bytes,
        "received_datagrams": result.received_datagrams,
        "received_bytes": result.received_bytes,
    })
}
