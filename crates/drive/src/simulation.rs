//! The event loop in virtual time: it jumps from one wake-up to the next and carries packets along the chain.

use std::fmt;
use std::path::PathBuf;

use pepscope_path::{Hop, Nanoseconds, NEVER};
use pepscope_tcp::Host;

use crate::assembly::ApplicationStreams;
use crate::capture::tap::{Tap, TapCounts};
use crate::chain::{Chain, Observers};
use crate::element::PathElement;
use crate::fast_path::Bounds;
use crate::truth::delays::Delays;
use crate::truth::series::Series;

/// Events between two calls of `watch`; some milliseconds of work.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;
/// Packets that may be carried without any time going by. More only happen if two parts answer each other for ever.
const MOST_EVENTS_AT_ONE_TIME: u64 = 2_000_000;

/// Why a run ended badly; `Display` is one sentence.
#[derive(Debug)]
pub enum RunError {
    /// A capture file cannot be written.
    Capture { path: PathBuf, cause: std::io::Error },
    /// The run does not get past this time.
    Stalled { now: Nanoseconds },
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture { path, cause } => write!(out, "cannot write {}: {cause}", path.display()),
            Self::Stalled { now } => write!(
                out,
                "the simulation does not get past {} s: packets go back and forth in no time; give the path a delay or a rate",
                *now as f64 * 1e-9
            ),
        }
    }
}

impl std::error::Error for RunError {}

/// How a run ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All flows finished, and the time after that went by.
    Finished,
    /// The duration went by.
    TimeIsUp,
    /// `watch` ended the run.
    Interrupted,
}

/// A tap and the file it writes.
pub struct PlacedTap {
    /// Hops between the server and the tap.
    pub after_hop: usize,
    pub name: String,
    pub path: PathBuf,
    pub tap: Tap,
}

/// When to stop and what to look at.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    pub duration_ns: Nanoseconds,
    /// Stop so long after all flows have finished; `None` runs for the whole duration.
    pub stop_after_finish_ns: Option<Nanoseconds>,
    pub series_interval_ns: Option<Nanoseconds>,
    pub keep_arrivals: bool,
    /// Takes packets along the fast path where the chain has one. The run is the same without it.
    pub fast_path: bool,
}

/// A chain of a server's host, hops, and the mobiles' host.
///
/// Where several parts are due at one time, the one nearest to the server comes first; what leaves a part is handled at
/// once by its neighbour, and again the part nearest to the server goes on first. Nothing depends on anything else.
pub struct Simulation {
    pub(crate) chain: Chain,
    observers: Observers,
    names: Vec<String>,
    /// Time of each part's next event: server, hops, mobile.
    wake_ups: Vec<Nanoseconds>,
    settings: RunSettings,
    now: Nanoseconds,
    events: u64,
    stop_at: Nanoseconds,
    /// When a host finished last on the fast path, where one may be ahead of the other.
    finished_ns: Nanoseconds,
    next_sample: Nanoseconds,
    series: Series,
    finished_taps: Vec<(String, PathBuf, TapCounts)>,
    streams: ApplicationStreams,
}

impl Simulation {
    /// A chain that has not begun; `names` are the hops'.
    #[must_use]
    pub fn new(
        server: Host,
        hops: Vec<(String, PathElement)>,
        mobile: Host,
        taps: Vec<PlacedTap>,
        settings: RunSettings,
    ) -> Self {
        let (names, hops): (Vec<_>, Vec<_>) = hops.into_iter().unzip();
        let observers = Observers::new(&hops, taps, settings.keep_arrivals);
        let mut simulation = Self {
            wake_ups: vec![NEVER; hops.len() + 2],
            chain: Chain {
                server: Box::new(server),
                hops,
                mobile: Box::new(mobile),
                has_fast_path: settings.fast_path,
            },
            observers,
            names,
            now: 0,
            events: 0,
            stop_at: settings.duration_ns,
            finished_ns: 0,
            next_sample: if settings.series_interval_ns.is_some() { 0 } else { NEVER },
            series: Series::default(),
            finished_taps: Vec::new(),
            streams: ApplicationStreams::default(),
            settings,
        };
        for index in 0..simulation.wake_ups.len() {
            simulation.wake_ups[index] = simulation.chain.poll_timeout(index);
        }
        simulation
    }

    /// With the streams that its applications write.
    #[must_use]
    pub(crate) fn with_streams(mut self, streams: ApplicationStreams) -> Self {
        self.streams = streams;
        self
    }

    #[must_use]
    pub(crate) fn streams(&self) -> &ApplicationStreams {
        &self.streams
    }

