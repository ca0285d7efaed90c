//! Video over HTTP in segments of several rates (ISO/IEC 23009-1): a player with a buffer that chooses by throughput.
//!
//! The estimate is the exponentially weighted mean of what segments came at, from request to last byte; the next segment
//! has the highest rate of the ladder below a share of it. Once the buffer is full the player asks only when it has
//! room: its requests come in a period of one segment, and the line is silent between them.

use pepscope_path::{Nanoseconds, Random, NEVER, SECOND};

use crate::http::{Request, Requester};

/// What is played, and by which rule.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSettings {
    pub host: String,
    /// The manifest and the initialisation segment, which come first.
    pub manifest_bytes: u64,
    pub initialisation_bytes: u64,
    /// Rates in ascending order, in bit/s.
    pub ladder_bit_s: Vec<u64>,
    pub segments: u32,
    pub segment_ns: Nanoseconds,
    /// A segment's length is that of its rate times a factor within this share of one.
    pub size_spread: f64,
    /// Most playing time that waits.
    pub buffer_ns: Nanoseconds,
    /// Playing begins, and begins again after a stall, with so much.
    pub start_buffer_ns: Nanoseconds,
    /// Share of the estimated throughput that a segment's rate may have.
    pub safety: f64,
    /// Weight of the newest segment in the estimate.
    pub estimate_weight: f64,
    pub request_bytes: u64,
}

const MANIFEST: u64 = 0;
const INITIALISATION: u64 = 1;
const FIRST_SEGMENT: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Playback {
    /// It waits for its buffer, as it did at `since_ns`.
    Waiting,
    /// It has played everything up to `since_ns`, and plays what it has.
    Playing,
}

/// The player.
#[derive(Debug)]
pub struct VideoPlayer {
    settings: VideoSettings,
    random: Random,
    is_connected: bool,
    /// The number of the next request, and when the one under way was sent.
    next: u64,
    asked_ns: Option<Nanoseconds>,
    asked_bytes: u64,
    estimate_bit_s: Option<f64>,
    playback: Playback,
    buffered_ns: Nanoseconds,
    since_ns: Nanoseconds,
    is_over: bool,
}

impl VideoPlayer {
    #[must_use]
    pub fn new(settings: VideoSettings, random: Random) -> Self {
        Self {
            settings,
            random,
            is_connected: false,
            next: MANIFEST,
            asked_ns: None,
            asked_bytes: 0,
            estimate_bit_s: None,
            playback: Playback::Waiting,
            buffered_ns: 0,
            since_ns: 0,
            is_over: false,
        }
    }

    fn requests(&self) -> u64 {
        FIRST_SEGMENT + u64::from(self.settings.segments)
    }

    /// Plays until `now`; the player waits again once its buffer is empty.
    fn play(&mut self, now: Nanoseconds) {
        if self.playback == Playback::Playing {
            let played_ns = now - self.since_ns;
            if played_ns >= self.buffered_ns {
                self.playback = Playback::Waiting;
            }
            self.buffered_ns = self.buffered_ns.saturating_sub(played_ns);
        }
        self.since_ns = now;
    }

    /// When the buffer has room for another segment.
    fn room_at(&self) -> Nanoseconds {
        let most_ns = self.settings.buffer_ns.saturating_sub(self.settings.segment_ns);
        match self.playback {
            Playback::Playing => self.since_ns + self.buffered_ns.saturating_sub(most_ns),
            Playback::Waiting => self.since_ns,
        }
    }

    /// The place in the ladder of the next segment's rate.
    fn level(&self) -> usize {
        let allowed_bit_s = self.estimate_bit_s.map_or(0.0, |estimate| estimate * self.settings.safety);
        let fitting = self.settings.ladder_bit_s.iter().rposition(|rate| *rate as f64 <= allowed_bit_s);
        fitting.unwrap_or(0)
    }
}

impl Requester for VideoPlayer {
    fn handle_connected(&mut self, now: Nanoseconds) {
        self.is_connected = true;
        self.since_ns = now;
    }

    fn handle_answer(&mut self, now: Nanoseconds, number: u64) {
        self.play(now);
        let asked_ns = self.asked_ns.take().unwrap_or(now);
        if number >= FIRST_SEGMENT {
            let took_s = (now - asked_ns).max(1) as f64 / SECOND as f64;
            let rate_bit_s = 8.0 * self.asked_bytes as f64 / took_s;
            let weight = self.settings.estimate_weight;
            let mixed = |old: f64| (1.0 - weight) * old + weight * rate_bit_s;
            self.estimate_bit_s = Some(self.estimate_bit_s.map_or(rate_bit_s, mixed));
            self.buffered_ns += self.settings.segment_ns;
            let is_last = self.next == self.requests();
            if self.buffered_ns >= self.settings.start_buffer_ns || is_last {
                self.playback = Playback::Playing;
            }
            self.is_over = is_last;
        }
    }

