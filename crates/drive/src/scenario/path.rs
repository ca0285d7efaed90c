//! `[[path]]`: the hops from the server to the mobile, in order.

use pepscope_path::lte::LteSettings;
use pepscope_path::umts::DedicatedChannelSettings;
use pepscope_path::{VariableRateSettings, WiredSettings};
use pepscope_tcp::proxy::Proxy;
use pepscope_tcp::{AcknowledgementThinning, Rewriter, RewriterSettings};

use super::error::ScenarioError;
use super::fields::{Fields, Read};
use super::hsdpa::{read_hsdpa, HsdpaDescription};
use super::link::{read_variable_rate, read_wired};
use super::lte::read_lte;
use super::proxy::{read_proxy, ProxyDescription, KINDS as PROXY_KINDS};
use super::traffic::Traffic;
use super::umts_dch::read_umts_dch;
use crate::element::{LinkElement, PathElement};

const KINDS: [&str; 9] = [
    "wired",
    "variable-rate",
    "umts-dch",
    "hsdpa",
    "lte",
    "rewriter",
    PROXY_KINDS[0].0,
    PROXY_KINDS[1].0,
    PROXY_KINDS[2].0,
];

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
    Proxy(ProxyDescription),
}

/// Settings of links and cells.
#[derive(Clone, Debug)]
pub enum LinkSettings {
    Wired(WiredSettings),
    VariableRate(VariableRateSettings),
    DedicatedChannel(DedicatedChannelSettings),
    Hsdpa(Box<HsdpaDescription>),
    Lte(LteSettings),
}

impl HopDescription {
    /// Reads a hop by its `kind`:
    ///
    /// | kind | what it is |
    /// |---|---|
    /// | `wired` | a line of constant rate, see [`read_wired`] |
    /// | `variable-rate` | a line whose rate varies or follows a trace, see [`read_variable_rate`] |
    /// | `umts-dch` | a UMTS dedicated channel, see [`read_umts_dch`] |
    /// | `hsdpa` | UMTS cells with HSDPA, see [`read_hsdpa`] |
    /// | `lte` | an LTE or NR cell, see [`read_lte`] |
    /// | `rewriter` | a harmless middlebox, see [`read_rewriter`] |
    /// | `split-proxy`, `store-and-forward-proxy`, `window-adaptation-proxy` | what ends TCP connections, see [`read_proxy`] |
    ///
    /// `name` is by default its kind and which one of that kind it is: `wired-1`.
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read(fields: &mut Fields, earlier: &[&'static str]) -> Read<Self> {
        let kind = fields.kind(&KINDS)?;
        let number = earlier.iter().filter(|other| **other == kind).count() + 1;
        let name = fields.text("name", &format!("{kind}-{number}"))?;
        let settings = match kind {
            "wired" => HopSettings::Link(LinkSettings::Wired(read_wired(fields)?)),
            "variable-rate" => HopSettings::Link(LinkSettings::VariableRate(read_variable_rate(fields)?)),
            "umts-dch" => HopSettings::Link(LinkSettings::DedicatedChannel(read_umts_dch(fields)?)),
            "hsdpa" => HopSettings::Link(LinkSettings::Hsdpa(Box::new(read_hsdpa(fields)?))),
            "lte" => HopSettings::Link(LinkSettings::Lte(read_lte(fields)?)),
            "rewriter" => HopSettings::Rewriter(read_rewriter(fields)?),
            proxy => HopSettings::Proxy(read_proxy(fields, proxy)?),
        };
        Ok(Self { kind, name, settings, place: fields.place().to_owned() })
    }

    /// What makes connections through it other than regular: `split-tcp`, `tcp-proxy`, or nothing.
    #[must_use]
    pub fn class(&self) -> Option<&'static str> {
        match &self.settings {
            HopSettings::Proxy(_) => PROXY_KINDS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, class)| *class),
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
            HopSettings::Proxy(proxy) => proxy.check_control(&self.place, following),
            _ => Ok(()),
        }
    }

    /// Refuses traffic of a mobile that is none of a cell's terminals.
    ///
    /// # Errors
    /// Names the number of terminals.
    pub(super) fn check_users(&self, users: usize) -> Read<()> {
        let terminals = match &self.settings {
            HopSettings::Link(LinkSettings::Hsdpa(cells)) => cells.terminals(),
            HopSettings::Link(LinkSettings::Lte(cell)) => cell.users.len(),
            _ => return Ok(()),
        };
        if users <= terminals {
            return Ok(());
        }
        Err(ScenarioError::Refused {
            field: "the highest user in traffic".to_owned(),
            value: (users - 1).to_string(),
            allowed: format!("below the number of terminals of {}, which is {terminals}", self.place),
        })
    }

    /// The hop itself in the run of `traffic` with `seed`.
    ///
    /// # Errors
    /// If the component refuses settings that are each within their ranges.
    pub(crate) fn build(&self, seed: u64, traffic: &Traffic) -> Read<PathElement> {
        Ok(match &self.settings {
            HopSettings::Link(link) => {
                let link = LinkElement::new(link, seed, &self.name);
                PathElement::Link(link.map_err(|error| Fields::refusal(&self.place, &error))?)
            }
            HopSettings::Rewriter(settings) => {
                PathElement::Rewriter(Box::new(Rewriter::new(settings.clone(), seed, &self.name)))
            }
            HopSettings::Proxy(proxy) => {
                PathElement::Proxy(Box::new(Proxy::new(proxy.settings(traffic), seed, &self.name)))
            }
        })
    }
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