    /// Runs to the end. Calls `watch` now and then with the time and the number of events; the run ends early if it
    /// returns `false`.
    ///
    /// # Errors
    /// If a capture cannot be written, or time stands still.
    pub fn run(&mut self, watch: &mut dyn FnMut(Nanoseconds, u64) -> bool) -> Result<Ending, RunError> {
        let mut next_look = self.events + EVENTS_BETWEEN_LOOKS;
        let mut events_before = self.events;
        let ending = loop {
            if let Some(waiting) = self.run_fast_path(next_look) {
                events_before = self.events;
                if let Err(failure) = self.settle(waiting, events_before) {
                    self.finish_taps()?;
                    return Err(failure);
                }
            }
            let mut index = 0;
            let mut due = NEVER;
            for (candidate, &wake_up) in self.wake_ups.iter().enumerate() {
                if wake_up < due {
                    (index, due) = (candidate, wake_up);
                }
            }
            let due = due.max(self.now);
            if due >= self.next_sample.min(self.stop_at) {
                while self.next_sample <= due && self.next_sample <= self.stop_at {
                    self.sample();
                }
                if due >= self.stop_at {
                    let finished = self.stop_at < self.settings.duration_ns;
                    self.now = self.stop_at;
                    break if finished { Ending::Finished } else { Ending::TimeIsUp };
                }
            }
            if due > self.now {
                self.now = due;
                events_before = self.events;
            } else if self.events - events_before > MOST_EVENTS_AT_ONE_TIME {
                self.finish_taps()?;
                return Err(RunError::Stalled { now: self.now });
            }
            self.events += 1;
            self.chain.handle_timeout(index, self.now);
            if let Err(failure) = self.settle(1 << index, events_before) {
                self.finish_taps()?;
                return Err(failure);
            }
            if self.events >= next_look {
                next_look = self.events + EVENTS_BETWEEN_LOOKS;
                if self.observers.taps().flatten().any(|placed| placed.tap.has_failed()) {
                    break Ending::Interrupted; // and closing the files returns the error
                }
                if !watch(self.now, self.events) {
                    break Ending::Interrupted;
                }
            }
        };
        self.series.finish();
        self.observers.delays.order_arrivals();
        self.finish_taps()?;
        Ok(ending)
    }

    /// Runs the chain's fast path as far as it goes; returns the parts, as bits, that have something to hand on now.
    #[inline]
    fn run_fast_path(&mut self, events_limit: u64) -> Option<u64> {
        let bounds = Bounds {
            after: self.now,
            before: self.next_sample.min(self.stop_at),
            events: events_limit.saturating_sub(self.events),
            stop_after_finish_ns: self.settings.stop_after_finish_ns,
        };
        let progress = self.chain.run_fast_path(&mut self.wake_ups, &mut self.observers, bounds)?;
        self.now = progress.now;
        self.events += progress.events;
        self.finished_ns = self.finished_ns.max(progress.finished_ns);
        self.look_for_the_end(self.finished_ns);
        (progress.waiting != 0).then_some(progress.waiting)
    }

    /// Carries on whatever leaves the parts `waiting`, as bits, and what that sets off, until nothing more happens now.
    #[inline]
    fn settle(&mut self, mut waiting: u64, events_before: u64) -> Result<(), RunError> {
        while waiting != 0 {
            let index = waiting.trailing_zeros() as usize;
            let drained = self.chain.drain(index, self.now, &mut self.observers);
            waiting = (waiting & (waiting - 1)) | drained.reached;
            self.wake_ups[index] = drained.wake_up;
            self.events += drained.packets;
            if self.events - events_before > MOST_EVENTS_AT_ONE_TIME {
                return Err(RunError::Stalled { now: self.now });
            }
            if index == 0 || index + 1 == self.chain.parts() {
                self.look_for_the_end(self.now.max(self.finished_ns));
            }
        }
        Ok(())
    }

    #[inline]
    fn look_for_the_end(&mut self, finished_ns: Nanoseconds) {
        let Some(after_ns) = self.settings.stop_after_finish_ns else { return };
        if self.stop_at == self.settings.duration_ns
            && self.chain.server.is_finished()
            && self.chain.mobile.is_finished()
        {
            self.stop_at = self.stop_at.min(finished_ns.saturating_add(after_ns));
        }
    }

    /// Takes a sample of everything as it is before what happens at this time.
    #[cold]
    fn sample(&mut self) {
        let at = self.next_sample;
        self.series.begin_sample(at);
        let series = &mut self.series;
        self.chain.server.observe(&mut |flow, quantity, value| series.record("server", Some(flow), quantity, value));
        for (name, hop) in self.names.iter().zip(&self.chain.hops) {
            hop.observe(at, &mut |quantity, value| series.record(name, None, quantity, value));
        }
        self.chain.mobile.observe(&mut |flow, quantity, value| series.record("mobile", Some(flow), quantity, value));
        self.next_sample = at.saturating_add(self.settings.series_interval_ns.unwrap_or(NEVER));
    }

    fn finish_taps(&mut self) -> Result<(), RunError> {
        let mut failure = None;
        for placed in self.observers.taps().flat_map(std::mem::take) {
            match placed.tap.finish(self.now) {
                Ok(counts) => self.finished_taps.push((placed.name, placed.path, counts)),
                Err(cause) => failure = failure.or(Some(RunError::Capture { path: placed.path, cause })),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// How far the run got.
    #[must_use]
    pub fn now(&self) -> Nanoseconds {
        self.now
    }

    /// Wake-ups and packets handed over so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    #[must_use]
    pub fn server(&self) -> &Host {
        &self.chain.server
    }

    #[must_use]
    pub fn mobile(&self) -> &Host {
        &self.chain.mobile
    }

    /// Names and hops, from the server on.
    pub fn hops(&self) -> impl Iterator<Item = (&str, &PathElement)> {
        self.names.iter().map(String::as_str).zip(&self.chain.hops)
    }

    #[must_use]
    pub fn delays(&self) -> &Delays {
        &self.observers.delays
    }

    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What was recorded, without the simulation.
    #[must_use]
    pub fn into_records(self) -> (Delays, Series) {
        (self.observers.delays, self.series)
    }

    /// Name, file and counts of each capture, once the run has ended.
    #[must_use]
    pub fn captures(&self) -> &[(String, PathBuf, TapCounts)] {
        &self.finished_taps
    }
}
