//! States of radios: transcripts, closed forms of the waits, and an oracle that looks at every tick.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::VecDeque;

use crate::radio_packet::{run_until, Arrival, RadioPacket};
use pepscope_path::{
    Direction, Hop, Nanoseconds, RadioStates, RadioStatesSettings, Random, MILLISECOND, NEVER, SECOND,
};
use proptest::prelude::{prop, prop_assert_eq, prop_oneof, proptest, Just, Strategy};

const NAME: &str = "radio";
const SEED: u64 = 3;

/// Packets sent as (time, direction, mobile), numbered from 0; what leaves, in order.
fn leave(settings: RadioStatesSettings, sent: &[(Nanoseconds, Direction, u16)]) -> Vec<Arrival> {
    let mut hop = RadioStates::new(settings, SEED, NAME).unwrap();
    let mut arrivals = Vec::new();
    for (number, &(at, direction, user)) in sent.iter().enumerate() {
        arrivals.extend(run_until(&mut hop, at));
        hop.handle_packet(at, direction, RadioPacket::new(user, 100, number as u64));
        while let Some((direction, packet)) = hop.poll_transmit(at) {
            arrivals.push(Arrival { direction, ..Arrival::down(at, user, packet.number) });
        }
    }
    arrivals.extend(run_until(&mut hop, NEVER - 1));
    for direction in [Direction::Down, Direction::Up] {
        let counts = hop.counts(direction);
        assert_eq!(counts.delivered_packets, counts.offered_packets);
        assert_eq!(counts.offered_packets, sent.iter().filter(|one| one.1 == direction).count() as u64);
    }
    arrivals
}

fn waits_s(settings: RadioStatesSettings, sent: &[(Nanoseconds, Direction, u16)]) -> Vec<f64> {
    let mut waits = vec![f64::NAN; sent.len()];
    for arrival in leave(settings, sent) {
        waits[arrival.number as usize] = (arrival.time - sent[arrival.number as usize].0) as f64 / 1e9;
    }
    waits
}

/// One packet for each of `count` mobiles, whose cycles are independent.
fn alone(count: u16, at: Nanoseconds, direction: Direction) -> Vec<(Nanoseconds, Direction, u16)> {
    (0..count).map(|user| (at, direction, user)).collect()
}

/// Mean and share of zeros; all must be numbers.
fn mean_and_none(waits: &[f64]) -> (f64, f64) {
    let count = waits.len() as f64;
    (waits.iter().sum::<f64>() / count, waits.iter().filter(|wait| **wait == 0.0).count() as f64 / count)
}

#[test]
fn an_idle_mobile_that_sends_waits_for_its_promotion_and_so_does_what_follows() {
    let up = Direction::Up;
    let sent = [(0, up, 0), (100 * MILLISECOND, up, 0), (300 * MILLISECOND, up, 0), (20 * SECOND, up, 0)];
    let left = leave(RadioStatesSettings::default(), &sent);
    let times: Vec<_> = left.iter().map(|one| (one.number, one.time / MILLISECOND)).collect();
    // Connected at 300 ms; the third passes at once, the last after a release.
    assert_eq!(times, [(0, 260), (1, 260), (2, 300), (3, 20_260)]);
}

#[test]
fn an_idle_mobile_is_paged_and_promoted() {
    let waits = waits_s(RadioStatesSettings::default(), &alone(10_000, 7 * SECOND, Direction::Down));
    let (mean, none) = mean_and_none(&waits);
    // Uniform over a cycle; its standard error is 1.28 / sqrt(12 * 10,000) = 0.0037, four of which are allowed.
    assert!((mean - (0.64 + 0.26)).abs() < 0.0148, "{mean}");
    assert_eq!(none, 0.0);
    assert!(waits.iter().all(|wait| (0.26..1.54).contains(wait)));
}

#[test]
fn packets_down_wait_for_drx_as_renewal_theory_has_it() {
    let drx = RadioStatesSettings {
        starts_connected: true,
        long_cycle_ns: 320 * MILLISECOND,
        short_cycles: 0,
        on_duration_ns: 80 * MILLISECOND,
        ..RadioStatesSettings::default()
    };
    let (mean, none) = mean_and_none(&waits_s(drx, &alone(10_000, SECOND, Direction::Down)));
    // (cycle - on)^2 / (2 cycle) = 0.09 s; a quarter meets the mobile listening. Four standard errors.
    assert!((mean - 0.09).abs() < 0.0032, "{mean}");
    assert!((none - 0.25).abs() < 0.0174, "{none}");
    let never = RadioStatesSettings { long_cycle_ns: 0, ..drx };
    assert_eq!(mean_and_none(&waits_s(never, &alone(100, SECOND, Direction::Down))), (0.0, 1.0));
    assert_eq!(mean_and_none(&waits_s(drx, &alone(100, SECOND, Direction::Up))), (0.0, 1.0));
}

#[test]
fn what_a_mobile_sends_fetches_what_waits_for_it() {
    let drx = RadioStatesSettings {
        starts_connected: true,
        long_cycle_ns: 1_000 * SECOND,
        short_cycles: 0,
        release_ns: 10_000 * SECOND,
        ..RadioStatesSettings::default()
    };
    let sent = [(SECOND, Direction::Down, 0), (2 * SECOND, Direction::Up, 1), (3 * SECOND, Direction::Up, 0)];
    let times: Vec<_> = leave(drx, &sent).iter().map(|one| (one.number, one.direction, one.time / SECOND)).collect();
    assert_eq!(times, [(1, Direction::Up, 2), (0, Direction::Down, 3), (2, Direction::Up, 3)]);
}

