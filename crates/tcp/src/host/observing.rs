//! What is worth plotting of a host's connections.

use pepscope_path::{Nanoseconds, SECOND};

use super::Host;

impl Host {
    /// Calls `record` with each quantity worth plotting now: the flow, its name (with unit) and its value.
    pub fn observe(&self, record: &mut dyn FnMut(u32, &'static str, f64)) {
        for flow in &self.flows {
            let (number, connection) = (flow.connection.flow(), &flow.connection);
            let seconds = |time: Nanoseconds| time as f64 / SECOND as f64;
            record(number, "retransmission_timeout_s", seconds(connection.retransmission_timeout()));
            if let Some(round_trip_time) = connection.smoothed_round_trip_time() {
                record(number, "smoothed_round_trip_time_s", seconds(round_trip_time));
            }
            if let Some(bandwidth_bytes_s) = connection.estimated_bandwidth_bytes_s() {
                record(number, "estimated_bandwidth_bit_s", 8.0 * bandwidth_bytes_s as f64);
            }
            let mut bytes = |name, value: u64| record(number, name, value as f64);
            bytes("congestion_window_bytes", connection.congestion_window());
            if connection.slow_start_threshold() != u64::MAX {
                bytes("slow_start_threshold_bytes", connection.slow_start_threshold());
            }
            bytes("unacknowledged_bytes", connection.unacknowledged_bytes());
            bytes("queued_bytes", connection.queued_bytes());
            bytes("acknowledged_bytes", connection.bytes_acknowledged());
            bytes("receive_window_bytes", connection.receive_window());
            bytes("delivered_bytes", flow.application.read_bytes());
        }
    }
}
