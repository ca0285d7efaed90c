//! Links of variable rate: a line whose rate varies or follows a trace.

mod rates;

use pepscope_path::{
    Datagram, Nanoseconds, QueueLimit, QueueSettings, RadioFrames, RateProfile, ReportSettings, Service, ServiceRule,
    SettingsError, VariableRate, VariableRateSettings, VaryingLineSettings, NEVER,
};

use super::buffer::{read_loss, read_queue, ONE_LIMIT};
use super::{FrameRate, Link, MOST_DELAY_S};
use crate::fields::{Fields, Read};
use rates::{read_rates, Rates};

pub use pepscope_path::VariableRateSettings as Settings;

impl Link for VariableRateSettings {
    const KIND: &'static str = "variable-rate";
    type Model<P: Datagram> = VariableRate<P>;

    /// Reads a link of variable rate: `down`, `up` (default: as `down`, with random numbers of its own) and `reports`
    /// (`period_s` 0.0001-1000, `user` 0-65535; default none): reports of the down queue to a window-adaptation proxy.
    /// Each direction has the fields of [`super::wired`] but `rate_bit_s`, and
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `rates` | table | unlimited | see [`rates::read_rates`] |
    /// | `service` | `exact`, `frozen` | `exact` | what a change of rate does to the packet in service |
    /// | `radio_frame_bytes` | 1-65535 | none | packets are sent in whole frames of this size |
    /// | `queue_frames` | 0-1e9 | | limit of the buffer in radio frames |
    ///
    /// # Errors
    /// If a field is outside its range or a trace cannot be read.
    fn read(fields: &mut Fields) -> Read<Self> {
        fields.default_to_sibling("up", "down");
        Ok(Self {
            down: fields.section("down", read_varying_line)?,
            up: fields.section("up", read_varying_line)?,
            reports: fields.optional_section("reports", |reports| {
                Ok(ReportSettings {
                    period_ns: reports.seconds("period_s", 1e-4..=1000.0, 0.025)?,
                    user: reports.integer("user", 0..=65_535, 0)? as u16,
                })
            })?,
        })
    }

    fn build<P: Datagram>(&self, seed: u64, name: &str) -> Result<VariableRate<P>, SettingsError> {
        VariableRate::new(self, seed, name)
    }

    fn frame_rate(&self) -> Option<FrameRate> {
        let Service::Rates { profile, radio_frames: Some(frames), .. } = &self.down.service else {
            return None;
        };
        let frame_bits = f64::from(frames.frame_bytes) * 8.0;
        let seconds = |duration: Nanoseconds| duration as f64 * 1e-9;
        Some(match profile {
            RateProfile::Random { period_ns, low_bit_s, high_bit_s } => FrameRate {
                mean_frames_s: (*low_bit_s as f64 + *high_bit_s as f64) / 2.0 / frame_bits,
                period_s: Some(seconds(*period_ns)),
            },
            RateProfile::Steps { steps, .. } => {
                let whole: f64 = steps.iter().map(|step| seconds(step.duration_ns)).sum();
                let bits: f64 = steps.iter().map(|step| seconds(step.duration_ns) * step.rate_bit_s as f64).sum();
                let shortest = steps.iter().map(|step| step.duration_ns).min().filter(|&shortest| shortest != NEVER);
                FrameRate { mean_frames_s: bits / whole / frame_bits, period_s: shortest.map(seconds) }
            }
        })
    }
}

fn read_varying_line(fields: &mut Fields) -> Read<VaryingLineSettings> {
    let rule = fields.choice("service", &[("exact", ServiceRule::Exact), ("frozen", ServiceRule::Frozen)])?;
    let frame_bytes = fields.optional_integer("radio_frame_bytes", 1..=65_535)?;
    let radio_frames = frame_bytes.map(|bytes| RadioFrames { frame_bytes: bytes as u32 });
    let service = fields.optional_section("rates", read_rates)?.map_or(Service::Unlimited, |rates| match rates {
        Rates::Profile(profile) => Service::Rates { profile, rule, radio_frames },
        Rates::Opportunities(service) => service,
    });
    let queue = read_queue(fields)?;
    let frames = fields.optional_integer("queue_frames", 0..=1_000_000_000)?;
    let queue = match (frames, queue.limit) {
        (None, _) => queue,
        (Some(frames), QueueLimit::Unlimited) => QueueSettings { limit: QueueLimit::Frames(frames as u32), ..queue },
        (Some(frames), _) => return Err(fields.refuse("queue_frames", frames, ONE_LIMIT)),
    };
    Ok(VaryingLineSettings {
        service,
        delay_ns: fields.seconds("delay_s", 0.0..=MOST_DELAY_S, 0.0)?,
        queue,
        loss: read_loss(fields)?,
    })
}
