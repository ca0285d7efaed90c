//! The name of a congestion control and how it is built.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::plug_ins::{self, PLUG_IN_PREFIX};
use super::{CongestionControl, ControlSettings, CONGESTION_CONTROLS, RENO};

type Build = fn(&ControlSettings) -> Box<dyn CongestionControl>;

/// A congestion control that a connection can be given. Two kinds are equal if their names are.
#[derive(Clone, Copy)]
pub struct ControlKind {
    name: &'static str,
    summary: &'static str,
    build: Build,
}

impl ControlKind {
    /// A kind called `name` in scenarios; `summary` is a phrase for the documentation.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, build: Build) -> Self {
        Self { name, summary, build }
    }

    /// The listed kinds, the default of scenarios first.
    pub fn all() -> impl Iterator<Item = Self> {
        CONGESTION_CONTROLS.iter().copied().flatten().copied()
    }

    /// The listed kind called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name == name)
    }

    /// The control of a plug-in, which [`plug_ins::ControlFactory`] builds.
    #[must_use]
    pub fn plug_in(name: &str) -> Self {
        let name = plug_ins::kept_name(&format!("{PLUG_IN_PREFIX}{name}"));
        Self { name, summary: "a plug-in's", build: RENO.build }
    }

    /// Whether it is a plug-in's.
    #[must_use]
    pub fn is_plug_in(&self) -> bool {
        self.name.starts_with(PLUG_IN_PREFIX)
    }

    /// The name in scenarios.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A phrase that describes it.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// A control of this kind at the start of a connection.
    #[must_use]
    pub fn build(self, settings: &ControlSettings) -> Box<dyn CongestionControl> {
        if self.is_plug_in() {
            return plug_ins::build(self.name, settings);
        }
        (self.build)(settings)
    }
}

impl Default for ControlKind {
    fn default() -> Self {
        RENO
    }
}

impl PartialEq for ControlKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ControlKind {}

impl Hash for ControlKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for ControlKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::ControlKind;

    /// The listed kind called `name`.
    pub(in crate::control) fn kind(name: &str) -> ControlKind {
        ControlKind::named(name).expect("a listed control")
    }

    #[test]
    fn no_two_kinds_have_one_name() {
        let names: Vec<_> = ControlKind::all().map(|kind| kind.name()).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} is listed twice");
            assert_eq!(ControlKind::named(name).map(|kind| kind.name()), Some(*name));
        }
    }
}
