//! The states of a connection and the events for its application.

/// States of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    #[default]
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// We closed; the peer has not acknowledged that.
    FinWait1,
    FinWait2,
    /// The peer closed.
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    /// Whether both ends know each other's sequence numbers: from `Established` on.
    #[must_use]
    #[inline]
    pub fn is_synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// Whether data may still be sent or sent again.
    #[must_use]
    #[inline]
    pub fn sends_data(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is more to read.
    Readable,
    /// A write that did not fit may be tried again.
    Writable,
    /// The peer sends no more; what it sent may still be read.
    PeerFinished,
    /// Both ends finished.
    Closed,
    /// The peer aborted, or refused the connection.
    Reset,
    /// The peer stopped answering.
    TimedOut,
}

const ORDER: [Event; 7] = [
    Event::Connected,
    Event::Readable,
    Event::Writable,
    Event::PeerFinished,
    Event::Closed,
    Event::Reset,
    Event::TimedOut,
];

/// Events that the application has not taken yet, each at most once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events(u8);

impl Events {
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.0 |= 1 << event as u8;
    }

    /// Whether nothing but [`Event::Readable`] and [`Event::Writable`] is pending.
    #[inline]
    pub fn are_usual(self) -> bool {
        self.0 & !(1 << Event::Readable as u8 | 1 << Event::Writable as u8) == 0
    }

    /// Takes what is pending if that is at most [`Event::Readable`] and [`Event::Writable`]: whether it was the latter.
    #[inline]
    pub fn take_usual(&mut self) -> Option<bool> {
        const USUAL: u8 = 1 << Event::Readable as u8 | 1 << Event::Writable as u8;
        if self.0 & !USUAL != 0 {
            return None;
        }
        let is_writable = self.0 & (1 << Event::Writable as u8) != 0;
        self.0 = 0;
        Some(is_writable)
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        ORDER.get(index as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Events, ORDER};

    #[test]
    fn events_come_in_their_order_and_once() {
        let mut events = Events::default();
        for event in ORDER.iter().rev().chain([&Event::Readable]) {
            events.push(*event);
        }
        let taken: Vec<Event> = std::iter::from_fn(|| events.pop()).collect();
        assert_eq!(taken, ORDER);
    }
}
