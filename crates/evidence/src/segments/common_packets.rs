//! Packets that two captures of a connection have in common, and how their times differ.

use crate::packets::{mark, Packets};

/// An odd constant with well-spread bits (2^64 over the golden ratio, as in Knuth's multiplicative hashing).
const MIXER: u64 = 0x9E37_79B9_7F4A_7C15;

/// What is taken for granted when times are compared.
#[derive(Clone, Copy, Debug)]
pub struct TimeComparison {
    /// Time stamps are rounded to powers of ten from here to there (ns).
    pub finest_ns: i64,
    pub coarsest_ns: i64,
    /// Share of the round trips to leave out at either end of their range.
    pub odd_share: f64,
}

/// Packets in common, without those that occur twice in either capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommonPackets {
    pub count: usize,
    /// Packets of the capture that has fewer which could have been found in the other.
    pub comparable: usize,
    /// Those whose hop limits differ.
    pub other_hop_limits: usize,
    /// What the times of both captures are rounded to (ns).
    pub resolution_ns: i64,
    /// Where they all travel one way: how often the difference of their times changes by more than the resolution.
    pub uneven: usize,
    /// Where they do not: round trips between the captures without odd ones; lowest, median and highest (ns).
    pub round_trips_ns: Option<(f64, f64, f64)>,
}

struct Common {
    direction: u8,
    first_ns: i64,
    /// By how much the second capture dates it later.
    later_ns: i64,
    same_hop_limit: bool,
}

/// Packets with the same fields; `shifts` is what to add to the first's stream offsets, up and down, to get the
/// second's.
///
/// Where offsets leave less than half in common, IP ID and TCP timestamps distinguish packets without them.
pub fn common_packets(
    one: &Packets<'_>,
    two: &Packets<'_>,
    shifts: [i64; 2],
    comparison: TimeComparison,
) -> CommonPackets {
    let stamped = are_stamped(one, two);
    let numbered =
        [one, two].iter().all(|packets| 2 * packets.ip_id.iter().filter(|&&id| id != 0).count() > packets.len());
    let (mut best, mut comparable) =
        matched(one, two, &one.keys(stamped, Some(shifts)), &two.keys(stamped, Some([0; 2])));
    if 2 * best.len() < one.len().min(two.len()) && (stamped || numbered) {
        let (other, other_comparable) = matched(one, two, &one.keys(stamped, None), &two.keys(stamped, None));
        if other.len() > best.len() {
            (best, comparable) = (other, other_comparable);
        }
    }
    let resolution = |packets: &Packets<'_>| resolution_ns(packets.time_ns, comparison.coarsest_ns);
    let resolution_ns = resolution(one).max(resolution(two)).max(comparison.finest_ns);
    CommonPackets {
        count: best.len(),
        comparable,
        other_hop_limits: best.iter().filter(|packet| !packet.same_hop_limit).count(),
        resolution_ns,
        uneven: best
            .windows(2)
            .filter(|two| two[1].later_ns.wrapping_sub(two[0].later_ns).wrapping_abs() > resolution_ns)
            .count(),
        round_trips_ns: spread(round_trips_ns(&best), comparison.odd_share),
    }
}

/// Whether any packet of one capture may be one of the other, whatever its stream offset: where none may, nothing is in
/// common.
pub fn may_share_packets(one: &Packets<'_>, two: &Packets<'_>) -> bool {
    let stamped = are_stamped(one, two);
    let (left, right) = (one.keys(stamped, None), two.keys(stamped, None));
    let known = Bits::of(&left);
    let mut found: Vec<u64> = right.into_iter().filter(|&key| known.may_hold(key)).collect();
    found.sort_unstable();
    let known = Bits::of(&found);
    left.iter().any(|key| known.may_hold(*key) && found.binary_search(key).is_ok())
}

/// Which of many keys are surely not among some: sixteen bits for each of these, of which its highest bits name one.
struct Bits {
    words: Vec<u64>,
    shift: u32,
}

impl Bits {
    fn of(keys: &[u64]) -> Self {
        let bits = (keys.len().max(4) * 16).ilog2();
        let mut found = Self { words: vec![0; 1 << (bits - 6)], shift: u64::BITS - bits };
        for &key in keys {
            let (word, bit) = found.place(key);
            found.words[word] |= bit;
        }
        found
    }

    fn place(&self, key: u64) -> (usize, u64) {
        let place = key >> self.shift;
        ((place >> 6) as usize, 1 << (place & 63))
    }

    fn may_hold(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        self.words[word] & bit != 0
    }
}

