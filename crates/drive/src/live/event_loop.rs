//! Two TUN devices, one chain of hops between them, and the clock on the wall.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pepscope_path::{Direction, Nanoseconds, NEVER, SECOND};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::Errno;
use rustix::process::{pidfd_getfd, pidfd_open, PidfdFlags, PidfdGetfdFlags};
use rustix::time::{
    clock_gettime, timerfd_create, timerfd_settime, ClockId, Itimerspec, TimerfdClockId, TimerfdFlags,
    TimerfdTimerFlags, Timespec,
};
use serde_json::{json, Value};

use super::chain::{HopTotals, LiveChain};
use super::frame::{Frame, Terminals};
use super::lateness::Lateness;
use super::report_datagram::{set_route, ReportRoute};
use super::LiveError;
use crate::truth::report::counts;
use crate::truth::series::Series;

/// How often totals are made known while the loop runs.
const TOTALS_INTERVAL_NS: Nanoseconds = SECOND / 4;
/// The kernel stops a thread of real-time priority that never sleeps for 50 ms of each second in which others are
/// runnable (5 %, the kernel's `sched_rt_runtime_us` and its fair server). One that rests 80 us of each millisecond is
/// not.
const WORK_NS: Nanoseconds = 1_000_000;
const REST_NS: Nanoseconds = 80_000;
const STOP: u64 = 2;
const TIMER: u64 = 3;

/// How a loop works.
#[derive(Clone, Copy, Debug)]
pub struct LoopSettings {
    /// The reading of the monotonic clock that is the path's time 0.
    pub start_ns: Nanoseconds,
    /// How long before something is due the loop stops sleeping and polls the clock, because sleep ends late.
    pub spin_ns: Nanoseconds,
    /// Packets taken from one device before the other one has its turn.
    pub batch_packets: usize,
    /// The longest packet of the devices.
    pub packet_bytes: usize,
    pub terminals: Terminals,
    pub reports: Option<ReportRoute>,
    pub series_interval_ns: Option<Nanoseconds>,
}

/// What a loop has done so far.
#[derive(Clone, Debug, Default)]
pub struct LoopTotals {
    /// The path's time.
    pub now: Nanoseconds,
    /// The packets by direction: read from a device, and written to the other.
    pub entered_packets: [u64; 2],
    pub left_packets: [u64; 2],
    /// The packets by direction that the far device did not take.
    pub refused_packets: [u64; 2],
    pub hops: Vec<HopTotals>,
    /// Between when a packet should have left and when it was written, writing not counted.
    pub lateness: Lateness,
}

impl LoopTotals {
    /// All of it as JSON; hops stand as in a simulation's report.
    #[must_use]
    pub fn report(&self) -> Value {
        let by_direction = |pair: [u64; 2]| json!({ "down": pair[0], "up": pair[1] });
        let seconds = |time: Nanoseconds| time as f64 * 1e-9;
        let lateness = &self.lateness;
        json!({
            "now_s": seconds(self.now),
            "entered_packets": by_direction(self.entered_packets),
            "left_packets": by_direction(self.left_packets),
            "refused_packets": by_direction(self.refused_packets),
            "hops": self.hops.iter().map(|hop| json!({
                "name": hop.name,
                "down": counts(&hop.counts[0], hop.capacity_bits[0]),
                "up": counts(&hop.counts[1], hop.capacity_bits[1]),
            })).collect::<Vec<_>>(),
            "lateness": {
                "packets": lateness.count(),
                "mean_s": lateness.mean_ns() * 1e-9,
                "median_s": seconds(lateness.quantile_ns(0.5)),
                "quantile_95_s": seconds(lateness.quantile_ns(0.95)),
                "quantile_99_s": seconds(lateness.quantile_ns(0.99)),
                "maximum_s": seconds(lateness.maximum_ns()),
                "below_s": lateness.bins().map(|(below_ns, _)| seconds(below_ns)).collect::<Vec<_>>(),
                "counts": lateness.bins().map(|(_, count)| count).collect::<Vec<_>>(),
            },
        })
    }
}

/// Ends a loop, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    is_stopped: Arc<AtomicBool>,
    wake_up: Arc<OwnedFd>,
}

impl Stopper {
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        // The counter cannot overflow and a wake-up that is pending already is as good.
        let _ = rustix::io::write(self.wake_up.as_ref(), &1_u64.to_ne_bytes());
    }
}

