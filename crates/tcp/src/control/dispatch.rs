//! Enum dispatch to the control of a sender: Reno is called directly, so that its few instructions can be inlined; every
//! other control is a trait object.

use pepscope_path::Nanoseconds;

use super::{
    Acknowledged, Congestion, CongestionControl, ControlKind, ControlSettings, LossMeaning, Needs, Reno, RENO,
};

#[derive(Debug)]
pub(crate) enum Control {
    Reno(Reno),
    Other(Box<dyn CongestionControl>),
}

impl Control {
    pub(crate) fn new(kind: ControlKind, settings: &ControlSettings) -> Self {
        if kind == RENO {
            Self::Reno(Reno::new(settings))
        } else {
            Self::Other(kind.build(settings))
        }
    }
}

macro_rules! each {
    ($control:expr, $chosen:ident => $call:expr) => {
        match $control {
            Control::Reno($chosen) => $call,
            Control::Other($chosen) => $call,
        }
    };
}

impl CongestionControl for Control {
    #[inline(always)]
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        each!(self, control => control.on_acknowledged(acknowledged));
    }

    fn on_duplicate(&mut self, acknowledged: &Acknowledged) {
        each!(self, control => control.on_duplicate(acknowledged));
    }

    fn judge_loss(&self) -> LossMeaning {
        each!(self, control => control.judge_loss())
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        each!(self, control => control.on_congestion(congestion));
    }

    fn on_spurious_congestion(&mut self, window_bytes: u64, threshold_bytes: u64) {
        each!(self, control => control.on_spurious_congestion(window_bytes, threshold_bytes));
    }

    fn on_recovery_ended(&mut self, now: Nanoseconds, in_flight_bytes: u64) {
        each!(self, control => control.on_recovery_ended(now, in_flight_bytes));
    }

    fn on_idle(&mut self, now: Nanoseconds) {
        each!(self, control => control.on_idle(now));
    }

    fn on_sent(&mut self, now: Nanoseconds, in_flight_bytes: u64, payload_bytes: u32) {
        each!(self, control => control.on_sent(now, in_flight_bytes, payload_bytes));
    }

    #[inline]
    fn window_bytes(&self) -> u64 {
        each!(self, control => control.window_bytes())
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        each!(self, control => control.slow_start_threshold_bytes())
    }

    #[inline]
    fn pacing_rate_bytes_s(&self) -> Option<u64> {
        each!(self, control => control.pacing_rate_bytes_s())
    }

    fn estimated_bandwidth_bytes_s(&self) -> Option<u64> {
        each!(self, control => control.estimated_bandwidth_bytes_s())
    }

    fn needs(&self) -> Needs {
        each!(self, control => control.needs())
    }
}
