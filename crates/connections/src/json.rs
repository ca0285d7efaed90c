//! Connections as JSON, written straight from the summaries: keys are the field names of `pepscope.captures.connections`.

use crate::summary::{address_text, tunnel_name, ConnectionSummary, FlowSummary};

/// Appends JSON to bytes; every value that is written is a number, a boolean, null or text that needs no escapes.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    integers: itoa::Buffer,
}

/// Below it a whole number is written with all its digits.
const LEAST_LARGE: f64 = 1e15;

/// Prefixes are constants: inlined, they are copied word by word, which is faster than calling a function that copies.
impl Writer<'_> {
    #[inline(always)]
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    fn integer<Number: itoa::Integer + Default + PartialEq>(&mut self, prefix: &str, value: Number) {
        self.raw(prefix);
        if value == Number::default() {
            self.out.push(b'0'); // as most counts are
        } else {
            self.digits(value);
        }
    }

    #[inline(never)]
    fn digits(&mut self, value: impl itoa::Integer) {
        let text = self.integers.format(value);
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    fn optional<Number: itoa::Integer + Default + PartialEq>(&mut self, prefix: &str, value: Option<Number>) {
        match value {
            Some(value) => self.integer(prefix, value),
            None => {
                self.raw(prefix);
                self.raw("null");
            }
        }
    }

    fn float(&mut self, prefix: &str, value: Option<f64>) {
        self.raw(prefix);
        match value.filter(|value| value.is_finite()) {
            // As the mean of few times often is; these digits are found faster.
            Some(value) if (1.0..LEAST_LARGE).contains(&value) && value.fract() == 0.0 => {
                self.integer("", value as u64);
                self.raw(".0");
            }
            Some(value) => {
                let mut buffer = ryu::Buffer::new();
                self.out.extend_from_slice(buffer.format_finite(value).as_bytes());
            }
            None => self.raw("null"),
        }
    }

    #[inline(always)]
    fn boolean(&mut self, prefix: &str, value: bool) {
        self.raw(prefix);
        self.raw(if value { "true" } else { "false" });
    }

    fn text(&mut self, prefix: &str, value: &str) {
        self.raw(prefix);
        self.raw("\"");
        self.raw(value);
        self.raw("\"");
    }

    fn hexadecimal(&mut self, prefix: &str, value: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.raw(prefix);
        self.raw("\"");
        for byte in value {
            self.out.push(DIGITS[usize::from(byte >> 4)]);
            self.out.push(DIGITS[usize::from(byte & 15)]);
        }
        self.raw("\"");
    }

    fn endpoint(&mut self, prefix: &str, address: &str, port: u16) {
        self.raw(prefix);
        let bracketed = address.contains(':');
        self.raw(if bracketed { "\"[" } else { "\"" });
        self.raw(address);
        self.integer(if bracketed { "]:" } else { ":" }, port);
        self.raw("\"");
    }

    fn flow(&mut self, prefix: &str, flow: &FlowSummary<'_>) {
        self.raw(prefix);
        self.integer("{\"packets\":", flow.packets);
        self.integer(",\"payload_bytes\":", flow.payload_bytes);
        self.integer(",\"stream_bytes\":", flow.stream_bytes);
        self.integer(",\"data_packets\":", flow.data_packets);
        self.integer(",\"pure_acknowledgements\":", flow.pure_acknowledgements);
        self.integer(",\"retransmitted_packets\":", flow.retransmitted_packets);
        self.integer(",\"retransmitted_bytes\":", flow.retransmitted_bytes);
        self.integer(",\"reordered_packets\":", flow.reordered_packets);
        self.integer(",\"duplicate_packets\":", flow.duplicate_packets);
        self.integer(",\"missed_bytes\":", flow.missed_bytes);
        self.integer(",\"zero_windows\":", flow.zero_windows);
        self.integer(",\"zero_window_probes\":", flow.zero_window_probes);
        self.integer(",\"window_min_bytes\":", flow.window_min_bytes);
        self.integer(",\"window_max_bytes\":", flow.window_max_bytes);
        self.integer(",\"round_trip_time_samples\":", flow.round_trip_time_samples);
        self.optional(",\"round_trip_time_min_ns\":", flow.round_trip_time_min_ns);
        self.float(",\"round_trip_time_mean_ns\":", flow.round_trip_time_mean_ns);
        self.optional(",\"round_trip_time_max_ns\":", flow.round_trip_time_max_ns);
        self.optional(",\"first_time_ns\":", flow.first_time_ns);
        self.optional(",\"first_data_time_ns\":", flow.first_data_time_ns);
        self.optional(",\"last_data_time_ns\":", flow.last_data_time_ns);
        self.optional(",\"initial_sequence_number\":", flow.initial_sequence_number);
        self.integer(",\"syn_count\":", flow.syn_count);
        self.hexadecimal(",\"syn_options\":", flow.syn_options);
        self.optional(",\"maximum_segment_size\":", flow.maximum_segment_size);
        self.optional(",\"window_scale\":", flow.window_scale);
        self.optional(",\"window_shift\":", flow.window_shift);
        self.boolean(",\"sack_permitted\":", flow.sack_permitted);
        self.boolean(",\"timestamps\":", flow.timestamps);
        self.boolean(",\"options_captured\":", flow.options_captured);
        self.integer(",\"options_truncated_packets\":", flow.options_truncated_packets);
        self.text(",\"missing_packets\":", flow.missing_packets.name());
        self.integer(",\"ttl\":", flow.ttl);
        self.optional(",\"fin_time_ns\":", flow.fin_time_ns);
        self.optional(",\"reset_time_ns\":", flow.reset_time_ns);
        self.raw("}");
    }
}

