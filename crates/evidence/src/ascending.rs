//! Lookups in ascending numbers, one after the other: mostly near the one before.

/// Numbers in ascending order, and where the latest lookup ended.
#[derive(Clone, Debug)]
pub(crate) struct Ascending<'a, T> {
    sorted: &'a [T],
    place: usize,
}

/// So many steps from the place before are made one by one; then each stretch that is left out is twice as long.
const STEPS: usize = 8;

impl<'a, T: PartialOrd + Copy> Ascending<'a, T> {
    pub(crate) fn new(sorted: &'a [T]) -> Self {
        Self { sorted, place: 0 }
    }

    /// How many are at most `value`.
    #[inline]
    pub(crate) fn up_to(&mut self, value: T) -> usize {
        self.first(|&number| number <= value)
    }

    /// How many are below `value`.
    #[inline]
    pub(crate) fn below(&mut self, value: T) -> usize {
        self.first(|&number| number < value)
    }

    /// Whether `value` is one of them.
    pub(crate) fn has(&mut self, value: T) -> bool {
        self.last_of(value).is_some()
    }

    /// The place of the last one that is `value`.
    pub(crate) fn last_of(&mut self, value: T) -> Option<usize> {
        self.up_to(value).checked_sub(1).filter(|&place| self.sorted[place] == value)
    }

    /// How many are `taken`, which all are up to one of them.
    #[inline]
    fn first(&mut self, taken: impl Fn(&T) -> bool) -> usize {
        let (before, behind) = self.sorted.split_at(self.place);
        self.place = if before.last().is_some_and(|last| !taken(last)) {
            before.partition_point(taken)
        } else {
            match behind.iter().take(STEPS).position(|number| !taken(number)) {
                Some(further) => self.place + further,
                None => self.place + further_on(behind, taken),
            }
        };
        self.place
    }
}

/// How many of the numbers are `taken`, which are more than a few.
fn further_on<T>(numbers: &[T], taken: impl Fn(&T) -> bool) -> usize {
    let mut reached = STEPS.min(numbers.len());
    loop {
        let stretch = numbers.len().min(2 * reached);
        if stretch == reached || !taken(&numbers[stretch - 1]) {
            return reached + numbers[reached..stretch].partition_point(taken);
        }
        reached = stretch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lookups_in_any_order_are_those_of_a_search(
            mut numbers in proptest::collection::vec(0i64..200, 0..120),
            asked in proptest::collection::vec(-2i64..203, 1..60),
            in_order in any::<bool>(),
        ) {
            numbers.sort_unstable();
            let mut asked = asked;
            if in_order {
                asked.sort_unstable();
            }
            let (mut up_to, mut below) = (Ascending::new(&numbers), Ascending::new(&numbers));
            let mut held = Ascending::new(&numbers);
            for value in asked {
                prop_assert_eq!(up_to.up_to(value), numbers.partition_point(|&number| number <= value));
                prop_assert_eq!(below.below(value), numbers.partition_point(|&number| number < value));
                prop_assert_eq!(held.has(value), numbers.contains(&value));
            }
        }
    }
}
