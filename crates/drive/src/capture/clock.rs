//! The clock of a capture point, and what it makes of true time.

use pepscope_path::Nanoseconds;

/// One jump of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// True time since the start of the run.
    pub at_ns: Nanoseconds,
    /// How far it jumps, forward if positive.
    pub by_ns: i64,
}

/// How a capture point's clock differs from true time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockSettings {
    /// What a right clock shows at the start of the run, in nanoseconds since 1970.
    pub epoch_ns: u64,
    pub offset_ns: i64,
    /// Parts in 10^12 that it gains on true time.
    pub drift_parts_per_trillion: i64,
    /// The steps in order of time.
    pub steps: Vec<Step>,
    /// Readings are rounded down to multiples of this; 0 and 1 for none.
    pub granularity_ns: u64,
}

/// A running clock; read with times that never go back.
#[derive(Clone, Debug)]
pub struct Clock {
    settings: ClockSettings,
    /// It shows true time, so that there is nothing to work out.
    is_right: bool,
    next_step: usize,
    stepped_ns: i64,
}

impl Clock {
    #[must_use]
    pub fn new(settings: ClockSettings) -> Self {
        let is_right = ClockSettings { epoch_ns: settings.epoch_ns, ..ClockSettings::default() } == settings
            || ClockSettings { epoch_ns: settings.epoch_ns, granularity_ns: 1, ..ClockSettings::default() } == settings;
        Self { settings, is_right, next_step: 0, stepped_ns: 0 }
    }

    /// What it shows at true time `now`, in nanoseconds since 1970.
    #[inline]
    pub fn reading(&mut self, now: Nanoseconds) -> u64 {
        if self.is_right {
            return self.right_reading(now);
        }
        self.wrong_reading(now)
    }

    /// Whether it shows true time.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.is_right
    }

    /// What a right clock shows at true time `now`.
    #[inline(always)]
    #[must_use]
    pub fn right_reading(&self, now: Nanoseconds) -> u64 {
        self.settings.epoch_ns.saturating_add(now)
    }

    fn wrong_reading(&mut self, now: Nanoseconds) -> u64 {
        while let Some(step) = self.settings.steps.get(self.next_step).filter(|step| step.at_ns <= now) {
            self.stepped_ns = self.stepped_ns.saturating_add(step.by_ns);
            self.next_step += 1;
        }
        let drift_ns = match self.settings.drift_parts_per_trillion {
            0 => 0,
            drift => ((i128::from(now) * i128::from(drift)).div_euclid(1_000_000_000_000)) as i64,
        };
        let shift_ns = self.settings.offset_ns.saturating_add(drift_ns).saturating_add(self.stepped_ns);
        let reading = self.settings.epoch_ns.saturating_add(now).saturating_add_signed(shift_ns);
        match self.settings.granularity_ns {
            0 | 1 => reading,
            granularity => reading - reading % granularity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, ClockSettings, Step};
    use pepscope_path::{MILLISECOND, SECOND};

    #[test]
    fn a_right_clock_shows_true_time() {
        let mut clock = Clock::new(ClockSettings { epoch_ns: 5 * SECOND, ..ClockSettings::default() });
        assert_eq!(clock.reading(3), 5 * SECOND + 3);
    }

    #[test]
    fn offset_drift_and_steps_add_up() {
        let mut clock = Clock::new(ClockSettings {
            epoch_ns: 100 * SECOND,
            offset_ns: -7,
            drift_parts_per_trillion: 20_000_000, // 20 ppm
            steps: vec![
                Step { at_ns: 2 * SECOND, by_ns: 600_000_000 },
                Step { at_ns: 4 * SECOND, by_ns: -600_000_000 },
            ],
            granularity_ns: 0,
        });
        assert_eq!(clock.reading(SECOND), 101 * SECOND - 7 + 20_000);
        assert_eq!(clock.reading(2 * SECOND), 102 * SECOND - 7 + 40_000 + 600 * MILLISECOND);
        assert_eq!(clock.reading(10 * SECOND), 110 * SECOND - 7 + 200_000);
    }

    #[test]
    fn a_coarse_clock_rounds_down() {
        let mut clock = Clock::new(ClockSettings { granularity_ns: 1000, ..ClockSettings::default() });
        assert_eq!(clock.reading(1999), 1000);
    }
}
