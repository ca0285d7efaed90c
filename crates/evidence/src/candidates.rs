//! Which emitted segments may be the packet that arrived.

use crate::segments::Segment;

/// For each of some arrived segments the places of candidates among the emitted ones, in order of preference.
#[derive(Default)]
pub(crate) struct Candidates {
    places: Vec<usize>,
    /// Where the row of each arrived segment ends in `places`.
    ends: Vec<usize>,
}

impl Candidates {
    /// The candidates of the `number`-th arrived segment.
    pub(crate) fn row(&self, number: usize) -> &[usize] {
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.places[begin..self.ends[number]]
    }

    fn end_row(&mut self) {
        self.ends.push(self.places.len());
    }
}

/// Emitted data in order of offset, for one arrived segment after the other.
pub(crate) struct DataIndex<'a> {
    emitted: &'a [Segment],
    first_copies: Vec<usize>,
    repeats: Vec<usize>,
    copies: usize,
}

impl<'a> DataIndex<'a> {
    /// At most `copies` segments of one byte are looked at.
    pub(crate) fn new(emitted: &'a [Segment], copies: usize) -> Self {
        let (mut first_copies, mut repeats): (Vec<usize>, Vec<usize>) =
            (0..emitted.len()).partition(|&place| emitted[place].first_copy);
        first_copies.sort_by_key(|&place| emitted[place].start);
        repeats.sort_by_key(|&place| emitted[place].start);
        Self { emitted, first_copies, repeats, copies }
    }

    /// The emitted segments that hold the first byte of each arrived one: the first copy (these do not overlap), then
    /// retransmissions, the nearest first.
    ///
    /// Containment rather than equality, because a capture at an offloading host shows super-packets.
    pub(crate) fn candidates(&self, arrived: &[Segment]) -> Candidates {
        let mut found = Candidates::default();
        for &Segment { start, .. } in arrived {
            self.add_holders(&mut found, &self.first_copies, 1, start);
            self.add_holders(&mut found, &self.repeats, self.copies - 1, start);
            found.end_row();
        }
        found
    }

    fn add_holders(&self, found: &mut Candidates, pool: &[usize], depth: usize, start: i64) {
        let before = pool.partition_point(|&place| self.emitted[place].start <= start);
        let nearest = pool[..before].iter().rev().take(depth);
        found.places.extend(nearest.filter(|&&place| self.emitted[place].end() > start));
    }
}

/// A field that tells pure acknowledgements with equal numbers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discriminator {
    Tsval,
    IpId,
    Window,
    None,
}

/// For each arrived pure acknowledgement the emitted ones with its sequence and acknowledgement numbers.
///
/// Runs of duplicates can be long: for each discriminator the first and the last that agree in it too are candidates,
/// then the first and the last of the whole run. `tsval` is that of the arrived ones.
pub(crate) fn acknowledgement_candidates(
    emitted: &[Segment],
    arrived: &[Segment],
    places: &[usize],
    tsval: &[i64],
    discriminators: &[Discriminator],
) -> Candidates {
    let column = |segments: &[Segment], by: Discriminator, place: usize| match by {
        Discriminator::Tsval => segments[place].tsval,
        Discriminator::IpId => segments[place].ip_id,
        Discriminator::Window => segments[place].window,
        Discriminator::None => 0,
    };
    let orders: Vec<(Discriminator, Vec<usize>)> = discriminators
        .iter()
        .copied()
        .chain([Discriminator::None])
        .map(|by| {
            let mut order: Vec<usize> = (0..emitted.len()).collect();
            order.sort_by_key(|&place| {
                (emitted[place].acknowledgement, emitted[place].start, column(emitted, by, place))
            });
            (by, order)
        })
        .collect();
    let mut found = Candidates::default();
    for (row, &place) in places.iter().enumerate() {
        for (by, order) in &orders {
            let key =
                |place: usize| (emitted[place].acknowledgement, emitted[place].start, column(emitted, *by, place));
            let told = if *by == Discriminator::Tsval { tsval[row] } else { column(arrived, *by, place) };
            let asked = (arrived[place].acknowledgement, arrived[place].start, told);
            let run = &order[order.partition_point(|&place| key(place) < asked)..];
            let run = &run[..run.partition_point(|&place| key(place) == asked)];
            found.places.extend(run.first());
            found.places.extend(run.last());
        }
        found.end_row();
    }
    found
}
