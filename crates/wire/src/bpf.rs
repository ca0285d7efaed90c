//! Classic BPF programs, as libpcap compiles them from its filter language (McCanne and Jacobson, USENIX 1993).

use std::collections::HashMap;
use std::fmt;

use checking::Placed;

/// One instruction, laid out as in libpcap's `struct bpf_insn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Why a program is not accepted; `Display` is one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    Empty,
    TooLong { instructions: usize },
    UnknownInstruction { at: usize, code: u16 },
    JumpOutOfProgram { at: usize },
    NoSuchScratchWord { at: usize, word: u32 },
    DivisionByZero { at: usize },
    NoReturnAtEnd,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(out, "the filter program must not be empty"),
            Self::TooLong { instructions } => {
                write!(out, "the filter program must have at most {MOST_INSTRUCTIONS} instructions, got {instructions}")
            }
            Self::UnknownInstruction { at, code } => {
                write!(out, "instruction {at} of the filter program has the unknown code {code:#06x}")
            }
            Self::JumpOutOfProgram { at } => write!(out, "instruction {at} of the filter program jumps out of it"),
            Self::NoSuchScratchWord { at, word } => {
                write!(
                    out,
                    "instruction {at} of the filter program uses scratch word {word}, there are {SCRATCH_WORDS}"
                )
            }
            Self::DivisionByZero { at } => write!(out, "instruction {at} of the filter program divides by zero"),
            Self::NoReturnAtEnd => write!(out, "the filter program must end in a return"),
        }
    }
}

impl std::error::Error for ProgramError {}

const MOST_INSTRUCTIONS: usize = 1 << 16;
const SCRATCH_WORDS: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Source {
    Constant(u32),
    /// At a fixed offset in the frame.
    Absolute(u32),
    /// At an offset from the index register.
    Indexed(u32),
    Scratch(usize),
    Length,
    /// Four times the low nibble of a byte: the length of an IPv4 header.
    HeaderLength(u32),
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Word,
    Half,
    Byte,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Or,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Constant(u32),
    Index,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    LoadAccumulator(Width, Source),
    LoadIndex(Source),
    StoreAccumulator(usize),
    StoreIndex(usize),
    Arithmetic(Operation, Operand),
    Negate,
    Jump(usize),
    Branch { condition: Condition, operand: Operand, if_true: usize, if_false: usize },
    ReturnConstant(u32),
    ReturnAccumulator,
    AccumulatorToIndex,
    IndexToAccumulator,
}

/// A checked program: it ends on every frame, as all jumps go forward.
#[derive(Clone, Debug)]
pub struct Program {
    steps: Vec<Step>,
}

impl Program {
    /// Checks and takes a program.
    pub fn new(instructions: &[Instruction]) -> Result<Program, ProgramError> {
        if instructions.is_empty() {
            return Err(ProgramError::Empty);
        }
        if instructions.len() > MOST_INSTRUCTIONS {
            return Err(ProgramError::TooLong { instructions: instructions.len() });
        }
        let steps: Result<Vec<Step>, ProgramError> = instructions
            .iter()
            .enumerate()
            .map(|(at, &instruction)| Placed { instruction, at, length: instructions.len() }.step())
            .collect();
        let steps = steps?;
        match steps.last() {
            Some(Step::ReturnConstant(_) | Step::ReturnAccumulator) => Ok(Program { steps }),
            _ => Err(ProgramError::NoReturnAtEnd),
        }
    }

    /// Runs over a frame of which `frame` was captured; zero rejects it, as does a load beyond what was captured.
    pub fn run(&self, frame: &[u8], wire_bytes: u32) -> u32 {
        self.run_or_fail(frame, wire_bytes).unwrap_or(0)
    }

