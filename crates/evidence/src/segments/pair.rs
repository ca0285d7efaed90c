//! The segments of a connection at the client's and at the server's capture point, laid over each other and compared.

use std::borrow::Cow;

use crate::distinct::{distinct, distinct_count};
use crate::segments::agreement::{AcknowledgementComparison, Agreement, DataComparison};
use crate::segments::ahead::acknowledged_ahead;
use crate::segments::alignment::{fields_in_common, shift_from_fields};
use crate::segments::columns::{Flow, Flows, Sampling, Segment, Vantage};
use crate::segments::likeness::Likeness;
use crate::segments::places::{count_places, count_positions, KnownSpan, PlaceCounts, PositionCounts, Unseen};
use crate::segments::skipped::part_skipped;
use crate::segments::unchanged::unchanged_data;

/// How packets are joined and held against each other.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub sampling: Sampling,
    /// The fewest packets that, alike but for their offsets, fix these.
    pub fewest_joined: usize,
    /// The most emitted segments of one byte that are held against an arrived one.
    pub copies: usize,
    /// More than this share must agree on offsets and scales, and at least this on a shift of timestamps.
    pub majority: f64,
}

/// What is known of the offsets before looking at fields: what to add to the server side's, and whether anything
/// supports that, by direction.
#[derive(Clone, Copy, Debug)]
pub struct KnownOffsets {
    pub shifts: [i64; 2],
    pub supported: [bool; 2],
}

/// The segments of both flows at both capture points, in the client side's offsets.
#[derive(Clone, Debug)]
pub struct PairSegments {
    client: Flows,
    server: Flows,
    /// Whether the client's and the server's capture show a reset, behind which nothing is sent again.
    reset: [bool; 2],
    /// Whether the client's and the server's capture show that the connection begins, and that it ends, within them.
    shown_ends: [[bool; 2]; 2],
    /// Whether the client's and the server's capture hold packets of both hosts, handshakes included.
    both_ways: [bool; 2],
    limits: Limits,
}

/// Counts over one packet direction, arrived against emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionCounts {
    /// None where either side shows no data.
    pub data: Option<Agreement>,
    /// All pure acknowledgements within the span that the emitter's capture covers, and those of data within a stream.
    pub acknowledgements: AcknowledgementCounts,
    pub of_data: AcknowledgementCounts,
    /// Acknowledgements that were emitted within the span of those that arrived.
    pub emitted_acknowledgements: usize,
    pub places: PlaceCounts,
    /// Pure acknowledgements that arrived with numbers which the emitter's host skipped in its own capture: it sent
    /// them, and they are not compared.
    pub missed_acknowledgements: usize,
    /// Places of pure acknowledgements that arrived and that the emitter's host cannot have sent by the order of its
    /// timestamps.
    pub acknowledged_ahead: usize,
    /// Different places within the reverse stream that the arrived data acknowledge.
    pub carried_places: usize,
    /// Segments that the emitter's capture shows, of which the reverse flow's count only with data.
    pub shown: usize,
    /// Share of the span of the emitter's data, and of the reverse flow's, that its capture does not show; 0 where the
    /// connection is sampled.
    pub uncovered: f64,
    pub uncovered_reverse: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AcknowledgementCounts {
    pub fields: Agreement,
    /// None where no place can be compared.
    pub positions: Option<PositionCounts>,
}

/// The data that arrived before and from one byte on, each held against all that was emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct CutCounts {
    pub from_byte: i64,
    pub before: Agreement,
    pub after: Agreement,
}

