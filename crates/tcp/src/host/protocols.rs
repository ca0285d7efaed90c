//! Connections whose applications are protocols, some of which open only when another one needs them.

use pepscope_path::{Nanoseconds, NEVER};

use super::{Host, HostError};
use crate::applications::application::{Conversation, Protocol};
use crate::applications::streams::Streams;
use crate::packets::segment::ContentId;

impl Host {
    /// Has `protocol` say what `flow` does, in place of its script's steps. What it writes is `content` of `streams`.
    ///
    /// # Errors
    /// The flow does not exist.
    pub fn run_protocol(
        &mut self,
        flow: u32,
        protocol: Box<dyn Protocol>,
        streams: Streams,
        content: ContentId,
    ) -> Result<(), HostError> {
        let place = *self.places.get(flow).ok_or(HostError::FlowUnknown { flow })?;
        self.flows[place].application.converse_by(Conversation::new(protocol, streams, content));
        Ok(())
    }

    /// Leaves `flow` closed until another flow's protocol wakes it or, at a server, until the client opens it. A run may
    /// end without it.
    ///
    /// # Errors
    /// The flow does not exist.
    pub fn open_when_needed(&mut self, flow: u32) -> Result<(), HostError> {
        let place = *self.places.get(flow).ok_or(HostError::FlowUnknown { flow })?;
        self.flows[place].is_dormant = true;
        self.flows[place].connect_ns = NEVER;
        self.times.set(place, NEVER);
        self.open_flows -= 1;
        Ok(())
    }

    /// Whether `flow` waited to be opened and never was.
    #[must_use]
    pub fn is_dormant(&self, flow: u32) -> bool {
        self.places.get(flow).is_some_and(|place| self.flows[*place].is_dormant)
    }

    #[cold]
    pub(super) fn rouse(&mut self, place: usize) {
        self.flows[place].is_dormant = false;
        self.open_flows += 1;
    }

    /// Opens a flow that waits for it, or has its protocol act.
    pub(super) fn wake_flow(&mut self, now: Nanoseconds, flow: u32) {
        let Some(place) = self.places.get(flow).copied() else { return };
        if self.flows[place].is_dormant {
            self.rouse(place);
            self.flows[place].connect_ns = now;
            self.flows[place].result.start_ns = now;
        } else {
            self.flows[place].application.wake(now);
        }
        if !self.flows[place].is_ready {
            self.times.set(place, self.flows[place].next_time());
        }
    }
}
