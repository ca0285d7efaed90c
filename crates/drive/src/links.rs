//! Links: the scenario's settings of each kind, and its model.
//!
//! One file a kind: its type `Settings` implements [`Link`], its first line (`//! Title: summary.`) and the comments of
//! its readers go into the documentation of scenarios, and one line of `links!` lists it.

mod buffer;

use pepscope_path::{Datagram, Hop, SettingsError};

use crate::enum_dispatch::hop_by_enum_dispatch;
use crate::fields::{Fields, Read};

const MOST_BIT_S: u64 = 1_000_000_000_000;
const MOST_DELAY_S: f64 = 1000.0;

/// The settings of one kind of link.
pub trait Link: Sized {
    /// Its `kind` in scenarios.
    const KIND: &'static str;

    /// The model, which simulations run with simulated packets and TUN devices with real ones.
    type Model<P: Datagram>: Hop<P> + std::fmt::Debug;

    /// Reads the settings from a table of the scenario.
    ///
    /// # Errors
    /// If a field is outside its range.
    fn read(fields: &mut Fields) -> Read<Self>;

    /// The link called `name` in the run with `seed`.
    ///
    /// # Errors
    /// If the model refuses the settings.
    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<Self::Model<P>, SettingsError>;

    /// The number of terminals that a cell has; `None` for a link that carries the packets of any mobile.
    fn terminals(&self) -> Option<usize> {
        None
    }

    /// Takes the numbers of the flows' servers, where the link has a line for each server.
    ///
    /// # Errors
    /// The number of its lines, if there are fewer than servers.
    fn assign_servers(&mut self, _numbers: &[u16]) -> Result<(), usize> {
        Ok(())
    }

    /// The rate of a link down that sends radio frames, which a window-adaptation proxy may be checked against.
    fn frame_rate(&self) -> Option<FrameRate> {
        None
    }
}

/// The rate of a link that sends radio frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameRate {
    pub mean_frames_s: f64,
    /// The shortest time between two changes, if the rate changes.
    pub period_s: Option<f64>,
}

/// A call of a function that is compiled for each model apart, so that calls into the model can be inlined.
pub(crate) trait HopCall<P: Datagram> {
    type Output;

    fn call<H: Hop<P>>(self, hop: &mut H) -> Self::Output;
}

/// Lists the kinds of link: the name of the file and that of the variants. Makes [`LinkSettings`] and, by enum dispatch
/// instead of a trait object, [`LinkElement`].
macro_rules! links {
    ($($file:ident: $variant:ident,)*) => {
        $(mod $file;)*

        /// The kinds of link that a scenario can name.
        pub const LINK_KINDS: &[&str] = &[$($file::Settings::KIND),*];

        /// The settings of a link of any kind.
        #[derive(Clone, Debug)]
        pub enum LinkSettings {
            $($variant(Box<$file::Settings>),)*
        }

        impl LinkSettings {
            /// Reads the settings of a link of `kind`; `None` if that is no kind of link.
            ///
            /// # Errors
            /// If a field is outside its range.
            pub fn read(kind: &str, fields: &mut Fields) -> Read<Option<Self>> {
                Ok(match kind {
                    $($file::Settings::KIND => Some(Self::$variant(Box::new(Link::read(fields)?))),)*
                    _ => None,
                })
            }

            /// See [`Link::terminals`].
            #[must_use]
            pub fn terminals(&self) -> Option<usize> {
                match self {
                    $(Self::$variant(settings) => settings.terminals(),)*
                }
            }

            /// See [`Link::assign_servers`].
            ///
            /// # Errors
            /// The number of its lines, if there are fewer than servers.
            pub fn assign_servers(&mut self, numbers: &[u16]) -> Result<(), usize> {
                match self {
                    $(Self::$variant(settings) => settings.assign_servers(numbers),)*
                }
            }

            /// See [`Link::frame_rate`].
            #[must_use]
            pub fn frame_rate(&self) -> Option<FrameRate> {
                match self {
                    $(Self::$variant(settings) => settings.frame_rate(),)*
                }
            }
        }

        /// A link of any kind that carries packets.
        #[derive(Debug)]
        pub enum LinkElement<P: Datagram> {
            $($variant(Box<<$file::Settings as Link>::Model<P>>),)*
        }

        impl<P: Datagram> LinkElement<P> {
            /// The link called `name` in the run with `seed`.
            ///
            /// # Errors
            /// If the model refuses the settings.
            pub fn new(settings: &LinkSettings, seed: u64, name: &str) -> Result<Self, SettingsError> {
                Ok(match settings {
                    $(LinkSettings::$variant(settings) => Self::$variant(Box::new(settings.build(seed, name)?)),)*
                })
            }

            #[inline]
            pub(crate) fn dispatch<C: HopCall<P>>(&mut self, call: C) -> C::Output {
                match self {
                    $(Self::$variant(link) => call.call(link.as_mut()),)*
                }
            }
        }

        hop_by_enum_dispatch!([<P: Datagram>] LinkElement<P>, P: $($variant),*);
    };
}

links! {
    wired: Wired,
    branches: Branches,
    variable_rate: VariableRate,
    impairments: Impairments,
    device: Device,
    managed: Managed,
    policer: Policer,
    umts_dch: DedicatedChannel,
    hsdpa: Hsdpa,
    lte: Lte,
    radio_states: RadioStates,
    handover: Handover,
}
