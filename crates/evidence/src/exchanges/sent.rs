//! Which bytes of one stream a capture has shown so far.

/// Holes remembered of one stream; of more, the oldest are forgotten, and what fills them counts as a copy.
const HOLES_AT_MOST: usize = 256;
/// No window is larger (RFC 7323, section 2.3): what lies further ahead is of no use.
const LARGEST_WINDOW_BYTES: i64 = 1 << 30;

/// What a data packet brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// So many new bytes, the first of them at this offset. `gap`: an earlier byte is not there yet, or came late.
    New { first: i64, bytes: i64, gap: bool },
    /// Nothing new.
    Copy,
    /// Outside every window.
    Stray,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    reached: Option<i64>,
    holes: Vec<(i64, i64)>,
}

impl Sent {
    /// A packet with the bytes from `start` up to `end`, at least one.
    pub(super) fn sight(&mut self, start: i64, end: i64) -> Sight {
        let reached = *self.reached.get_or_insert(start);
        if start.saturating_sub(reached) > LARGEST_WINDOW_BYTES {
            return Sight::Stray;
        }
        if end <= reached {
            return self.fill(start, end);
        }
        self.reached = Some(end);
        if start > reached {
            if self.holes.len() >= HOLES_AT_MOST {
                self.holes.remove(0);
            }
            self.holes.push((reached, start));
        }
        let first = start.max(reached);
        Sight::New { first, bytes: end.saturating_sub(first), gap: start > reached }
    }

    /// Bytes below the highest are new where they fill holes.
    fn fill(&mut self, start: i64, end: i64) -> Sight {
        let mut first = None;
        let mut bytes = 0_i64;
        for place in (0..self.holes.len()).rev() {
            let (low, high) = self.holes[place];
            let (from, to) = (low.max(start), high.min(end));
            if from >= to {
                continue;
            }
            first = Some(first.map_or(from, |least: i64| least.min(from)));
            bytes = bytes.saturating_add(to.saturating_sub(from));
            let rests = [(low, from), (to, high)].into_iter().filter(|(low, high)| low < high);
            self.holes.splice(place..=place, rests);
        }
        first.map_or(Sight::Copy, |first| Sight::New { first, bytes, gap: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn new_bytes_are_those_not_seen_before(
            packets in prop::collection::vec((0_i64..60, 1_i64..20), 1..30)
        ) {
            let mut sent = Sent::default();
            let mut seen: BTreeSet<i64> = BTreeSet::new();
            let begin = packets[0].0;
            for (start, length) in packets {
                let new: Vec<i64> = (start..start + length).filter(|byte| !seen.contains(byte)).collect();
                let highest = seen.last().map_or(begin, |byte| byte + 1);
                // What lies before the first captured byte was never missed. Bytes in a hole do not count beside bytes
                // beyond the highest.
                let beyond = start + length > highest;
                let counted: Vec<i64> =
                    new.iter().copied().filter(|&byte| if beyond { byte >= highest } else { byte >= begin }).collect();
                match sent.sight(start, start + length) {
                    Sight::New { first, bytes, gap } => {
                        prop_assert_eq!(Some(&first), counted.first());
                        prop_assert_eq!(bytes, counted.len() as i64);
                        prop_assert_eq!(gap, !beyond || start > highest);
                    }
                    Sight::Copy => prop_assert!(counted.is_empty()),
                    Sight::Stray => prop_assert!(false),
                }
                let marked = if beyond { highest.max(start) } else { start.max(begin) };
                seen.extend((marked..start + length).filter(|byte| counted.contains(byte)));
            }
        }

        #[test]
        fn any_offsets_are_taken(packets in prop::collection::vec((any::<i64>(), any::<i64>()), 0..400)) {
            let mut sent = Sent::default();
            for (start, end) in packets {
                sent.sight(start, end);
            }
            prop_assert!(sent.holes.len() <= 2 * HOLES_AT_MOST);
        }
    }
}
