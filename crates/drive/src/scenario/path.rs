//! `[[path]]`: the hops from the server to the mobile, in order.

use pepscope_tcp::{AcknowledgementThinning, RewriterSettings};

use super::acknowledger::{read_acknowledger, AcknowledgerDescription, KIND as ACKNOWLEDGER};
use super::proxy::{read_proxy, ProxyDescription, KINDS as PROXY_KINDS};
use super::traffic::Traffic;
use crate::fields::{Fields, Read, ScenarioError};
use crate::links::{FrameRate, LinkSettings, LINK_KINDS};
use crate::plug_ins::PlugInDescription;

const REWRITER: &str = "rewriter";
const PLUG_IN: &str = "plug-in";

/// Every `kind` of hop, links first.
fn kinds() -> Vec<&'static str> {
    let proxies = PROXY_KINDS.iter().map(|(kind, _)| *kind);
    LINK_KINDS.iter().copied().chain([REWRITER, PLUG_IN, ACKNOWLEDGER]).chain(proxies).collect()
}

/// One hop: what it is and what it is called. Its random numbers depend on its name and the seed alone.
#[derive(Clone, Debug)]
pub struct HopDescription {
    pub kind: &'static str,
    pub name: String,
    pub settings: HopSettings,
    /// The whole name of its table, for refusals.
    place: String,
}

/// Settings by kind.
#[derive(Clone, Debug)]
pub enum HopSettings {
    Link(LinkSettings),
    Rewriter(RewriterSettings),
    Proxy(Box<ProxyDescription>),
    Acknowledger(AcknowledgerDescription),
    PlugIn(PlugInDescription),
}

impl HopDescription {
    /// Reads a hop by its `kind`:
    ///
    /// | kind | what it is |
    /// |---|---|
    /// | `rewriter` | a harmless middlebox, see [`read_rewriter`] |
    /// | `plug-in` | a link written in Python, see [`read_plug_in`] |
    /// | `local-acknowledger` | acknowledges data in the receiver's name, see [`read_acknowledger`] |
    /// | `split-proxy`, `store-and-forward-proxy`, `window-adaptation-proxy` | what ends TCP connections, see [`read_proxy`] |
    ///
    /// `name` is by default its kind and which one of that kind it is: `wired-1`.
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields, earlier: &[&'static str]) -> Read<Self> {
        let kind = fields.kind(&kinds())?;
        let number = earlier.iter().filter(|other| **other == kind).count() + 1;
        let name = fields.text("name", &format!("{kind}-{number}"))?;
        let settings = match LinkSettings::read(kind, fields)? {
            Some(link) => HopSettings::Link(link),
            None if kind == REWRITER => HopSettings::Rewriter(read_rewriter(fields)?),
            None if kind == PLUG_IN => HopSettings::PlugIn(read_plug_in(fields)?),
            None if kind == ACKNOWLEDGER => HopSettings::Acknowledger(read_acknowledger(fields)?),
            None => HopSettings::Proxy(Box::new(read_proxy(fields, kind)?)),
        };
        Ok(Self { kind, name, settings, place: fields.place().to_owned() })
    }

