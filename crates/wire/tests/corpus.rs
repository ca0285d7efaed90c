//! Real captures: every packet that tcpdump wrote is read, and all of it is TCP.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use pepscope_wire::CaptureReader;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

struct Expected {
    packets: u64,
    truncated: bool,
}

fn manifest() -> BTreeMap<String, Expected> {
    let text = std::fs::read_to_string(corpus().join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let runs = manifest["runs"].as_array().unwrap();
    let files = runs.iter().flat_map(|run| run["files"].as_object().unwrap().values());
    files
        .map(|file| {
            let truncated = file["truncated_last_record"].as_bool().unwrap_or_default();
            let expected = Expected { packets: file["packets"].as_u64().unwrap(), truncated };
            (file["name"].as_str().unwrap().to_owned(), expected)
        })
        .collect()
}

#[test]
fn every_packet_is_read() {
    let manifest = manifest();
    assert!(manifest.len() > 100, "the manifest names {} files", manifest.len());
    for (name, Expected { packets, truncated }) in &manifest {
        let mut reader = CaptureReader::open(&corpus().join(name)).unwrap();
        let mut segments = 0;
        let mut latest_ns = i64::MIN;
        let mut backwards = 0;
        while let Some(segment) = reader.next_segment().unwrap() {
            assert_eq!(segment.frame_index, segments, "{name}");
            backwards += u64::from(segment.time_ns < latest_ns);
            latest_ns = segment.time_ns;
            segments += 1;
        }
        let tally = reader.tally();
        assert_eq!((tally.frames, segments), (*packets, *packets), "{name}");
        assert_eq!(tally.tcp_segments, segments, "{name}");
        assert!(
            backwards * 100 <= segments,
            "{name}: {backwards} of {segments} packets are earlier than the one before"
        );
        assert_eq!(tally.damage.is_some(), *truncated, "{name}: {:?}", tally.damage);
        assert_eq!(reader.file_bytes(), Some(reader.file_bytes_read()), "{name}");
    }
}
