//! Connections with the server that a proxy keeps when its client has gone, for the next one that asks the same server.
//!
//! Only a connection over which nothing but known requests went, each of which has its whole answer, can serve another
//! client: what a proxy that reads HTTP does (RFC 9112, section 9.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use pepscope_path::Nanoseconds;

use crate::packets::run::Run;
use crate::packets::segment::ContentId;

/// Which connections may be kept, and for how long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseSettings {
    /// How long a connection without a request stays open.
    pub idle_ns: Nanoseconds,
    /// By flow: whom it asks. A connection serves flows with the same number; `None` never shares one.
    pub servers: Vec<Option<u32>>,
    /// Lengths of requests and of answers.
    pub lengths: Arc<BTreeMap<ContentId, u64>>,
}

impl ReuseSettings {
    /// Whom `flow` asks, if it may share connections.
    pub(crate) fn server_of(&self, flow: u32) -> Option<u32> {
        self.servers.get(flow as usize).copied().flatten()
    }
}

/// Counts the whole messages of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    lengths: Arc<BTreeMap<ContentId, u64>>,
    whole: u64,
    is_begun: bool,
    has_unknown: bool,
}

impl Messages {
    pub fn new(settings: &ReuseSettings) -> Self {
        Self { lengths: Arc::clone(&settings.lengths), ..Self::default() }
    }

    /// Bytes of the direction, in order.
    pub fn note(&mut self, run: Run) {
        match self.lengths.get(&run.content) {
            Some(length) => {
                self.is_begun = run.content_offset + run.bytes < *length;
                self.whole += u64::from(!self.is_begun);
            }
            None => self.has_unknown = true,
        }
    }

    /// How many messages were whole, if there was nothing else.
    pub fn whole(&self) -> Option<u64> {
        (!self.is_begun && !self.has_unknown).then_some(self.whole)
    }
}

/// The places of relays whose connection with the server waits for another client, by server, the one used last on top.
#[derive(Debug, Default)]
pub(crate) struct IdleLegs(BTreeMap<u32, Vec<usize>>);

impl IdleLegs {
    pub fn keep(&mut self, server: u32, place: usize) {
        let places = self.0.entry(server).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }

    /// Takes the connection that was used last of those for which `is_idle` still holds.
    pub fn take(&mut self, server: u32, is_idle: impl Fn(usize) -> bool) -> Option<usize> {
        let places = self.0.get_mut(&server)?;
        places.retain(|place| is_idle(*place));
        places.pop()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::{IdleLegs, Messages, ReuseSettings};
    use crate::packets::run::Run;
    use crate::packets::segment::ContentId;

    fn run(content: u32, content_offset: u64, bytes: u64) -> Run {
        Run { content: ContentId(content), content_offset, bytes }
    }

    fn messages() -> Messages {
        let lengths = BTreeMap::from([(ContentId(1), 300), (ContentId(2), 5000)]);
        Messages::new(&ReuseSettings { lengths: Arc::new(lengths), ..ReuseSettings::default() })
    }

    #[test]
    fn a_message_counts_once_it_is_whole() {
        let mut messages = messages();
        messages.note(run(2, 0, 3000));
        assert_eq!(messages.whole(), None);
        messages.note(run(2, 3000, 2000));
        assert_eq!(messages.whole(), Some(1));
        messages.note(run(1, 0, 300));
        assert_eq!(messages.whole(), Some(2));
    }

    #[test]
    fn a_direction_with_other_bytes_cannot_be_counted() {
        let mut messages = messages();
        messages.note(run(9, 0, 10));
        messages.note(run(1, 0, 300));
        assert_eq!(messages.whole(), None);
    }

    #[test]
    fn the_connection_used_last_serves_next_and_dead_ones_are_forgotten() {
        let mut idle = IdleLegs::default();
        for place in [3, 4, 5, 5] {
            idle.keep(1, place);
        }
        assert_eq!(idle.take(2, |_| true), None);
        assert_eq!(idle.take(1, |place| place != 5), Some(4));
        assert_eq!(idle.take(1, |_| true), Some(3));
        assert_eq!(idle.take(1, |_| true), None);
    }
}
