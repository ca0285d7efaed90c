//! One target under fire: mutate, run, keep what behaves in a new way.

use std::collections::hash_map::DefaultHasher;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::mutation::mutate;
use crate::random::Random;
use crate::targets::Target;

/// Longest that a parser may work on one input of at most 16 KiB.
const LONGEST_RUN: Duration = Duration::from_secs(5);
const LARGEST_POOL: usize = 4_096;

pub enum Outcome {
    /// Ran to its end; `kinds` ways of behaviour were seen.
    Clean {
        inputs: u64,
        kinds: usize,
    },
    Failed {
        inputs: u64,
        cause: String,
        input: Vec<u8>,
    },
}

pub struct Session {
    target: &'static Target,
    seed: u64,
}

impl Session {
    pub fn new(target: &'static Target, seed: u64) -> Self {
        Session { target, seed }
    }

    /// Runs on a thread of its own, so that an endless input can be detected from outside.
    pub fn run(&self, duration: Duration) -> Outcome {
        let current = Arc::new(Mutex::new(Vec::new()));
        let (sender, receiver) = channel();
        let (target, seed, shared) = (self.target, self.seed, Arc::clone(&current));
        std::thread::spawn(move || fuzz(target, seed, duration, &shared, &sender));
        loop {
            match receiver.recv_timeout(LONGEST_RUN) {
                Ok(Message::Alive) => {}
                Ok(Message::Done(outcome)) => return outcome,
                Err(reason) => {
                    let input = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let cause = match reason {
                        RecvTimeoutError::Timeout => format!("it takes longer than {} s", LONGEST_RUN.as_secs()),
                        RecvTimeoutError::Disconnected => "the fuzzing thread died".to_owned(),
                    };
                    return Outcome::Failed { inputs: 0, cause, input };
                }
            }
        }
    }
}

enum Message {
    Alive,
    Done(Outcome),
}

fn fuzz(target: &Target, seed: u64, duration: Duration, current: &Mutex<Vec<u8>>, sender: &Sender<Message>) {
    let mut random = Random::new(seed);
    let mut pool = (target.seeds)();
    let mut kinds = HashSet::new();
    let start = Instant::now();
    let mut told = start;
    let seeds = pool.len();
    let mut inputs = 0;
    // Every seed as it is, then mutations of the pool.
    while inputs < seeds || start.elapsed() < duration {
        let is_seed = inputs < seeds;
        let mut input = pool[if is_seed { inputs } else { random.below(pool.len()) }].clone();
        if !is_seed {
            let other = random.below(pool.len());
            mutate(&mut input, &pool[other], &mut random);
        }
        current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&input);
        inputs += 1;
        match catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
            Ok(kind) => {
                if kinds.insert(kind) && !is_seed && pool.len() < LARGEST_POOL {
                    pool.push(input);
                }
            }
            Err(panic) => {
                let cause = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_else(|| "it panics".to_owned());
                // The receiver is gone only where the input was abandoned as endless.
                let _ = sender.send(Message::Done(Outcome::Failed { inputs: inputs as u64, cause, input }));
                return;
            }
        }
        if told.elapsed() > Duration::from_secs(1) {
            told = Instant::now();
            if sender.send(Message::Alive).is_err() {
                return;
            }
        }
    }
    let _ = sender.send(Message::Done(Outcome::Clean { inputs: inputs as u64, kinds: kinds.len() }));
}

/// Keeps an input that failed, named after its content.
pub fn save(target: &str, input: &[u8]) -> Result<PathBuf, String> {
    let folder = PathBuf::from("fuzz/artifacts");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("{target}-{:016x}", hasher.finish()));
    std::fs::write(&path, input).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}
