//! The sliding-mode control law of the window-adaptation proxy (seed 003, section 4.2).
//!
//! Each step of `Ts` the Node-B reports its queue `q(k)` and the rate `b(k)`; the law answers with `w(k)`, the packets
//! to send during the step, so that the queue settles around `q0` whatever the rate does. All rates and queues are in
//! radio frames, `gamma` of them a packet. What is sent reaches the queue two delays of `d` steps after the sample that
//! asked for it, so the law counts what is under way (the sum over the last `2 d` quotas, eq. 34).

use core::fmt;
use std::collections::VecDeque;

/// Parameters of the control law; symbols are the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlidingModeSettings {
    /// `Ts`: sampling period in seconds.
    pub step_s: f64,
    /// `d`: steps that a report, or a packet, takes between Node-B and proxy.
    pub delay_steps: u32,
    /// `gamma`: radio frames in an IP packet.
    pub frames_per_packet: f64,
    /// `q0`: the queue to keep, in frames.
    pub reference_frames: f64,
    /// `Bmax`: the queue's limit, in frames.
    pub buffer_frames: f64,
    /// `alpha`: weight of the past in the mean rate, in (0, 1).
    pub smoothing: f64,
    /// `delta`: speed of approach, per second.
    pub approach_per_s: f64,
    /// `epsilon`: speed at the switching plane, in frames per second.
    pub switching_frames_s: f64,
    /// Steps over which the extremes of the rate's deviation are taken: a lifetime's would keep the start for ever.
    pub extremes_steps: usize,
}

impl Default for SlidingModeSettings {
    /// The paper's section 5.1; 200 steps of extremes.
    fn default() -> Self {
        Self {
            step_s: 0.025,
            delay_steps: 1,
            frames_per_packet: 13.0,
            reference_frames: 100.0,
            buffer_frames: 200.0,
            smoothing: 0.85,
            approach_per_s: 35.0,
            switching_frames_s: 20.0,
            extremes_steps: 200,
        }
    }
}

/// A constraint that a parameter set breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterError {
    /// A parameter that must be positive is not; its name and value.
    NotPositive(&'static str, f64),
    /// `alpha` outside (0, 1).
    Smoothing(f64),
    /// `q0` is not below `Bmax`.
    ReferenceBeyondBuffer { reference_frames: f64, buffer_frames: f64 },
    /// `1 - delta Ts > 0` does not hold (eq. 24).
    ApproachTooFast { product: f64 },
    /// The band around `q0` leaves the buffer (eq. 43).
    BandTooWide { half_width_frames: f64, room_frames: f64 },
    /// `Ts < Bmax / mean b` does not hold (section 5.2).
    StepDrainsBuffer { step_s: f64, limit_s: f64 },
    /// `Ts < Tb / 2` does not hold (section 5.2).
    StepTooLongForRate { step_s: f64, limit_s: f64 },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPositive(name, value) => write!(out, "{name} must be above 0, got {value}"),
            Self::Smoothing(value) => write!(out, "smoothing must be between 0 and 1, got {value}"),
            Self::ReferenceBeyondBuffer { reference_frames, buffer_frames } => write!(
                out,
                "reference_frames ({reference_frames}) must be below buffer_frames ({buffer_frames}): the queue can never be \
                 that long"
            ),
            Self::ApproachTooFast { product } => write!(
                out,
                "approach_per_s x step_s must be below 1, got {product}: the queue would overshoot at every step"
            ),
            Self::BandTooWide { half_width_frames, room_frames } => write!(
                out,
                "the queue would swing by {half_width_frames:.1} frames, but reference_frames leaves room for \
                 {room_frames:.1} only (equation 43): lower switching_frames_s, approach_per_s or step_s"
            ),
            Self::StepDrainsBuffer { step_s, limit_s } => write!(
                out,
                "step_s ({step_s}) must be below {limit_s:.4} s, in which the link drains a full buffer: else the queue \
                 runs empty between two reports"
            ),
            Self::StepTooLongForRate { step_s, limit_s } => write!(
                out,
                "step_s ({step_s}) must be below {limit_s:.4} s, half the period of the rate's variation: else reports \
                 miss it"
            ),
        }
    }
}

