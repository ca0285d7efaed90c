//! Why a live path cannot be set up or go on.

use std::fmt;

use crate::fields::ScenarioError;

/// `Display` is one sentence.
#[derive(Debug)]
pub enum LiveError {
    /// A hop that only a simulation has.
    NotLive { name: String, kind: &'static str },
    /// A part of the path that the scenario does not have.
    NoSuchPart { first: usize, last: usize, hops: usize },
    /// A hop that refuses its settings.
    Scenario(ScenarioError),
    /// A call to the system that failed.
    System { what: &'static str, cause: std::io::Error },
    /// The loop runs already, or did.
    Started,
}

impl fmt::Display for LiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLive { name, kind } => {
                write!(
                    out,
                    "{name} is a hop of kind {kind}, which only a simulation has: real packets pass links, cells and rewriters of headers"
                )
            }
            Self::NoSuchPart { first, last, hops } => {
                write!(out, "hops {first} to {last} are no part of a path of {hops} hops")
            }
            Self::Scenario(refusal) => refusal.fmt(out),
            Self::System { what, cause } => write!(out, "cannot {what}: {cause}"),
            Self::Started => write!(out, "a live path runs once, and this one was started before"),
        }
    }
}

impl std::error::Error for LiveError {}

impl LiveError {
    pub(crate) fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |cause| Self::System { what, cause: cause.into() }
    }
}
