//! Connections as JSON.

use crate::transcript::*;
use pepscope_connections::json::connections_json;
use pepscope_wire::segment::Segment;

fn text(segments: &[Segment<'_>]) -> String {
    String::from_utf8_lossy(&connections_json(analyse(segments).summaries())).into_owned()
}

#[test]
fn one_connection_field_by_field() {
    let mut segments = NUMBERS.handshake();
    segments.push(up(30_000, ACK, 0, 0, 100));
    segments.push(down(50_000, ACK, 0, 100, 0));
    let expected = concat!(
        r#"[{"id":0,"client":"10.0.0.1:40000","server":"10.0.0.2:443","ip_version":4,"client_address":"10.0.0.1","#,
        r#""client_port":40000,"server_address":"10.0.0.2","server_port":443,"side_guessed":false,"first_time_ns":0,"#,
        r#""last_time_ns":50000000,"packets":5,"close":"open","handshake_syn_ack_ns":20000000,"#,
        r#""handshake_ack_ns":1000000,"tunnel":"none","tunnel_up":0,"tunnel_down":0,"up":{"packets":3,"#,
        r#""payload_bytes":100,"stream_bytes":100,"data_packets":1,"pure_acknowledgements":1,"retransmitted_packets":0,"#,
        r#""retransmitted_bytes":0,"reordered_packets":0,"duplicate_packets":0,"missed_bytes":0,"zero_windows":0,"#,
        r#""zero_window_probes":0,"window_min_bytes":64000,"window_max_bytes":64000,"#,
        r#""round_trip_time_samples":1,"round_trip_time_min_ns":20000000,"round_trip_time_mean_ns":20000000.0,"#,
        r#""round_trip_time_max_ns":20000000,"first_time_ns":0,"first_data_time_ns":30000000,"#,
        r#""last_data_time_ns":30000000,"initial_sequence_number":1000,"syn_count":1,"#,
        r#""syn_options":"020405b4030307","maximum_segment_size":1460,"window_scale":7,"window_shift":7,"#,
        r#""sack_permitted":false,"timestamps":false,"options_captured":true,"options_truncated_packets":0,"#,
        r#""missing_packets":"none","ttl":64,"fin_time_ns":null,"reset_time_ns":null},"down":{"packets":2,"#,
        r#""payload_bytes":0,"stream_bytes":0,"data_packets":0,"pure_acknowledgements":1,"retransmitted_packets":0,"retransmitted_bytes":0,"#,
        r#""reordered_packets":0,"duplicate_packets":0,"missed_bytes":0,"zero_windows":0,"zero_window_probes":0,"#,
        r#""window_min_bytes":64000,"window_max_bytes":64000,"round_trip_time_samples":0,"#,
        r#""round_trip_time_min_ns":null,"round_trip_time_mean_ns":null,"round_trip_time_max_ns":null,"#,
        r#""first_time_ns":20000000,"first_data_time_ns":null,"last_data_time_ns":null,"#,
        r#""initial_sequence_number":2000000,"syn_count":1,"syn_options":"","maximum_segment_size":1460,"#,
        r#""window_scale":7,"window_shift":7,"sack_permitted":false,"timestamps":false,"#,
        r#""options_captured":true,"options_truncated_packets":0,"missing_packets":"none","ttl":57,"fin_time_ns":null,"#,
        r#""reset_time_ns":null}}]"#,
    );
    assert_eq!(text(&segments), expected);
}

#[test]
fn ipv6_endpoints_stand_in_brackets() {
    let mut source = [0; 16];
    source[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    source[15] = 1;
    let segment = Segment { ip_version: 6, source, destination: [0; 16], ..up(0, SYN, -1, 0, 0) };
    let text = text(&[segment]);
    assert!(text.contains(r#""client":"[2001:db8::1]:40000","server":"[::]:443","ip_version":6"#), "{text}");
}

#[test]
fn no_connections_are_an_empty_array() {
    assert_eq!(text(&[]), "[]");
}
