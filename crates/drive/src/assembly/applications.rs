//! Puts the applications of a scenario on the hosts.

use pepscope_tcp::{ContentId, DatagramFlowSettings, Host, Role, Streams};

use super::BuildError;
use crate::plug_ins::ApplicationEnds;
use crate::scenario::traffic::FlowDescription;
use crate::scenario::transport::Transport;
use crate::scenario::Scenario;

/// What applications write: the streams of the mobile and of the server, by flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationStreams {
    pub(crate) streams: Streams,
    /// In the order of the flows' numbers.
    pub(crate) by_flow: Vec<(u32, [ContentId; 2])>,
}

impl Scenario {
    pub(super) fn run_applications(
        &self,
        server: &mut Host,
        mobile: &mut Host,
    ) -> Result<ApplicationStreams, BuildError> {
        let mut written = ApplicationStreams::default();
        for application in &self.traffic.applications {
            let factory = self.application_plug_ins.as_ref();
            let (first_flow, ends) = application.ends(self.seed, factory).map_err(BuildError::Scenario)?;
            for (flow, ends) in (first_flow..).zip(ends) {
                let contents = [written.streams.open(), written.streams.open()];
                written.by_flow.push((flow, contents));
                let Some(description) = self.traffic.flows.get(flow as usize) else { continue };
                let hosts = [&mut *mobile, &mut *server];
                self.run_ends((flow, description), ends, &written.streams, contents, hosts)?;
            }
        }
        Ok(written)
    }

    fn run_ends(
        &self,
        (flow, description): (u32, &FlowDescription),
        ends: ApplicationEnds,
        streams: &Streams,
        contents: [ContentId; 2],
        hosts: [&mut Host; 2],
    ) -> Result<(), BuildError> {
        let ends = [(Role::Client, ends.mobile, self.mobile), (Role::Server, ends.server, self.server)];
        for ((host, content), (role, protocol, tcp)) in hosts.into_iter().zip(contents).zip(ends) {
            let streams = streams.clone();
            match description.transport {
                Transport::Tcp { .. } => host.run_protocol(flow, protocol, streams, content),
                Transport::Datagrams(transport) => host.add_datagram_flow(DatagramFlowSettings {
                    flow,
                    user: description.user,
                    transport,
                    role,
                    start_ns: description.start_ns,
                    time_to_live: tcp.time_to_live,
                    protocol,
                    streams,
                    content,
                }),
            }
            .map_err(BuildError::Host)?;
        }
        Ok(())
    }
}
