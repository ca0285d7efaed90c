//! No congestion control: what bounds the sender is imposed from outside.

use super::{Acknowledged, Congestion, CongestionControl, ControlKind};

/// No congestion control, for a sender that is limited from outside. Scenarios cannot name it.
pub const UNLIMITED: ControlKind =
    ControlKind::new("unlimited", "no congestion control", |_settings| Box::new(Unlimited));

/// A window that never closes and takes no notice of losses, which recovery still repairs (seed 003, section 4.1: the
/// proxy's leg to the mobile).
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl CongestionControl for Unlimited {
    fn on_acknowledged(&mut self, _acknowledged: &Acknowledged) {}

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn window_bytes(&self) -> u64 {
        1 << 40
    }

    fn slow_start_threshold_bytes(&self) -> u64 {
        u64::MAX
    }
}
