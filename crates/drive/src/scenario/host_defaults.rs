//! What the choice of a host decides where a scenario says nothing else.

use pepscope_path::{Nanoseconds, MILLISECOND, SECOND};
use pepscope_tcp::{RetransmissionEstimator, Stack};

/// tcp_rmem\[2\] up to Linux 6.16, and net.core.rmem_max.
const LINUX_RECEIVE_BUFFER_BYTES: u64 = 6 << 20;
const LINUX_MEMORY_BYTES: u64 = 212_992;
/// The largest window that a scale of 8 can announce: "a maximum receive window size of 16 MB".
const WINDOWS_RECEIVE_BUFFER_BYTES: u64 = 65_535 << 8;
const WINDOWS_SCALE: u8 = 8;
/// net.inet.tcp.autorcvbufmax of a machine with 4 GB.
const DARWIN_RECEIVE_BUFFER_BYTES: u64 = 4 << 20;
/// net.inet.tcp.win_scale_factor
const DARWIN_LEAST_SCALE: u8 = 3;

/// The defaults of one family of hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostDefaults {
    stack: Stack,
    pub receive_buffer_bytes: u64,
    /// The name of the congestion control.
    pub control: &'static str,
    pub has_rack: bool,
    pub takes_time: bool,
    pub timestamps_offered: bool,
    pub delayed_acknowledgement_timeout_s: f64,
    pub minimum_timeout_s: f64,
    pub maximum_timeout_s: f64,
    pub estimator: RetransmissionEstimator,
    pub byte_counting_limit_segments: Option<u32>,
    pub restart_after_idle: bool,
    pub handshake_retries: u64,
    pub retransmission_retries: u64,
    pub time_to_live: u64,
}

impl HostDefaults {
    pub fn of(stack: Stack) -> Self {
        let seconds = |time: Nanoseconds| time as f64 / SECOND as f64;
        let ideal = Self {
            stack,
            receive_buffer_bytes: 4 << 20,
            control: "cubic",
            has_rack: false,
            takes_time: false,
            timestamps_offered: true,
            delayed_acknowledgement_timeout_s: seconds(40 * MILLISECOND),
            minimum_timeout_s: 0.2,
            maximum_timeout_s: 120.0,
            estimator: RetransmissionEstimator::Rfc6298,
            byte_counting_limit_segments: None,
            restart_after_idle: true,
            handshake_retries: 6,
            retransmission_retries: 15,
            time_to_live: 64,
        };
        let kernel = Self { has_rack: true, takes_time: true, ..ideal };
        match stack {
            Stack::Ideal => ideal,
            Stack::Linux => Self {
                receive_buffer_bytes: LINUX_RECEIVE_BUFFER_BYTES,
                estimator: RetransmissionEstimator::Linux,
                byte_counting_limit_segments: Some(1000), // by all that an ACK is for
                ..kernel
            },
            Stack::Windows => Self {
                receive_buffer_bytes: WINDOWS_RECEIVE_BUFFER_BYTES,
                control: "cubic-hystart-plus-plus",
                timestamps_offered: false,
                minimum_timeout_s: 0.3,
                restart_after_idle: false,
                handshake_retries: 4,
                retransmission_retries: 5,
                time_to_live: 128,
                ..kernel
            },
            Stack::Darwin => Self {
                receive_buffer_bytes: DARWIN_RECEIVE_BUFFER_BYTES,
                control: "cubic-without-hystart",
                delayed_acknowledgement_timeout_s: 0.1,
                maximum_timeout_s: 64.0,
                estimator: RetransmissionEstimator::Darwin,
                byte_counting_limit_segments: Some(2),
                retransmission_retries: 12,
                ..kernel
            },
        }
    }

    /// The window scale that goes with a receive buffer.
    pub fn window_scale(&self, receive_buffer_bytes: u64) -> u8 {
        let covers = |scale: u8, largest: u64| largest << scale >= receive_buffer_bytes;
        match self.stack {
            Stack::Ideal => (0..14).find(|scale| covers(*scale, 65_535)).unwrap_or(14),
            // tcp_select_initial_window; net.core.rmem_max is never less.
            Stack::Linux => (receive_buffer_bytes.max(LINUX_MEMORY_BYTES).ilog2().saturating_sub(15) as u8).min(14),
            Stack::Windows => WINDOWS_SCALE,
            // tcp_set_max_rwinscale
            Stack::Darwin => (DARWIN_LEAST_SCALE..14).find(|scale| covers(*scale, 65_536)).unwrap_or(14),
        }
    }
}
