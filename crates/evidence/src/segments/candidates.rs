//! Which emitted segments may be the packet that arrived.

use crate::ascending::Ascending;
use crate::segments::columns::Segment;

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
    first_copies: Pool,
    repeats: Pool,
    copies: usize,
}

/// Places of emitted segments by their first bytes.
struct Pool {
    starts: Vec<i64>,
    places: Vec<usize>,
}

impl Pool {
    fn new(emitted: &[Segment], mut places: Vec<usize>) -> Self {
        places.sort_by_key(|&place| emitted[place].start);
        Self { starts: places.iter().map(|&place| emitted[place].start).collect(), places }
    }
}

impl<'a> DataIndex<'a> {
    /// At most `copies` segments of one byte are looked at.
    pub(crate) fn new(emitted: &'a [Segment], copies: usize) -> Self {
        let (first_copies, repeats): (Vec<usize>, Vec<usize>) =
            (0..emitted.len()).partition(|&place| emitted[place].first_copy);
        Self { emitted, first_copies: Pool::new(emitted, first_copies), repeats: Pool::new(emitted, repeats), copies }
    }

    /// The emitted segments that hold the first byte of each arrived one: the first copy (these do not overlap), then
    /// retransmissions, the nearest first.
    ///
    /// Containment rather than equality, because a capture at an offloading host shows super-packets.
    pub(crate) fn candidates(&self, arrived: &[Segment]) -> Candidates {
        let mut found = Candidates::default();
        found.ends.reserve(arrived.len());
        found.places.reserve(arrived.len());
        let mut first_copies = Ascending::new(&self.first_copies.starts);
        let mut repeats = Ascending::new(&self.repeats.starts);
        for &Segment { start, .. } in arrived {
            self.add_holders(&mut found, &self.first_copies.places[..first_copies.up_to(start)], 1, start);
            self.add_holders(&mut found, &self.repeats.places[..repeats.up_to(start)], self.copies - 1, start);
            found.end_row();
        }
        found
    }

    fn add_holders(&self, found: &mut Candidates, before: &[usize], depth: usize, start: i64) {
        let nearest = before.iter().rev().take(depth);
        found.places.extend(nearest.filter(|&&place| self.emitted[place].end() > start));
    }
}

/// A field that distinguishes pure acknowledgements with equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discriminator {
    Tsval,
    IpId,
    Window,
}

/// Places of the first and the last of some equal segments.
type Ends = (usize, usize);

/// Segments by some of their numbers, in order of these; of each the places of the first and the last that have them.
struct Runs<T> {
    numbers: Vec<T>,
    ends: Vec<Ends>,
}

impl<T: Ord + Copy> Runs<T> {
    /// From numbers and place, by ascending place.
    fn new(mut placed: Vec<(T, usize)>) -> Self {
        placed.sort_by_key(|&(numbers, _)| numbers);
        let runs = placed.chunk_by(|one, next| one.0 == next.0);
        let (numbers, ends) = runs.map(|run| (run[0].0, (run[0].1, run[run.len() - 1].1))).unzip();
        Self { numbers, ends }
    }
}

/// Emitted pure acknowledgements by their sequence and acknowledgement numbers.
pub(crate) struct AcknowledgementIndex<'a> {
    emitted: &'a [Segment],
    runs: Runs<(i64, i64)>,
    /// The places of those that share their numbers with others.
    repeated: Vec<usize>,
}

/// Emitted pure acknowledgements that share their numbers with others, by these and one more field.
pub(crate) struct Repeats {
    by: Discriminator,
    runs: Runs<(i64, i64, i64)>,
}

impl<'a> AcknowledgementIndex<'a> {
    pub(crate) fn new(emitted: &'a [Segment]) -> Self {
        let numbers = |segment: &Segment| (segment.acknowledgement, segment.start);
        let runs = Runs::new(emitted.iter().map(numbers).zip(0..).collect());
        let mut ascending = Ascending::new(&runs.numbers);
        let is_repeated = |&place: &usize| {
            ascending.last_of(numbers(&emitted[place])).is_some_and(|run| runs.ends[run].0 != runs.ends[run].1)
        };
        let repeated = (0..emitted.len()).filter(is_repeated).collect();
        Self { emitted, runs, repeated }
    }

    pub(crate) fn repeats(&self, by: Discriminator) -> Repeats {
        let key = |&place: &usize| (by.key(&self.emitted[place], self.emitted[place].tsval), place);
        Repeats { by, runs: Runs::new(self.repeated.iter().map(key).collect()) }
    }

    /// For each arrived pure acknowledgement the first and the last emitted one with its numbers.
    pub(crate) fn runs(&self, arrived: &[Segment]) -> Vec<Option<Ends>> {
        let mut ascending = Ascending::new(&self.runs.numbers);
        let mut ends = |segment: &Segment| {
            ascending.last_of((segment.acknowledgement, segment.start)).map(|run| self.runs.ends[run])
        };
        arrived.iter().map(&mut ends).collect()
    }
}

impl Discriminator {
    /// The numbers by which a segment is found that has this TSval.
    fn key(self, segment: &Segment, tsval: i64) -> (i64, i64, i64) {
        let value = match self {
            Discriminator::Tsval => tsval,
            Discriminator::IpId => segment.ip_id,
            Discriminator::Window => segment.window,
        };
        (segment.acknowledgement, segment.start, value)
    }
}

/// For each arrived pure acknowledgement the emitted ones with its sequence and acknowledgement numbers, `runs` of which
/// are the ends.
///
/// Runs of duplicates can be long: for each field the first and the last that agree in it too are candidates, then
/// those of the whole run. `tsval` is that of the arrived ones.
pub(crate) fn acknowledgement_candidates(
    runs: &[Option<Ends>],
    arrived: &[Segment],
    tsval: &[i64],
    repeats: &[&Repeats],
) -> Candidates {
    let mut found = Candidates::default();
    let mut ascending: Vec<_> = repeats.iter().map(|Repeats { runs, .. }| Ascending::new(&runs.numbers)).collect();
    for ((run, segment), &tsval) in runs.iter().zip(arrived).zip(tsval) {
        match *run {
            Some((only, last)) if only == last => found.places.push(only),
            Some((first, last)) => {
                for (Repeats { by, runs }, ascending) in repeats.iter().zip(&mut ascending) {
                    let ends = ascending.last_of(by.key(segment, tsval)).map(|run| runs.ends[run]);
                    found.places.extend(ends.into_iter().flat_map(|(first, last)| [first, last]));
                }
                found.places.extend([first, last]);
            }
            None => {}
        }
        found.end_row();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_found_in_whatever_order_they_are_looked_up(
            mut sorted in proptest::collection::vec(-20_i64..60, 0..80),
            asked in proptest::collection::vec(-25_i64..65, 0..40),
        ) {
            sorted.sort_unstable();
            let mut ascending = Ascending::new(&sorted);
            for value in asked {
                prop_assert_eq!(ascending.up_to(value), sorted.iter().filter(|&&number| number <= value).count());
                prop_assert_eq!(ascending.has(value), sorted.contains(&value));
            }
        }
    }
}
