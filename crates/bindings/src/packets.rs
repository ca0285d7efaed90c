//! Packets of a connection from NumPy columns.

use numpy::PyReadonlyArray1;
use pepscope_evidence::packets::Packets;
use pepscope_evidence::segments::twins::{twins, Identifier};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The columns of `pepscope.captures.packets.PacketColumns`.
#[derive(FromPyObject)]
pub(crate) struct PacketArrays<'py> {
    time_ns: PyReadonlyArray1<'py, i64>,
    direction: PyReadonlyArray1<'py, u8>,
    sequence_offset: PyReadonlyArray1<'py, i64>,
    acknowledgement_offset: PyReadonlyArray1<'py, i64>,
    payload_bytes: PyReadonlyArray1<'py, u32>,
    window_bytes: PyReadonlyArray1<'py, u32>,
    flags: PyReadonlyArray1<'py, u16>,
    tsval: PyReadonlyArray1<'py, u32>,
    tsecr: PyReadonlyArray1<'py, u32>,
    ip_id: PyReadonlyArray1<'py, u16>,
    ttl: PyReadonlyArray1<'py, u8>,
    payload_hash: PyReadonlyArray1<'py, u32>,
    marks: PyReadonlyArray1<'py, u16>,
    round_trip_time_ns: PyReadonlyArray1<'py, i64>,
}

impl PacketArrays<'_> {
    pub(crate) fn columns(&self) -> PyResult<Packets<'_>> {
        let packets = Packets {
            time_ns: self.time_ns.as_slice()?,
            direction: self.direction.as_slice()?,
            sequence_offset: self.sequence_offset.as_slice()?,
            acknowledgement_offset: self.acknowledgement_offset.as_slice()?,
            payload_bytes: self.payload_bytes.as_slice()?,
            window_bytes: self.window_bytes.as_slice()?,
            flags: self.flags.as_slice()?,
            tsval: self.tsval.as_slice()?,
            tsecr: self.tsecr.as_slice()?,
            ip_id: self.ip_id.as_slice()?,
            ttl: self.ttl.as_slice()?,
            payload_hash: self.payload_hash.as_slice()?,
            marks: self.marks.as_slice()?,
            round_trip_time_ns: self.round_trip_time_ns.as_slice()?,
        };
        if packets.is_even() {
            Ok(packets)
        } else {
            Err(PyValueError::new_err("the columns differ in length"))
        }
    }
}

/// Shift that most twins have, twins among the data packets of `direction`, and how many have that shift.
#[pyfunction]
pub(crate) fn packet_twins(
    py: Python<'_>,
    direction: u8,
    left: PacketArrays<'_>,
    right: PacketArrays<'_>,
    by_timestamp: bool,
) -> PyResult<Option<(i64, usize, usize)>> {
    let (left, right) = (left.columns()?, right.columns()?);
    let by = if by_timestamp { Identifier::Tsval } else { Identifier::IpId };
    let found = py.detach(|| twins(&left, &right, direction, by));
    Ok(found.map(|found| (found.shift, found.count, found.agreeing)))
}