/// Whether most packets of both captures bear timestamps.
fn are_stamped(one: &Packets<'_>, two: &Packets<'_>) -> bool {
    [one, two].iter().all(|packets| {
        let stamps = packets.marks.iter().filter(|&&marks| marks & mark::HAS_TIMESTAMPS != 0).count();
        2 * stamps > packets.len()
    })
}

impl Packets<'_> {
    /// One number a packet, mixed from the fields that no router changes.
    fn keys(&self, stamped: bool, shifts: Option<[i64; 2]>) -> Vec<u64> {
        let key = |place: usize| {
            let way = self.direction[place];
            let mut key = [
                i64::from(way),
                i64::from(self.ip_id[place]),
                i64::from(self.payload_bytes[place]),
                i64::from(self.flags[place]),
            ]
            .into_iter()
            .fold(0, mixed);
            if stamped {
                key = mixed(mixed(key, i64::from(self.tsval[place])), i64::from(self.tsecr[place]));
            }
            if let Some(shifts) = shifts {
                let shift = shifts.get(usize::from(way)).copied().unwrap_or(0);
                key = mixed(key, self.sequence_offset[place].wrapping_add(shift));
            }
            key
        };
        (0..self.len()).map(key).collect()
    }
}

fn mixed(key: u64, value: i64) -> u64 {
    let key = (key ^ value as u64).wrapping_mul(MIXER);
    key ^ (key >> 29)
}

/// Packets whose key stands once in either capture, by their time in the first, and how many could have been found.
fn matched(one: &Packets<'_>, two: &Packets<'_>, one_keys: &[u64], two_keys: &[u64]) -> (Vec<Common>, usize) {
    let (left, right) = (once(one_keys), once(two_keys));
    let mut rest = right.iter().peekable();
    let mut common = Vec::new();
    for &(key, i) in &left {
        while rest.next_if(|other| other.0 < key).is_some() {}
        if let Some(&(_, j)) = rest.next_if(|other| other.0 == key) {
            common.push(Common {
                direction: one.direction[i],
                first_ns: one.time_ns[i],
                later_ns: two.time_ns[j].wrapping_sub(one.time_ns[i]),
                same_hop_limit: one.ttl[i] == two.ttl[j],
            });
        }
    }
    common.sort_by_key(|packet| packet.first_ns);
    (common, left.len().min(right.len()))
}

/// Keys that stand once, ascending, with their places.
fn once(keys: &[u64]) -> Vec<(u64, usize)> {
    let placed = sorted(keys);
    placed.chunk_by(|a, b| a.0 == b.0).filter(|alike| alike.len() == 1).map(|alike| alike[0]).collect()
}

