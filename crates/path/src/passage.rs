//! What the driver's fast path needs of a direction of a hop: when the next packet arrives is known, and each packet once
//! it enters.

use crate::branches::BranchLines;
use crate::hop::{Datagram, Nanoseconds};
use crate::line::{Following, Line};
use crate::managed::DropTailLine;

/// A direction of a hop whose packets need one wake-up each.
pub trait Passage<P> {
    /// When the first packet under way arrives; [`crate::NEVER`] if there is none.
    fn first_arrival(&self) -> Nanoseconds;

    /// The first packet under way, and what is behind it.
    fn first(&self) -> Option<(&P, Following)>;

    /// Removes the first packet under way; `following` is the one behind it.
    fn drop_first(&mut self, following: Following);

    /// Takes a packet of `bytes` that enters at `now`. If it is admitted, `make` writes it straight into its place.
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P);

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
pub enum AnyPassage<'a, P> {
    Line(&'a mut Line<P>),
    Branches(&'a mut BranchLines<P>),
    DropTail(&'a mut DropTailLine<P>),
}

macro_rules! each {
    ($self:ident, $passage:ident => $call:expr) => {
        match $self {
            AnyPassage::Line($passage) => $call,
            AnyPassage::Branches($passage) => $call,
            AnyPassage::DropTail($passage) => $call,
        }
    };
}

impl<P: Datagram> Passage<P> for AnyPassage<'_, P> {
    #[inline(always)]
    fn first_arrival(&self) -> Nanoseconds {
        each!(self, passage => passage.first_arrival())
    }

    #[inline]
    fn first(&self) -> Option<(&P, Following)> {
        each!(self, passage => passage.first())
    }

    #[inline]
    fn drop_first(&mut self, following: Following) {
        each!(self, passage => passage.drop_first(following));
    }

    #[inline]
    fn take_with(&mut self, now: Nanoseconds, bytes: u32, make: impl FnOnce() -> P) {
        each!(self, passage => passage.take_with(now, bytes, make));
    }
}

impl<P: Datagram> Passage<P> for &mut Line<P> {
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
    fn pass_first_alone(&mut self, now: Nanoseconds, next: &mut Self) -> bool
    where
        P: Copy,
    {
        Line::pass_first_alone(self, now, next)
    }
}