/// A chain between two devices.
#[derive(Debug)]
pub struct LivePath {
    chain: LiveChain,
    /// The devices on the side of the server and on the side of the mobile.
    devices: [OwnedFd; 2],
    settings: LoopSettings,
    poll: OwnedFd,
    timer: OwnedFd,
    timer_at: Nanoseconds,
    stopper: Stopper,
    published: Arc<Mutex<LoopTotals>>,
    totals: LoopTotals,
    next_totals: Nanoseconds,
    next_sample: Nanoseconds,
    series: Series,
    awake_since: Nanoseconds,
}

impl LivePath {
    /// `server` and `mobile` are descriptors, numbered as in this process, of TUN devices without packet information
    /// that do not block; they are duplicated, so the caller's stay the caller's.
    ///
    /// # Errors
    /// If the system refuses descriptors, a timer or a poll.
    pub fn new(chain: LiveChain, server: RawFd, mobile: RawFd, settings: LoopSettings) -> Result<Self, LiveError> {
        let devices = [duplicate(server)?, duplicate(mobile)?];
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(LiveError::system("make a poll"))?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(LiveError::system("make a timer"))?;
        let wake_up =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(LiveError::system("make a wake-up"))?;
        let add = |descriptor: &OwnedFd, data, flags| {
            epoll::add(&poll, descriptor, EventData::new_u64(data), flags).map_err(LiveError::system("poll a device"))
        };
        for (number, device) in devices.iter().enumerate() {
            add(device, number as u64, EventFlags::IN)?;
        }
        add(&wake_up, STOP, EventFlags::IN)?;
        // Edge-triggered: setting it again clears it, so it is never read.
        add(&timer, TIMER, EventFlags::IN | EventFlags::ET)?;
        let stopper = Stopper { is_stopped: Arc::default(), wake_up: Arc::new(wake_up) };
        Ok(Self {
            chain,
            devices,
            settings,
            poll,
            timer,
            timer_at: NEVER,
            stopper,
            published: Arc::default(),
            totals: LoopTotals::default(),
            next_totals: 0,
            next_sample: if settings.series_interval_ns.is_some() { 0 } else { NEVER },
            series: Series::default(),
            awake_since: 0,
        })
    }

    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The totals, published four times a second and at the end.
    #[must_use]
    pub fn published(&self) -> Arc<Mutex<LoopTotals>> {
        Arc::clone(&self.published)
    }

    /// Carries packets until it is stopped, on the calling thread.
    ///
    /// # Errors
    /// If a device is gone or the system refuses to wait.
    pub fn run(&mut self) -> Result<(), LiveError> {
        set_route(self.settings.reports);
        let ended = self.carry();
        set_route(None);
        self.series.finish();
        let now = self.now();
        self.publish(now);
        ended
    }

