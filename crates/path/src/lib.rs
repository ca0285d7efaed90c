//! Links, queues and radio bearers as state machines that do no I/O and never ask for the time.
//!
//! A path is a chain of hops between the server's host and the mobile's. Each hop implements [`Hop`]: it is given the
//! time and packets, and is polled for packets that leave and for the time of its next event. The virtual-time driver
//! and the live one (TUN devices) run the same hops; what they carry differs, so hops are generic over [`Datagram`].

mod branches;
mod device;
mod handover;
mod hop;
pub mod hsdpa;
mod impairments;
mod line;
mod loss;
pub mod lte;
mod managed;
mod next_times;
mod opportunities;
mod passage;
mod policer;
mod processing_time;
mod queue;
mod radio_states;
mod random;
mod rate_transmitter;
mod rates;
mod ring;
mod schedule;
mod serialisation;
mod settings;
mod trace;
mod transmission;
pub mod umts;
mod variable_rate;
mod wired;

pub use branches::{BranchLines, Branches, BranchesBy, BranchesSettings};
pub use device::{Device, DeviceSettings};
pub use handover::{HandoverSettings, Handovers};
pub use hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, QueueReport, MICROSECOND, MILLISECOND, NEVER, SECOND};
pub use impairments::{ImpairedLineSettings, Impairments, ImpairmentsSettings};
pub use line::{Following, Line};
pub use loss::{GilbertElliott, Loss, LossSettings};
pub use managed::{
    Arrivals, CoDelSettings, CrossSettings, Discipline, DropTailLine, FairSettings, Managed, ManagedLineSettings,
    ManagedQueueSettings, ManagedSettings, PieSettings, RedSettings,
};
pub use next_times::NextTimes;
pub use opportunities::{Opportunities, MAHIMAHI_OPPORTUNITY_BYTES, MAHIMAHI_OVERHEAD_BYTES};
pub use passage::{AnyPassage, Passage};
pub use policer::{Policed, Policer, PolicerLineSettings, PolicerSettings};
pub use processing_time::{Cooling, ProcessingTime, RunOfActs, QUANTILES};
pub use queue::{AverageQueue, MarkingSettings, Occupancy, Places, QueueLimit, QueueSettings, Size};
pub use radio_states::{RadioStates, RadioStatesSettings};
pub use random::{Random, TimeDraws};
pub use rate_transmitter::{RadioFrames, ServiceRule};
pub use rates::{AfterLastStep, RateProfile, RateStep};
pub use ring::Ring;
pub use schedule::Schedule;
pub use settings::SettingsError;
pub use trace::{parse_csv, parse_mahimahi, parse_two_columns, CsvColumns, CsvTime, RateHolds, TraceError, TraceFault};
pub use variable_rate::{ReportSettings, Service, VariableRate, VariableRateSettings, VaryingLineSettings};
pub use wired::{LineSettings, Wired, WiredSettings};