impl std::error::Error for ParameterError {}

impl SlidingModeSettings {
    /// Half the width of the band in which the queue settles (eq. 37), in frames.
    #[must_use]
    pub fn half_width_frames(&self) -> f64 {
        self.switching_frames_s * self.step_s / (1.0 - self.approach_per_s * self.step_s)
    }

    /// Refuses what breaks the paper's guideline (eq. 43 and section 5.2).
    ///
    /// `mean_rate_frames_s` and `rate_period_s` (the period of the rate's variation) bound `Ts` where they are known.
    ///
    /// # Errors
    /// The first constraint that does not hold.
    pub fn check(&self, mean_rate_frames_s: Option<f64>, rate_period_s: Option<f64>) -> Result<(), ParameterError> {
        self.check_domain()?;
        let product = self.approach_per_s * self.step_s;
        if product >= 1.0 {
            return Err(ParameterError::ApproachTooFast { product });
        }
        let room_frames = self.reference_frames.min(self.buffer_frames - self.reference_frames);
        if self.half_width_frames() >= room_frames {
            return Err(ParameterError::BandTooWide { half_width_frames: self.half_width_frames(), room_frames });
        }
        if let Some(limit_s) = mean_rate_frames_s.map(|rate| self.buffer_frames / rate).filter(|&s| self.step_s >= s) {
            return Err(ParameterError::StepDrainsBuffer { step_s: self.step_s, limit_s });
        }
        if let Some(limit_s) = rate_period_s.map(|period| period / 2.0).filter(|&limit| self.step_s >= limit) {
            return Err(ParameterError::StepTooLongForRate { step_s: self.step_s, limit_s });
        }
        Ok(())
    }

    /// Refuses what has no meaning, even for an experiment with wrong choices.
    ///
    /// # Errors
    /// The first parameter outside its domain.
    pub fn check_domain(&self) -> Result<(), ParameterError> {
        for (name, value) in [
            ("step_s", self.step_s),
            ("delay_steps", f64::from(self.delay_steps)),
            ("frames_per_packet", self.frames_per_packet),
            ("reference_frames", self.reference_frames),
            ("buffer_frames", self.buffer_frames),
            ("approach_per_s", self.approach_per_s),
            ("switching_frames_s", self.switching_frames_s),
            ("extremes_steps", self.extremes_steps as f64),
        ] {
            if value.is_nan() || value <= 0.0 {
                return Err(ParameterError::NotPositive(name, value));
            }
        }
        if !(self.smoothing > 0.0 && self.smoothing < 1.0) {
            return Err(ParameterError::Smoothing(self.smoothing));
        }
        if self.reference_frames >= self.buffer_frames {
            return Err(ParameterError::ReferenceBeyondBuffer {
                reference_frames: self.reference_frames,
                buffer_frames: self.buffer_frames,
            });
        }
        Ok(())
    }
}

/// The controller: one [`SlidingMode::step`] for each report.
#[derive(Clone, Debug)]
pub struct SlidingMode {
    settings: SlidingModeSettings,
    mean_rate_frames_s: Option<f64>,
    /// Deviations `(b(k) - mean b) Ts` of the last steps, in frames.
    deviations: VecDeque<f64>,
    /// The last `2 d` quotas, in packets, newest last.
    quotas: VecDeque<f64>,
}

impl SlidingMode {
    #[must_use]
    pub fn new(settings: SlidingModeSettings) -> Self {
        let under_way = 2 * settings.delay_steps as usize;
        Self {
            settings,
            mean_rate_frames_s: None,
            deviations: VecDeque::with_capacity(settings.extremes_steps),
            quotas: core::iter::repeat_n(0.0, under_way).collect(),
        }
    }

    #[must_use]
    pub fn settings(&self) -> &SlidingModeSettings {
        &self.settings
    }

    /// Mean of the reported rates in frames per second; 0 before the first report.
    #[must_use]
    pub fn mean_rate_frames_s(&self) -> f64 {
        self.mean_rate_frames_s.unwrap_or(0.0)
    }

