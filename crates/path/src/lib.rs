//! Links, queues and radio bearers as state machines that do no I/O and never ask for the time.
//!
//! A path is a chain of hops between the server's host and the mobile's. Each hop implements [`Hop`]: it is told the
//! time and given packets, and is asked what leaves it and when it wants to be woken. The virtual-time driver and the
//! live one (TUN devices) run the same hops; what they carry differs, so hops are generic over [`Datagram`].

mod hop;
mod loss;
mod queue;
mod random;
mod serialisation;
mod settings;
mod wired;

pub use hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, QueueReport, MICROSECOND, MILLISECOND, NEVER, SECOND};
pub use loss::{GilbertElliott, Loss, LossSettings};
pub use queue::{AverageQueue, MarkingSettings, Occupancy, Places, QueueLimit, QueueSettings};
pub use random::Random;
pub use settings::SettingsError;
pub use wired::{LineSettings, Wired, WiredSettings};
