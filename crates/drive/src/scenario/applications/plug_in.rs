//! Applications written in Python.

use pepscope_applications::InnerProtocol;

use super::security::{read_security, Security};
use super::web::host;
use super::{opened_at_start, read_server_number, ApplicationFlow, Ends};
use crate::capture::addresses::DEFAULT_SERVER_PORT;
use crate::fields::{Fields, Read, ScenarioError};
use crate::plug_ins::{ApplicationFactory, PlugInDescription};

#[derive(Clone, Debug)]
pub(super) struct PlugInApplication {
    described: PlugInDescription,
    /// The whole name of its field, for refusals.
    place: String,
    security: Security,
    server_number: u16,
    port: u16,
}

impl PlugInApplication {
    /// Reads an application that a plug-in in Python brings along (docs/guide/simulation-plug-ins.md):
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `plug_in` | text | required | an entry point of the group `pepscope.applications`, or `package.module:Class` |
    /// | `settings` | table | empty | what its class is given |
    /// | `server_port` | 1-65535 | 5001 | |
    ///
    /// and how it is secured, see [`super::security::read_security`]: by default not at all, so that captures show its
    /// bytes.
    ///
    /// # Errors
    /// If `plug_in` is missing.
    pub(super) fn read(fields: &mut Fields) -> Read<Self> {
        let allowed = "the name of a plug-in, or package.module:Class";
        let place = fields.path("plug_in");
        let missing = ScenarioError::Missing { field: place.clone(), allowed: allowed.to_owned() };
        let plug_in = fields.optional_text("plug_in", allowed)?.ok_or(missing)?;
        Ok(Self {
            described: PlugInDescription { plug_in, settings: fields.any_table("settings")? },
            place,
            security: read_security(fields, "none")?,
            server_number: read_server_number(fields)?,
            port: fields.integer("server_port", 1..=65_535, DEFAULT_SERVER_PORT.into())? as u16,
        })
    }

    pub(super) fn flow(&self) -> ApplicationFlow {
        opened_at_start(self.server_number, self.port)
    }

    pub(super) fn ends(&self, seed: u64, flow: u32, plug_ins: Option<&ApplicationFactory>) -> Read<Ends> {
        let refuse = |allowed: String| ScenarioError::Refused {
            field: self.place.clone(),
            value: self.described.plug_in.clone(),
            allowed,
        };
        let factory = plug_ins.ok_or_else(|| refuse("absent where scenarios run without Python".to_owned()))?;
        let Ends { mobile, server } = factory.build(&self.described, seed, &format!("flow {flow}")).map_err(refuse)?;
        let name = host(self.server_number);
        Ok(self.security.around((seed, flow), (&name, InnerProtocol::Http11), true, mobile, server))
    }
}
