//! `pepscope._core`: the Rust crates for Python. Conversions only.

mod captures;
mod connections;
mod flows;
mod packed_columns;
mod pairs;
mod processors;
mod record;
mod simulation;
mod templates;
mod texts;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::captures::annotated::copy_with_comments;
    #[pymodule_export]
    use crate::captures::capture::Capture;
    #[pymodule_export]
    use crate::captures::frames::{frames_of_connections, header_kinds, read_frames, CaptureFrames};
    #[pymodule_export]
    use crate::captures::packet_keys::{keys_of_connections, packet_keys};
    #[pymodule_export]
    use crate::captures::packets::{Packet, PacketColumns};
    #[pymodule_export]
    use crate::captures::payload::{compare_payload, compare_payloads, same_openings, PayloadSample};
    #[pymodule_export]
    use crate::captures::read::begins_like_capture;
    #[pymodule_export]
    use crate::captures::read::read_capture;
    #[pymodule_export]
    use crate::captures::references::reference_kinds;
    #[pymodule_export]
    use crate::connections::connection_numbers::{
        abort, abort_at_sender, ack_delays, answer_times, answering_hop_limits, fins, hop_limits, least_window_shares,
        plain_round_trips, shut_by, window_course, Abort, AbortAtSender, AnswerTimes, AnsweringHopLimits, RoundTrips,
        WindowCourse,
    };
    #[pymodule_export]
    use crate::connections::exchanges::{connection_exchanges, exchange_kinds};
    #[pymodule_export]
    use crate::connections::one_capture::{
        exchanges_and_senders, frame_spans, frames_at, frames_of_rows, member_quantiles, row_codes,
    };
    #[pymodule_export]
    use crate::flows::clocks::{Constraints, ConstraintsOfMany};
    #[pymodule_export]
    use crate::flows::flow_columns::{
        clock_bounds, early_acks, early_own_acks, fin_leads_ns, flow_numbers, flow_times, published, round_trips_below,
    };
    #[pymodule_export]
    use crate::flows::flow_ends::{coded_options, fin_offsets, openings};
    #[pymodule_export]
    use crate::flows::flow_times::{ClockLineColumns, FlowTimes};
    #[pymodule_export]
    use crate::flows::host_clock::HostTicks;
    #[pymodule_export]
    use crate::flows::staircases::{acknowledgement_steps, data_ranges, first_arrivals};
    #[pymodule_export]
    use crate::flows::timestamps::{clock_falls, contradicting_times, longest_pause_ns, timestamp_steps};
    #[pymodule_export]
    use crate::packed_columns::{packed_columns, unpacked_columns};
    #[pymodule_export]
    use crate::pairs::pair_numbers::{
        common_packets, least_changed, may_share_packets, packet_twins, sender_leads, transfer_spans, CommonPackets,
        TransferSpans,
    };
    #[pymodule_export]
    use crate::pairs::pair_segments::{align_all_segments, align_segments, segment_counts, PairSegments};
    #[pymodule_export]
    use crate::pairs::payload_fingerprints::{fingerprints, sketch, vote, voted_shifts};
    #[pymodule_export]
    use crate::pairs::pointed::{
        compared_segments, data_ends, first_flagged_packets, furthest_acknowledgements, soonest_acknowledgements,
        stream_openings,
    };
    #[pymodule_export]
    use crate::pairs::telling::{
        acknowledging_rows, data_rows, first_copies, first_flagged, held_acknowledgements, least_windows,
        receiver_times_s, row_of_byte, strongest,
    };
    #[pymodule_export]
    use crate::processors::usable_processors;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::simulation::live::LivePath;
    #[pymodule_export]
    use crate::simulation::plug_ins::{ControlAcknowledgement, SimulatedPacket};
    #[pymodule_export]
    use crate::simulation::simulate::{check_scenario, simulate, Simulated};
    #[pymodule_export]
    use crate::simulation::sliding_mode::SlidingMode;
    #[pymodule_export]
    use crate::templates::filled_json;
    #[pymodule_export]
    use crate::texts::{coded_addresses, comma_separated_rows, duration_texts, filter_texts, joined_texts, time_texts};

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