/// What one connection takes, and some more.
pub const TYPICAL_BYTES: usize = 3 << 10;

/// Append one connection as a JSON object; `identifier` is its rank by first packet in its capture.
pub fn write_connection(out: &mut Vec<u8>, identifier: u64, connection: &ConnectionSummary<'_>) {
    out.reserve(TYPICAL_BYTES);
    let mut writer = Writer { out, integers: itoa::Buffer::new() };
    let client = address_text(connection.client_address, connection.ip_version);
    let server = address_text(connection.server_address, connection.ip_version);
    writer.integer("{\"id\":", identifier);
    writer.endpoint(",\"client\":", &client, connection.client_port);
    writer.endpoint(",\"server\":", &server, connection.server_port);
    writer.integer(",\"ip_version\":", connection.ip_version);
    writer.text(",\"client_address\":", &client);
    writer.integer(",\"client_port\":", connection.client_port);
    writer.text(",\"server_address\":", &server);
    writer.integer(",\"server_port\":", connection.server_port);
    writer.boolean(",\"side_guessed\":", connection.side_guessed);
    writer.integer(",\"first_time_ns\":", connection.first_time_ns);
    writer.integer(",\"last_time_ns\":", connection.last_time_ns);
    writer.integer(",\"packets\":", connection.packets);
    writer.text(",\"close\":", connection.close.name());
    writer.optional(",\"handshake_syn_ack_ns\":", connection.handshake_syn_ack_ns);
    writer.optional(",\"handshake_ack_ns\":", connection.handshake_ack_ns);
    writer.text(",\"tunnel\":", tunnel_name(connection.tunnel));
    writer.integer(",\"tunnel_up\":", connection.tunnel_up);
    writer.integer(",\"tunnel_down\":", connection.tunnel_down);
    writer.flow(",\"up\":", &connection.up);
    writer.flow(",\"down\":", &connection.down);
    writer.raw("}");
}

/// A JSON array of connections, numbered from 0 in the order given.
pub fn connections_json<'a>(connections: impl Iterator<Item = ConnectionSummary<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    out.push(b'[');
    for (identifier, connection) in connections.enumerate() {
        if identifier > 0 {
            out.push(b',');
        }
        write_connection(&mut out, identifier as u64, &connection);
    }
    out.push(b']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: f64) -> String {
        let mut out = Vec::new();
        Writer { out: &mut out, integers: itoa::Buffer::new() }.float("", Some(value));
        String::from_utf8_lossy(&out).into_owned()
    }

    proptest! {
        #[test]
        fn whole_numbers_are_written_as_others_are(
            value in prop_oneof![0..2_000_000_000_u64, 999_999_999_999_000..1_000_000_000_001_000_u64, any::<u64>()],
            divisor in 1..4_u64,
        ) {
            let value = value as f64 / divisor as f64;
            let mut buffer = ryu::Buffer::new();
            prop_assert_eq!(written(value), buffer.format_finite(value));
        }
    }
}
