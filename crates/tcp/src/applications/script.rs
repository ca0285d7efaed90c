//! What an application does with its connection, as data.
//!
//! Reading goes on beside the steps, as in a program that waits for both directions: a script that sends and receives
//! at once needs no second thread, and a slow reader is a [`Reading`], not a step.

use core::fmt;

use pepscope_path::{Nanoseconds, NEVER};

use crate::packets::segment::ContentId;

/// One thing an application does before it goes on to the next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Do nothing for this long.
    Wait { duration_ns: Nanoseconds },
    /// Do nothing for a time drawn from an exponential distribution (a user who reads a page).
    Think { mean_s: f64 },
    /// Write the first `bytes` bytes of `content`, as fast as the send buffer takes them.
    Send { content: ContentId, bytes: u64 },
    /// Write `content`, which has no end, for this long.
    SendFor { content: ContentId, duration_ns: Nanoseconds },
    /// Wait until `bytes` more bytes have been read than the earlier `Receive` steps waited for. If the peer finishes
    /// before that, the script ends with a close.
    Receive { bytes: u64 },
    /// Wait until the peer has finished and everything has been read.
    ReceiveAll,
    /// Finish sending; what was written is still delivered.
    Close,
    /// Reset the connection.
    Abort,
    /// Do `steps` again and again; for ever if `times` is `None`.
    Repeat { times: Option<u32>, steps: Vec<Step> },
}

/// How an application takes what has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// All of it, at once.
    #[default]
    AtOnce,
    /// Reads at most `chunk_bytes` at a time, and `rate_bytes_s` on average.
    Paced { rate_bytes_s: u64, chunk_bytes: u64 },
}

/// A time in which nothing is read, counted from when the connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub start_ns: Nanoseconds,
    pub duration_ns: Nanoseconds,
}

/// The behaviour of the application at one end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub steps: Vec<Step>,
    pub reading: Reading,
    /// The pauses in the order of their starts, without overlap.
    pub pauses: Vec<Pause>,
    /// Reset the connection this long after it is established, whatever the step; [`NEVER`] for never.
    pub abort_after_ns: Nanoseconds,
}

impl Script {
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, reading: Reading::AtOnce, pauses: Vec::new(), abort_after_ns: NEVER }
    }

    /// Sends `bytes` bytes of `content` and closes.
    #[must_use]
    pub fn sender(content: ContentId, bytes: u64) -> Self {
        Self::new(vec![Step::Send { content, bytes }, Step::Close])
    }

    /// Sends `content` for `duration_ns` and closes.
    #[must_use]
    pub fn sender_for(content: ContentId, duration_ns: Nanoseconds) -> Self {
        Self::new(vec![Step::SendFor { content, duration_ns }, Step::Close])
    }

    /// Reads until the peer has finished, and closes.
    #[must_use]
    pub fn receiver() -> Self {
        Self::new(vec![Step::ReceiveAll, Step::Close])
    }

    /// Sends `bytes` bytes while it receives whatever the peer sends, and closes when both are done.
    #[must_use]
    pub fn exchanger(content: ContentId, bytes: u64, bytes_expected: u64) -> Self {
        Self::new(vec![Step::Send { content, bytes }, Step::Receive { bytes: bytes_expected }, Step::Close])
    }

    /// A browser: requests `pages` pages on one connection, with a think time before each but the first.
    #[must_use]
    pub fn http_client(
        pages: u32,
        request: ContentId,
        request_bytes: u64,
        page_bytes: u64,
        think_time_mean_s: f64,
    ) -> Self {
        let ask = [Step::Send { content: request, bytes: request_bytes }, Step::Receive { bytes: page_bytes }];
        let mut steps = ask.to_vec();
        let mut again = vec![Step::Think { mean_s: think_time_mean_s }];
        again.extend(ask);
        steps.push(Step::Repeat { times: Some(pages.saturating_sub(1)), steps: again });
        steps.push(Step::Close);
        Self::new(steps)
    }

    /// The server that answers [`Script::http_client`], for as long as it asks.
    #[must_use]
    pub fn http_server(page: ContentId, request_bytes: u64, page_bytes: u64) -> Self {
        let answer = vec![Step::Receive { bytes: request_bytes }, Step::Send { content: page, bytes: page_bytes }];
        Self::new(vec![Step::Repeat { times: None, steps: answer }])
    }

    #[must_use]
    pub fn reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    #[must_use]
    pub fn pausing(mut self, pauses: Vec<Pause>) -> Self {
        self.pauses = pauses;
        self
    }

    #[must_use]
    pub fn aborting_after(mut self, duration_ns: Nanoseconds) -> Self {
        self.abort_after_ns = duration_ns;
        self
    }
}