/// Keys with their places, ascending.
///
/// Mixed keys are spread evenly, so that by their highest bits about one falls into each drawer, and little is left to
/// sort in it.
fn sorted(keys: &[u64]) -> Vec<(u64, usize)> {
    let bits = keys.len().max(2).ilog2();
    let drawer = |key: u64| (key >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    for &key in keys {
        ends[drawer(key)] += 1;
    }
    let mut before = 0;
    for end in &mut ends {
        before += std::mem::replace(end, before);
    }
    let mut placed = vec![(0, 0); keys.len()];
    for (place, &key) in keys.iter().enumerate() {
        let next = &mut ends[drawer(key)];
        placed[*next] = (key, place);
        *next += 1;
    }
    let mut rest = placed.as_mut_slice();
    let mut start = 0;
    for end in ends {
        let (own, behind) = rest.split_at_mut(end - start);
        own.sort_unstable();
        (rest, start) = (behind, end);
    }
    placed
}

/// The power of ten to which all times are rounded, at most `coarsest_ns`.
pub fn resolution_ns(time_ns: &[i64], coarsest_ns: i64) -> i64 {
    let mut unit = 1;
    while unit < coarsest_ns && time_ns.iter().all(|time_ns| time_ns % (10 * unit) == 0) {
        unit *= 10;
    }
    unit
}

/// Difference between each packet's lateness up and that of the nearest packet down, of the fewer of the two.
fn round_trips_ns(common: &[Common]) -> Vec<i64> {
    let (up, down): (Vec<&Common>, Vec<&Common>) = common.iter().partition(|packet| packet.direction == 0);
    let (few, many, sign) = if up.len() <= down.len() { (up, down, 1) } else { (down, up, -1) };
    let nearest = |packet: &Common| {
        let after = many.partition_point(|other| other.first_ns < packet.first_ns).min(many.len().checked_sub(1)?);
        let before = after.saturating_sub(1);
        let away = |place: usize| many[place].first_ns.abs_diff(packet.first_ns);
        many.get(if away(before) < away(after) { before } else { after })
    };
    let differences = few.iter().filter_map(|packet| {
        nearest(packet).map(|other| packet.later_ns.wrapping_sub(other.later_ns).wrapping_mul(sign))
    });
    differences.collect()
}

/// The quantiles at `odd_share`, at half, and at the rest, between neighbours by their distance; `None` of nothing.
fn spread(mut values: Vec<i64>, odd_share: f64) -> Option<(f64, f64, f64)> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    let at = |place: usize| values[place.min(last)] as f64;
    let quantile = |share: f64| {
        let place = share * last as f64;
        let below = at(place as usize);
        below + (at(place as usize + 1) - below) * place.fract()
    };
    let middle = (at(last / 2) + at(last.div_ceil(2))) / 2.0;
    Some((quantile(odd_share), middle, quantile(1.0 - odd_share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_trips_are_measured_between_the_nearest_packets() {
        let packet = |direction, first_ns, later_ns| Common { direction, first_ns, later_ns, same_hop_limit: true };
        let common = [packet(0, 0, 107), packet(1, 1, 97), packet(1, 50, 92), packet(0, 60, 108), packet(0, 90, 110)];
        assert_eq!(round_trips_ns(&common), [10, 16]);
        assert_eq!(round_trips_ns(&common[..1]), [0; 0]);
        assert_eq!(spread(vec![10, 16], 0.0), Some((10.0, 13.0, 16.0)));
    }

    #[test]
    fn resolution_is_the_power_of_ten_that_divides_all_times() {
        assert_eq!(resolution_ns(&[1_000_000, 3_000_000, 4_500_000], 1_000_000_000), 100_000);
        assert_eq!(resolution_ns(&[1, 1000], 1_000_000_000), 1);
        assert_eq!(resolution_ns(&[], 1_000_000_000), 1_000_000_000);
    }

    proptest! {
        #[test]
        fn keys_are_sorted_however_they_are_spread(
            spread in proptest::collection::vec(any::<u64>(), 0..300),
            close in proptest::collection::vec(0u64..9, 0..300),
        ) {
            let keys: Vec<u64> = spread.into_iter().chain(close).collect();
            let mut wanted: Vec<(u64, usize)> = keys.iter().copied().zip(0..).collect();
            wanted.sort_unstable();
            prop_assert_eq!(sorted(&keys), wanted);
        }

        #[test]
        fn packets_are_shared_where_keys_are(
            left in proptest::collection::vec(0u16..300, 0..60), right in proptest::collection::vec(0u16..300, 0..60),
        ) {
            let (zeros, words) = ([0; 60], [0; 60]);
            let [one, two] = [&left, &right].map(|ip_id| Packets {
                time_ns: &[0; 60][..ip_id.len()],
                direction: &zeros[..ip_id.len()],
                payload_bytes: &words[..ip_id.len()],
                flags: &[0; 60][..ip_id.len()],
                tsval: &words[..ip_id.len()],
                tsecr: &words[..ip_id.len()],
                ip_id,
                marks: &[0; 60][..ip_id.len()],
                ..Packets::default()
            });
            prop_assert_eq!(may_share_packets(&one, &two), left.iter().any(|id| right.contains(id)));
        }

        #[test]
        fn a_capture_has_all_its_distinguishable_packets_in_common_with_itself(
            ids in proptest::collection::vec((0u16..40, 0u8..2), 0..60)
        ) {
            let (ip_id, direction): (Vec<u16>, Vec<u8>) = ids.iter().copied().unzip();
            let (count, zeros) = (ids.len(), vec![0u32; ids.len()]);
            let packets = Packets {
                time_ns: &(0..count as i64).collect::<Vec<_>>(),
                direction: &direction,
                sequence_offset: &vec![0; count],
                payload_bytes: &zeros,
                flags: &vec![0; count],
                tsval: &zeros,
                tsecr: &zeros,
                ip_id: &ip_id,
                ttl: &vec![64; count],
                marks: &vec![0; count],
                ..Packets::default()
            };
            let comparison = TimeComparison { finest_ns: 1, coarsest_ns: 1, odd_share: 0.1 };
            let found = common_packets(&packets, &packets, [0; 2], comparison);
            let distinct = ids.iter().filter(|id| ids.iter().filter(|other| other == id).count() == 1).count();
            prop_assert_eq!((found.count, found.comparable), (distinct, distinct));
            prop_assert_eq!((found.uneven, found.other_hop_limits), (0, 0));
            prop_assert!(found.round_trips_ns.is_none_or(|spread| spread == (0.0, 0.0, 0.0)));
        }
    }
}
