//! A speaker behind the AMR codec at 7.95 kbit/s: bursts of talk and silences of exponential length.
//!
//! Seed 002 has VoIP users as contending traffic: two states, 50 % activity. It gives no mean duration; the 2 s of the
//! defaults are 3GPP's VoIP model (R1-070674: each state is left with probability 0.01 in a frame of 20 ms).
//! A state is looked at once a frame, and talk includes the encoder's hangover of seven frames, so that the activity
//! is that of the frames on the air. In silence the source sends what 3GPP TS 26.093 asks for: a SID_FIRST in the first
//! frame, a SID_UPDATE in the third frame after it, and one in every eighth frame from there.

use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};

use crate::packets::packet::VoiceFrame;

/// RTP payload of a 7.95 kbit/s frame, octet-aligned: 159 bits in 20 bytes, after the mode request and the table of
/// contents of a byte each (RFC 4867, sections 3.6 and 4.4).
pub const SPEECH_PAYLOAD_BYTES: u16 = 22;
/// RTP payload of a silence descriptor: 39 bits in 5 bytes, and the same two bytes before them.
pub const SILENCE_PAYLOAD_BYTES: u16 = 7;
/// The frame interval of every AMR mode (3GPP TS 26.071).
pub const FRAME_NS: Nanoseconds = 20 * MILLISECOND;

const FIRST_UPDATE_AFTER_FRAMES: u32 = 3;
const UPDATE_EVERY_FRAMES: u32 = 8;

/// One speaker.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceSettings {
    pub user: u16,
    /// The source starts within one frame after this, at a phase of its own.
    pub start_ns: Nanoseconds,
    /// No frame is sent at or after this.
    pub stop_ns: Nanoseconds,
    /// Mean length of a burst of talk in seconds, above 0.
    pub mean_talk_s: f64,
    /// Mean length of a silence in seconds; 0 or less: never silent.
    pub mean_silence_s: f64,
}

impl Default for VoiceSettings {
    fn default() -> Self {
        Self { user: 0, start_ns: 0, stop_ns: NEVER, mean_talk_s: 2.0, mean_silence_s: 2.0 }
    }
}

/// What a source has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceCounts {
    pub speech_frames: u64,
    pub silence_descriptors: u64,
}

/// Emits the frames of one speaker.
#[derive(Clone, Debug)]
pub struct VoiceSource {
    settings: VoiceSettings,
    random: Random,
    talking: bool,
    state_ends_ns: Nanoseconds,
    silent_frames: u32,
    next_ns: Nanoseconds,
    next_payload_bytes: u16,
    sequence: u16,
    due: Option<VoiceFrame>,
    counts: VoiceCounts,
}

impl VoiceSource {
    /// A speaker that starts in either state with the probability that it holds in the long run.
    #[must_use]
    pub fn new(settings: VoiceSettings, mut random: Random) -> Self {
        let silence_s = settings.mean_silence_s.max(0.0);
        let talking = random.chance(settings.mean_talk_s / (settings.mean_talk_s + silence_s));
        let phase_ns = (random.uniform() * FRAME_NS as f64) as Nanoseconds;
        let first_ns = settings.start_ns.saturating_add(phase_ns);
        let mut source = Self {
            settings,
            random,
            talking,
            state_ends_ns: first_ns,
            silent_frames: 0,
            next_ns: first_ns,
            next_payload_bytes: SPEECH_PAYLOAD_BYTES,
            sequence: 0,
            due: None,
            counts: VoiceCounts::default(),
        };
        source.state_ends_ns = first_ns.saturating_add(source.sojourn_ns());
        source.next_ns = source.frame_to_send(first_ns);
        source
    }

    /// When the next frame leaves.
    #[must_use]
    pub fn poll_timeout(&self) -> Nanoseconds {
        if self.next_ns < self.settings.stop_ns {
            self.next_ns
        } else {
            NEVER
        }
    }

    /// Makes the frame that is due, if one is.
    pub fn handle_timeout(&mut self, now: Nanoseconds) {
        if self.poll_timeout() > now {
            return;
        }
        if self.next_payload_bytes == SPEECH_PAYLOAD_BYTES {
            self.counts.speech_frames += 1;
        } else {
            self.counts.silence_descriptors += 1;
        }
        self.due = Some(VoiceFrame {
            user: self.settings.user,
            sequence: self.sequence,
            payload_bytes: self.next_payload_bytes,
        });
        self.sequence = self.sequence.wrapping_add(1);
        self.next_ns = self.frame_to_send(self.next_ns.saturating_add(FRAME_NS));
    }

    /// The frame that [`VoiceSource::handle_timeout`] made.
    pub fn poll_transmit(&mut self) -> Option<VoiceFrame> {
        self.due.take()
    }

    #[must_use]
    pub fn counts(&self) -> VoiceCounts {
        self.counts
    }

    fn sojourn_ns(&mut self) -> Nanoseconds {
        let mean_s = if self.talking { self.settings.mean_talk_s } else { self.settings.mean_silence_s };
        (self.random.exponential(mean_s) * SECOND as f64) as Nanoseconds
    }

    /// The first frame from `frame_ns` on that something is sent in.
    fn frame_to_send(&mut self, mut frame_ns: Nanoseconds) -> Nanoseconds {
        loop {
            self.enter_state_at(frame_ns);
            if self.talking {
                self.next_payload_bytes = SPEECH_PAYLOAD_BYTES;
                return frame_ns;
            }
            let frame = self.silent_frames;
            self.silent_frames += 1;
            let is_update =
                frame >= FIRST_UPDATE_AFTER_FRAMES && (frame - FIRST_UPDATE_AFTER_FRAMES) % UPDATE_EVERY_FRAMES == 0;
            if frame == 0 || is_update || frame_ns >= self.settings.stop_ns {
                self.next_payload_bytes = SILENCE_PAYLOAD_BYTES;
                return frame_ns;
            }
            frame_ns = frame_ns.saturating_add(FRAME_NS);
        }
    }

