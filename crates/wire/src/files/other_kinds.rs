//! Files that are given as captures and are of another kind, so that their refusal says what to do.

/// First bytes, and what a file that begins so is: the end of a sentence about it.
const KINDS: [(&[u8], &str); 13] = [
    (b"PK\x03\x04", "a zip archive: unpack it, and give the captures in it"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it, and give the captures in it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it, and give the captures in it"),
    (b"version https://git-lfs", "a pointer of Git LFS, which `git lfs pull` replaces by the capture itself"),
    (b"PAR1", "a Parquet table, no capture"),
    (b"GMBU", "a capture of Microsoft Network Monitor; `editcap -F pcapng FILE NEW` converts it"),
    (b"RTSS", "a capture of Microsoft Network Monitor; `editcap -F pcapng FILE NEW` converts it"),
    (b"TRSNIFF data", "a capture of a Sniffer; `editcap -F pcapng FILE NEW` converts it"),
    (b"XCP\0", "a capture of NetXRay or a Sniffer; `editcap -F pcapng FILE NEW` converts it"),
    (b"iptrace ", "a capture of AIX iptrace; `editcap -F pcapng FILE NEW` converts it"),
    (b"\x7fver", "a capture of EtherPeek or OmniPeek; `editcap -F pcapng FILE NEW` converts it"),
    (b"ObserverPktBuffe", "a capture of Observer; `editcap -F pcapng FILE NEW` converts it"),
    (b"\xaa\xaa\xaa\xaa", "a capture of 5View; `editcap -F pcapng FILE NEW` converts it"),
];

/// How HTML pages begin, in either case and behind empty lines.
const HTML_TAGS: [&[u8]; 2] = [b"<!doctype", b"<html"];
const HTML: &str = "an HTML page: download the capture itself (\"raw\")";

/// Bytes that tell every kind from the others.
pub(crate) const FIRST_BYTES: usize = 24;

/// What a file is that begins with these bytes; None where that is not known.
pub(crate) fn kind_of(first_bytes: &[u8]) -> Option<&'static str> {
    let kind = KINDS.iter().find(|(begin, _)| first_bytes.starts_with(begin)).map(|(_, kind)| *kind);
    kind.or_else(|| is_html(first_bytes).then_some(HTML))
}

fn is_html(first_bytes: &[u8]) -> bool {
    let text = first_bytes.trim_ascii_start();
    HTML_TAGS.iter().any(|tag| text.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag)))
}
