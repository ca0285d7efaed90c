//! The gain of the fast path: runs scenarios (JSON files) with header prediction and the driver's fast path and without
//! them, in turn, and prints the least processor time of each and their ratio. No captures are written.
//!
//! `cargo run --release -p pepscope-drive --example fast_path -- REPETITIONS FILE...`

use std::error::Error;
use std::path::Path;

use pepscope_drive::scenario::Scenario;
use rustix::time::{clock_gettime, ClockId};

fn processor_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

fn seconds(scenario: &Scenario) -> Result<(f64, u64), Box<dyn Error>> {
    let mut simulation = scenario.build(None)?;
    let started = processor_s();
    simulation.run(&mut |_, _| true)?;
    Ok((processor_s() - started, simulation.events()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let repetitions: usize = arguments.next().ok_or("REPETITIONS is missing")?.parse()?;
    println!("| scenario | events | ms with | ms without | ratio |\n|---|---|---|---|---|");
    for file in arguments {
        let mut scenario = Scenario::from_json(&std::fs::read_to_string(&file)?)?;
        let (mut least, mut events) = ([f64::INFINITY; 2], 0);
        for _ in 0..repetitions {
            for (fast_path, least) in [true, false].into_iter().zip(&mut least) {
                scenario.fast_path = fast_path;
                let (spent_s, handled) = seconds(&scenario)?;
                *least = least.min(spent_s);
                events = handled;
            }
        }
        let [with, without] = least;
        let name = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
        println!("| {name} | {events} | {:.2} | {:.2} | {:.2} |", with * 1e3, without * 1e3, without / with);
    }
    Ok(())
}
