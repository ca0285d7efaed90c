//! The trace-driven link against a plain model of mahimahi that walks through every millisecond.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use crate::probe::{Driver, Probe};
use pepscope_path::{
    Direction, Opportunities, Service, VariableRate, VariableRateSettings, VaryingLineSettings, MILLISECOND,
};
use proptest::prelude::{prop, prop_assert_eq, proptest, Strategy};

/// When packets of (arrival in ms, bytes) leave, as (packet, ms): at each opportunity 1,504 bytes go to what waits, each
/// packet with 4 bytes more; arrivals of a millisecond come after its opportunities.
fn walk(times_ms: &[u64], arrivals: &[(u64, u32)]) -> Vec<(u64, u64)> {
    let round_ms = *times_ms.last().unwrap();
    let mut waiting: VecDeque<(u64, u32)> = VecDeque::new();
    let mut departures = Vec::new();
    let mut next = 0;
    for now_ms in 0.. {
        if departures.len() == arrivals.len() {
            break;
        }
        let in_this_round = times_ms.iter().filter(|&&time_ms| time_ms == now_ms % round_ms).count();
        // The end of a round is also time 0 of the next, but there is no round before the first.
        let at_end = times_ms.iter().filter(|&&time_ms| time_ms == round_ms).count();
        let is_end = now_ms > 0 && now_ms % round_ms == 0;
        for _ in 0..in_this_round + if is_end { at_end } else { 0 } {
            let mut room = 1_504;
            while let Some((packet, left)) = waiting.front_mut() {
                let used = room.min(*left);
                room -= used;
                *left -= used;
                if *left > 0 {
                    break;
                }
                departures.push((*packet, now_ms));
                waiting.pop_front();
            }
        }
        while next < arrivals.len() && arrivals[next].0 == now_ms {
            waiting.push_back((next as u64, arrivals[next].1 + 4));
            next += 1;
        }
    }
    departures
}

fn traces() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..6u64, 1..12).prop_map(|gaps| {
        let mut time_ms = 0;
        let mut times_ms: Vec<u64> = gaps
            .into_iter()
            .map(|gap| {
                time_ms += gap;
                time_ms
            })
            .collect();
        times_ms.push(time_ms + 1);
        times_ms
    })
}

proptest! {
    #[test]
    fn departures_are_those_of_a_walk_through_time(
        times_ms in traces(), gaps in prop::collection::vec((0..40u64, 1..3_000u32), 1..80),
    ) {
        let mut now_ms = 0;
        let arrivals: Vec<(u64, u32)> = gaps.into_iter().map(|(gap, bytes)| { now_ms += gap / 4; (now_ms, bytes) }).collect();
        let service = Service::Opportunities(Opportunities::of_mahimahi(times_ms.clone()));
        let down = VaryingLineSettings { service, ..VaryingLineSettings::default() };
        let settings = VariableRateSettings { down, ..VariableRateSettings::default() };
        let mut driver = Driver::new(VariableRate::new(&settings, 1, "cell").unwrap());
        for &(at_ms, bytes) in &arrivals {
            driver.run_until(at_ms * MILLISECOND);
            driver.send(Direction::Down, Probe { bytes, ..Probe::default() });
        }
        driver.run_to_the_end();
        let departures: Vec<(u64, u64)> =
            driver.transcript().into_iter().map(|(packet, at_ns)| (packet, at_ns / MILLISECOND)).collect();
        prop_assert_eq!(departures, walk(&times_ms, &arrivals));
    }
}
