//! What the driver's fast path needs of a direction of a hop: when the next packet arrives is known, and each packet once
//! it enters.

use crate::hop::{Datagram, Nanoseconds};
use crate::lines::branches::BranchLines;
use crate::lines::line::{Following, Line};
use crate::queues::managed::DropTailLine;

/// A direction of a hop whose packets need one wake-up each.
pub trait Passage<P> {
    /// No packet arrives sooner than so long after it entered.
    fn least_delay_ns(&self) -> Nanoseconds;

    /// Whether packets arrive in the order in which they enter.
    fn keeps_order(&self) -> bool {
        true
    }

    /// When the first packet under way arrives; [`crate::NEVER`] if there is none.
    fn first_arrival(&self) -> Nanoseconds;

    /// The first packet under way, and what is behind it.
    fn first(&self) -> Option<(&P, Following)>;

    /// Removes the first packet under way; `following` is the one behind it.
    fn drop_first(&mut self, following: Following);

    /// Takes a packet of `bytes` that enters at `now`. If it is admitted, `make` writes it straight into its place.
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P);

    /// [`Passage::take_with`], but if it is known already that the packet arrives before `until`, and that no other one
    /// arrives before it does, it counts as arrived: returns `make`, and when.
    #[inline(always)]
    fn take_or_pass<F: FnOnce() -> P>(
        &mut self,
        now: Nanoseconds,
        bytes: u32,
        _until: Nanoseconds,
        make: F,
    ) -> Option<(Nanoseconds, F)> {
        self.take_with(now, bytes, make);
        None
    }

    /// Moves the first packet under way, which arrives at `now`, into `next`. Returns `false` and does nothing if another
    /// packet arrives at the same time.
    #[inline]
    fn pass_first_alone(&mut self, now: Nanoseconds, next: &mut Self) -> bool
    where
        Self: Sized,
        P: Datagram + Copy,
    {
        let Some((packet, following)) = self.first().filter(|(_, following)| following.arrival > now) else {
            return false;
        };
        next.take_with(now, packet.length_bytes(), || *packet);
        self.drop_first(following);
        true
    }
}

/// A direction of any hop that has such.
#[derive(Debug)]
pub struct AnyPassage<'a, P> {
    kind: Kind<'a, P>,
    /// Asked for several times a packet.
    first_ns: Nanoseconds,
}

#[derive(Debug)]
enum Kind<'a, P> {
    Line(&'a mut Line<P>),
    Branches(&'a mut BranchLines<P>),
    DropTail(&'a mut DropTailLine<P>),
}

macro_rules! each {
    ($self:ident, $passage:ident => $call:expr) => {
        match &$self.kind {
            Kind::Line($passage) => $call,
            Kind::Branches($passage) => $call,
            Kind::DropTail($passage) => $call,
        }
    };
    (mut $self:ident, $passage:ident => $call:expr) => {{
        let (result, first_ns) = match &mut $self.kind {
            Kind::Line($passage) => ($call, $passage.first_arrival()),
            Kind::Branches($passage) => ($call, $passage.first_arrival()),
            Kind::DropTail($passage) => ($call, $passage.first_arrival()),
        };
        $self.first_ns = first_ns;
        result
    }};
}

impl<'a, P: Datagram> From<&'a mut Line<P>> for AnyPassage<'a, P> {
    fn from(line: &'a mut Line<P>) -> Self {
        Self { first_ns: line.first_arrival(), kind: Kind::Line(line) }
    }
}

impl<'a, P: Datagram> From<&'a mut BranchLines<P>> for AnyPassage<'a, P> {
    fn from(lines: &'a mut BranchLines<P>) -> Self {
        Self { first_ns: lines.first_arrival(), kind: Kind::Branches(lines) }
    }
}

impl<'a, P: Datagram> From<&'a mut DropTailLine<P>> for AnyPassage<'a, P> {
    fn from(line: &'a mut DropTailLine<P>) -> Self {
        Self { first_ns: line.first_arrival(), kind: Kind::DropTail(line) }
    }
}

impl<P: Datagram> Passage<P> for AnyPassage<'_, P> {
    fn least_delay_ns(&self) -> Nanoseconds {
        each!(self, passage => passage.least_delay_ns())
    }

    fn keeps_order(&self) -> bool {
        each!(self, passage => passage.keeps_order())
    }

    #[inline(always)]
    fn first_arrival(&self) -> Nanoseconds {
        self.first_ns
    }

    #[inline(always)]
    fn first(&self) -> Option<(&P, Following)> {
        each!(self, passage => passage.first())
    }

    #[inline(always)]
    fn drop_first(&mut self, following: Following) {
        each!(mut self, passage => passage.drop_first(following));
    }

    #[inline]
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        each!(mut self, passage => passage.take_with(now, bytes, make));
    }

    #[inline]
    fn take_or_pass<F: FnOnce() -> P>(
        &mut self,
        now: Nanoseconds,
        bytes: u32,
        until: Nanoseconds,
        make: F,
    ) -> Option<(Nanoseconds, F)> {
        each!(mut self, passage => passage.take_or_pass(now, bytes, until, make))
    }
}

