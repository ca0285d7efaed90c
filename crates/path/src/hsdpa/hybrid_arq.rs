//! Hybrid ARQ: stop-and-wait processes whose receivers combine the transmissions of a block.

use super::transport_format::{block_error_rate, to_db};
use super::validation::between;
use crate::{Random, SettingsError};

const MOST_PROCESSES: u8 = 8; // three bits of HS-SCCH (3GPP TS 25.212, 4.6)

/// How a receiver combines earlier transmissions of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combining {
    /// No combining; each transmission is decoded alone.
    Nothing,
    /// Adds up their energy: ratios add.
    Chase,
    /// Adds up their information: log2(1 + ratio) adds (Caire and Tuninetti, "The throughput of hybrid-ARQ protocols
    /// for the Gaussian collision channel", IEEE Trans. Inf. Theory, 2001: ideal incremental redundancy).
    #[default]
    IncrementalRedundancy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HybridArqSettings {
    /// Processes of a terminal.
    pub processes: u8,
    /// Intervals from a transmission to the next one of the same process.
    pub round_trip_ttis: u32,
    /// Intervals from the start of a transmission until the terminal has decoded it.
    pub decoding_ttis: u32,
    /// Transmissions of a block before it is given up.
    pub maximum_transmissions: u8,
    pub combining: Combining,
}

impl Default for HybridArqSettings {
    /// 2 ms on the air, 5 ms (7.5 slots, 3GPP TS 25.211, 7.7) to decode, acknowledgement and scheduling: 12 ms in all.
    fn default() -> Self {
        Self {
            processes: 6,
            round_trip_ttis: 6,
            decoding_ttis: 4,
            maximum_transmissions: 4,
            combining: Combining::default(),
        }
    }
}

impl HybridArqSettings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let processes = (1.0, f64::from(MOST_PROCESSES));
        between("hybrid ARQ processes", f64::from(self.processes), processes, "from 1 to 8")?;
        let decoding = (1.0, f64::from(self.round_trip_ttis));
        between("decoding_ttis", f64::from(self.decoding_ttis), decoding, "from 1 to round_trip_ttis")?;
        between("hybrid ARQ maximum_transmissions", f64::from(self.maximum_transmissions), (1.0, 16.0), "from 1 to 16")
    }
}

/// Consecutive frames that travel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u64,
    pub frames: u32,
    /// How often the network has sent them, this time included.
    pub sendings: u8,
}

impl Run {
    /// Number of the frame after the last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.frames)
    }
}

/// One transport block in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its number in the order of first transmissions (TSN, not wrapped).
    pub sequence: u64,
    pub run: Run,
    /// Indicator of its transport format.
    pub quality: u8,
    pub transmissions: u8,
    combined_sinr: f64,
    error_rate: f64,
}

impl Block {
    #[must_use]
    pub fn new(sequence: u64, run: Run, quality: u8) -> Self {
        Self { sequence, run, quality, transmissions: 0, combined_sinr: 0.0, error_rate: 1.0 }
    }

    /// Sends it again, received with `sinr`; returns whether it is decoded.
    ///
    /// With combining, the error rate after n transmissions is that of the combined ratio, so the n-th fails with
    /// probability rate(n) / rate(n - 1) after the others have failed.
    pub fn transmit(&mut self, sinr: f64, combining: Combining, random: &mut Random) -> bool {
        self.transmissions += 1;
        let failure = match combining {
            Combining::Nothing => block_error_rate(self.quality, to_db(sinr)),
            Combining::Chase | Combining::IncrementalRedundancy => {
                self.combined_sinr = match combining {
                    Combining::Chase => self.combined_sinr + sinr,
                    _ => (1.0 + self.combined_sinr) * (1.0 + sinr) - 1.0,
                };
                let before = self.error_rate;
                self.error_rate = block_error_rate(self.quality, to_db(self.combined_sinr)).min(before);
                if before > 0.0 {
                    self.error_rate / before
                } else {
                    0.0
                }
            }
        };
        !random.chance(failure)
    }

    /// Sends it again over a channel that fails with probability `failure`; returns whether it is decoded.
    pub fn transmit_with(&mut self, failure: f64, random: &mut Random) -> bool {
        self.transmissions += 1;
        !random.chance(failure)
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Process {
    #[default]
    Free,
    /// Its block is on the air, or waits to be.
    Busy(Block),
    Due(Block),
}

/// The processes of one terminal.
#[derive(Clone, Debug)]
pub struct HybridArq {
    processes: Vec<Process>,
    free: usize,
    due: usize,
}

/// The consequence of an acknowledgement for the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    Delivered,
    /// The block is to be sent again.
    Due,
    /// Sent as often as allowed.
    GivenUp(Block),
}

impl HybridArq {
    #[must_use]
    pub fn new(processes: u8) -> Self {
        Self { processes: vec![Process::Free; usize::from(processes)], free: usize::from(processes), due: 0 }
    }

    #[must_use]
    pub fn has_free(&self) -> bool {
        self.free > 0
    }

    #[must_use]
    pub fn has_due(&self) -> bool {
        self.due > 0
    }

