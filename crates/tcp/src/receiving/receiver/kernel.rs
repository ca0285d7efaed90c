//! A kernel's rules for windows and acknowledgements: enum dispatch over the families of hosts.

use pepscope_path::{Nanoseconds, NEVER};

use super::darwin::DarwinReceiver;
use super::linux::LinuxReceiver;
use super::windows::WindowsReceiver;
use crate::settings::{Settings, Stack};

/// What the sending half of the connection knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderTimes {
    pub smoothed_round_trip: Option<Nanoseconds>,
    pub timeout: Nanoseconds,
}

/// The rules of the receiving half, with their state.
#[derive(Clone, Debug)]
pub(super) enum KernelReceiver {
    Linux(LinuxReceiver),
    Windows(WindowsReceiver),
    Darwin(DarwinReceiver),
}

impl KernelReceiver {
    /// `None` for a host that follows no kernel.
    pub fn new(settings: &Settings) -> Option<Self> {
        match settings.stack {
            Stack::Ideal => None,
            Stack::Linux => Some(Self::Linux(LinuxReceiver::new(settings))),
            Stack::Windows => Some(Self::Windows(WindowsReceiver::new(settings))),
            Stack::Darwin => Some(Self::Darwin(DarwinReceiver::new(settings))),
        }
    }

    /// The window of a SYN, or of a SYN-ACK if it `is_reply`; it is never scaled.
    pub fn opening_window(&mut self, is_reply: bool, has_timestamps: bool) -> u16 {
        match self {
            Self::Linux(linux) => linux.opening_window(is_reply, has_timestamps),
            Self::Windows(windows) => windows.opening_window(is_reply),
            Self::Darwin(darwin) => darwin.opening_window(),
        }
    }

    /// The connection opened.
    pub fn establish(&mut self, now: Nanoseconds, has_timestamps: bool, shift: u8) {
        match self {
            Self::Linux(linux) => linux.establish(now, has_timestamps),
            Self::Windows(windows) => windows.establish(now, has_timestamps),
            Self::Darwin(darwin) => darwin.establish(now, has_timestamps, shift),
        }
    }

    /// A segment is about to be taken.
    pub fn note_sender(&mut self, now: Nanoseconds, sender: SenderTimes) {
        match self {
            Self::Linux(linux) => linux.note_sender(now, sender),
            Self::Windows(windows) => windows.note_sender(now, sender),
            Self::Darwin(darwin) => darwin.note_sender(now, sender),
        }
    }

    /// The echo of its timestamp gives a round trip.
    pub fn note_round_trip(&mut self, sample: Nanoseconds) {
        match self {
            Self::Linux(linux) => linux.note_round_trip(sample),
            Self::Windows(_) => {}
            Self::Darwin(darwin) => darwin.note_round_trip(sample),
        }
    }

    /// Payload leaves.
    pub fn note_data_sent(&mut self, now: Nanoseconds) {
        if let Self::Linux(linux) = self {
            linux.note_data_sent(now);
        }
    }

    /// Payload was queued in order; `is_pushed` if its segment has PSH.
    pub fn take(&mut self, payload_bytes: u64, is_pushed: bool) {
        match self {
            Self::Linux(linux) => linux.take(payload_bytes, is_pushed),
            Self::Windows(windows) => windows.take(),
            Self::Darwin(darwin) => darwin.take(payload_bytes, is_pushed),
        }
    }

    /// Payload that ends at `end` was held for a gap.
    pub fn hold(&mut self, payload_bytes: u64, end: u64) {
        match self {
            Self::Linux(linux) => linux.hold(payload_bytes, end),
            Self::Windows(_) => {}
            Self::Darwin(darwin) => darwin.hold(payload_bytes),
        }
    }

    /// A duplicate arrived.
    pub fn take_duplicate(&mut self) {
        match self {
            Self::Linux(linux) => linux.take_duplicate(),
            Self::Windows(_) => {}
            Self::Darwin(darwin) => darwin.force_acknowledgements(),
        }
    }

    /// Whether data in order up to `next`, of which the application has not read from `read` on, is acknowledged now.
    pub fn acknowledges_data(&mut self, next: u64, read: u64, shift: u8) -> bool {
        match self {
            Self::Linux(linux) => linux.acknowledges_now(next, read, shift),
            Self::Windows(windows) => windows.acknowledges_data(),
            Self::Darwin(darwin) => darwin.acknowledges_data(next, read, shift),
        }
    }

    /// When an ACK must leave that waits from now on; an earlier time stays.
    pub fn deadline(&self, now: Nanoseconds, before: Nanoseconds) -> Nanoseconds {
        match self {
            Self::Linux(linux) => linux.deadline(now, before),
            Self::Windows(windows) if before == NEVER => now.saturating_add(windows.delay()),
            Self::Darwin(darwin) if before == NEVER => now.saturating_add(darwin.delay()),
            Self::Windows(_) | Self::Darwin(_) => before,
        }
    }

    /// The delayed ACK's time has come.
    pub fn delay_passed(&mut self) {
        match self {
            Self::Linux(linux) => linux.delay_passed(),
            Self::Windows(_) => {}
            Self::Darwin(darwin) => darwin.force_acknowledgements(),
        }
    }

    /// The application took `bytes` and has read up to `read` of what arrived in order up to `next`; whether an ACK is due.
    pub fn read(&mut self, bytes: u64, read: u64, next: u64, has_gaps: bool, shift: u8) -> bool {
        match self {
            Self::Linux(linux) => linux.read(bytes, read, next, has_gaps, shift),
            Self::Windows(windows) => windows.read(read, next, shift),
            Self::Darwin(darwin) => darwin.read(read, next, shift),
        }
    }

    /// The window for a segment that acknowledges up to `next`, in bytes.
    pub fn offer(&mut self, next: u64, read: u64, shift: u8) -> u64 {
        match self {
            Self::Linux(linux) => linux.offer(next, shift),
            Self::Windows(windows) => windows.offer(next, read, shift),
            Self::Darwin(darwin) => darwin.offer(next, read, shift),
        }
    }

    /// A segment leaves that acknowledges up to `next`.
    pub fn acknowledged(&mut self, next: u64) {
        match self {
            Self::Linux(linux) => linux.acknowledged(next),
            Self::Windows(windows) => windows.acknowledged(),
            Self::Darwin(darwin) => darwin.acknowledged(next),
        }
    }
}