    /// What the hops observed of themselves, once the loop has ended.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    fn now(&self) -> Nanoseconds {
        monotonic_ns().saturating_sub(self.settings.start_ns)
    }

    fn carry(&mut self) -> Result<(), LiveError> {
        let mut events = Vec::with_capacity(8);
        while !self.stopper.is_stopped.load(Ordering::Acquire) {
            let mut is_idle = true;
            for direction in [Direction::Down, Direction::Up] {
                is_idle &= !self.take_batch(direction)?;
            }
            let now = self.advance();
            if now >= self.next_totals {
                self.publish(now);
                self.next_totals = now + TOTALS_INTERVAL_NS;
            }
            while now >= self.next_sample {
                self.chain.sample(self.next_sample, &mut self.series);
                self.next_sample = self.next_sample.saturating_add(self.settings.series_interval_ns.unwrap_or(NEVER));
            }
            let due = self.chain.next_due();
            if is_idle && due > now.saturating_add(self.settings.spin_ns) {
                let wake_up = due.saturating_sub(self.settings.spin_ns).min(self.next_sample);
                self.sleep_until(wake_up, &mut events)?;
                self.awake_since = self.now();
            } else if now.saturating_sub(self.awake_since) > WORK_NS {
                thread::sleep(Duration::from_nanos(REST_NS));
                self.awake_since = self.now();
            }
        }
        Ok(())
    }

    /// Takes packets from a device until it has no more or it is the other's turn; whether there was any.
    fn take_batch(&mut self, direction: Direction) -> Result<bool, LiveError> {
        for taken in 0..self.settings.batch_packets {
            let mut buffer = Frame::buffer(self.settings.packet_bytes);
            match rustix::io::read(&self.devices[direction.index()], spare_capacity(&mut buffer)) {
                Ok(_) => {}
                Err(Errno::AGAIN) => {
                    Frame::give_back(buffer);
                    return Ok(taken > 0);
                }
                Err(Errno::INTR) => {
                    Frame::give_back(buffer);
                    continue;
                }
                Err(cause) => return Err(LiveError::system("read from a TUN device")(cause)),
            }
            self.totals.entered_packets[direction.index()] += 1;
            let frame = Frame::new(buffer, direction, &self.settings.terminals);
            let now = self.advance();
            let Self { chain, devices, totals, settings, .. } = self;
            chain.enter(now, direction, frame, &mut |due, towards, frame| {
                write(devices, totals, settings.start_ns, due, towards, &frame);
            });
        }
        Ok(true)
    }

    /// Does what is due; the time it was when this began.
    #[inline]
    fn advance(&mut self) -> Nanoseconds {
        let now = self.now();
        if self.chain.next_due() <= now {
            let Self { chain, devices, totals, settings, .. } = self;
            chain.advance(now, &mut |due, towards, frame| {
                write(devices, totals, settings.start_ns, due, towards, &frame);
            });
        }
        now
    }

    fn sleep_until(&mut self, at: Nanoseconds, events: &mut Vec<epoll::Event>) -> Result<(), LiveError> {
        if at != self.timer_at {
            // All zeros switch the timer off.
            let absolute = if at == NEVER { 0 } else { at.saturating_add(self.settings.start_ns).max(1) };
            let setting = Itimerspec { it_interval: timespec(0), it_value: timespec(absolute) };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)
                .map_err(LiveError::system("set a timer"))?;
            self.timer_at = at;
        }
        events.clear();
        match epoll::wait(&self.poll, spare_capacity(events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(LiveError::system("wait for packets")(cause)),
        }
        if events.iter().any(|event| event.data.u64() == TIMER) {
            self.timer_at = NEVER;
        }
        Ok(())
    }

    fn publish(&mut self, now: Nanoseconds) {
        self.totals.now = now;
        self.chain.totals(now, &mut self.totals.hops);
        let mut published = lock(&self.published);
        published.now = now;
        published.entered_packets = self.totals.entered_packets;
        published.left_packets = self.totals.left_packets;
        published.refused_packets = self.totals.refused_packets;
        published.hops.clone_from(&self.totals.hops);
        published.lateness.copy_from(&self.totals.lateness);
    }
}

/// The last published numbers, which are whole even if a thread panicked meanwhile.
pub fn lock(published: &Mutex<LoopTotals>) -> MutexGuard<'_, LoopTotals> {
    published.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn write(
    devices: &[OwnedFd; 2],
    totals: &mut LoopTotals,
    start_ns: Nanoseconds,
    due: Nanoseconds,
    direction: Direction,
    frame: &Frame,
) {
    let now = monotonic_ns().saturating_sub(start_ns);
    totals.lateness.record(now.saturating_sub(due));
    let direction = direction.index();
    // What goes down leaves by the mobile's device, and the other way round.
    match rustix::io::write(&devices[1 - direction], frame.bytes()) {
        Ok(_) => totals.left_packets[direction] += 1,
        Err(_) => totals.refused_packets[direction] += 1,
    }
}

/// A descriptor of our own for the one of that number. The kernel looks the number up, so a wrong one is an error and
/// no harm.
fn duplicate(number: RawFd) -> Result<OwnedFd, LiveError> {
    let refused = LiveError::system("use the descriptor of a TUN device");
    let own_process = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(&refused)?;
    let duplicate = pidfd_getfd(&own_process, number, PidfdGetfdFlags::empty()).map_err(&refused)?;
    rustix::io::ioctl_fionbio(&duplicate, true).map_err(&refused)?;
    Ok(duplicate)
}

/// What [`LoopSettings::start_ns`] counts from: the system's monotonic clock.
#[must_use]
pub fn monotonic_ns() -> Nanoseconds {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

fn timespec(ns: Nanoseconds) -> Timespec {
    Timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as i64 }
}