    /// Whether no block is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.free == self.processes.len()
    }

    /// The oldest block that waits to be sent again.
    #[must_use]
    pub fn oldest_due(&self) -> Option<Block> {
        self.due_block().map(|(_, block)| block)
    }

    /// Assigns a process to the oldest due block, else to `new` if one is free, and returns its number.
    pub fn begin(&mut self, block: Block) -> Option<usize> {
        if let Some((place, _)) = self.due_block().filter(|(_, due)| due.sequence == block.sequence) {
            self.processes[place] = Process::Busy(block);
            self.due -= 1;
            return Some(place);
        }
        let place = self.processes.iter().position(|process| matches!(process, Process::Free))?;
        self.processes[place] = Process::Busy(block);
        self.free -= 1;
        Some(place)
    }

    /// Handles the acknowledgement of the block in process number `place`.
    pub fn feedback(&mut self, place: usize, decoded: bool, maximum_transmissions: u8) -> Option<Feedback> {
        let process = self.processes.get_mut(place)?;
        let Process::Busy(block) = *process else {
            return None;
        };
        if !decoded && block.transmissions < maximum_transmissions {
            *process = Process::Due(block);
            self.due += 1;
            return Some(Feedback::Due);
        }
        *process = Process::Free;
        self.free += 1;
        Some(if decoded { Feedback::Delivered } else { Feedback::GivenUp(block) })
    }

    fn due_block(&self) -> Option<(usize, Block)> {
        if self.due == 0 {
            return None;
        }
        self.processes
            .iter()
            .enumerate()
            .filter_map(|(place, process)| match process {
                Process::Due(block) => Some((place, *block)),
                _ => None,
            })
            .min_by_key(|(_, block)| block.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Combining, Feedback, HybridArq, Run};
    use crate::hsdpa::transport_format::{block_error_rate, from_db, to_db};
    use crate::Random;

    fn block(sequence: u64) -> Block {
        Block::new(sequence, Run { first: sequence * 10, frames: 10, sendings: 1 }, 15)
    }

    fn residual(combining: Combining, sinr_db: f64, transmissions: u8) -> f64 {
        let mut random = Random::new(1, "residual");
        let draws = 200_000;
        let lost = (0..draws)
            .filter(|_| {
                let mut block = block(0);
                (0..transmissions).all(|_| !block.transmit(from_db(sinr_db), combining, &mut random))
            })
            .count();
        lost as f64 / f64::from(draws)
    }

    /// Four standard errors of a share of 200,000.
    fn agree(measured: f64, expected: f64) -> bool {
        (measured - expected).abs() < 4.0 * libm::sqrt(expected * (1.0 - expected) / 200_000.0) + 1e-5
    }

    #[test]
    fn without_combining_errors_multiply() {
        let rate = block_error_rate(15, -2.0);
        assert!(agree(residual(Combining::Nothing, -2.0, 1), rate));
        assert!(agree(residual(Combining::Nothing, -2.0, 3), rate * rate * rate));
    }

    #[test]
    fn chase_combining_leaves_the_rate_of_the_summed_ratio() {
        let sinr_db = -6.0;
        assert!(agree(residual(Combining::Chase, sinr_db, 2), block_error_rate(15, sinr_db + to_db(2.0))));
        assert!(agree(residual(Combining::Chase, sinr_db, 3), block_error_rate(15, sinr_db + to_db(3.0))));
    }

    #[test]
    fn redundancy_leaves_the_rate_of_the_summed_information() {
        let sinr_db = -5.5;
        let ratio = 1.0 + from_db(sinr_db);
        let expected = block_error_rate(15, to_db(ratio * ratio - 1.0));
        assert!(agree(residual(Combining::IncrementalRedundancy, sinr_db, 2), expected));
        assert!(expected < block_error_rate(15, sinr_db + to_db(2.0)));
    }

    #[test]
    fn a_process_stops_and_waits() {
        let mut processes = HybridArq::new(2);
        assert_eq!(processes.begin(block(0)), Some(0));
        assert_eq!(processes.begin(block(1)), Some(1));
        assert_eq!(processes.begin(block(2)), None);
        assert_eq!(processes.feedback(1, true, 4), Some(Feedback::Delivered));
        assert_eq!(processes.feedback(1, true, 4), None);
        assert_eq!(processes.begin(block(2)), Some(1));
    }

    #[test]
    fn a_block_is_repeated_until_it_is_given_up() {
        let mut processes = HybridArq::new(1);
        let mut random = Random::new(1, "repeat");
        let mut sent = block(0);
        for transmission in 1..=3 {
            assert!(!sent.transmit(0.0, Combining::Chase, &mut random));
            assert_eq!(processes.begin(sent), Some(0));
            let heard = processes.feedback(0, false, 3).unwrap();
            if transmission < 3 {
                assert_eq!(heard, Feedback::Due);
                sent = processes.oldest_due().unwrap();
                assert_eq!(sent.transmissions, transmission);
            } else {
                assert_eq!(heard, Feedback::GivenUp(sent));
            }
        }
        assert!(processes.is_idle());
    }
}
