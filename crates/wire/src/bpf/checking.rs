//! Instructions of classic BPF to the steps that a program takes, each checked before anything runs.

use super::{Condition, Instruction, Operand, Operation, ProgramError, Source, Step, Width, SCRATCH_WORDS};

mod class {
    pub(super) const LOAD: u16 = 0x00;
    pub(super) const LOAD_INDEX: u16 = 0x01;
    pub(super) const STORE: u16 = 0x02;
    pub(super) const STORE_INDEX: u16 = 0x03;
    pub(super) const ARITHMETIC: u16 = 0x04;
    pub(super) const JUMP: u16 = 0x05;
    pub(super) const RETURN: u16 = 0x06;
    pub(super) const TRANSFER: u16 = 0x07;
}

/// Bit 3 of arithmetic and jump codes: the operand is the index register.
const OPERAND_INDEX: u16 = 0x08;

/// An instruction in its place.
pub(super) struct Placed {
    pub(super) instruction: Instruction,
    pub(super) at: usize,
    /// Instructions of the whole program.
    pub(super) length: usize,
}

impl Placed {
    /// What the instruction does.
    ///
    /// # Errors
    /// If there is no such instruction, or if it would leave the program or its scratch memory, or divide by zero.
    pub(super) fn step(&self) -> Result<Step, ProgramError> {
        let Instruction { code, k, .. } = self.instruction;
        if code > 0xff {
            return Err(self.unknown());
        }
        match code & 0x07 {
            class::LOAD => self.load(),
            class::LOAD_INDEX => self.load_index(),
            class::STORE if code == class::STORE => Ok(Step::StoreAccumulator(self.scratch_word()?)),
            class::STORE_INDEX if code == class::STORE_INDEX => Ok(Step::StoreIndex(self.scratch_word()?)),
            class::ARITHMETIC => self.arithmetic(),
            class::JUMP => self.jump(),
            class::RETURN => match code & 0x18 {
                0x00 => Ok(Step::ReturnConstant(k)),
                0x10 => Ok(Step::ReturnAccumulator),
                _ => Err(self.unknown()),
            },
            class::TRANSFER => match code & 0xf8 {
                0x00 => Ok(Step::AccumulatorToIndex),
                0x80 => Ok(Step::IndexToAccumulator),
                _ => Err(self.unknown()),
            },
            _ => Err(self.unknown()),
        }
    }

    fn load(&self) -> Result<Step, ProgramError> {
        let Instruction { code, k, .. } = self.instruction;
        let (mode, width) = (code & 0xe0, code & 0x18);
        let source = match mode {
            0x00 if width == 0 => Source::Constant(k),
            0x20 => Source::Absolute(k),
            0x40 => Source::Indexed(k),
            0x60 if width == 0 => Source::Scratch(self.scratch_word()?),
            0x80 if width == 0 => Source::Length,
            _ => return Err(self.unknown()),
        };
        let width = match width {
            0x00 => Width::Word,
            0x08 => Width::Half,
            0x10 => Width::Byte,
            _ => return Err(self.unknown()),
        };
        Ok(Step::LoadAccumulator(width, source))
    }

    fn load_index(&self) -> Result<Step, ProgramError> {
        let Instruction { code, k, .. } = self.instruction;
        Ok(Step::LoadIndex(match (code & 0xe0, code & 0x18) {
            (0x00, 0x00) => Source::Constant(k),
            (0x60, 0x00) => Source::Scratch(self.scratch_word()?),
            (0x80, 0x00) => Source::Length,
            (0xa0, 0x10) => Source::HeaderLength(k),
            _ => return Err(self.unknown()),
        }))
    }

    fn arithmetic(&self) -> Result<Step, ProgramError> {
        let operation = match self.instruction.code & 0xf0 {
            0x00 => Operation::Add,
            0x10 => Operation::Subtract,
            0x20 => Operation::Multiply,
            0x30 => Operation::Divide,
            0x40 => Operation::Or,
            0x50 => Operation::And,
            0x60 => Operation::ShiftLeft,
            0x70 => Operation::ShiftRight,
            0x80 => return Ok(Step::Negate),
            0x90 => Operation::Remainder,
            0xa0 => Operation::Xor,
            _ => return Err(self.unknown()),
        };
        match (operation, self.operand()) {
            (Operation::Divide | Operation::Remainder, Operand::Constant(0)) => {
                Err(ProgramError::DivisionByZero { at: self.at })
            }
            (operation, operand) => Ok(Step::Arithmetic(operation, operand)),
        }
    }

    fn jump(&self) -> Result<Step, ProgramError> {
        let Instruction { code, jt, jf, k } = self.instruction;
        let condition = match code & 0xf0 {
            0x00 => return Ok(Step::Jump(self.target(usize::try_from(k).unwrap_or(usize::MAX - 1))?)),
            0x10 => Condition::Equal,
            0x20 => Condition::Greater,
            0x30 => Condition::GreaterOrEqual,
            0x40 => Condition::AnyBit,
            _ => return Err(self.unknown()),
        };
        Ok(Step::Branch {
            condition,
            operand: self.operand(),
            if_true: self.target(usize::from(jt))?,
            if_false: self.target(usize::from(jf))?,
        })
    }

    fn operand(&self) -> Operand {
        if self.instruction.code & OPERAND_INDEX != 0 {
            Operand::Index
        } else {
            Operand::Constant(self.instruction.k)
        }
    }

    /// The place that a jump over so many instructions leads to.
    fn target(&self, distance: usize) -> Result<usize, ProgramError> {
        match self.at.checked_add(1 + distance) {
            Some(target) if target < self.length => Ok(target),
            _ => Err(ProgramError::JumpOutOfProgram { at: self.at }),
        }
    }

    fn scratch_word(&self) -> Result<usize, ProgramError> {
        match usize::try_from(self.instruction.k) {
            Ok(word) if word < SCRATCH_WORDS => Ok(word),
            _ => Err(ProgramError::NoSuchScratchWord { at: self.at, word: self.instruction.k }),
        }
    }

    fn unknown(&self) -> ProgramError {
        ProgramError::UnknownInstruction { at: self.at, code: self.instruction.code }
    }
}
