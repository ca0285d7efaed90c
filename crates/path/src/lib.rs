//! Links, queues and radio bearers as state machines that do no I/O and never ask for the time.
//!
//! A path is a chain of hops between the server's host and the mobile's. Each hop implements [`Hop`]: it is given the
//! time and packets, and is polled for packets that leave and for the time of its next event. The virtual-time driver
//! and the live one (TUN devices) run the same hops; what they carry differs, so hops are generic over [`Datagram`].

mod device;
mod hop;
pub mod hsdpa;
mod lines;
pub mod lte;
mod passage;
mod processing_time;
mod queues;
mod radio_states;
mod random;
mod settings;
mod transmitters;
pub mod umts;

pub use device::{Device, DeviceSettings};
pub use hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, QueueReport, MICROSECOND, MILLISECOND, NEVER, SECOND};
pub use lines::branches::{BranchLines, Branches, BranchesBy, BranchesSettings};
pub use lines::handover::{HandoverSettings, Handovers};
pub use lines::impairments::{ImpairedLineSettings, Impairments, ImpairmentsSettings};
pub use lines::line::{Following, Line};
pub use lines::loss::{GilbertElliott, Loss, LossSettings};
pub use lines::variable_rate::{ReportSettings, Service, VariableRate, VariableRateSettings, VaryingLineSettings};
pub use lines::wired::{LineSettings, Wired, WiredSettings};
pub use passage::{AnyPassage, Passage};
pub use processing_time::{Cooling, DrawnTime, Interruptions, ProcessingTime, RunOfActs, QUANTILES};
pub use queues::managed::{
    Arrivals, CoDelSettings, CrossSettings, Discipline, DropTailLine, FairSettings, Managed, ManagedLineSettings,
    ManagedQueueSettings, ManagedSettings, PieSettings, RedSettings,
};
pub use queues::next_times::NextTimes;
pub use queues::policer::{Policed, Policer, PolicerLineSettings, PolicerSettings};
pub use queues::queue::{AverageQueue, MarkingSettings, Occupancy, Places, QueueLimit, QueueSettings, Size};
pub use queues::ring::Ring;
pub use queues::schedule::Schedule;
pub use radio_states::{RadioStates, RadioStatesSettings};
pub use random::{LogNormal, Random};
pub use settings::SettingsError;
pub use transmitters::opportunities::{Opportunities, MAHIMAHI_OPPORTUNITY_BYTES, MAHIMAHI_OVERHEAD_BYTES};
pub use transmitters::rate_transmitter::{RadioFrames, ServiceRule};
pub use transmitters::rates::{AfterLastStep, RateProfile, RateStep};
pub use transmitters::trace::{
    parse_csv, parse_mahimahi, parse_two_columns, CsvColumns, CsvTime, RateHolds, TraceError, TraceFault,
};
