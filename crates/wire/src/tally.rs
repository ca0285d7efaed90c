//! What a capture held besides the segments that were delivered.

use crate::content::Content;
use crate::error::{Damage, Reject};
use crate::files::series::PartTally;
use crate::headers::link::LinkType;

/// Frames of one link-layer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTypeCount {
    /// Number of the tcpdump.org registry.
    pub link_type: u16,
    pub frames: u64,
    /// False where frames of this link-layer type cannot be read.
    pub known: bool,
}

/// Frames without TCP of one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentCount {
    pub content: Content,
    pub frames: u64,
}

/// Contents that are told apart in one capture.
const MOST_CONTENTS: usize = 64;

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
    /// More nested headers than any real frame has.
    pub too_deep: u64,
    /// Encrypted on the link (802.11).
    pub encrypted: u64,
    /// Stored until the other fragments of the datagram arrived; the last one counts as the datagram's content.
    pub fragments_held: u64,

    /// Datagrams of which some fragment never came; known at the end.
    pub unfinished_datagrams: u64,
    /// Frames for which the file gives no time; they got that of the frame before them.
    pub frames_without_time: u64,
    /// Earliest and latest time (nanoseconds since the epoch) that the file gives any of its frames, whatever they hold
    /// and whether or not the filter let them through: the capture ran at least from one to the other.
    pub time_span_ns: Option<(i64, i64)>,
    pub link_types: Vec<LinkTypeCount>,
    /// What the frames hold that are counted in `not_ip` and `not_tcp`, by first frame; of the first contents only, so
    /// that no capture makes this long.
    pub contents: Vec<ContentCount>,
    /// Bytes of the capture after decompression; known at the end.
    pub bytes_read: u64,
    /// Where reading ended too early; of a capture of several parts in its last one.
    pub damage: Option<Damage>,
    /// What is peculiar of the parts, where there are several.
    pub parts: PartTally,
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

    pub(crate) fn count_content(&mut self, content: Content) {
        if let Some(count) = self.contents.iter_mut().find(|count| count.content == content) {
            count.frames += 1;
        } else if self.contents.len() < MOST_CONTENTS {
            self.contents.push(ContentCount { content, frames: 1 });
        }
    }

    #[inline]
    pub(crate) fn extend_time_span(&mut self, time_ns: i64) {
        // Most frames only move the end.
        match &mut self.time_span_ns {
            Some((first, last)) if *first <= time_ns => *last = time_ns.max(*last),
            Some((first, _)) => *first = time_ns,
            none => *none = Some((time_ns, time_ns)),
        }
    }

    /// Index in `link_types` of a link-layer type, added if it is new.
    pub(crate) fn link_type_index(&mut self, link_type: u16) -> usize {
        let found = self.link_types.iter().position(|count| count.link_type == link_type);
        found.unwrap_or_else(|| {
            let known = LinkType::from_number(link_type).is_some();
            self.link_types.push(LinkTypeCount { link_type, frames: 0, known });
            self.link_types.len() - 1
        })
    }
}