impl PairSegments {
    /// Reads both sides and finds their offsets.
    ///
    /// Packets that are alike whatever their offsets give the best alignment of the streams; otherwise the known one is
    /// used where it is supported. A stream may be aligned alone: then its data and the acknowledgements of it are
    /// kept, and nothing else. None where no stream is.
    pub fn align(client: &Vantage<'_>, server: &Vantage<'_>, known: KnownOffsets, limits: Limits) -> Option<Self> {
        let near = client.read([0, 0], limits.sampling);
        let far = server.read(known.shifts, limits.sampling);
        let [up, down] = known.supported;
        let are_joined = up && down && are_joined(&near, &far);
        let reset = [client, server].map(|vantage| vantage.reset_times_ns.iter().any(Option::is_some));
        let shown_ends = [client, server].map(|vantage| [vantage.packets.is_opened(), vantage.packets.is_closed()]);
        let both_ways = [client, server].map(|vantage| vantage.packets.go_both_ways());
        let best = if are_joined { None } else { best_shifts(&near, &far, limits) };
        let Some(best) = best else {
            return match (up, down) {
                (false, false) => None,
                (true, true) => Some(Self { client: near, server: far, reset, shown_ends, both_ways, limits }),
                _ => {
                    let stream = usize::from(down);
                    let [client, server] = [near, far].map(|flows| about_one_stream(flows, stream));
                    Some(Self { client, server, reset, shown_ends, both_ways, limits })
                }
            };
        };
        let mut server_flows = far;
        if best != [0, 0] {
            let shifts = [0, 1].map(|way| known.shifts[way].wrapping_add(best[way]));
            let moved = server.read(shifts, limits.sampling);
            if !(up && down) || in_common(&near, &moved) > in_common(&near, &server_flows) {
                server_flows = moved;
            }
        }
        Some(Self { client: near, server: server_flows, reset, shown_ends, both_ways, limits })
    }

    /// The emitter's and the receiver's capture of the packets of one direction.
    fn sides(&self, direction: usize) -> (&Flows, &Flows) {
        if direction == 0 {
            (&self.client, &self.server)
        } else {
            (&self.server, &self.client)
        }
    }

    /// Compares the packets of one direction.
    ///
    /// `most_skipped`: the widest gap between two IP identifications in which a third shows that its host sent it.
    pub fn compare(&self, direction: usize, most_skipped: i64) -> DirectionCounts {
        let (at_emitter, at_arriver) = self.sides(direction);
        let (emitted, reverse) = (&at_emitter[direction], &at_emitter[1 - direction]);
        let data_in = self.emitted_to_the_end(&emitted.data, &at_arriver[direction].data, reverse, direction);
        let (acks_out, acks_in) = (&emitted.acknowledgements, &at_arriver[direction].acknowledgements);
        let is_whole = self.limits.sampling.every <= 1;
        let unseen = if is_whole { uncovered(&reverse.data) } else { Unseen::default() };
        let boundaries = distinct(reverse.data.iter().map(Segment::end).collect());

        let known_span = KnownSpan::new(numbers(acks_out), numbers(&emitted.data));
        let covered = chosen(acks_in, |segment| known_span.holds(segment.acknowledgement)).into_owned();
        let covered = known_span.without_surplus_at_its_ends(covered, acks_out, self.shown_ends[direction]);
        let (missed, known) = part_skipped(covered, emitted, if is_whole { most_skipped } else { 0 });
        let asked_span = KnownSpan::new(numbers(acks_in), numbers(&data_in));
        let asked = numbers(acks_out).filter(|&number| asked_span.holds(number)).collect();
        let bulk = boundaries.last().copied().unwrap_or(0).max(0);
        let is_of_data = |segment: &Segment| (1..bulk).contains(&segment.acknowledgement);
        let of_data = chosen(&known, is_of_data);
        let against = AcknowledgementComparison::new(acks_out);
        let compared = |arrived: &[Segment]| AcknowledgementCounts {
            fields: against.compare(arrived, self.limits.majority),
            positions: count_positions(numbers(acks_out).collect(), numbers(arrived).collect(), &boundaries, &unseen),
        };
        let acknowledgements = compared(&known);
        let AcknowledgementCounts { fields: Agreement { arrived, stamps_equal, tsval_shift, .. }, .. } =
            acknowledgements;
        // What agrees with an acknowledgement that the host sent is none.
        let is_asked = stamps_equal < arrived;
        let carried = numbers(&data_in).filter(|number| (1..=bulk).contains(number));
        let unseen_places = unseen.clone().with_places(numbers(&missed).collect());
        DirectionCounts {
            missed_acknowledgements: missed.len(),
            acknowledged_ahead: if is_asked { acknowledged_ahead(emitted, &known, tsval_shift) } else { 0 },
            carried_places: distinct_count(carried),
            data: self.compare_data(&emitted.data, &data_in),
            of_data: if of_data.len() == known.len() { acknowledgements.clone() } else { compared(&of_data) },
            acknowledgements,
            emitted_acknowledgements: within_span(acks_out, acks_in),
            places: count_places(asked, numbers(&known).collect(), &boundaries, &unseen_places),
            shown: emitted.all().count() + reverse.data.len(),
            uncovered: if is_whole { uncovered_share(&emitted.data) } else { 0.0 },
            uncovered_reverse: if is_whole { uncovered_share(&reverse.data) } else { 0.0 },
        }
    }

