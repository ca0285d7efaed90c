//! In how many segments the fields agree between emitted and arrived segments of one packet direction.
//!
//! `detector/methods/identity/agreement.py` says what the counts mean.

use crate::ascending::Ascending;
use crate::distinct::{distinct, most_common};
use crate::segments::candidates::{
    acknowledgement_candidates, AcknowledgementIndex, Candidates, DataIndex, Discriminator, Repeats,
};
use crate::segments::columns::Segment;
use crate::segments::likeness::Likeness;
use crate::segments::unchanged::unchanged_acknowledgements;
use std::cell::OnceCell;

/// Timestamps count modulo this.
const TIMESTAMP_WRAP: i64 = 1 << 32;
/// The greatest shift of the window scale option (RFC 7323, section 2.3).
const MOST_SCALE: i64 = 14;

/// Counts over the segments of one class (data, or pure acknowledgements).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Arrived segments that were compared, and those of them that have a partner among the emitted ones.
    pub arrived: usize,
    pub partners: usize,
    pub tsval_shift: i64,
    pub tsecr_shift: i64,
    /// Partners that both have timestamps, those with equal ones, and different emitted timestamps among them.
    pub stamped: usize,
    pub stamps_equal: usize,
    pub stamps_distinct: usize,
    /// Partners of which both captures show whether there are timestamps, those where one has none, and those of them
    /// that left without and arrived with timestamps.
    pub stamps_known: usize,
    pub stamps_on_one_side: usize,
    pub stamps_added: usize,
    /// Whether IP IDs vary on both sides.
    pub ip_ids_vary: bool,
    /// Partners of equal extent, and those of them with equal IP IDs.
    pub whole: usize,
    pub ip_ids_equal: usize,
    /// The power of two that lies between most windows, partners with equal windows then, those whose window arrived
    /// smaller, how often the emitted windows shrink from one segment to the next, and how many different ones they are.
    pub window_scale_shift: i64,
    pub windows_equal: usize,
    pub windows_narrowed: usize,
    pub windows_shrink: usize,
    pub windows_distinct: usize,
    /// Most common difference of the hop limits.
    pub hops: i64,
    /// Partners of equal extent of which no copy has another PSH, those with equal PSH, and emitted ones with it.
    pub push_clear: usize,
    pub push_equal: usize,
    pub push_set: usize,
    /// Different acknowledgements that emitted data of equal extent carried, and different ones that arrived on data no
    /// copy of which carried them.
    pub carried: usize,
    pub carried_elsewhere: usize,
    /// Arrived data that begin and end where emitted data do.
    pub boundaries_equal: usize,
    /// These, and arrived data that one emitted segment holds from the first to the last byte.
    pub held_whole: usize,
    /// Bytes of the longest data segment on either side.
    pub longest: i64,
}

impl Agreement {
    /// Whether most are the same packets by their timestamps, or by their IP IDs.
    pub(super) fn is_mostly_equal(&self) -> bool {
        let by_stamps = self.tsval_shift == 0 && self.tsecr_shift == 0 && 2 * self.stamps_equal > self.stamped;
        by_stamps || (self.ip_ids_vary && 2 * self.ip_ids_equal > self.whole)
    }
}

/// Data of both sides, for the comparison of parts of what arrived.
pub struct DataComparison<'a> {
    emitted: &'a [Segment],
    arrived: &'a [Segment],
    /// Candidates of all that arrived.
    candidates: Candidates,
    /// Whether each arrived segment lies in the span of the emitted ones, and begins and ends where one of them does.
    inside: Vec<bool>,
    is_cut_alike: OnceCell<Vec<bool>>,
    longest: i64,
}

impl<'a> DataComparison<'a> {
    /// At most `copies` (one or more) emitted segments are held against one that arrived.
    pub fn new(emitted: &'a [Segment], arrived: &'a [Segment], copies: usize) -> Self {
        let first = emitted.iter().map(|segment| segment.start).min().unwrap_or(0);
        let span = first..emitted.iter().map(Segment::end).max().unwrap_or(0);
        Self {
            emitted,
            arrived,
            candidates: DataIndex::new(emitted, copies.max(1)).candidates(arrived),
            inside: arrived.iter().map(|segment| span.contains(&segment.start)).collect(),
            is_cut_alike: OnceCell::new(),
            longest: emitted.iter().map(|segment| segment.length).max().unwrap_or(0),
        }
    }