/// Why a script cannot be run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScriptError {
    /// A step that repeats for ever would take no time at all.
    EndlessInstant,
    /// A mean thinking time that is negative or not a number.
    ThinkTime(f64),
    /// A paced reader with a rate or chunk of zero bytes.
    ReadingPace { rate_bytes_s: u64, chunk_bytes: u64 },
    /// Pauses that overlap or are out of order.
    Pauses { start_ns: Nanoseconds },
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndlessInstant => {
                write!(formatter, "A step that repeats for ever must wait, send or receive something in each round.")
            }
            Self::ThinkTime(mean_s) => {
                write!(formatter, "The mean think time must be at least 0 s, got {mean_s}.")
            }
            Self::ReadingPace { rate_bytes_s, chunk_bytes } => write!(
                formatter,
                "A paced reader takes {chunk_bytes} bytes at a time at {rate_bytes_s} bytes/s; both must be above 0."
            ),
            Self::Pauses { start_ns } => {
                write!(formatter, "The pause in reading that starts at {start_ns} ns begins before the last one ends.")
            }
        }
    }
}

impl core::error::Error for ScriptError {}

/// A step as a program has it: without nesting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Instruction {
    Wait(Nanoseconds),
    Think(f64),
    Send {
        content: ContentId,
        bytes: u64,
    },
    SendFor {
        content: ContentId,
        duration_ns: Nanoseconds,
    },
    Receive(u64),
    ReceiveAll,
    Close,
    Abort,
    /// What the application's protocol says, for as long as the connection lasts.
    Converse,
    /// Back to `first` until `counter` has seen `times` rounds.
    Loop {
        first: usize,
        counter: usize,
        times: Option<u32>,
    },
}

/// A script's steps laid out one after the other, and how many counters its loops take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Program {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) counters: usize,
}

impl Program {
    /// One that leaves everything to a protocol.
    pub(crate) fn conversation() -> Self {
        Self { instructions: vec![Instruction::Converse], counters: 0 }
    }

    /// # Errors
    /// A [`ScriptError`] if the script cannot be run.
    pub(crate) fn compile(script: &Script) -> Result<Self, ScriptError> {
        if let Reading::Paced { rate_bytes_s, chunk_bytes } = script.reading {
            if rate_bytes_s == 0 || chunk_bytes == 0 {
                return Err(ScriptError::ReadingPace { rate_bytes_s, chunk_bytes });
            }
        }
        let mut earliest_ns = 0;
        for pause in &script.pauses {
            if pause.start_ns < earliest_ns {
                return Err(ScriptError::Pauses { start_ns: pause.start_ns });
            }
            earliest_ns = pause.start_ns.saturating_add(pause.duration_ns);
        }
        let mut program = Self::default();
        program.lay_out(&script.steps)?;
        Ok(program)
    }

