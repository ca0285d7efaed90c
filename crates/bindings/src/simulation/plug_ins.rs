//! Links and congestion controls that are written in Python (`reference_sim.plug_ins`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pepscope_drive::plug_ins::HopFactory;
use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER};
use pepscope_tcp::control::{
    Acknowledged, Cause, Congestion, CongestionControl, ControlFactory, ControlSettings, Needs,
};
use pepscope_tcp::Packet;
use pyo3::prelude::*;

/// The first exception that a plug-in raised; the run ends with it.
#[derive(Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn note(&self, failure: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// What a link asked for packets that it holds: to be dropped, or marked.
#[derive(Debug, Default)]
struct Wishes {
    discarded: Vec<u64>,
    marked: Vec<u64>,
}

type SharedWishes = Arc<Mutex<Wishes>>;

/// A packet that a link holds.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct SimulatedPacket {
    #[pyo3(get)]
    number: u64,
    #[pyo3(get)]
    length_bytes: u32,
    #[pyo3(get)]
    user: u16,
    #[pyo3(get)]
    flow: u64,
    #[pyo3(get)]
    is_up: bool,
    #[pyo3(get)]
    understands_marks: bool,
    wishes: SharedWishes,
}

#[pymethods]
impl SimulatedPacket {
    fn discard(&self) {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).discarded.push(self.number);
    }

    fn mark(&self) -> bool {
        if self.understands_marks {
            self.wishes.lock().unwrap_or_else(PoisonError::into_inner).marked.push(self.number);
        }
        self.understands_marks
    }
}

/// A link whose behaviour is a Python object's.
struct PythonHop {
    link: Py<PyAny>,
    held: BTreeMap<u64, (Direction, Packet)>,
    next_number: u64,
    wishes: SharedWishes,
    wake_up: Nanoseconds,
    counts: [HopCounts; 2],
    failures: Failures,
    has_failed: bool,
}

impl PythonHop {
    fn call<T>(&mut self, action: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Option<T> {
        if self.has_failed {
            return None;
        }
        match Python::attach(|py| action(py, &self.link)) {
            Ok(value) => Some(value),
            Err(failure) => {
                self.has_failed = true;
                self.wake_up = NEVER;
                self.failures.note(failure);
                None
            }
        }
    }

    /// Does what the link wished, and asks when it wants to be woken.
    fn settle(&mut self) {
        let wishes = std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner));
        for number in wishes.marked {
            if let Some((direction, packet)) = self.held.get_mut(&number) {
                packet.mark_congestion();
                self.counts[direction.index()].marked_packets += 1;
            }
        }
        for number in wishes.discarded {
            if let Some((direction, _)) = self.held.remove(&number) {
                self.counts[direction.index()].overflowed_packets += 1;
            }
        }
        let wake_up = self.call(|py, link| link.call_method0(py, "poll_timeout")?.extract::<Option<Nanoseconds>>(py));
        self.wake_up = wake_up.flatten().unwrap_or(NEVER);
    }
}

impl Hop<Packet> for PythonHop {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        let number = self.next_number;
        self.next_number += 1;
        let token = SimulatedPacket {
            number,
            length_bytes: packet.length_bytes(),
            user: packet.user(),
            flow: packet.flow(),
            is_up: direction == Direction::Up,
            understands_marks: packet.understands_marks(),
            wishes: Arc::clone(&self.wishes),
        };
        self.held.insert(number, (direction, packet));
        self.call(|py, link| link.call_method1(py, "handle_packet", (now, token)));
        self.settle();
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        if now >= self.wake_up {
            self.call(|py, link| link.call_method1(py, "handle_timeout", (now,)));
            self.settle();
        }
    }

    fn poll_transmit(&mut self, now: Nanoseconds) -> Option<(Direction, Packet)> {
        loop {
            let number = self.call(|py, link| {
                let packet = link.call_method1(py, "poll_transmit", (now,))?;
                if packet.is_none(py) {
                    return Ok(None);
                }
                Ok(Some(packet.bind(py).cast::<SimulatedPacket>()?.get().number))
            });
            let Some(number) = number.flatten() else {
                self.settle();
                return None;
            };
            // One that was discarded, or given before, is not given again.
            if let Some((direction, packet)) = self.held.remove(&number) {
                let counts = &mut self.counts[direction.index()];
                counts.delivered_packets += 1;
                counts.delivered_bytes += u64::from(packet.length_bytes());
                return Some((direction, packet));
            }
        }
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.wake_up
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("held_packets", self.held.len() as f64);
    }
}

/// Builds links by `plug_ins.link(plug_in, settings, seed, name)`, settings as JSON.
pub(crate) fn hop_factory(plug_ins: &Py<PyAny>, failures: &Failures) -> HopFactory {
    let (plug_ins, failures) = (Python::attach(|py| plug_ins.clone_ref(py)), failures.clone());
    HopFactory::new(move |described, seed, name| {
        let arguments = (described.plug_in.as_str(), described.settings.to_string(), seed, name);
        let link = Python::attach(|py| plug_ins.call_method1(py, "link", arguments));
        let link = link.map_err(|failure| {
            let text = failure.to_string();
            failures.note(failure);
            text
        })?;
        Ok(Box::new(PythonHop {
            link,
            held: BTreeMap::new(),
            next_number: 0,
            wishes: SharedWishes::default(),
            wake_up: NEVER,
            counts: [HopCounts::default(); 2],
            failures: failures.clone(),
            has_failed: false,
        }))
    })
}

