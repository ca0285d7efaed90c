//! Detects when start-up has filled the path (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.2.2).

const GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;

/// The path is full for good once three rounds have not raised the bandwidth by a quarter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    bandwidth_bytes_s: u64,
    rounds_without_growth: u32,
}

impl FullPipe {
    /// Takes the bandwidth known at the end of a round whose samples the application did not limit.
    pub(super) fn end_round(&mut self, bandwidth_bytes_s: u64) {
        if self.is_full() {
            return;
        }
        if bandwidth_bytes_s as f64 >= self.bandwidth_bytes_s as f64 * GROWTH {
            self.bandwidth_bytes_s = bandwidth_bytes_s;
            self.rounds_without_growth = 0;
        } else {
            self.rounds_without_growth += 1;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rounds_without_growth >= ROUNDS_WITHOUT_GROWTH
    }
}

#[cfg(test)]
mod tests {
    use super::FullPipe;

    #[test]
    fn a_pipe_is_full_after_three_rounds_without_a_quarter_more() {
        let mut pipe = FullPipe::default();
        for bandwidth_bytes_s in [100, 200, 240, 249, 250] {
            pipe.end_round(bandwidth_bytes_s);
            assert!(!pipe.is_full());
        }
        for bandwidth_bytes_s in [250, 300, 312] {
            assert!(!pipe.is_full());
            pipe.end_round(bandwidth_bytes_s);
        }
        assert!(pipe.is_full());
        pipe.end_round(10_000);
        assert!(pipe.is_full());
    }
}
