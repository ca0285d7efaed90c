//! `pepscope._core`: the Rust crates for Python. Conversions only.

mod agreement;
mod annotated;
mod application_plug_ins;
mod capture;
mod clocks;
mod connection_numbers;
mod datagrams;
mod decoding;
mod exchanges;
mod flow_columns;
mod flow_ends;
mod flow_times;
mod frames;
mod freed_memory;
mod host_clock;
#[cfg(target_os = "linux")]
mod live;
mod one_capture;
mod packets;
mod pair_numbers;
mod pair_segments;
mod payload;
mod payload_fingerprints;
mod plug_ins;
mod pointed;
mod read;
mod record;
mod references;
mod senders;
mod simulate;
mod sliding_mode;
mod staircases;
mod standard_input;
mod summaries;
mod tally;
mod telling;
mod templates;
mod timestamps;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::annotated::copy_with_comments;
    #[pymodule_export]
    use crate::capture::Capture;
    #[pymodule_export]
    use crate::clocks::Constraints;
    #[pymodule_export]
    use crate::connection_numbers::{
        abort, abort_at_sender, ack_delays, answer_times, answering_hop_limits, fins, hop_limits, plain_round_trips,
        window_course, Abort, AbortAtSender, AnswerTimes, AnsweringHopLimits, RoundTrips, WindowCourse,
    };
    #[pymodule_export]
    use crate::exchanges::{connection_exchanges, exchange_kinds};
    #[pymodule_export]
    use crate::flow_columns::{
        clock_bounds, early_acks, early_own_acks, fin_leads_ns, flow_numbers, flow_times, published, round_trips_below,
    };
    #[pymodule_export]
    use crate::flow_ends::{coded_options, fin_offsets, flow_ends, openings, FlowEnds};
    #[pymodule_export]
    use crate::flow_times::FlowTimes;
    #[pymodule_export]
    use crate::frames::{frames_of_connections, header_kinds, read_frames, CaptureFrames};
    #[pymodule_export]
    use crate::host_clock::HostTicks;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::live::LivePath;
    #[pymodule_export]
    use crate::one_capture::{exchanges_and_senders, frame_spans, frames_at, member_quantiles};
    #[pymodule_export]
    use crate::packets::{Packet, PacketColumns};
    #[pymodule_export]
    use crate::pair_numbers::{
        common_packets, least_changed, may_share_packets, packet_keys, packet_twins, sender_leads, transfer_spans,
        CommonPackets, TransferSpans,
    };
    #[pymodule_export]
    use crate::pair_segments::{align_all_segments, align_segments, segment_counts, PairSegments};
    #[pymodule_export]
    use crate::payload::{compare_payload, compare_payloads, same_openings, PayloadSample};
    #[pymodule_export]
    use crate::payload_fingerprints::{fingerprints, sketch, vote, voted_shifts};
    #[pymodule_export]
    use crate::plug_ins::{ControlAcknowledgement, SimulatedPacket};
    #[pymodule_export]
    use crate::pointed::{compared_segments, first_flagged_packets, flow_rows, soonest_acknowledgements, FlowRows};
    #[pymodule_export]
    use crate::read::begins_like_capture;
    #[pymodule_export]
    use crate::read::read_capture;
    #[pymodule_export]
    use crate::references::reference_kinds;
    #[pymodule_export]
    use crate::simulate::{check_scenario, simulate, Simulated};
    #[pymodule_export]
    use crate::sliding_mode::SlidingMode;
    #[pymodule_export]
    use crate::staircases::{acknowledgement_steps, data_ranges, first_arrivals};
    #[pymodule_export]
    use crate::telling::{
        acknowledging_rows, data_rows, first_copies, first_flagged, last_arrivals, receiver_times_s, row_of_byte,
        strongest,
    };
    #[pymodule_export]
    use crate::templates::{duration_texts, filled_json, time_texts};
    #[pymodule_export]
    use crate::timestamps::{clock_falls, longest_pause_ns, timestamp_steps};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A panic reaches Python as an exception; its own report would only stand before ours on standard error.
        if std::env::var_os("PEPSCOPE_DEBUG").is_none() {
            std::panic::set_hook(Box::new(|_| {}));
        }
        module.add("is_release_build", !cfg!(debug_assertions))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
