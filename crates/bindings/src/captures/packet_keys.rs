//! Keys of packets, by which connections of two captures are found to share packets.

use numpy::{IntoPyArray, PyArray1};
use pepscope_connections::{LookupError, Row};
use pepscope_evidence::segments::packet_keys::{self as keys, KeyFields, KeyedPacket, PacketKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::captures::capture::{raised, Capture};
use crate::captures::packets::PacketArrays;

/// Whether stamps, IP IDs and places are in a key.
type Form = (bool, bool, bool);
/// Values of keys, and the directions of their packets.
type Keys<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);
/// The same, and between them whose they are.
type HeldKeys<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// The least keys of a connection's packets, ascending, and the directions of these.
#[pyfunction]
pub(crate) fn packet_keys<'py>(
    py: Python<'py>,
    packets: PacketArrays<'py>,
    stamps: bool,
    ip_id: bool,
    places: bool,
    most: usize,
) -> PyResult<Keys<'py>> {
    let columns = packets.columns()?;
    let [found] = py.detach(|| keys::packet_keys(columns.keyed(), [KeyFields { stamps, ip_id, places }], most));
    let values = PyArray1::from_iter(py, found.iter().map(|key| key.value));
    Ok((values, PyArray1::from_iter(py, found.iter().map(|key| i64::from(key.direction)))))
}

/// The least keys of some connections of a capture, connection by connection, for one form or two: values, connections
/// and directions.
#[pyfunction]
pub(crate) fn keys_of_connections<'py>(
    py: Python<'py>,
    capture: &Capture,
    connections: Vec<usize>,
    forms: Vec<Form>,
    most: usize,
) -> PyResult<Vec<HeldKeys<'py>>> {
    let fields = |(stamps, ip_id, places): Form| KeyFields { stamps, ip_id, places };
    let found = match *forms.as_slice() {
        [one] => py.detach(|| held_keys(capture, &connections, [one].map(fields), most)).map(Vec::from),
        [one, two] => py.detach(|| held_keys(capture, &connections, [one, two].map(fields), most)).map(Vec::from),
        _ => return Err(PyValueError::new_err(format!("`forms` must be one or two, got {}", forms.len()))),
    };
    let columns = |held: HeldColumns| {
        (held.values.into_pyarray(py), held.connections.into_pyarray(py), held.directions.into_pyarray(py))
    };
    Ok(found.map_err(raised)?.into_iter().map(columns).collect())
}

/// Keys of several connections.
#[derive(Default)]
struct HeldColumns {
    values: Vec<u64>,
    connections: Vec<i64>,
    directions: Vec<i64>,
}

impl HeldColumns {
    fn add(&mut self, connection: usize, keys: &[PacketKey]) {
        self.values.extend(keys.iter().map(|key| key.value));
        self.connections.extend(keys.iter().map(|_| connection as i64));
        self.directions.extend(keys.iter().map(|key| i64::from(key.direction)));
    }
}

fn held_keys<const FORMS: usize>(
    capture: &Capture,
    connections: &[usize],
    fields: [KeyFields; FORMS],
    most: usize,
) -> Result<[HeldColumns; FORMS], LookupError> {
    let mut held = [(); FORMS].map(|()| HeldColumns::default());
    for &connection in connections {
        let found = capture.analysed.with_packets(connection, |packets, place| {
            keys::packet_keys(packets.rows(place).map(keyed), fields, most)
        })?;
        held.iter_mut().zip(&found).for_each(|(held, keys)| held.add(connection, keys));
    }
    Ok(held)
}

#[inline(always)]
fn keyed(row: Row) -> KeyedPacket {
    KeyedPacket {
        direction: row.side,
        flags: row.flags,
        marks: row.marks,
        ip_id: row.ip_id,
        sequence_offset: row.sequence_offset,
        acknowledgement_offset: row.acknowledgement_offset,
        payload_bytes: row.payload_bytes,
        tsval: row.tsval,
        tsecr: row.tsecr,
        payload_hash: row.payload_hash,
    }
}
