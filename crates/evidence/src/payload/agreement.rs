//! How well the captured payload of two streams agrees under a shift.

use crate::payload::sample::PayloadSample;

/// Pieces that could be compared, and those of them that agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub compared: usize,
    pub agreed: usize,
}

/// Compares pieces of `left`, moved by `shift`, with what `right` holds there.
///
/// Of the pieces that overlap one of the other stream by `overlap_bytes`, at most `most` are compared, evenly spread.
pub fn compare(
    left: &PayloadSample,
    right: &PayloadSample,
    shift: i64,
    most: usize,
    overlap_bytes: usize,
) -> Agreement {
    let overlap_bytes = overlap_bytes as i64;
    let starts = right.offsets();
    // Places in the order of the stream, where that is another one than that of capture.
    let order: Option<Vec<usize>> = (!starts.is_sorted()).then(|| {
        let mut order: Vec<usize> = (0..right.len()).collect();
        order.sort_by_key(|&place| starts[place]);
        order
    });
    // The last piece of `right` that begins early enough must reach far enough.
    let partner = |begin: i64, piece: &[u8]| {
        let latest = begin.wrapping_add(piece.len() as i64).wrapping_sub(overlap_bytes);
        let place = match &order {
            None => starts.partition_point(|&start| start <= latest).checked_sub(1)?,
            Some(order) => order[order.partition_point(|&place| starts[place] <= latest).checked_sub(1)?],
        };
        let reach = starts[place].wrapping_add(right.piece(place).len() as i64);
        (reach.wrapping_sub(begin) >= overlap_bytes).then_some(place)
    };
    let mut near = Vec::with_capacity(left.len());
    near.extend(left.pieces().filter_map(|(offset, piece)| {
        let begin = offset.wrapping_add(shift);
        partner(begin, piece).map(|place| (begin, piece, place))
    }));
    let compared = near.len().min(most);
    let agreed = spread(near.len(), compared).filter(|&chosen| {
        let (begin, piece, place) = near[chosen];
        agrees(piece, begin, right.piece(place), starts[place])
    });
    Agreement { compared, agreed: agreed.count() }
}

/// Evenly spread places from the first of `count` to the last.
fn spread(count: usize, chosen: usize) -> impl Iterator<Item = usize> {
    let last = count.saturating_sub(1);
    let step = last as f64 / chosen.saturating_sub(1).max(1) as f64;
    (0..chosen).map(
        move |number| {
            if number > 0 && number + 1 == chosen {
                last
            } else {
                (number as f64 * step) as usize
            }
        },
    )
}

/// Whether two pieces have the same bytes where they overlap.
fn agrees(piece: &[u8], begin: i64, other: &[u8], start: i64) -> bool {
    let ahead = start.wrapping_sub(begin);
    let (skipped, skipped_of_other) = (ahead.max(0) as usize, ahead.wrapping_neg().max(0) as usize);
    let (piece, other) = (piece.get(skipped..).unwrap_or(&[]), other.get(skipped_of_other..).unwrap_or(&[]));
    let shared = piece.len().min(other.len());
    piece[..shared] == other[..shared]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(stream: &[u8], segment: usize, from: i64) -> PayloadSample {
        stream.chunks(segment).enumerate().map(|(number, piece)| (from + (number * segment) as i64, piece)).collect()
    }

    #[test]
    fn pieces_agree_under_the_right_shift_however_they_are_cut() {
        let stream: Vec<u8> = (0..4000_u32).map(|place| (place * place / 7) as u8).collect();
        let (left, right) = (cut(&stream, 100, 0), cut(&stream, 130, 50));
        let found = compare(&left, &right, 50, 64, 8);
        assert_eq!(found, Agreement { compared: 40, agreed: 40 });
        assert!(compare(&left, &right, 0, 64, 8).agreed < 20);
        assert_eq!(compare(&left, &right, 50, 7, 8), Agreement { compared: 7, agreed: 7 });
        assert_eq!(compare(&left, &right, 9000, 64, 8), Agreement::default());
        assert_eq!(compare(&left, &PayloadSample::default(), 0, 64, 8), Agreement::default());
    }

    proptest! {
        #[test]
        fn any_shift_and_any_pieces_are_compared(
            left in prop::collection::vec((any::<i64>(), prop::collection::vec(0_u8..2, 0..12)), 0..9),
            right in prop::collection::vec((any::<i64>(), prop::collection::vec(0_u8..2, 0..12)), 0..9),
            shift in any::<i64>(),
            most in 0_usize..5,
        ) {
            let of = |pieces: &[(i64, Vec<u8>)]| -> PayloadSample {
                pieces.iter().map(|(offset, piece)| (*offset, piece.as_slice())).collect()
            };
            let found = compare(&of(&left), &of(&right), shift, most, 8);
            prop_assert!(found.agreed <= found.compared && found.compared <= most.min(left.len()));
        }
    }
}
