//! Fuzzes the parsers: `pepscope-fuzz [--seconds N] [--seed S] [--target NAME] [--replay FILE]`.
//!
//! Every target runs for `--seconds`, as many at once as there are processors; the same seed makes the same inputs. An
//! input that panics, breaks an invariant or takes too long is saved under `fuzz/artifacts/`, and the exit status is 1.
//! `--replay` runs one such input alone.

mod mutation;
mod random;
mod references;
mod seeds;
mod session;
mod targets;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use session::{Outcome, Session};
use targets::{Target, TARGETS};

struct Arguments {
    seconds: f64,
    seed: u64,
    target: Option<String>,
    replay: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { seconds: 5.0, seed: 1, target: None, replay: None };
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        let no_number = |_| format!("{name} needs a number, not {value}");
        match name.as_str() {
            "--seconds" => {
                parsed.seconds = value
                    .parse()
                    .ok()
                    .filter(|seconds| (0.0..1e9).contains(seconds))
                    .ok_or_else(|| format!("--seconds needs a number of seconds, not {value}"))?;
            }
            "--seed" => parsed.seed = value.parse().map_err(|error: std::num::ParseIntError| no_number(error))?,
            "--target" => parsed.target = Some(value),
            "--replay" => parsed.replay = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(parsed)
}

fn run() -> Result<bool, String> {
    let arguments = arguments()?;
    let chosen: Vec<&'static Target> =
        TARGETS.iter().filter(|target| arguments.target.as_ref().is_none_or(|name| name == target.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        return Err(format!("there is no such target; there are {}", names.join(", ")));
    }
    if let Some(path) = arguments.replay {
        let [target] = chosen[..] else {
            return Err("--replay needs --target".to_owned());
        };
        let input = std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        println!("{}: outcome {:016x}", target.name, (target.run)(&input));
        return Ok(true);
    }
    std::panic::set_hook(Box::new(|_| {}));
    let mut clean = true;
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for group in chosen.chunks(processors) {
        let running: Vec<_> = group
            .iter()
            .map(|&target| {
                let session = Session::new(target, arguments.seed);
                (target, std::thread::spawn(move || session.run(Duration::from_secs_f64(arguments.seconds))))
            })
            .collect();
        for (target, thread) in running {
            match thread.join().map_err(|_| format!("the thread that watches {} died", target.name))? {
                Outcome::Clean { inputs, kinds } => {
                    println!("{}: {inputs} inputs of {kinds} kinds, 0 failures", target.name);
                }
                Outcome::Failed { inputs, cause, input } => {
                    clean = false;
                    let path = session::save(target.name, &input)?;
                    println!("{}: {inputs} inputs, 1 failure: {cause}; saved as {}", target.name, path.display());
                }
            }
        }
    }
    Ok(clean)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("pepscope-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}
