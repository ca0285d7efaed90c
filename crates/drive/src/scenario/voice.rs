//! `[[traffic]]` of kind `voice`.

use pepscope_path::{Direction, NEVER};
use pepscope_tcp::VoiceSettings;

use super::traffic::Traffic;
use crate::fields::{Fields, Read, MOST_SECONDS};

impl Traffic {
    /// Reads speakers over UDP (AMR at 7.95 kbit/s, two states):
    ///
    /// | field | unit, range | default | meaning |
    /// |---|---|---|---|
    /// | `direction` | `down`, `up`, `both` | `both` | directions with speech |
    /// | `user`, `count` | 0-65535, 1-65536 | 0, 1 | the first mobile, and how many in a row |
    /// | `start_s`, `until_s` | 0-1e7 | whole run | when |
    /// | `mean_talk_s`, `mean_silence_s` | 0.02-1000, 0-1000 | 2, 2 | of the exponential times in either state |
    ///
    /// # Errors
    /// If a field is outside its range.
    pub(super) fn read_voice(&mut self, fields: &mut Fields) -> Read<()> {
        let (down, up) = ([Direction::Down], [Direction::Up]);
        let both = [Direction::Down, Direction::Up];
        let directions = fields.choice("direction", &[("both", &both[..]), ("down", &down[..]), ("up", &up[..])])?;
        let first_user = fields.integer("user", 0..=65_535, 0)?;
        let count = fields.integer("count", 1..=65_536, 1)?;
        if first_user + count > 65_536 {
            return Err(fields.refuse("count", count, "at most the number of mobiles from `user` to 65535"));
        }
        let start_ns = fields.seconds("start_s", 0.0..=MOST_SECONDS, 0.0)?;
        let stop_ns = fields.optional_seconds("until_s", 0.0..=MOST_SECONDS)?.unwrap_or(NEVER);
        let mean_talk_s = fields.number("mean_talk_s", 0.02..=1000.0, 2.0)?;
        let mean_silence_s = fields.number("mean_silence_s", 0.0..=1000.0, 2.0)?;
        for user in first_user..first_user + count {
            for &direction in directions {
                let user = user as u16;
                let speaker = VoiceSettings { user, start_ns, stop_ns, mean_talk_s, mean_silence_s };
                self.speakers.push((direction, speaker));
            }
        }
        Ok(())
    }
}