    /// Packets to send during the step that begins now (eq. 36), never below 0.
    ///
    /// `queued_frames` is `q(k)`, sampled before what was sent `2 d` steps ago arrives; `rate_frames_s` is `b(k)`.
    pub fn step(&mut self, queued_frames: f64, rate_frames_s: f64) -> f64 {
        let mean = self.smooth(rate_frames_s);
        let settings = self.settings;
        let served = mean * settings.step_s;
        let (low, high) = self.extremes(rate_frames_s, mean);
        let sent: f64 = self.quotas.iter().sum::<f64>() * settings.frames_per_packet;
        let under_way = f64::from(2 * settings.delay_steps) * served;
        let distance = queued_frames - settings.reference_frames - under_way + sent;
        let middle = (high + low) / 2.0;
        let spread = (high - low) / 2.0 + settings.switching_frames_s * settings.step_s;
        let frames = served + middle - settings.approach_per_s * settings.step_s * distance - spread * sign(distance);
        let quota = (frames / settings.frames_per_packet).max(0.0);
        self.quotas.pop_front();
        self.quotas.push_back(quota);
        quota
    }

    /// Reports that only `packets` of the last quota were sent, because there were no more data.
    pub fn correct_last(&mut self, packets: f64) {
        if let Some(last) = self.quotas.back_mut() {
            *last = last.min(packets);
        }
    }

    fn smooth(&mut self, rate_frames_s: f64) -> f64 {
        let alpha = self.settings.smoothing;
        let mean = self.mean_rate_frames_s.map_or(rate_frames_s, |mean| alpha * mean + (1.0 - alpha) * rate_frames_s);
        self.mean_rate_frames_s = Some(mean);
        mean
    }

    /// Least and greatest deviation over the last steps, this one included (eqs 29 to 32).
    fn extremes(&mut self, rate_frames_s: f64, mean: f64) -> (f64, f64) {
        if self.deviations.len() == self.settings.extremes_steps {
            self.deviations.pop_front();
        }
        self.deviations.push_back((rate_frames_s - mean) * self.settings.step_s);
        self.deviations.iter().fold((f64::MAX, f64::MIN), |(low, high), &value| (low.min(value), high.max(value)))
    }
}

