//! Random numbers from a seed (splitmix64: Steele, Lea, Flood, OOPSLA 2014).

pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`; zero where `bound` is.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() as usize).checked_rem(bound).unwrap_or(0)
    }
}
