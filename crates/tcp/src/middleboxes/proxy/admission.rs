//! How many connections a proxy serves at once, and what becomes of those beyond.

use std::collections::VecDeque;

/// What happens to a client's connection when as many as the proxy may serve are being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLimit {
    /// The kernel accepts it, the program does not until another one has ended: nothing of it is read or passed on.
    /// While so many wait already, SYNs are dropped.
    Wait { waiting_limit: usize },
    /// Its SYN is answered with a reset.
    Refuse,
    /// Its SYN is dropped; the client sends another one.
    Drop,
    /// It goes past the proxy, end to end.
    Bypass,
}

/// The most connections of clients that a proxy serves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    pub connections: usize,
    pub over_limit: OverLimit,
}

/// What is decided about a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Serve,
    Wait,
    Refuse,
    Drop,
    Bypass,
}

/// What became of connections at a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCounts {
    /// Clients' connections that the program served.
    pub served: u64,
    /// The most that it served at once.
    pub most_at_once: usize,
    /// Those of them that had to wait.
    pub waited: u64,
    /// SYNs answered with a reset, dropped SYNs, connections that went past.
    pub refused: u64,
    pub dropped: u64,
    pub bypassed: u64,
    /// Clients' connections that were served over a connection with the server that another one had left.
    pub reused: u64,
}

/// Who is served and who waits.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: Option<ConnectionLimit>,
    served_now: usize,
    waiting: VecDeque<usize>,
    pub counts: AdmissionCounts,
}

impl Admission {
    pub fn new(limit: Option<ConnectionLimit>) -> Self {
        Self { limit, served_now: 0, waiting: VecDeque::new(), counts: AdmissionCounts::default() }
    }

    fn has_room(&self) -> bool {
        self.limit.is_none_or(|limit| self.served_now < limit.connections)
    }

    /// Decides about a new connection; one that is served or waits is announced next, with [`Admission::serve`] or
    /// [`Admission::wait`].
    pub fn decide(&mut self) -> Decision {
        let over_limit = match self.limit {
            Some(limit) if !self.has_room() || !self.waiting.is_empty() => limit.over_limit,
            _ => return Decision::Serve,
        };
        let (decision, count) = match over_limit {
            OverLimit::Wait { waiting_limit } if self.waiting.len() < waiting_limit => return Decision::Wait,
            OverLimit::Wait { .. } | OverLimit::Drop => (Decision::Drop, &mut self.counts.dropped),
            OverLimit::Refuse => (Decision::Refuse, &mut self.counts.refused),
            OverLimit::Bypass => (Decision::Bypass, &mut self.counts.bypassed),
        };
        *count += 1;
        decision
    }

    pub fn serve(&mut self) {
        self.served_now += 1;
        self.counts.served += 1;
        self.counts.most_at_once = self.counts.most_at_once.max(self.served_now);
    }

    /// The connection at `place` waits.
    pub fn wait(&mut self, place: usize) {
        self.waiting.push_back(place);
        self.counts.waited += 1;
    }

    /// A connection that was served has ended.
    pub fn end(&mut self) {
        self.served_now -= 1;
    }

    /// The place of the next one that may be served now, which is counted as served.
    pub fn next(&mut self) -> Option<usize> {
        if !self.has_room() {
            return None;
        }
        let place = self.waiting.pop_front()?;
        self.serve();
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, ConnectionLimit, Decision, OverLimit};

    fn full(over_limit: OverLimit) -> Admission {
        let mut admission = Admission::new(Some(ConnectionLimit { connections: 1, over_limit }));
        assert_eq!(admission.decide(), Decision::Serve);
        admission.serve();
        admission
    }

    #[test]
    fn without_a_limit_all_are_served() {
        let mut admission = Admission::new(None);
        for _ in 0..1000 {
            assert_eq!(admission.decide(), Decision::Serve);
            admission.serve();
        }
        assert_eq!((admission.counts.served, admission.counts.most_at_once), (1000, 1000));
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_by_what_becomes_of_it() {
        for (over_limit, decision, counts) in [
            (OverLimit::Refuse, Decision::Refuse, (1, 0, 0)),
            (OverLimit::Drop, Decision::Drop, (0, 1, 0)),
            (OverLimit::Bypass, Decision::Bypass, (0, 0, 1)),
        ] {
            let mut admission = full(over_limit);
            assert_eq!(admission.decide(), decision);
            let found = (admission.counts.refused, admission.counts.dropped, admission.counts.bypassed);
            assert_eq!(found, counts);
        }
    }

    #[test]
    fn those_that_wait_are_served_in_their_order_and_nobody_overtakes() {
        let mut admission = full(OverLimit::Wait { waiting_limit: 2 });
        for place in [7, 8] {
            assert_eq!(admission.decide(), Decision::Wait);
            admission.wait(place);
        }
        assert_eq!(admission.decide(), Decision::Drop);
        assert_eq!(admission.next(), None);
        admission.end();
        assert_eq!(admission.decide(), Decision::Drop, "two wait, and room is for the first of them");
        assert_eq!(admission.next(), Some(7));
        assert_eq!(admission.next(), None);
        assert_eq!((admission.counts.waited, admission.counts.most_at_once), (2, 1));
    }
}