/// Like `f64::signum`, but 0 at 0.
fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use pepscope_path::Random;

    use super::{ParameterError, SlidingMode, SlidingModeSettings};

    const MEAN_RATE: f64 = 1160.0;

    /// What the queue of eq. (17) does under the law: the mean of its length and the share of the rate that was used.
    struct Outcome {
        mean_queue: f64,
        worst_deviation: f64,
        utilisation: f64,
    }

    /// When in a step the packets of a quota come.
    #[derive(Clone, Copy, PartialEq)]
    enum Arrival {
        Spread,
        AtOnce,
    }

    /// The plant with its hard limits; the rate keeps its value for `hold` steps.
    fn run(settings: SlidingModeSettings, hold: usize, swing: f64, arrival: Arrival) -> Outcome {
        let mut law = SlidingMode::new(settings);
        let mut random = Random::new(3, "rate");
        let mut on_the_way: VecDeque<f64> = VecDeque::from(vec![0.0; 2 * settings.delay_steps as usize]);
        let steps = (300.0 / settings.step_s) as usize;
        let (mut queue, mut rate, mut capacity, mut served_total, mut sum) = (0.0f64, MEAN_RATE, 0.0, 0.0, 0.0);
        let (mut counted, mut worst) = (0, 0.0f64);
        for step in 0..steps {
            on_the_way.push_back(law.step(queue, rate) * settings.frames_per_packet);
            if step % hold == 0 {
                rate = MEAN_RATE * random.uniform_between(1.0 - swing, 1.0 + swing);
            }
            let mut arrived = on_the_way.pop_front().unwrap_or(0.0);
            if arrival == Arrival::AtOnce {
                arrived = arrived.min(settings.buffer_frames - queue);
            }
            let served = (queue + arrived).min(rate * settings.step_s);
            queue = (queue + arrived - served).min(settings.buffer_frames);
            if step >= steps / 10 {
                capacity += rate * settings.step_s;
                served_total += served;
                sum += queue;
                counted += 1;
                worst = worst.max((queue - settings.reference_frames).abs());
            }
        }
        Outcome { mean_queue: sum / f64::from(counted), worst_deviation: worst, utilisation: served_total / capacity }
    }

    #[test]
    fn a_constant_rate_settles_within_the_band() {
        let settings = SlidingModeSettings::default();
        assert!((settings.half_width_frames() - 4.0).abs() < 1e-9);
        let outcome = run(settings, 1, 0.0, Arrival::Spread);
        assert!(outcome.worst_deviation < settings.half_width_frames(), "{}", outcome.worst_deviation);
        assert!((outcome.utilisation - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_queue_stays_and_the_link_is_used_at_every_period() {
        for hold in [1, 2, 4, 8, 16, 40, 80, 160, 320] {
            let outcome = run(SlidingModeSettings::default(), hold, 0.5, Arrival::Spread);
            assert!(outcome.utilisation > 0.999, "hold {hold}: {}", outcome.utilisation);
            assert!((90.0..110.0).contains(&outcome.mean_queue), "hold {hold}: {}", outcome.mean_queue);
        }
    }

    #[test]
    fn a_step_that_drains_the_buffer_oscillates() {
        let settings = SlidingModeSettings { step_s: 0.2, approach_per_s: 4.0, ..SlidingModeSettings::default() };
        assert!(settings.check(None, None).is_ok(), "equation 43 alone accepts it, as in the paper");
        assert!(matches!(settings.check(Some(MEAN_RATE), None), Err(ParameterError::StepDrainsBuffer { .. })));
        let cycle_steps = f64::from(2 * settings.delay_steps + 1);
        let one_buffer_a_cycle = settings.buffer_frames / (cycle_steps * MEAN_RATE * settings.step_s);
        let outcome = run(settings, 1, 0.5, Arrival::AtOnce);
        assert!((outcome.utilisation - one_buffer_a_cycle).abs() < 0.01, "{}", outcome.utilisation);
        assert!(run(settings, 1, 0.5, Arrival::Spread).utilisation < 0.9);
    }

    #[test]
    fn what_breaks_a_bound_is_refused_by_name() {
        let base = SlidingModeSettings::default();
        let refused =
            |settings: SlidingModeSettings| settings.check(Some(MEAN_RATE), Some(1.0)).unwrap_err().to_string();
        assert!(base.check(Some(MEAN_RATE), Some(1.0)).is_ok());
        assert!(refused(SlidingModeSettings { approach_per_s: 40.0, ..base }).contains("approach_per_s x step_s"));
        assert!(refused(SlidingModeSettings { switching_frames_s: 600.0, ..base }).contains("equation 43"));
        assert!(refused(SlidingModeSettings { step_s: 0.0, ..base }).contains("step_s must be above 0"));
        assert!(refused(SlidingModeSettings { smoothing: 1.0, ..base }).contains("smoothing"));
        assert!(refused(SlidingModeSettings { reference_frames: 200.0, ..base }).contains("buffer_frames"));
        assert!(base.check(Some(MEAN_RATE), Some(0.04)).unwrap_err().to_string().contains("half the period"));
    }

    #[test]
    fn quotas_are_counted_while_they_are_under_way() {
        let mut law = SlidingMode::new(SlidingModeSettings::default());
        let first = law.step(0.0, MEAN_RATE);
        let second = law.step(0.0, MEAN_RATE);
        let third = law.step(0.0, MEAN_RATE);
        // An empty queue asks for q0 and two steps of service; 87.5 % of what is missing is sent at once.
        let served = MEAN_RATE * 0.025;
        let expected = served + 0.875 * (100.0 + 2.0 * served) + 0.5;
        assert!((first - expected / 13.0).abs() < 1e-9);
        assert!(second < first / 3.0 && third < second);
    }
}
