//! Memory that was let go of, for what comes next.

use std::hint::black_box;
use std::sync::Once;

/// glibc returns large blocks to the kernel when they are freed, up to when a mapping larger than they was freed, but
/// counts no mapping above 32 MiB (mallopt(3), M_MMAP_THRESHOLD). Columns of one connection after the other then take
/// the same pages, where fresh ones would cost more than filling them. Other allocators lose nothing.
pub(crate) fn let_freed_memory_be_reused() {
    static REUSE: Once = Once::new();
    const LARGEST_COUNTED: usize = 32 << 20;
    const HEADER_AND_ROUNDING: usize = 8 << 10;
    REUSE.call_once(|| {
        drop(black_box(Vec::<u8>::with_capacity(LARGEST_COUNTED - HEADER_AND_ROUNDING)));
    });
}