impl<P: Datagram> Passage<P> for &mut Line<P> {
    fn least_delay_ns(&self) -> Nanoseconds {
        Line::least_delay_ns(self)
    }

    #[inline(always)]
    fn first_arrival(&self) -> Nanoseconds {
        Line::first_arrival(self)
    }

    #[inline(always)]
    fn first(&self) -> Option<(&P, Following)> {
        Line::first(self)
    }

    #[inline(always)]
    fn drop_first(&mut self, following: Following) {
        Line::drop_first(self, following);
    }

    #[inline(always)]
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        Line::take_with(self, now, bytes, make);
    }

    #[inline(always)]
    fn take_or_pass<F: FnOnce() -> P>(
        &mut self,
        now: Nanoseconds,
        bytes: u32,
        until: Nanoseconds,
        make: F,
    ) -> Option<(Nanoseconds, F)> {
        Line::take_or_pass(self, now, bytes, until, make)
    }

    #[inline(always)]
    fn pass_first_alone(&mut self, now: Nanoseconds, next: &mut Self) -> bool
    where
        P: Copy,
    {
        Line::pass_first_alone(self, now, next)
    }
}

#[cfg(test)]
mod tests {
    use crate::hop::{Nanoseconds, MILLISECOND, NEVER};
    use crate::lines::line::Line;
    use crate::lines::loss::LossSettings;
    use crate::lines::wired::{LineSettings, Wired, WiredSettings};
    use crate::queues::queue::{QueueLimit, QueueSettings};
    use proptest::prelude::{prop, prop_assert_eq, proptest, Just};
    use proptest::prop_oneof;

    fn line((rate_bit_s, delay_ms, packets, loss): (u64, u64, u32, f64), name: &str) -> Line<u32> {
        let down = LineSettings {
            rate_bit_s: (rate_bit_s > 0).then_some(rate_bit_s),
            delay_ns: delay_ms * MILLISECOND,
            queue: QueueSettings { limit: QueueLimit::Packets(packets), ..QueueSettings::default() },
            loss: LossSettings::Independent { probability: loss },
        };
        Wired::new(&WiredSettings { down, ..WiredSettings::default() }, 3, name).unwrap().into_lines().0
    }

    /// Passes on by events what arrives at the end of `first` by `now`.
    fn pass_by_events(now: Nanoseconds, first: &mut Line<u32>, second: &mut Line<u32>) {
        while first.first_arrival() <= now && first.first_arrival() < NEVER {
            let arrives_ns = first.first_arrival();
            let Some((&packet, following)) = first.first() else { return };
            second.take(arrives_ns, packet);
            first.drop_first(following);
        }
    }

    /// Runs packets of so many bytes through both lines; those that arrive between them before `until` early.
    fn arrivals(
        mut lines: [Line<u32>; 2],
        entries: &[(u64, u32)],
        until: Nanoseconds,
    ) -> (Vec<(Nanoseconds, u32)>, String) {
        let [first, second] = &mut lines;
        let mut now = 0;
        for &(pause, bytes) in entries {
            now += pause;
            pass_by_events(now, first, second);
            if let Some((at, make)) = first.take_or_pass(now, bytes, until, || bytes) {
                second.take_with(at, bytes, make);
            }
        }
        pass_by_events(NEVER - 1, first, second);
        let mut seen = Vec::new();
        while let Some((&packet, following)) = second.first().filter(|_| second.first_arrival() < NEVER) {
            seen.push((second.first_arrival(), packet));
            second.drop_first(following);
        }
        (seen, format!("{:?} {:?}", first.counts(), second.counts()))
    }

    proptest! {
        #[test]
        fn packets_that_pass_early_arrive_when_they_would(
            first in (prop_oneof![Just(0u64), 1_000_000u64..9_000_000], 1u64..30, 1u32..9, prop_oneof![Just(0.0), Just(0.2)]),
            second in (prop_oneof![Just(0u64), 1_000_000u64..9_000_000], 0u64..30, 1u32..9, prop_oneof![Just(0.0), Just(0.2)]),
            entries in prop::collection::vec((0u64..3_000_000, 40u32..1500), 1..80),
            until in 0u64..200_000_000,
        ) {
            let run = |until| arrivals([line(first, "first"), line(second, "second")], &entries, until);
            prop_assert_eq!(run(until), run(0));
        }
    }
}