    fn is_cut_alike(&self) -> &[bool] {
        self.is_cut_alike.get_or_init(|| {
            let mut starts: Vec<i64> = self.emitted.iter().map(|segment| segment.start).collect();
            let mut ends: Vec<i64> = self.emitted.iter().map(Segment::end).collect();
            starts.sort();
            ends.sort();
            let (mut starts, mut ends) = (Ascending::new(&starts), Ascending::new(&ends));
            self.arrived.iter().map(|segment| starts.has(segment.start) && ends.has(segment.end())).collect()
        })
    }

    /// For each number of first arrived segments, how many of them may be emitted ones by what tells stacks apart.
    pub fn likeness(&self) -> Vec<Likeness> {
        let mut sums = Vec::with_capacity(self.arrived.len() + 1);
        let mut sum = Likeness::default();
        sums.push(sum);
        for (came, &inside) in self.inside.iter().enumerate() {
            if inside {
                sum.add(&self.arrived[came], self.candidates.row(came).iter().map(|&left| &self.emitted[left]));
            }
            sums.push(sum);
        }
        sums
    }

    /// Compares the arrived segments from one place to another. A shift of timestamps, or a scale of windows, holds
    /// where at least (windows: more than) a share of `majority` agrees on it.
    pub fn compare(&self, places: std::ops::Range<usize>, majority: f64) -> Agreement {
        let &Self { emitted, arrived, ref candidates, .. } = self;
        let places: Vec<usize> = places.filter(|&place| self.inside[place]).collect();
        let candidates_of = |_: usize, came: usize| candidates.row(came);
        let mut class = Class::new(emitted, arrived, places, majority);
        class.take_off_shift(candidates_of);
        let pairs = class.partners(candidates_of);
        let is_whole = |pair: &Pair| {
            emitted[pair.left].start == arrived[pair.came].start
                && emitted[pair.left].length == arrived[pair.came].length
        };
        let mut counts = class.common(&pairs, is_whole);
        let is_cut_alike = self.is_cut_alike();
        let mut carried = Vec::with_capacity(pairs.len());
        let mut elsewhere = Vec::new();
        for pair in &pairs {
            let &Pair { left, came, .. } = pair;
            let mut copies = candidates.row(came).iter();
            let is_held_whole = is_cut_alike[came] || copies.any(|&copy| arrived[came].end() <= emitted[copy].end());
            counts.boundaries_equal += usize::from(is_cut_alike[came]);
            counts.held_whole += usize::from(is_held_whole);
            if !is_whole(pair) {
                continue;
            }
            let copies = candidates.row(came);
            carried.push(emitted[left].acknowledgement);
            if copies.iter().all(|&copy| emitted[copy].acknowledgement != arrived[came].acknowledgement) {
                elsewhere.push(arrived[came].acknowledgement);
            }
            let pushed = emitted[left].push;
            if copies.iter().all(|&copy| emitted[copy].push == pushed) {
                counts.push_clear += 1;
                counts.push_equal += usize::from(pushed == arrived[came].push);
                counts.push_set += usize::from(pushed);
            }
        }
        (counts.carried, counts.carried_elsewhere) = (distinct(carried).len(), distinct(elsewhere).len());
        counts.longest = class.places.iter().map(|&place| arrived[place].length).max().unwrap_or(0).max(self.longest);
        counts
    }
}

/// Pure acknowledgements that were emitted, for the comparison of some that arrived.
pub struct AcknowledgementComparison<'a> {
    emitted: &'a [Segment],
    /// With those that share their numbers, by their windows.
    index: OnceCell<(AcknowledgementIndex<'a>, Repeats)>,
}

impl<'a> AcknowledgementComparison<'a> {
    pub fn new(emitted: &'a [Segment]) -> Self {
        Self { emitted, index: OnceCell::new() }
    }

    /// Compares the arrived segments; `majority` as for data.
    pub fn compare(&self, arrived: &[Segment], majority: f64) -> Agreement {
        unchanged_acknowledgements(self.emitted, arrived).unwrap_or_else(|| self.compare_partners(arrived, majority))
    }