    fn enter_state_at(&mut self, frame_ns: Nanoseconds) {
        if self.settings.mean_silence_s <= 0.0 {
            self.talking = true;
            return;
        }
        while self.state_ends_ns <= frame_ns && self.state_ends_ns < self.settings.stop_ns {
            self.talking = !self.talking;
            self.silent_frames = 0;
            self.state_ends_ns = self.state_ends_ns.saturating_add(self.sojourn_ns().max(1));
        }
    }
}

/// What of a speaker arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoiceReception {
    pub frames: u64,
    pub payload_bytes: u64,
    /// Frames passed over by the sequence numbers that arrived; a frame that comes late is taken off again.
    pub missing_frames: u64,
    next_sequence: u16,
}

impl VoiceReception {
    /// Counts a frame that arrived.
    pub fn receive(&mut self, frame: VoiceFrame) {
        let ahead = frame.sequence.wrapping_sub(self.next_sequence);
        if ahead < 1 << 15 {
            self.missing_frames += u64::from(ahead);
            self.next_sequence = frame.sequence.wrapping_add(1);
        } else {
            self.missing_frames = self.missing_frames.saturating_sub(1);
        }
        self.frames += 1;
        self.payload_bytes += u64::from(frame.payload_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{VoiceReception, VoiceSettings, VoiceSource, FRAME_NS, SILENCE_PAYLOAD_BYTES, SPEECH_PAYLOAD_BYTES};
    use crate::packets::packet::VoiceFrame;
    use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};

    fn frames_until(end_ns: Nanoseconds, settings: VoiceSettings, seed: u64) -> Vec<(Nanoseconds, VoiceFrame)> {
        let mut source = VoiceSource::new(VoiceSettings { stop_ns: end_ns, ..settings }, Random::new(seed, "voice"));
        let mut frames = Vec::new();
        while source.poll_timeout() != NEVER {
            let now = source.poll_timeout();
            source.handle_timeout(now);
            while let Some(frame) = source.poll_transmit() {
                frames.push((now, frame));
            }
        }
        frames
    }

    #[test]
    fn half_of_the_frames_are_speech() {
        let duration_s = 20_000;
        let frames = frames_until(duration_s * SECOND, VoiceSettings::default(), 3);
        let speech = frames.iter().filter(|(_, frame)| frame.payload_bytes == SPEECH_PAYLOAD_BYTES).count();
        let activity = speech as f64 / (duration_s * SECOND / FRAME_NS) as f64;
        // 5000 cycles of two exponential sojourns: a standard deviation of 0.5 * 0.5 * sqrt(2 / 5000) = 0.005.
        assert!((activity - 0.5).abs() < 0.015, "{activity}");
    }

    #[test]
    fn activity_follows_the_two_means() {
        let settings = VoiceSettings { mean_talk_s: 1.0, mean_silence_s: 3.0, ..VoiceSettings::default() };
        let frames = frames_until(20_000 * SECOND, settings, 3);
        let speech = frames.iter().filter(|(_, frame)| frame.payload_bytes == SPEECH_PAYLOAD_BYTES).count();
        assert!((speech as f64 / 1e6 - 0.25).abs() < 0.015, "{speech}");
    }

    #[test]
    fn a_silence_is_described_in_its_first_frame_three_later_and_every_eighth() {
        let frames = frames_until(600 * SECOND, VoiceSettings::default(), 5);
        let silences: Vec<Vec<Nanoseconds>> = frames
            .split(|(_, frame)| frame.payload_bytes == SPEECH_PAYLOAD_BYTES)
            .filter(|silence| silence.len() > 4)
            .map(|silence| silence.windows(2).map(|pair| (pair[1].0 - pair[0].0) / FRAME_NS).collect())
            .collect();
        assert!(silences.len() > 20);
        for gaps in silences {
            assert_eq!(gaps[0], 3);
            assert!(gaps[1..].iter().all(|gap| *gap == 8), "{gaps:?}");
        }
    }

    #[test]
    fn frames_keep_one_phase_and_number_what_is_sent() {
        let frames = frames_until(60 * SECOND, VoiceSettings { user: 7, ..VoiceSettings::default() }, 5);
        let phase = frames[0].0 % FRAME_NS;
        for (index, (time, frame)) in frames.iter().enumerate() {
            assert_eq!(time % FRAME_NS, phase);
            assert_eq!((frame.user, usize::from(frame.sequence)), (7, index));
            assert!([SPEECH_PAYLOAD_BYTES, SILENCE_PAYLOAD_BYTES].contains(&frame.payload_bytes));
        }
    }

    #[test]
    fn speakers_with_streams_of_their_own_differ() {
        let first = frames_until(10 * SECOND, VoiceSettings::default(), 1);
        assert_eq!(first, frames_until(10 * SECOND, VoiceSettings::default(), 1));
        assert_ne!(first, frames_until(10 * SECOND, VoiceSettings::default(), 2));
    }

    #[test]
    fn a_source_without_pauses_fills_every_frame() {
        let settings = VoiceSettings { mean_silence_s: 0.0, ..VoiceSettings::default() };
        assert_eq!(frames_until(SECOND, settings, 1).len(), 50);
    }

    #[test]
    fn missing_frames_are_those_passed_over() {
        let mut reception = VoiceReception::default();
        for sequence in [0, 1, 4, 3, 5] {
            reception.receive(VoiceFrame { user: 0, sequence, payload_bytes: 22 });
        }
        assert_eq!((reception.frames, reception.missing_frames, reception.payload_bytes), (5, 1, 110));
    }
}