#[test]
fn impossible_settings_are_refused_in_a_sentence() {
    let fields = RadioStatesSettings::default();
    let refused = |settings: RadioStatesSettings| settings.check().unwrap_err().to_string();
    assert_eq!(
        refused(RadioStatesSettings { long_cycle_ns: 30 * MILLISECOND, ..fields }),
        "long_cycle_s must be a multiple of short_cycle_s, got 0.03"
    );
    assert_eq!(
        refused(RadioStatesSettings { short_cycle_ns: 0, ..fields }),
        "short_cycle_s must be above 0 where there are short cycles, got 0"
    );
    assert_eq!(
        refused(RadioStatesSettings { on_duration_ns: 0, ..fields }),
        "on_duration_s must be above 0 where there are long cycles, got 0"
    );
    let without = RadioStatesSettings { long_cycle_ns: 0, on_duration_ns: 0, short_cycle_ns: 0, ..fields };
    assert_eq!(without.check(), Ok(()));
}

/// One mobile, looked at in every nanosecond.
struct Ticks {
    settings: RadioStatesSettings,
    offset: Nanoseconds,
    paging_offset: Nanoseconds,
    last: Option<Nanoseconds>,
    is_connected: bool,
    connects_at: Option<Nanoseconds>,
    waiting: VecDeque<(Direction, u64)>,
}

impl Ticks {
    fn new(settings: RadioStatesSettings) -> Self {
        let mut random = Random::new(SEED, &format!("{NAME}/0"));
        let mut within = |cycle: Nanoseconds| (random.uniform() * cycle as f64) as Nanoseconds;
        Self {
            offset: within(settings.long_cycle_ns),
            paging_offset: within(settings.paging_cycle_ns),
            last: settings.starts_connected.then_some(0),
            is_connected: settings.starts_connected,
            connects_at: None,
            waiting: VecDeque::new(),
            settings,
        }
    }

    fn listens(&self, now: Nanoseconds) -> bool {
        let s = &self.settings;
        let silent = now - self.last.unwrap();
        if silent < s.inactivity_ns || s.long_cycle_ns == 0 {
            return true;
        }
        let is_short = silent < s.inactivity_ns + u64::from(s.short_cycles) * s.short_cycle_ns;
        let cycle = if is_short { s.short_cycle_ns } else { s.long_cycle_ns };
        (now + cycle - self.offset % cycle) % cycle < s.on_duration_ns
    }

    fn is_paged(&self, now: Nanoseconds) -> bool {
        let cycle = self.settings.paging_cycle_ns;
        cycle == 0 || now % cycle == self.paging_offset
    }

    /// Takes what comes `now`; what passes.
    fn tick(&mut self, now: Nanoseconds, came: impl Iterator<Item = (Direction, u64)>) -> Vec<u64> {
        let mut passed = Vec::new();
        if self.waiting.is_empty() && self.last.is_some_and(|last| now - last >= self.settings.release_ns) {
            self.is_connected = false;
        }
        // The transmitter's timers run before packets that come at the same time.
        self.serve(now, &mut passed);
        for packet in came {
            if self.waiting.is_empty() && self.last.is_some_and(|last| now - last >= self.settings.release_ns) {
                self.is_connected = false;
            }
            self.waiting.push_back(packet);
            self.serve(now, &mut passed);
        }
        passed
    }

    fn serve(&mut self, now: Nanoseconds, passed: &mut Vec<u64>) {
        let sends = self.waiting.iter().any(|(direction, _)| *direction == Direction::Up);
        if self.waiting.is_empty() {
            return;
        }
        if !self.is_connected && self.connects_at.is_none() && (sends || self.is_paged(now)) {
            self.connects_at = Some(now + self.settings.promotion_ns);
        }
        let connects = self.connects_at == Some(now);
        if connects || self.is_connected && (sends || self.listens(now)) {
            self.is_connected = true;
            self.connects_at = None;
            self.last = Some(now);
            passed.extend(self.waiting.drain(..).map(|(_, number)| number));
        }
    }
}

fn any_settings() -> impl Strategy<Value = RadioStatesSettings> {
    let cycles = (1..6u64, 0..4u32, 0..5u64, 1..4u64);
    (0..20u64, 1..80u64, 0..30u64, 0..30u64, cycles, proptest::bool::ANY).prop_map(
        |(promotion_ns, release_ns, paging_cycle_ns, inactivity_ns, cycles, starts_connected)| {
            let (short_cycle_ns, short_cycles, times, on_duration_ns) = cycles;
            RadioStatesSettings {
                promotion_ns,
                release_ns,
                paging_cycle_ns,
                inactivity_ns,
                short_cycle_ns,
                short_cycles,
                long_cycle_ns: times * short_cycle_ns,
                on_duration_ns,
                starts_connected,
            }
        },
    )
}

proptest! {
    #[test]
    fn packets_pass_when_a_look_at_every_tick_says_so(
        settings in any_settings(),
        drawn in prop::collection::vec(
            (0..60u64, prop_oneof![Just(Direction::Down), Just(Direction::Down), Just(Direction::Up)]), 1..40),
    ) {
        let mut now = 0;
        let sent: Vec<_> = drawn.iter().map(|&(gap, direction)| { now += gap; (now, direction, 0) }).collect();
        let left: Vec<_> = leave(settings, &sent).iter().map(|one| (one.number, one.time)).collect();
        let mut ticks = Ticks::new(settings);
        let mut expected = Vec::new();
        for at in 0..now + 200 {
            let came = sent.iter().enumerate().filter(|(_, one)| one.0 == at);
            let came = came.map(|(number, one)| (one.1, number as u64));
            expected.extend(ticks.tick(at, came).into_iter().map(|number| (number, at)));
        }
        prop_assert_eq!(left, expected);
    }
}