    /// The arrived data that the emitter's capture shows acknowledged: others may be copies sent after its end. Where it
    /// shows none acknowledged, all if it shows a reset, holds nothing of the other host (a capture that ended early has
    /// its SYN at least), or if most are what it holds by timestamps or IP IDs; else nothing.
    fn emitted_to_the_end<'a>(
        &self,
        emitted: &[Segment],
        arrived: &'a [Segment],
        reverse: &Flow,
        direction: usize,
    ) -> Cow<'a, [Segment]> {
        let acknowledged = reverse.all().map(|segment| segment.acknowledgement).fold(-1, i64::max);
        let settled = chosen(arrived, |segment| segment.start < acknowledged);
        let is_equal = || self.compare_data(emitted, arrived).is_some_and(|found| found.is_mostly_equal());
        let is_over = self.reset[direction] || !self.both_ways[direction];
        if settled.is_empty() && (is_over || is_equal()) {
            return Cow::Borrowed(arrived);
        }
        settled
    }

    fn compare_data(&self, emitted: &[Segment], arrived: &[Segment]) -> Option<Agreement> {
        let Limits { copies, majority, .. } = self.limits;
        if emitted.is_empty() || arrived.is_empty() {
            return None;
        }
        let partners = || DataComparison::new(emitted, arrived, copies).compare(0..arrived.len(), majority);
        Some(unchanged_data(emitted, arrived).unwrap_or_else(partners))
    }

    /// Cuts the data of one direction in two, at each of the places that divide the arrived segments into `parts` equal
    /// ones and leave `fewest` on either side. Nothing where no data were emitted.
    ///
    /// With `least_alike` only where one of the two parts may be what was emitted: where, by timestamps or by IP IDs,
    /// more than this share of its segments may be equal.
    pub fn cut_data(&self, direction: usize, parts: usize, fewest: usize, least_alike: Option<f64>) -> Vec<CutCounts> {
        let (at_emitter, at_arriver) = self.sides(direction);
        let emitted = &at_emitter[direction].data;
        let mut arrived = at_arriver[direction].data.clone();
        let (count, fewest) = (arrived.len(), fewest.max(1));
        if emitted.is_empty() {
            return Vec::new();
        }
        arrived.sort_by_key(|segment| segment.start);
        let data = DataComparison::new(emitted, &arrived, self.limits.copies);
        let mut places: Vec<usize> = (1..parts).map(|part| count * part / parts).collect();
        places.dedup();
        places.retain(|&place| fewest <= place && place + fewest <= count);
        if let Some(share) = least_alike {
            let sums = data.likeness();
            let may_be_same = |from: usize, to: usize| Likeness::exceeds(sums[from], sums[to], share);
            places.retain(|&place| may_be_same(0, place) || may_be_same(place, count));
        }
        let majority = self.limits.majority;
        let cut = |place: usize| CutCounts {
            from_byte: arrived[place].start,
            before: data.compare(0..place, majority),
            after: data.compare(place..count, majority),
        };
        places.into_iter().map(cut).collect()
    }
}

/// What to add to the server side's offsets, by the direction that joins more packets; None where no majority agrees.
fn best_shifts(near: &Flows, far: &Flows, limits: Limits) -> Option<[i64; 2]> {
    let mut best = None;
    let mut most = 0;
    for direction in [0, 1] {
        let (emitted, arrived, sign) = if direction == 0 { (near, far, 1_i64) } else { (far, near, -1) };
        let found = shift_from_fields(&emitted[direction], &arrived[direction], limits.fewest_joined);
        let Some(found) = found.filter(|found| found.share > limits.majority && found.joined > most) else {
            continue;
        };
        most = found.joined;
        let mut shifts = [sign.wrapping_mul(found.acknowledgement); 2];
        shifts[direction] = sign.wrapping_mul(found.sequence);
        best = Some(shifts);
    }
    best
}