    pub(super) fn compare_partners(&self, arrived: &[Segment], majority: f64) -> Agreement {
        let (index, by_window) = self.index.get_or_init(|| {
            let index = AcknowledgementIndex::new(self.emitted);
            let by_window = index.repeats(Discriminator::Window);
            (index, by_window)
        });
        let mut class = Class::new(self.emitted, arrived, (0..arrived.len()).collect(), majority);
        let runs = index.runs(arrived);
        let alike = acknowledgement_candidates(&runs, arrived, &class.tsval, &[by_window]);
        class.take_off_shift(|row, _| alike.row(row));
        let repeats: Vec<Repeats> = class.discriminators().into_iter().map(|by| index.repeats(by)).collect();
        let repeats: Vec<&Repeats> = repeats.iter().collect();
        let candidates = acknowledgement_candidates(&runs, arrived, &class.tsval, &repeats);
        let pairs = class.partners(|row, _| candidates.row(row));
        class.common(&pairs, |_| true)
    }
}

/// An arrived segment and its partner among the emitted ones.
struct Pair {
    /// Which of the compared segments.
    row: usize,
    left: usize,
    came: usize,
}

/// The segments of one class on both sides; `tsval` and `tsecr` are those of `places`, without the shift that was found.
struct Class<'a> {
    emitted: &'a [Segment],
    arrived: &'a [Segment],
    places: Vec<usize>,
    tsval: Vec<i64>,
    tsecr: Vec<i64>,
    shift: (i64, i64),
    ip_ids_vary: bool,
    majority: f64,
}

impl<'a> Class<'a> {
    fn new(emitted: &'a [Segment], arrived: &'a [Segment], places: Vec<usize>, majority: f64) -> Self {
        let (tsval, tsecr) = places.iter().map(|&place| (arrived[place].tsval, arrived[place].tsecr)).unzip();
        let ip_ids_vary = varies(emitted.iter().map(|segment| segment.ip_id))
            && varies(places.iter().map(|&place| arrived[place].ip_id));
        Self { emitted, arrived, places, tsval, tsecr, shift: (0, 0), ip_ids_vary, majority }
    }