    fn run_or_fail(&self, frame: &[u8], wire_bytes: u32) -> Option<u32> {
        let mut accumulator = 0_u32;
        let mut index = 0_u32;
        let mut scratch = [0_u32; SCRATCH_WORDS];
        let mut at = 0;
        loop {
            let step = self.steps.get(at)?;
            at += 1;
            match *step {
                Step::LoadAccumulator(width, source) => {
                    accumulator = load(width, source, frame, wire_bytes, index, &scratch)?;
                }
                Step::LoadIndex(source) => index = load(Width::Word, source, frame, wire_bytes, index, &scratch)?,
                Step::StoreAccumulator(word) => *scratch.get_mut(word)? = accumulator,
                Step::StoreIndex(word) => *scratch.get_mut(word)? = index,
                Step::Arithmetic(operation, operand) => {
                    accumulator = apply(operation, accumulator, operand.value(index))?;
                }
                Step::Negate => accumulator = accumulator.wrapping_neg(),
                Step::Jump(target) => at = target,
                Step::Branch { condition, operand, if_true, if_false } => {
                    let other = operand.value(index);
                    let holds = match condition {
                        Condition::Equal => accumulator == other,
                        Condition::Greater => accumulator > other,
                        Condition::GreaterOrEqual => accumulator >= other,
                        Condition::AnyBit => accumulator & other != 0,
                    };
                    at = if holds { if_true } else { if_false };
                }
                Step::ReturnConstant(value) => return Some(value),
                Step::ReturnAccumulator => return Some(accumulator),
                Step::AccumulatorToIndex => index = accumulator,
                Step::IndexToAccumulator => accumulator = index,
            }
        }
    }
}

impl Operand {
    fn value(self, index: u32) -> u32 {
        match self {
            Operand::Constant(value) => value,
            Operand::Index => index,
        }
    }
}

fn load(
    width: Width,
    source: Source,
    frame: &[u8],
    wire_bytes: u32,
    index: u32,
    scratch: &[u32; SCRATCH_WORDS],
) -> Option<u32> {
    let offset = match source {
        Source::Constant(value) => return Some(value),
        Source::Length => return Some(wire_bytes),
        Source::Scratch(word) => return scratch.get(word).copied(),
        Source::HeaderLength(offset) => {
            let byte = frame.get(usize::try_from(offset).ok()?)?;
            return Some(u32::from(byte & 0x0f) * 4);
        }
        Source::Absolute(offset) => offset,
        Source::Indexed(offset) => index.checked_add(offset)?,
    };
    let bytes = frame.get(usize::try_from(offset).ok()?..)?;
    Some(match width {
        Width::Word => u32::from_be_bytes(*bytes.first_chunk::<4>()?),
        Width::Half => u32::from(u16::from_be_bytes(*bytes.first_chunk::<2>()?)),
        Width::Byte => u32::from(*bytes.first()?),
    })
}

/// `None` divides by zero, which rejects the frame.
fn apply(operation: Operation, left: u32, right: u32) -> Option<u32> {
    Some(match operation {
        Operation::Add => left.wrapping_add(right),
        Operation::Subtract => left.wrapping_sub(right),
        Operation::Multiply => left.wrapping_mul(right),
        Operation::Divide => left.checked_div(right)?,
        Operation::Remainder => left.checked_rem(right)?,
        Operation::Or => left | right,
        Operation::And => left & right,
        Operation::Xor => left ^ right,
        Operation::ShiftLeft => left.checked_shl(right).unwrap_or(0),
        Operation::ShiftRight => left.checked_shr(right).unwrap_or(0),
    })
}

/// One program for each link-layer type, as offsets differ between them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    programs: HashMap<u16, Program>,
}

impl Filter {
    /// A filter without programs, which rejects every frame.
    pub fn new() -> Self {
        Filter::default()
    }

    /// Sets the program for frames of a link-layer type (number of the tcpdump.org registry).
    pub fn insert(&mut self, link_type: u16, program: Program) {
        self.programs.insert(link_type, program);
    }

    /// Frames of a link-layer type without a program do not pass.
    pub fn accepts(&self, link_type: u16, frame: &[u8], wire_bytes: u32) -> bool {
        self.programs.get(&link_type).is_some_and(|program| program.run(frame, wire_bytes) != 0)
    }
}

mod checking;