    /// Appends `steps`; returns whether they always take some time.
    fn lay_out(&mut self, steps: &[Step]) -> Result<bool, ScriptError> {
        let mut takes_time = false;
        for step in steps {
            let instruction = match step {
                Step::Wait { duration_ns } => {
                    takes_time |= *duration_ns > 0;
                    Instruction::Wait(*duration_ns)
                }
                Step::Think { mean_s } => {
                    if mean_s.is_nan() || *mean_s < 0.0 {
                        return Err(ScriptError::ThinkTime(*mean_s));
                    }
                    takes_time |= *mean_s > 0.0;
                    Instruction::Think(*mean_s)
                }
                Step::Send { content, bytes } => {
                    takes_time |= *bytes > 0;
                    Instruction::Send { content: *content, bytes: *bytes }
                }
                Step::SendFor { content, duration_ns } => {
                    takes_time |= *duration_ns > 0;
                    Instruction::SendFor { content: *content, duration_ns: *duration_ns }
                }
                Step::Receive { bytes } => {
                    takes_time |= *bytes > 0;
                    Instruction::Receive(*bytes)
                }
                Step::ReceiveAll => Instruction::ReceiveAll,
                Step::Close => Instruction::Close,
                Step::Abort => Instruction::Abort,
                Step::Repeat { times, steps } => {
                    if *times == Some(0) {
                        continue;
                    }
                    let counter = self.counters;
                    self.counters += 1;
                    let first = self.instructions.len();
                    let round_takes_time = self.lay_out(steps)?;
                    if times.is_none() && !round_takes_time {
                        return Err(ScriptError::EndlessInstant);
                    }
                    takes_time |= round_takes_time;
                    Instruction::Loop { first, counter, times: *times }
                }
            };
            self.instructions.push(instruction);
        }
        Ok(takes_time)
    }
}

#[cfg(test)]
mod tests {
    use super::{Instruction, Pause, Program, Reading, Script, ScriptError, Step};
    use crate::packets::segment::ContentId;

    #[test]
    fn repeats_are_laid_out_as_loops_with_counters_of_their_own() {
        let inner = Step::Repeat { times: Some(2), steps: vec![Step::Wait { duration_ns: 5 }] };
        let script = Script::new(vec![Step::Repeat { times: None, steps: vec![inner] }, Step::Close]);
        let program = Program::compile(&script).expect("a script that takes time");
        assert_eq!(
            program.instructions,
            [
                Instruction::Wait(5),
                Instruction::Loop { first: 0, counter: 1, times: Some(2) },
                Instruction::Loop { first: 0, counter: 0, times: None },
                Instruction::Close,
            ]
        );
        assert_eq!(program.counters, 2);
    }

    #[test]
    fn a_browser_thinks_before_every_page_but_the_first() {
        let script = Script::http_client(3, ContentId(1), 300, 50_000, 30.0);
        let program = Program::compile(&script).expect("a valid script");
        assert_eq!(program.instructions[..2].len(), 2);
        assert_eq!(program.instructions[2], Instruction::Think(30.0));
        assert_eq!(program.instructions[5], Instruction::Loop { first: 2, counter: 0, times: Some(2) });
        assert_eq!(program.instructions[6], Instruction::Close);
    }

    #[test]
    fn a_page_asked_for_once_leaves_no_loop() {
        let program = Program::compile(&Script::http_client(1, ContentId(1), 300, 50_000, 30.0)).expect("valid");
        assert_eq!(program.instructions.len(), 3);
    }

    #[test]
    fn scripts_that_cannot_run_are_refused_in_a_sentence() {
        let endless = Script::new(vec![Step::Repeat {
            times: None,
            steps: vec![Step::Send { content: ContentId(1), bytes: 0 }],
        }]);
        assert_eq!(Program::compile(&endless), Err(ScriptError::EndlessInstant));
        let backwards = Script::receiver()
            .pausing(vec![Pause { start_ns: 10, duration_ns: 10 }, Pause { start_ns: 19, duration_ns: 1 }]);
        assert_eq!(Program::compile(&backwards), Err(ScriptError::Pauses { start_ns: 19 }));
        let stuck = Script::receiver().reading(Reading::Paced { rate_bytes_s: 0, chunk_bytes: 1 });
        assert_eq!(Program::compile(&stuck), Err(ScriptError::ReadingPace { rate_bytes_s: 0, chunk_bytes: 1 }));
        let negative = Script::new(vec![Step::Think { mean_s: -1.0 }]);
        let error = Program::compile(&negative).expect_err("a negative mean");
        assert_eq!(error.to_string(), "The mean think time must be at least 0 s, got -1.");
    }
}
