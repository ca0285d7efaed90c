//! Which flow's application answers on a connection that serves several flows, one after the other.
//!
//! A proxy may ask for one client over a connection that another one left. The server then answers what it is asked: the
//! application of the flow whose request comes takes the place of the one that answered before.

use std::collections::BTreeMap;

use pepscope_path::Nanoseconds;

use super::{Host, Outcome};
use crate::packets::segment::ContentId;

/// Where each flow's application is. Places are those of connections.
#[derive(Debug, Default)]
pub(super) struct Attribution {
    /// The flow, by its place, whose application answers a content.
    owners: BTreeMap<ContentId, usize>,
    /// The place of each flow's application, and whose application is at each place; both by place.
    places: Vec<usize>,
    occupants: Vec<usize>,
}

impl Attribution {
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.owners.is_empty()
    }

    /// Where the application of the flow at `place` is.
    #[inline]
    pub fn place_of(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(place)
    }

    /// The place of the application that answers `content`.
    fn owner_of(&self, content: ContentId) -> Option<usize> {
        self.owners.get(&content).map(|owner| self.place_of(*owner))
    }

    /// The applications at two places change them.
    fn swap(&mut self, one: usize, other: usize) {
        let needed = one.max(other) + 1;
        for list in [&mut self.places, &mut self.occupants] {
            let known = list.len();
            list.extend(known..needed);
        }
        self.occupants.swap(one, other);
        for place in [one, other] {
            self.places[self.occupants[place]] = place;
        }
    }
}

impl Host {
    /// Has the application of `flow` answer requests that begin with `content`, whatever connection they come on.
    pub fn serve_content(&mut self, content: ContentId, flow: u32) {
        if let Some(place) = self.places.get(flow) {
            self.attribution.owners.insert(content, *place);
        }
    }

    /// Gives the connection at `place` to the application that answers what comes next on it.
    pub(super) fn hand_over(&mut self, now: Nanoseconds, place: usize) {
        let content = self.flows[place].connection.next_content();
        let Some(owner) = content.and_then(|content| self.attribution.owner_of(content)) else { return };
        if owner == place {
            return;
        }
        let earlier = &mut self.flows[place];
        let was_open = earlier.is_open();
        earlier.end(now, Outcome::Closed);
        if was_open {
            self.end(now, place);
        }
        let (low, high) = self.flows.split_at_mut(place.max(owner));
        let (one, other) = (&mut low[place.min(owner)], &mut high[0]);
        core::mem::swap(&mut one.application, &mut other.application);
        core::mem::swap(&mut one.result, &mut other.result);
        core::mem::swap(&mut one.successor, &mut other.successor);
        self.attribution.swap(place, owner);
        let flow = &mut self.flows[place];
        flow.result.connected_ns.get_or_insert(now);
        flow.application.establish(now);
    }
}
