//! What is between the hosts: links, middleboxes and proxies, called by enum dispatch for every packet.

use pepscope_tcp::proxy::Proxy;
use pepscope_tcp::{Acknowledger, Packet, Rewriter};

use crate::enum_dispatch::hop_by_enum_dispatch;
use crate::fields::{Fields, Read, ScenarioError};
use crate::links::{HopCall, LinkElement};
use crate::plug_ins::{HopFactory, PlugInHop};
use crate::scenario::path::{HopDescription, HopSettings};
use crate::scenario::traffic::Traffic;

/// Anything between the hosts.
#[derive(Debug)]
pub enum PathElement {
    Link(LinkElement<Packet>),
    Rewriter(Box<Rewriter>),
    Proxy(Box<Proxy>),
    Acknowledger(Box<Acknowledger>),
    PlugIn(PlugInHop),
}

hop_by_enum_dispatch!([] PathElement, Packet: Link, Rewriter, Proxy, Acknowledger, PlugIn);

impl PathElement {
    /// The hop of a scenario in the run of `traffic` with `seed`; without `header_prediction`, the connections of a proxy
    /// have none.
    ///
    /// # Errors
    /// If the model refuses settings that are each within their ranges.
    pub(crate) fn new(
        hop: &HopDescription,
        seed: u64,
        traffic: &Traffic,
        header_prediction: bool,
        plug_ins: Option<&HopFactory>,
    ) -> Read<Self> {
        Ok(match &hop.settings {
            HopSettings::Link(link) => {
                let link = LinkElement::new(link, seed, &hop.name);
                Self::Link(link.map_err(|error| Fields::refusal(hop.place(), &error))?)
            }
            HopSettings::Rewriter(settings) => {
                Self::Rewriter(Box::new(Rewriter::new(settings.clone(), seed, &hop.name)))
            }
            HopSettings::PlugIn(described) => {
                let refuse = |allowed| ScenarioError::Refused {
                    field: format!("{}.plug_in", hop.place()),
                    value: described.plug_in.clone(),
                    allowed,
                };
                let factory = plug_ins.ok_or_else(|| refuse("absent where scenarios run without Python".to_owned()))?;
                Self::PlugIn(factory.build(described, seed, &hop.name).map_err(refuse)?)
            }
            HopSettings::Acknowledger(described) => {
                Self::Acknowledger(Box::new(Acknowledger::new(described.settings(traffic), seed, &hop.name)))
            }
            HopSettings::Proxy(proxy) => {
                let mut settings = proxy.settings(traffic);
                settings.server_leg.header_prediction = header_prediction;
                settings.mobile_leg.header_prediction = header_prediction;
                Self::Proxy(Box::new(Proxy::new(settings, seed, &hop.name)))
            }
        })
    }

    /// Whether TCP connections end here: it answers for the far end.
    #[must_use]
    pub fn ends_connections(&self) -> bool {
        matches!(self, Self::Proxy(_))
    }

    /// Whether data are acknowledged here in the place of the far end.
    #[must_use]
    pub fn acknowledges(&self) -> bool {
        matches!(self, Self::Proxy(_) | Self::Acknowledger(_))
    }

    #[inline]
    pub(crate) fn dispatch<C: HopCall<Packet>>(&mut self, call: C) -> C::Output {
        match self {
            Self::Link(link) => link.dispatch(call),
            Self::Rewriter(rewriter) => call.call(rewriter.as_mut()),
            Self::Proxy(proxy) => call.call(proxy.as_mut()),
            Self::Acknowledger(acknowledger) => call.call(acknowledger.as_mut()),
            Self::PlugIn(hop) => call.call(hop),
        }
    }
}