    /// Finds constant shifts of TSval and TSecr by the segments whose candidates all have one timestamp, and takes them
    /// off.
    fn take_off_shift<'c>(&mut self, candidates: impl Fn(usize, usize) -> &'c [usize]) {
        let emitted = self.emitted;
        let (mut values, mut echoes) = (Vec::new(), Vec::new());
        for (row, &place) in self.places.iter().enumerate() {
            let copies = candidates(row, place);
            let Some(&last) = copies.iter().max() else {
                continue;
            };
            let stamp = |place: usize| (emitted[place].tsval, emitted[place].tsecr);
            let alike = copies.iter().all(|&copy| stamp(copy) == stamp(last));
            if alike && self.arrived[place].has_timestamps && emitted[last].has_timestamps {
                values.push((self.tsval[row] - emitted[last].tsval).rem_euclid(TIMESTAMP_WRAP));
                echoes.push((self.tsecr[row] - emitted[last].tsecr).rem_euclid(TIMESTAMP_WRAP));
            }
        }
        let (value, value_share) = most_common(&values);
        if value_share < self.majority {
            return;
        }
        let (echo, echo_share) = most_common(&echoes);
        if echo_share >= self.majority && (value, echo) != (0, 0) {
            self.shift = (value, echo);
            self.tsval.iter_mut().for_each(|stamp| *stamp = (*stamp - value).rem_euclid(TIMESTAMP_WRAP));
            self.tsecr.iter_mut().for_each(|stamp| *stamp = (*stamp - echo).rem_euclid(TIMESTAMP_WRAP));
        }
    }

    /// The fields that tell pure acknowledgements with equal numbers apart, where both captures hold them.
    fn discriminators(&self) -> Vec<Discriminator> {
        let without_stamps = if self.ip_ids_vary { Discriminator::IpId } else { Discriminator::Window };
        let any = |segments: &[Segment]| segments.iter().any(|segment| segment.has_timestamps);
        if !(any(self.emitted) && any(self.arrived)) {
            return vec![without_stamps];
        }
        let cut = |segments: &[Segment]| segments.iter().any(|segment| !segment.stamps_captured);
        // Several may be sent within a tick of the timestamp clock.
        if self.ip_ids_vary || cut(self.emitted) || cut(self.arrived) {
            return vec![Discriminator::Tsval, without_stamps];
        }
        vec![Discriminator::Tsval]
    }

    /// For each segment the candidate (asked for by row and place) that agrees in most fields, timestamps first, of
    /// equal ones the first.
    fn partners<'c>(&self, candidates: impl Fn(usize, usize) -> &'c [usize]) -> Vec<Pair> {
        let (emitted, arrived) = (self.emitted, self.arrived);
        let mut pairs = Vec::with_capacity(self.places.len());
        for (row, &came) in self.places.iter().enumerate() {
            let score = |left: usize| {
                let stamped = emitted[left].has_timestamps && arrived[came].has_timestamps;
                8 * u8::from(stamped && emitted[left].tsval == self.tsval[row])
                    + 4 * u8::from(stamped && emitted[left].tsecr == self.tsecr[row])
                    + 2 * u8::from(self.ip_ids_vary && emitted[left].ip_id == arrived[came].ip_id)
                    + u8::from(emitted[left].window == arrived[came].window)
            };
            let scored = candidates(row, came).iter().map(|&left| (score(left), left));
            let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
            pairs.extend(best.map(|(_, left)| Pair { row, left, came }));
        }
        pairs
    }

    /// Counts of the fields that data and acknowledgements share.
    fn common(&self, pairs: &[Pair], is_whole: impl Fn(&Pair) -> bool) -> Agreement {
        let (emitted, arrived) = (self.emitted, self.arrived);
        let ip_ids_vary = self.ip_ids_vary;
        let mut counts =
            Agreement { arrived: self.places.len(), partners: pairs.len(), ip_ids_vary, ..Default::default() };
        if pairs.is_empty() {
            return counts;
        }
        (counts.tsval_shift, counts.tsecr_shift) = self.shift;
        let mut stamps = Vec::new();
        let mut hops = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let &Pair { row, left, came } = pair;
            let (here, there) = (emitted[left].has_timestamps, arrived[came].has_timestamps);
            if here && there {
                let stamp = (emitted[left].tsval, emitted[left].tsecr);
                counts.stamped += 1;
                counts.stamps_equal += usize::from(stamp == (self.tsval[row], self.tsecr[row]));
                stamps.push(emitted[left].stamp_number());
            }
            if emitted[left].stamps_captured && arrived[came].stamps_captured {
                counts.stamps_known += 1;
                counts.stamps_on_one_side += usize::from(here != there);
                counts.stamps_added += usize::from(there && !here);
            }
            if is_whole(pair) {
                counts.whole += 1;
                counts.ip_ids_equal += usize::from(emitted[left].ip_id == arrived[came].ip_id);
            }
            hops.push(emitted[left].ttl - arrived[came].ttl);
        }
        counts.stamps_distinct = distinct(stamps).len();
        counts.hops = most_common(&hops).0;
        self.count_windows(pairs, &mut counts);
        counts
    }

    /// Windows agree up to a power of two: a capture that missed the SYN does not know the scale.
    fn count_windows(&self, pairs: &[Pair], counts: &mut Agreement) {
        let windows: Vec<(i64, i64)> =
            pairs.iter().map(|pair| (self.emitted[pair.left].window, self.arrived[pair.came].window)).collect();
        let equal = windows.iter().filter(|(left, came)| left == came).count();
        let mut scale = 0;
        if share(equal, windows.len()) < self.majority {
            let positive = windows.iter().filter(|&&(left, came)| left > 0 && came > 0);
            let powers: Vec<i64> = positive
                .map(|&(left, came)| {
                    let (of_left, of_came) = (left.trailing_zeros(), came.trailing_zeros());
                    let is_power = left >> of_left == came >> of_came;
                    if is_power {
                        i64::from(of_left) - i64::from(of_came)
                    } else {
                        i64::MAX
                    }
                })
                .collect();
            let (common, common_share) = most_common(&powers);
            if common_share > self.majority && common.saturating_abs() <= MOST_SCALE {
                scale = common;
            }
        }
        counts.window_scale_shift = scale;
        for &(left, came) in &windows {
            let scaled = came << scale.max(0);
            counts.windows_equal += usize::from(scaled == left << (-scale).max(0));
            let narrowed = if scale >= 0 { scaled } else { came >> -scale };
            counts.windows_narrowed += usize::from(narrowed < left);
        }
        counts.windows_shrink = windows.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
        counts.windows_distinct = distinct(windows.iter().map(|&(left, _)| left).collect()).len();
    }
}

pub(super) fn varies(values: impl Iterator<Item = i64> + Clone) -> bool {
    let first = values.clone().next();
    values.into_iter().any(|value| Some(value) != first)
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
