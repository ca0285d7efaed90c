//! Segments of one packet direction as columns, and which emitted ones may be the packet that arrived.

/// Columns of one length. Offsets are in the emitting side's stream coordinates; `tsval` and `tsecr` are 0 without
/// timestamps.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    pub start: &'a [i64],
    pub length: &'a [i64],
    pub acknowledgement: &'a [i64],
    pub window: &'a [i64],
    pub push: &'a [bool],
    pub first_copy: &'a [bool],
    pub has_timestamps: &'a [bool],
    pub stamps_captured: &'a [bool],
    pub tsval: &'a [i64],
    pub tsecr: &'a [i64],
    pub ip_id: &'a [i64],
    pub ttl: &'a [i64],
}

impl Segments<'_> {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Whether all columns have one length.
    pub fn is_even(&self) -> bool {
        let numbers =
            [self.start, self.length, self.acknowledgement, self.window, self.tsval, self.tsecr, self.ip_id, self.ttl];
        let marks = [self.push, self.first_copy, self.has_timestamps, self.stamps_captured];
        numbers.iter().all(|column| column.len() == self.len()) && marks.iter().all(|column| column.len() == self.len())
    }

    pub(crate) fn end(&self, place: usize) -> i64 {
        self.start[place].saturating_add(self.length[place])
    }
}

/// For each of some arrived segments the places of candidates in the emitted columns, in order of preference.
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
    emitted: Segments<'a>,
    first_copies: Vec<usize>,
    repeats: Vec<usize>,
    copies: usize,
}

impl<'a> DataIndex<'a> {
    /// At most `copies` segments of one byte are looked at.
    pub(crate) fn new(emitted: Segments<'a>, copies: usize) -> Self {
        let (mut first_copies, mut repeats): (Vec<usize>, Vec<usize>) =
            (0..emitted.len()).partition(|&place| emitted.first_copy[place]);
        first_copies.sort_by_key(|&place| emitted.start[place]);
        repeats.sort_by_key(|&place| emitted.start[place]);
        Self { emitted, first_copies, repeats, copies }
    }

    /// The emitted segments that hold the first byte of each arrived one: the first copy (these do not overlap), then
    /// retransmissions, the nearest first.
    ///
    /// Containment rather than equality, because a capture at an offloading host shows super-packets.
    pub(crate) fn candidates(&self, starts: &[i64]) -> Candidates {
        let mut found = Candidates::default();
        for &start in starts {
            self.add_holders(&mut found, &self.first_copies, 1, start);
            self.add_holders(&mut found, &self.repeats, self.copies - 1, start);
            found.end_row();
        }
        found
    }

    fn add_holders(&self, found: &mut Candidates, pool: &[usize], depth: usize, start: i64) {
        let before = pool.partition_point(|&place| self.emitted.start[place] <= start);
        let nearest = pool[..before].iter().rev().take(depth);
        found.places.extend(nearest.filter(|&&place| self.emitted.end(place) > start));
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
    emitted: Segments<'_>,
    arrived: Segments<'_>,
    places: &[usize],
    tsval: &[i64],
    discriminators: &[Discriminator],
) -> Candidates {
    let column = |segments: Segments<'_>, by: Discriminator, place: usize| match by {
        Discriminator::Tsval => segments.tsval[place],
        Discriminator::IpId => segments.ip_id[place],
        Discriminator::Window => segments.window[place],
        Discriminator::None => 0,
    };
    let orders: Vec<(Discriminator, Vec<usize>)> = discriminators
        .iter()
        .copied()
        .chain([Discriminator::None])
        .map(|by| {
            let mut order: Vec<usize> = (0..emitted.len()).collect();
            order.sort_by_key(|&place| {
                (emitted.acknowledgement[place], emitted.start[place], column(emitted, by, place))
            });
            (by, order)
        })
        .collect();
    let mut found = Candidates::default();
    for (row, &place) in places.iter().enumerate() {
        for (by, order) in &orders {
            let key =
                |place: usize| (emitted.acknowledgement[place], emitted.start[place], column(emitted, *by, place));
            let told = if *by == Discriminator::Tsval { tsval[row] } else { column(arrived, *by, place) };
            let asked = (arrived.acknowledgement[place], arrived.start[place], told);
            let run = &order[order.partition_point(|&place| key(place) < asked)..];
            let run = &run[..run.partition_point(|&place| key(place) == asked)];
            found.places.extend(run.first());
            found.places.extend(run.last());
        }
        found.end_row();
    }
    found
}
