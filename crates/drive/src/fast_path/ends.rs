//! The two ends of a chain of links, and how far what leaves a host there may go before its time.

use pepscope_path::{Direction, Nanoseconds, Passage};
use pepscope_tcp::Packet;

use super::{Bounds, Lines};
use crate::chain::{Observers, Watch};

/// An end of the chain of links.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// How packets are recorded that arrive at the host.
    pub(super) arriving: Watch,
    /// How packets are recorded that leave the host.
    pub(super) leaving: Watch,
    /// The link before the host, as a bit.
    pub(super) link: u64,
    /// How long a packet takes at least that enters the last link on its way to the host.
    pub(super) least_delay_ns: Nanoseconds,
    /// What leaves the host takes time on the first link.
    pub(super) has_delay: bool,
    /// Packets are recorded between two links.
    pub(super) is_observed_behind: bool,
}

impl End {
    /// The server's end and the mobile's of a chain with these lines.
    pub(super) fn both<L: Passage<Packet>, const LINKS: usize>(
        observers: &Observers,
        down: &Lines<L, LINKS>,
        up: &Lines<L, LINKS>,
    ) -> [End; 2] {
        let is_observed_behind = (1..LINKS).any(|gap| observers.watches(gap));
        let at_server = End {
            arriving: observers.watch(0, Direction::Up),
            leaving: observers.watch(0, Direction::Down),
            link: 1 << 1,
            least_delay_ns: up[LINKS - 1].least_delay_ns(),
            has_delay: down[0].least_delay_ns() > 0,
            is_observed_behind,
        };
        let at_mobile = End {
            arriving: observers.watch(LINKS, Direction::Down),
            leaving: observers.watch(LINKS, Direction::Up),
            link: 1 << LINKS,
            least_delay_ns: down[LINKS - 1].least_delay_ns(),
            has_delay: up[0].least_delay_ns() > 0,
            is_observed_behind,
        };
        [at_server, at_mobile]
    }

    /// What leaves the host before then may be handed over at `now`: nothing looks at the links before, and what is
    /// recorded keeps its order where no packet arrives before `next_ns`.
    #[inline(always)]
    pub(super) fn leaves_until(&self, now: Nanoseconds, next_ns: Nanoseconds, bounds: &Bounds) -> Nanoseconds {
        let until = if self.has_delay { bounds.unobserved_until(now) } else { 0 };
        if self.leaving.records() {
            until.min(next_ns)
        } else {
            until
        }
    }

    /// What left the host and arrives between two links before then may be passed on at `now`.
    #[inline(always)]
    pub(super) fn passes_until(&self, now: Nanoseconds, bounds: &Bounds) -> Nanoseconds {
        if self.has_delay && !self.is_observed_behind {
            bounds.unobserved_until(now)
        } else {
            0
        }
    }
}
