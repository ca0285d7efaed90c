//! Frames of a capture with their headers, and the capture with other frames.

use std::collections::HashMap;
use std::path::PathBuf;

use numpy::IntoPyArray;
use pepscope_wire::{CapturedFrame, Dissector, EditableCapture, Frame, Header, HeaderKind, WholeDatagram};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::captures::read::CaptureError;

/// Read a whole capture into memory and find the headers of its frames.
#[pyfunction]
pub(crate) fn read_frames(py: Python<'_>, path: PathBuf) -> PyResult<CaptureFrames> {
    py.detach(|| {
        let capture = EditableCapture::open(&path).map_err(|error| CaptureError::new_err(error.to_string()))?;
        Ok(CaptureFrames { capture })
    })
}

/// Address and port.
type End = ([u8; 16], u16);

/// The content of a capture, not compressed, with no frames but those of some TCP connections, each from a time on: ends
/// in either order, and nanoseconds since the epoch.
#[pyfunction]
pub(crate) fn frames_of_connections<'py>(
    py: Python<'py>,
    path: PathBuf,
    connections: Vec<(End, End, i64)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let content = py.detach(|| {
        let since_ns: HashMap<(End, End), i64> =
            connections.into_iter().map(|(one, other, time_ns)| ((one.min(other), one.max(other)), time_ns)).collect();
        EditableCapture::open_segments(&path, |segment| {
            let sender = (segment.source, segment.source_port);
            let receiver = (segment.destination, segment.destination_port);
            let key = (sender.min(receiver), sender.max(receiver));
            since_ns.get(&key).is_some_and(|time_ns| segment.time_ns >= *time_ns)
        })
        .map(|capture| capture.to_bytes())
        .map_err(|error| CaptureError::new_err(error.to_string()))
    })?;
    Ok(PyBytes::new(py, &content))
}

/// Names of the kinds of headers, by their number.
#[pyfunction]
pub(crate) fn header_kinds() -> Vec<&'static str> {
    HeaderKind::NAMES.iter().map(|(_, name)| *name).collect()
}

/// The frames of a capture.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct CaptureFrames {
    capture: EditableCapture,
}

/// A datagram put together: index of the last frame, captured bytes, wire length, completeness, headers.
type Whole<'py> = (usize, Bound<'py, PyBytes>, usize, bool, Bound<'py, PyTuple>);

/// What the frames of a capture hold, as columns.
#[derive(Default)]
struct Dissected {
    wire_bytes: Vec<u32>,
    link_types: Vec<u16>,
    complete: Vec<bool>,
    header_ends: Vec<i64>,
    datagrams: Vec<i64>,
    offsets: Vec<u32>,
    headers: Vec<Header>,
    wholes: Vec<(usize, WholeDatagram)>,
}

impl Dissected {
    fn of(capture: &EditableCapture) -> Self {
        let mut dissector = Dissector::new();
        let mut made = Dissected::default();
        for (index, frame) in capture.frames().enumerate() {
            let CapturedFrame { time_ns, wire_bytes, link_type, .. } = *frame;
            let bytes = capture.bytes(frame);
            let dissected = dissector
                .dissect(Frame { index: index as u64, time_ns, link_type, bytes, wire_bytes }, &mut made.headers);
            made.wire_bytes.push(wire_bytes);
            made.link_types.push(link_type);
            made.complete.push(matches!(dissected, Ok(None)));
            made.header_ends.push(made.headers.len() as i64);
            let fragment = dissected.ok().flatten();
            made.datagrams.push(fragment.as_ref().map_or(-1, |fragment| fragment.datagram as i64));
            made.offsets.push(fragment.as_ref().map_or(0, |fragment| fragment.offset));
            made.wholes.extend(fragment.and_then(|fragment| fragment.whole).map(|whole| (index, whole)));
        }
        made
    }
}

/// Kind, offset, length and end of each header.
fn header_columns<'py>(py: Python<'py>, headers: &[Header]) -> PyResult<Bound<'py, PyTuple>> {
    let column = |value: fn(&Header) -> usize| headers.iter().map(|header| value(header) as i64).collect::<Vec<_>>();
    PyTuple::new(
        py,
        [
            headers.iter().map(|header| header.kind as u8).collect::<Vec<_>>().into_pyarray(py).into_any(),
            column(|header| header.offset).into_pyarray(py).into_any(),
            column(|header| header.length).into_pyarray(py).into_any(),
            column(|header| header.end).into_pyarray(py).into_any(),
        ],
    )
}

#[pymethods]
impl CaptureFrames {
    /// The captured bytes of each frame.
    fn frames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.capture.frames().map(|frame| PyBytes::new(py, self.capture.bytes(frame))))
    }

    /// Per frame: length on the wire, link-layer type, whether it ends in TCP or UDP, the index behind its last header,
    /// the number of the datagram of which it holds a fragment (-1 for none), and where in the datagram the fragment
    /// begins. Per header: kind, offset, length, end.
    ///
    /// Then the datagrams that the fragments make, each as the index of the frame that completes it, its captured bytes,
    /// its length on the wire, whether it ends in TCP or UDP, and its headers.
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>, Vec<Whole<'py>>)> {
        let dissected = py.detach(|| Dissected::of(&self.capture));
        let frames = PyTuple::new(
            py,
            [
                dissected.wire_bytes.into_pyarray(py).into_any(),
                dissected.link_types.into_pyarray(py).into_any(),
                dissected.complete.into_pyarray(py).into_any(),
                dissected.header_ends.into_pyarray(py).into_any(),
                dissected.datagrams.into_pyarray(py).into_any(),
                dissected.offsets.into_pyarray(py).into_any(),
            ],
        )?;
        let datagrams = dissected.wholes.into_iter().map(|(index, whole)| {
            let headers = header_columns(py, &whole.headers)?;
            Ok((index, PyBytes::new(py, &whole.captured), whole.wire_bytes, whole.is_complete, headers))
        });
        let datagrams = datagrams.collect::<PyResult<_>>()?;
        Ok((frames, header_columns(py, &dissected.headers)?, datagrams))
    }

    /// The file with other frames in the places of its own, `None` for one to leave out.
    fn with_frames<'py>(&self, py: Python<'py>, frames: Vec<Option<Bound<'py, PyBytes>>>) -> Bound<'py, PyBytes> {
        let frames = frames.iter().map(|frame| frame.as_ref().map(|bytes| bytes.as_bytes()));
        PyBytes::new(py, &self.capture.with_frames(frames))
    }
}
