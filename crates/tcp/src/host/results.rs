//! What became of a host's flows, speech and packets so far.

use super::{FlowResult, Host};
use crate::applications::voice::{VoiceCounts, VoiceReception, VoiceSource};
use crate::connection::Connection;

impl Host {
    /// What became of each flow so far, in the order in which they were added.
    pub fn flows(&self) -> impl Iterator<Item = FlowResult> + '_ {
        self.flows.iter().enumerate().map(|(place, flow)| {
            let holder = &self.flows[self.attribution.place_of(place)];
            FlowResult {
                application: holder.application.counts(),
                statistics: *flow.connection.statistics(),
                ..holder.result
            }
        })
    }

    /// The connection of `flow`.
    #[must_use]
    pub fn connection(&self, flow: u32) -> Option<&Connection> {
        Some(&self.flows.get(*self.places.get(flow)?)?.connection)
    }

    /// What each speaker has sent, in the order in which they were added.
    pub fn spoken(&self) -> impl Iterator<Item = VoiceCounts> + '_ {
        self.speakers.iter().map(VoiceSource::counts)
    }

    /// What was heard of each user's speech, from user 0 on.
    #[must_use]
    pub fn heard(&self) -> &[VoiceReception] {
        &self.heard
    }

    /// Packets that belong to no flow of the host.
    #[must_use]
    pub fn stray_packets(&self) -> u64 {
        self.stray_packets
    }

    /// Whether no flow is open any more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.open_flows == 0
    }
}