/// Whether packets that are alike stand at the same offsets, each beside its like: then they give no other ones.
fn are_joined(near: &Flows, far: &Flows) -> bool {
    let offsets = |one: &Segment| (one.start, one.acknowledgement, one.length);
    let names = |one: &Segment| (one.has_timestamps, one.tsval, one.tsecr, one.ip_id);
    let are_alike = |near: &[Segment], far: &[Segment]| {
        let mut pairs = near.iter().zip(far);
        near.len() == far.len()
            && pairs.all(|(one, other)| offsets(one) == offsets(other) && names(one) == names(other))
    };
    near.iter()
        .zip(far)
        .all(|(near, far)| are_alike(&near.data, &far.data) && are_alike(&near.acknowledgements, &far.acknowledgements))
}

fn in_common(near: &Flows, far: &Flows) -> usize {
    near.iter().zip(far).map(|(near, far)| fields_in_common(&near.data, &far.data)).sum()
}

/// The data of one stream and the pure acknowledgements of it; where in the other stream these stand, and what the data
/// acknowledge of it, is left out.
fn about_one_stream(flows: Flows, stream: usize) -> Flows {
    let mut kept = Flows::default();
    kept[stream].data = flows[stream].data.iter().map(|segment| Segment { acknowledgement: 0, ..*segment }).collect();
    kept[1 - stream].acknowledgements =
        flows[1 - stream].acknowledgements.iter().map(|segment| Segment { start: 0, ..*segment }).collect();
    kept
}

fn numbers(segments: &[Segment]) -> impl Iterator<Item = i64> + Clone + '_ {
    segments.iter().map(|segment| segment.acknowledgement)
}

/// Some segments, copied where these are not all.
fn chosen(segments: &[Segment], is_chosen: impl Fn(&Segment) -> bool) -> Cow<'_, [Segment]> {
    if segments.iter().all(&is_chosen) {
        return Cow::Borrowed(segments);
    }
    segments.iter().filter(|segment| is_chosen(segment)).copied().collect()
}

/// The byte ranges between the first and the last of these data that none of them covers.
fn uncovered(data: &[Segment]) -> Unseen {
    let extents = data.iter().map(|segment| (segment.start, segment.end()));
    if extents.clone().is_sorted() {
        return holes(extents);
    }
    let mut sorted: Vec<(i64, i64)> = extents.collect();
    // Mostly in order, which a stable sort is quick at.
    sorted.sort();
    holes(sorted.into_iter())
}

/// What lies between ascending ranges of bytes.
fn holes(extents: impl Iterator<Item = (i64, i64)>) -> Unseen {
    let mut holes = Vec::new();
    let mut reached = None;
    for (start, end) in extents {
        holes.extend(reached.filter(|&reached| reached < start).map(|reached| (reached, start)));
        reached = reached.max(Some(end));
    }
    Unseen(holes)
}

/// Share of the span of these data that none of them covers.
fn uncovered_share(data: &[Segment]) -> f64 {
    let first = data.iter().map(|segment| segment.start).min();
    let last = data.iter().map(Segment::end).max();
    let (Some(first), Some(last)) = (first, last) else {
        return 0.0;
    };
    let missed = uncovered(data).0.iter().fold(0_i64, |sum, (start, end)| sum.wrapping_add(end.wrapping_sub(*start)));
    missed as f64 / last.wrapping_sub(first) as f64
}

/// Emitted acknowledgements in the span of those that arrived.
fn within_span(emitted: &[Segment], arrived: &[Segment]) -> usize {
    let low = numbers(arrived).min();
    let high = numbers(arrived).max();
    low.zip(high).map_or(0, |(low, high)| numbers(emitted).filter(|number| (low..=high).contains(number)).count())
}