/// An acknowledgement as a congestion control sees it; see [`Acknowledged`].
#[pyclass(frozen, get_all, module = "pepscope._core")]
pub(crate) struct ControlAcknowledgement {
    now_ns: Nanoseconds,
    newly_acknowledged_bytes: u64,
    newly_delivered_bytes: u64,
    delivered_bytes: u64,
    in_flight_bytes: u64,
    round_trip_time_ns: Option<Nanoseconds>,
    delivery_rate_byte_s: Option<u64>,
    newly_lost_bytes: u64,
    is_marked: bool,
    in_recovery: bool,
    is_window_limited: bool,
}

/// A control whose behaviour is a Python object's.
struct PythonControl {
    control: Option<Py<PyAny>>,
    segment_bytes: u64,
    window_bytes: u64,
    threshold_bytes: u64,
    pacing_rate_bytes_s: Option<u64>,
    paces: bool,
    failures: Failures,
}

impl core::fmt::Debug for PythonControl {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("PythonControl")
    }
}

impl PythonControl {
    fn call(&mut self, action: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(control) = &self.control else { return };
        let read = Python::attach(|py| {
            let control = control.bind(py);
            action(py, control)?;
            let window: u64 = control.getattr("window_bytes")?.extract()?;
            let threshold: Option<u64> = control.getattr("slow_start_threshold_bytes")?.extract()?;
            let rate: Option<f64> = control.getattr("pacing_rate_byte_s")?.extract()?;
            Ok((window, threshold, rate))
        });
        match read {
            Ok((window, threshold, rate)) => {
                self.window_bytes = window.max(self.segment_bytes);
                self.threshold_bytes = threshold.unwrap_or(u64::MAX);
                self.pacing_rate_bytes_s = rate.map(|rate| (rate as u64).max(1));
            }
            Err(failure) => {
                self.control = None;
                self.failures.note(failure);
            }
        }
    }

    fn acknowledged(&mut self, acknowledged: &Acknowledged) {
        let seen = ControlAcknowledgement {
            now_ns: acknowledged.now,
            newly_acknowledged_bytes: acknowledged.newly_acknowledged_bytes,
            newly_delivered_bytes: acknowledged.newly_delivered_bytes,
            delivered_bytes: acknowledged.delivered_bytes,
            in_flight_bytes: acknowledged.in_flight_bytes,
            round_trip_time_ns: acknowledged.round_trip_time,
            delivery_rate_byte_s: acknowledged.rate_sample.map(|sample| sample.delivery_rate_bytes_s),
            newly_lost_bytes: acknowledged.loss_sample.map_or(0, |sample| sample.newly_lost_bytes),
            is_marked: acknowledged.marked,
            in_recovery: acknowledged.in_recovery,
            is_window_limited: acknowledged.is_window_limited,
        };
        self.call(|_, control| control.call_method1("on_acknowledged", (seen,)).map(drop));
    }
}

impl CongestionControl for PythonControl {
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        self.acknowledged(acknowledged);
    }

    fn on_duplicate(&mut self, acknowledged: &Acknowledged) {
        self.acknowledged(acknowledged);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let cause = match congestion.cause {
            Cause::FastRetransmit | Cause::FastRetransmitWithoutRecovery => "loss",
            Cause::Timeout => "timeout",
            Cause::Mark => "mark",
        };
        let arguments = (congestion.now, cause, congestion.in_flight_bytes);
        self.call(|_, control| control.call_method1("on_congestion", arguments).map(drop));
    }

    fn on_recovery_ended(&mut self, now: Nanoseconds, _in_flight_bytes: u64) {
        self.call(|_, control| control.call_method1("on_recovery_ended", (now,)).map(drop));
    }

    fn on_idle(&mut self, now: Nanoseconds) {
        self.call(|_, control| control.call_method1("on_idle", (now,)).map(drop));
    }

    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        self.threshold_bytes
    }

    fn pacing_rate_bytes_s(&self) -> Option<u64> {
        self.pacing_rate_bytes_s
    }

    fn needs(&self) -> Needs {
        Needs { rate_samples: true, sent_segments: false, pacing: self.paces }
    }
}

/// Builds controls by `plug_ins.control(name, maximum_segment_bytes, initial_window_bytes)` on this thread.
pub(crate) fn control_factory(plug_ins: &Py<PyAny>, failures: &Failures) -> ControlFactory {
    let (plug_ins, failures) = (Python::attach(|py| plug_ins.clone_ref(py)), failures.clone());
    ControlFactory::install(move |name, settings: &ControlSettings| {
        let segment_bytes = u64::from(settings.maximum_segment_size.max(1));
        let arguments = (name, segment_bytes, settings.initial_window_bytes);
        let mut built = PythonControl {
            control: None,
            segment_bytes,
            window_bytes: segment_bytes,
            threshold_bytes: u64::MAX,
            pacing_rate_bytes_s: None,
            paces: false,
            failures: failures.clone(),
        };
        match Python::attach(|py| {
            let control = plug_ins.call_method1(py, "control", arguments)?;
            let paces: bool = control.getattr(py, "paces")?.extract(py)?;
            Ok((control, paces))
        }) {
            Ok((control, paces)) => {
                (built.control, built.paces) = (Some(control), paces);
                built.call(|_, _| Ok(()));
            }
            Err(failure) => failures.note(failure),
        }
        Box::new(built)
    })
}
