//! IP identifications that a machine counts by destination, as Windows does; IPv6 has none.

use crate::packets::segment::Segment;
use crate::settings::Stack;

/// The next identification for each destination: of a server the mobiles, of a mobile the one server.
#[derive(Debug, Default)]
pub(super) struct Identifications {
    next: Vec<Option<u16>>,
}

impl Identifications {
    /// The segment as it leaves a machine of `stack`. The first one to a destination brings the number from which is counted.
    #[inline]
    pub fn assign(&mut self, stack: Stack, segment: Segment) -> Segment {
        if stack == Stack::Windows && !segment.version_6 {
            self.count(segment)
        } else {
            segment
        }
    }

    fn count(&mut self, mut segment: Segment) -> Segment {
        let user = usize::from(segment.user);
        if user >= self.next.len() {
            self.next.resize(user + 1, None);
        }
        let identification = self.next[user].unwrap_or(segment.ip_identification);
        self.next[user] = Some(identification.wrapping_add(1));
        segment.ip_identification = identification;
        segment
    }
}
