//! Buffers of frames, used again and again.
//!
//! Hops drop what they lose without a report; so a frame gives its buffer back when it is dropped, to the pool of the
//! thread that carries it.

use std::cell::RefCell;

/// Spare buffers kept at most; of 2 KiB each, these are 32 MiB.
const MOST_SPARE: usize = 16_384;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room for `bytes`.
pub(super) fn take(bytes: usize) -> Vec<u8> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
    match spare {
        Some(buffer) if buffer.capacity() >= bytes => buffer,
        _ => Vec::with_capacity(bytes),
    }
}

/// Keeps `buffer` for the next frame.
pub(super) fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    // A thread that ends has no pool any more: the buffer is freed then.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < MOST_SPARE {
            spare.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{give_back, take};

    #[test]
    fn a_buffer_comes_back_empty_and_the_same() {
        let mut buffer = take(2048);
        buffer.extend_from_slice(&[1, 2, 3]);
        let place = buffer.as_ptr();
        give_back(buffer);
        let again = take(1500);
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
    }

    #[test]
    fn a_spare_buffer_that_is_too_small_is_not_used() {
        give_back(Vec::with_capacity(100));
        assert!(take(1500).capacity() >= 1500);
    }
}
