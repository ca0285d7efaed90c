//! Packets that show findings on many connections.

use pepscope_evidence::clocks::lines::ClockLines;
use pepscope_evidence::clocks::sender_axis::Axis;
use pepscope_evidence::packets::{Packets, UP};
use pepscope_evidence::telling::compared_segments::{compared_segments as most_telling, Order};
use pepscope_evidence::telling::soonest_acknowledgements::{soonest_acknowledgements as soonest, Soonest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::packets::{packet, Packet, PacketArrays};
use crate::flows::flow_times::{taken_over, Lines};

fn even(lengths: &[usize]) -> PyResult<()> {
    if lengths.windows(2).all(|two| two[0] == two[1]) {
        Ok(())
    } else {
        Err(PyValueError::new_err("the columns differ in length"))
    }
}

/// A packet by its place, and its fields.
type Placed = (usize, Packet);

/// The first packet of a direction that bears any of these flags, in many captures.
#[pyfunction]
pub(crate) fn first_flagged_packets(
    packets: Vec<PacketArrays<'_>>,
    direction: u8,
    flags: u16,
) -> PyResult<Vec<Option<Placed>>> {
    let first = |each: &PacketArrays<'_>| {
        let columns = each.columns()?;
        Ok(columns.first_flagged(direction, flags).and_then(|row| Some((row, packet(columns, row)?))))
    };
    packets.iter().map(first).collect()
}

/// A row of each of many flows, and a number that belongs to it; None where there is none.
type Rows<T> = Vec<Option<(usize, T)>>;

/// What stands in packets of each of many flows.
fn of_flows<T>(
    packets: &[PacketArrays<'_>],
    directions: &[u8],
    find: impl Fn(&Packets<'_>, u8) -> Option<(usize, T)>,
) -> PyResult<Rows<T>> {
    even(&[packets.len(), directions.len()])?;
    packets.iter().zip(directions).map(|(each, &direction)| Ok(find(&each.columns()?, direction))).collect()
}

/// The packets that begin the streams of flows, and the payload of each.
#[pyfunction]
pub(crate) fn stream_openings(packets: Vec<PacketArrays<'_>>, directions: Vec<u8>) -> PyResult<Rows<u32>> {
    of_flows(&packets, &directions, |columns, direction| {
        columns.stream_opening(direction).map(|row| (row, columns.payload_bytes[row]))
    })
}

/// The first and the last packet with data of flows; with `only_new` without copies.
#[pyfunction]
pub(crate) fn data_ends(packets: Vec<PacketArrays<'_>>, directions: Vec<u8>, only_new: bool) -> PyResult<Rows<usize>> {
    of_flows(&packets, &directions, |columns, direction| columns.data_ends(direction, only_new))
}

/// What acknowledges most of the data of flows, and how far.
#[pyfunction]
pub(crate) fn furthest_acknowledgements(packets: Vec<PacketArrays<'_>>, directions: Vec<u8>) -> PyResult<Rows<i64>> {
    of_flows(&packets, &directions, |columns, direction| columns.furthest_acknowledgement(direction))
}

/// Place and value of an acknowledgement, by how much it came before its data, and what brought the last of these.
type Early = (usize, i64, f64, Option<usize>);

/// Acknowledgements of flows that came soonest behind their data, or before them.
#[pyfunction]
pub(crate) fn soonest_acknowledgements(
    senders: Vec<PacketArrays<'_>>,
    receivers: Vec<PacketArrays<'_>>,
    directions: Vec<u8>,
    shifts: Vec<i64>,
    lines: Vec<Option<Lines>>,
    raised_ns: Vec<f64>,
    most: usize,
) -> PyResult<Vec<Vec<Early>>> {
    even(&[senders.len(), receivers.len(), directions.len(), shifts.len(), lines.len(), raised_ns.len()])?;
    let mut found = Vec::with_capacity(senders.len());
    for (row, lines) in lines.into_iter().enumerate() {
        let (sender, receiver, lines) = (senders[row].columns()?, receivers[row].columns()?, lines.map(taken_over));
        let begin = |times: &[i64]| times.first().copied();
        let (Some(origin_ns), Some(start_ns)) = (begin(sender.time_ns), begin(receiver.time_ns)) else {
            found.push(Vec::new());
            continue;
        };
        let axis = Axis {
            is_up: directions[row] == UP,
            origin_ns,
            start_ns,
            lines: lines.as_deref().map(ClockLines),
            raise_ns: raised_ns[row],
        };
        let handed_over = |each: Soonest| (each.row, each.acknowledged_bytes, each.early_s, each.brought);
        let of_flow = soonest(&sender, &receiver, directions[row], shifts[row], axis, most);
        found.push(of_flow.into_iter().map(handed_over).collect());
    }
    Ok(found)
}

/// Direction of a segment, as it left, and as it arrived.
type Compared = (u8, Placed, Placed);

/// Data segments of connections as they left and as they arrived. `order`: 0 those with fewest changes first, 1 with
/// most, 2 the same without those that did not change.
#[pyfunction]
pub(crate) fn compared_segments(
    clients: Vec<PacketArrays<'_>>,
    servers: Vec<PacketArrays<'_>>,
    shifts: Vec<[Option<i64>; 2]>,
    order: u8,
    looked_at: usize,
    most: usize,
) -> PyResult<Vec<Vec<Compared>>> {
    even(&[clients.len(), servers.len(), shifts.len()])?;
    let order = match order {
        0 => Order::Fewest,
        1 => Order::Most,
        2 => Order::MostOfChanged,
        _ => return Err(PyValueError::new_err(format!("`order` must be 0, 1 or 2, got {order}"))),
    };
    let mut found = Vec::with_capacity(clients.len());
    for (row, shifts) in shifts.into_iter().enumerate() {
        let (client, server) = (clients[row].columns()?, servers[row].columns()?);
        let segments = most_telling(&client, &server, shifts, order, looked_at, most);
        let placed = segments.into_iter().filter_map(|each| {
            let (emitted, arrived) = if each.direction == UP { (client, server) } else { (server, client) };
            let (left, came) = (packet(emitted, each.left)?, packet(arrived, each.arrived)?);
            Some((each.direction, (each.left, left), (each.arrived, came)))
        });
        found.push(placed.collect());
    }
    Ok(found)
}