    /// What makes connections through it other than regular: `split-tcp`, `tcp-proxy`, or nothing.
    #[must_use]
    pub fn class(&self) -> Option<&'static str> {
        match &self.settings {
            HopSettings::Proxy(_) => PROXY_KINDS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, class)| *class),
            HopSettings::Acknowledger(_) => Some("split-tcp"),
            _ => None,
        }
    }

    /// Share of an HTTP response's body that a proxy leaves of it.
    pub(super) fn recompression_ratio(&self) -> Option<f64> {
        match &self.settings {
            HopSettings::Proxy(proxy) => proxy.recompression_ratio,
            _ => None,
        }
    }

    /// Refuses what does not fit the hops that follow.
    ///
    /// # Errors
    /// See [`ProxyDescription::check_control`].
    pub(super) fn check(&self, following: &[Self]) -> Read<()> {
        match &self.settings {
            HopSettings::Proxy(proxy) => {
                let rate = following.iter().find_map(Self::frame_rate);
                proxy.check_control(&self.place, rate)
            }
            _ => Ok(()),
        }
    }

    /// Refuses settings that have no sense with the traffic.
    ///
    /// # Errors
    /// See [`ProxyDescription::check_traffic`] and [`AcknowledgerDescription::check_segments`].
    pub(super) fn check_traffic(&self, traffic: &Traffic, largest_segment_bytes: u16) -> Read<()> {
        match &self.settings {
            HopSettings::Proxy(proxy) => proxy.check_traffic(traffic),
            HopSettings::Acknowledger(acknowledger) => acknowledger.check_segments(largest_segment_bytes),
            _ => Ok(()),
        }
    }

    /// Whether connections with the server may serve several flows.
    pub(crate) fn reuses_connections(&self) -> bool {
        matches!(&self.settings, HopSettings::Proxy(proxy) if proxy.reuses_connections())
    }

    fn frame_rate(&self) -> Option<FrameRate> {
        match &self.settings {
            HopSettings::Link(link) => link.frame_rate(),
            _ => None,
        }
    }

    /// Refuses traffic of a mobile that is none of a cell's terminals.
    ///
    /// # Errors
    /// Names the number of terminals.
    pub(super) fn check_users(&self, users: usize) -> Read<()> {
        let HopSettings::Link(link) = &self.settings else { return Ok(()) };
        let Some(terminals) = link.terminals() else { return Ok(()) };
        if users <= terminals {
            return Ok(());
        }
        Err(ScenarioError::Refused {
            field: "the highest user in traffic".to_owned(),
            value: (users - 1).to_string(),
            allowed: format!("below the number of terminals of {}, which is {terminals}", self.place),
        })
    }

    /// Tells it which flow goes to which server, and refuses what it cannot carry.
    ///
    /// # Errors
    /// Names the lines that are missing, or the applications that a proxy does not understand.
    pub(super) fn meet(&mut self, traffic: &Traffic) -> Read<()> {
        let numbers: Vec<u16> = traffic.flows.iter().map(|flow| flow.server_number).collect();
        match &mut self.settings {
            HopSettings::Link(link) => link.assign_servers(&numbers).map_err(|lines| ScenarioError::Refused {
                field: "the highest server_number in traffic".to_owned(),
                value: numbers.iter().max().map_or_else(String::new, u16::to_string),
                allowed: format!("below the number of terminals of {}, which is {lines}", self.place),
            }),
            HopSettings::Proxy(proxy) => proxy.check_applications(&self.place, traffic),
            HopSettings::Acknowledger(_) | HopSettings::Rewriter(_) | HopSettings::PlugIn(_) => Ok(()),
        }
    }

    /// The whole name of its table, for refusals.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }
}

/// Reads a link that a plug-in in Python brings along (docs/guide/simulation-plug-ins.md; simulated paths only):
///
/// | field | unit, range | default | meaning |
/// |---|---|---|---|
/// | `plug_in` | text | required | an entry point of the group `pepscope.links`, or `package.module:Class` |
/// | `settings` | table | empty | what its class is given |
///
/// # Errors
/// If `plug_in` is missing.
fn read_plug_in(fields: &mut Fields) -> Read<PlugInDescription> {
    let allowed = "the name of a plug-in, or package.module:Class";
    let missing = ScenarioError::Missing { field: fields.path("plug_in"), allowed: allowed.to_owned() };
    let plug_in = fields.optional_text("plug_in", allowed)?.ok_or(missing)?;
    Ok(PlugInDescription { plug_in, settings: fields.any_table("settings")? })
}

/// Reads a middlebox that changes headers only; by default nothing is changed:
///
/// | field | unit, range | meaning |
/// |---|---|---|
/// | `maximum_segment_size_bytes` | 64-65495 | the largest that a SYN may announce |
/// | `shifts_sequence_numbers`, `shifts_timestamps` | true, false | by random constants, one a flow and direction |
/// | `window_limit_bytes` | 1-2^30 | the largest window that may be advertised |
/// | `zeroes_ip_identification` | true, false | |
/// | `routers` | 0-255 | what is taken off the time to live |
/// | `strips_timestamps`, `strips_sack`, `strips_window_scale` | true, false | options taken out |
/// | `acknowledgement_thinning` | table | `keep_one_of` (1-1000, default 2), `hold_s` (0-1, default 0.01) |
///
/// # Errors
/// If a field is outside its range.
fn read_rewriter(fields: &mut Fields) -> Read<RewriterSettings> {
    Ok(RewriterSettings {
        maximum_segment_size_bytes: fields
            .optional_integer("maximum_segment_size_bytes", 64..=65_495)?
            .map(|bytes| bytes as u16),
        shifts_sequence_numbers: fields.flag("shifts_sequence_numbers", false)?,
        shifts_timestamps: fields.flag("shifts_timestamps", false)?,
        window_limit_bytes: fields.optional_integer("window_limit_bytes", 1..=1 << 30)?.map(|bytes| bytes as u32),
        zeroes_ip_identification: fields.flag("zeroes_ip_identification", false)?,
        routers: fields.integer("routers", 0..=255, 0)? as u8,
        strips_timestamps: fields.flag("strips_timestamps", false)?,
        strips_sack: fields.flag("strips_sack", false)?,
        strips_window_scale: fields.flag("strips_window_scale", false)?,
        acknowledgement_thinning: fields.optional_section("acknowledgement_thinning", |thinning| {
            Ok(AcknowledgementThinning {
                keep_one_of: thinning.integer("keep_one_of", 1..=1000, 2)? as u32,
                hold_ns: thinning.seconds("hold_s", 0.0..=1.0, 0.01)?,
            })
        })?,
    })
}
