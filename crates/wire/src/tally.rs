//! What a capture held besides the segments that were delivered.

use crate::error::{Damage, Reject};
use crate::link::{link_type_name, LinkType};

/// Frames of one link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTypeCount {
    /// Number of the tcpdump.org registry.
    pub link_type: u16,
    pub frames: u64,
    /// False where frames of this link type cannot be read.
    pub known: bool,
}

/// Counts over the frames read so far. Every frame is counted in `frames` and in exactly one of the others, down to
/// `fragments_held`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub frames: u64,
    pub tcp_segments: u64,
    pub filtered_out: u64,
    pub unknown_link_type: u64,
    pub not_ip: u64,
    pub not_tcp: u64,
    /// Cut by the snap length before the end of the TCP window field.
    pub cut_short: u64,
    pub malformed: u64,
    /// More headers in one another than anyone sends.
    pub too_deep: u64,
    /// Encrypted on the link (802.11).
    pub encrypted: u64,
    /// Kept until the other fragments of the datagram came; the last one counts as what the datagram holds.
    pub fragments_held: u64,

    /// Datagrams of which some fragment never came; known at the end.
    pub unfinished_datagrams: u64,
    /// Frames for which the file gives no time; they got that of the frame before them.
    pub frames_without_time: u64,
    /// Earliest and latest time (nanoseconds since the epoch) that the file gives any of its frames, whatever they hold
    /// and whether or not the filter let them through: the capture ran at least from one to the other.
    pub time_span_ns: Option<(i64, i64)>,
    pub link_types: Vec<LinkTypeCount>,
    /// Bytes of the capture after decompression; known at the end.
    pub bytes_read: u64,
    /// Where reading ended too early.
    pub damage: Option<Damage>,
}

impl Tally {
    pub(crate) fn count_reject(&mut self, reject: Reject) {
        let counter = match reject {
            Reject::UnknownLinkType => &mut self.unknown_link_type,
            Reject::NotIp => &mut self.not_ip,
            Reject::NotTcp => &mut self.not_tcp,
            Reject::CutShort => &mut self.cut_short,
            Reject::Malformed => &mut self.malformed,
            Reject::TooDeep => &mut self.too_deep,
            Reject::Encrypted => &mut self.encrypted,
            Reject::FragmentHeld => &mut self.fragments_held,
        };
        *counter += 1;
    }

    #[inline]
    pub(crate) fn extend_time_span(&mut self, time_ns: i64) {
        let (first, last) = self.time_span_ns.unwrap_or((time_ns, time_ns));
        self.time_span_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    /// Index in `link_types` of a link type, added if it is new.
    pub(crate) fn link_type_index(&mut self, link_type: u16) -> usize {
        let found = self.link_types.iter().position(|count| count.link_type == link_type);
        found.unwrap_or_else(|| {
            let known = LinkType::from_number(link_type).is_some();
            self.link_types.push(LinkTypeCount { link_type, frames: 0, known });
            self.link_types.len() - 1
        })
    }

    /// What a user should know of this capture, one sentence each; empty for a capture without peculiarities.
    ///
    /// Frames that simply are no TCP are named only where nothing else was found.
    pub fn warnings(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(damage) = &self.damage {
            sentences.push(damage.sentence.clone());
        }
        for unknown in self.link_types.iter().filter(|count| !count.known) {
            let name = link_type_name(unknown.link_type).map_or(String::new(), |name| format!(" ({name})"));
            let frames = counted(unknown.frames, "packet");
            sentences.push(format!("{frames} of link type {}{name}, which cannot be read", unknown.link_type));
        }
        let mut note = |count: u64, noun: &str, what: &str| {
            if count > 0 {
                sentences.push(format!("{} {what}", counted(count, noun)));
            }
        };
        note(self.cut_short, "packet", "cut by the snap length before the end of the TCP header");
        note(self.malformed, "packet", "with lengths that contradict each other");
        note(self.too_deep, "packet", "with more headers in one another than can be followed");
        note(self.encrypted, "packet", "encrypted by the wireless link");
        note(self.unfinished_datagrams, "fragmented datagram", "of which some fragment is missing");
        note(self.frames_without_time, "packet", "without a time stamp, which got that of the packet before");
        if self.tcp_segments == 0 {
            sentences.push(self.nothing_found());
        }
        sentences
    }

    fn nothing_found(&self) -> String {
        if self.frames == 0 {
            return "the capture holds no packets".to_owned();
        }
        let reasons = [
            (self.filtered_out, "removed by the filter"),
            (self.unknown_link_type, "of an unknown link type"),
            (self.not_ip, "not IP"),
            (self.not_tcp, "IP but not TCP"),
            (self.cut_short, "cut too short"),
            (self.malformed, "malformed"),
            (self.too_deep, "nested too deep"),
            (self.encrypted, "encrypted"),
            (self.fragments_held, "fragments without the rest"),
        ];
        let reasons: Vec<String> =
            reasons.iter().filter(|(count, _)| *count > 0).map(|(count, reason)| format!("{count} {reason}")).collect();
        format!("the capture holds {} but no TCP: {}", counted(self.frames, "packet"), reasons.join(", "))
    }
}

/// "1 packet", "2 packets".
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
