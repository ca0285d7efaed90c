//! Congestion controls that a caller of this crate brings along, by name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use super::{CongestionControl, ControlSettings, RENO};

/// How names of plug-ins begin in scenarios.
pub const PLUG_IN_PREFIX: &str = "plug-in:";

type Build = dyn Fn(&str, &ControlSettings) -> Box<dyn CongestionControl>;

thread_local! {
    static FACTORY: RefCell<Option<Rc<Build>>> = const { RefCell::new(None) };
}

/// Names live as long as the process; each is kept once.
static NAMES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());

pub(super) fn kept_name(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(kept) => kept,
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(name.to_owned(), kept);
            kept
        }
    }
}

/// Builds the controls of plug-ins on this thread, by their names without prefix, until it is dropped.
pub struct ControlFactory(());

impl ControlFactory {
    #[must_use]
    pub fn install(build: impl Fn(&str, &ControlSettings) -> Box<dyn CongestionControl> + 'static) -> Self {
        FACTORY.with(|factory| *factory.borrow_mut() = Some(Rc::new(build)));
        Self(())
    }

    /// Whether this thread has one.
    #[must_use]
    pub fn is_installed() -> bool {
        FACTORY.with(|factory| factory.borrow().is_some())
    }
}

impl Drop for ControlFactory {
    fn drop(&mut self) {
        FACTORY.with(|factory| *factory.borrow_mut() = None);
    }
}

/// The control of that name. Scenarios that name one are refused where there is no factory.
pub(super) fn build(name: &str, settings: &ControlSettings) -> Box<dyn CongestionControl> {
    let factory = FACTORY.with(|factory| factory.borrow().clone());
    match factory {
        Some(factory) => factory(name.strip_prefix(PLUG_IN_PREFIX).unwrap_or(name), settings),
        None => RENO.build(settings),
    }
}

#[cfg(test)]
mod tests {
    use super::{ControlFactory, PLUG_IN_PREFIX};
    use crate::control::{ControlKind, ControlSettings, Reno};

    const SETTINGS: ControlSettings = ControlSettings {
        maximum_segment_size: 1000,
        initial_window_bytes: 7000,
        initial_slow_start_threshold_bytes: u64::MAX,
        byte_counting_limit_segments: None,
        is_paced: false,
    };

    #[test]
    fn a_factory_builds_what_its_name_says_as_long_as_it_is_installed() {
        let kind = ControlKind::plug_in("mine");
        assert_eq!(kind, ControlKind::plug_in("mine"));
        assert_eq!(kind.name(), format!("{PLUG_IN_PREFIX}mine"));
        assert!(kind.is_plug_in() && !ControlFactory::is_installed());
        let installed = ControlFactory::install(|name, settings| {
            assert_eq!(name, "mine");
            Box::new(Reno::new(settings))
        });
        assert_eq!(kind.build(&SETTINGS).window_bytes(), 7000);
        drop(installed);
        assert!(!ControlFactory::is_installed());
    }
}