    fn handle_end(&mut self, _now: Nanoseconds) {
        self.is_over = true;
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        self.play(now);
    }

    fn poll_timeout(&self) -> Nanoseconds {
        let waits = self.is_connected && !self.is_over && self.asked_ns.is_none() && self.next < self.requests();
        if waits && self.room_at() > self.since_ns {
            self.room_at()
        } else {
            NEVER
        }
    }

    fn poll_request(&mut self, now: Nanoseconds) -> Option<Request> {
        if !self.is_connected || self.is_over || self.next >= self.requests() || now < self.room_at() {
            return None;
        }
        let number = self.next;
        let (path, bytes) = match number {
            MANIFEST => ("/video/manifest.mpd".to_owned(), self.settings.manifest_bytes),
            INITIALISATION => ("/video/init.mp4".to_owned(), self.settings.initialisation_bytes),
            _ => {
                let rate_bit_s = self.settings.ladder_bit_s.get(self.level()).copied().unwrap_or(1);
                let spread = self.settings.size_spread;
                let factor = self.random.uniform_between(1.0 - spread, 1.0 + spread);
                let bytes = rate_bit_s as f64 / 8.0 * self.settings.segment_ns as f64 / SECOND as f64 * factor;
                (format!("/video/{rate_bit_s}/segment-{}.m4s", number - FIRST_SEGMENT), bytes as u64)
            }
        };
        self.next += 1;
        self.asked_ns = Some(now);
        self.asked_bytes = bytes.max(1);
        let (host, request_bytes) = (self.settings.host.clone(), self.settings.request_bytes);
        Some(Request { host, path, number, request_bytes, answer_bytes: self.asked_bytes })
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::{VideoPlayer, VideoSettings};
    use crate::http::Requester;
    use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};

    fn settings() -> VideoSettings {
        VideoSettings {
            host: "server-0.example".to_owned(),
            manifest_bytes: 3000,
            initialisation_bytes: 900,
            ladder_bit_s: vec![500_000, 1_000_000, 2_000_000, 4_000_000],
            segments: 20,
            segment_ns: 2 * SECOND,
            size_spread: 0.0,
            buffer_ns: 12 * SECOND,
            start_buffer_ns: 4 * SECOND,
            safety: 0.8,
            estimate_weight: 0.3,
            request_bytes: 300,
        }
    }

    /// The times and paths of all requests behind a line of `rate_bit_s`.
    fn watch(rate_bit_s: u64) -> Vec<(Nanoseconds, String)> {
        let mut player = VideoPlayer::new(settings(), Random::new(1, "video"));
        player.handle_connected(0);
        let (mut now, mut asked) = (0, Vec::new());
        while !player.is_over() {
            if let Some(request) = player.poll_request(now) {
                asked.push((now, request.path));
                now += 10 * MILLISECOND + 8 * request.answer_bytes * SECOND / rate_bit_s;
                player.handle_answer(now, request.number);
            } else {
                assert_ne!(player.poll_timeout(), NEVER);
                assert!(player.poll_timeout() > now);
                now = player.poll_timeout();
                player.handle_timeout(now);
            }
        }
        asked
    }

    #[test]
    fn the_rate_is_the_highest_that_the_line_carries_safely() {
        let asked = watch(3_000_000);
        assert_eq!(asked.len(), 22);
        assert!(asked[2].1.starts_with("/video/500000/"));
        assert!(asked[12..].iter().all(|(_, path)| path.starts_with("/video/2000000/")), "{asked:?}");
        assert!(watch(30_000_000)[12].1.starts_with("/video/4000000/"));
    }

    #[test]
    fn a_full_buffer_is_refilled_once_a_segment() {
        let asked = watch(30_000_000);
        for pair in asked[14..].windows(2) {
            assert_eq!(pair[1].0 - pair[0].0, 2 * SECOND);
        }
    }

    #[test]
    fn a_slow_line_gets_the_lowest_rate_without_pauses() {
        let asked = watch(300_000);
        assert!(asked[2..].iter().all(|(_, path)| path.starts_with("/video/500000/")));
        for pair in asked[4..].windows(2) {
            assert_eq!(pair[1].0 - pair[0].0, 10 * MILLISECOND + 8 * 125_000 * SECOND / 300_000);
        }
    }
}
