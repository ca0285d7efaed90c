//! Filter programs do what the BSD packet filter does, and bad ones are refused.

use pepscope_wire::bpf::{Instruction, Program, ProgramError};

fn program(instructions: &[(u16, u8, u8, u32)]) -> Result<Program, ProgramError> {
    let instructions: Vec<Instruction> =
        instructions.iter().map(|&(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
    Program::new(&instructions)
}

fn result(instructions: &[(u16, u8, u8, u32)], frame: &[u8], wire_bytes: u32) -> Result<u32, ProgramError> {
    program(instructions).map(|program| program.run(frame, wire_bytes))
}

/// `tcpdump -ddd "tcp port 80"` for Ethernet, IPv4 branch.
const TCP_PORT_80: &[(u16, u8, u8, u32)] = &[
    (0x28, 0, 0, 12),
    (0x15, 0, 10, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 8, 6),
    (0x28, 0, 0, 20),
    (0x45, 6, 0, 0x1fff),
    (0xb1, 0, 0, 14),
    (0x48, 0, 0, 14),
    (0x15, 2, 0, 80),
    (0x48, 0, 0, 16),
    (0x15, 0, 1, 80),
    (0x06, 0, 0, 262_144),
    (0x06, 0, 0, 0),
];

#[test]
fn compiled_filter_selects_by_port() {
    let mut frame = [0_u8; 54];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 6;
    assert_eq!(result(TCP_PORT_80, &frame, 54), Ok(0));
    frame[37] = 80;
    assert_eq!(result(TCP_PORT_80, &frame, 54), Ok(262_144));
    frame[14] = 0x46;
    assert_eq!(result(TCP_PORT_80, &frame, 54), Ok(0));
    frame[41] = 80;
    assert_eq!(result(TCP_PORT_80, &frame, 54), Ok(262_144));
    frame[20] = 1;
    assert_eq!(result(TCP_PORT_80, &frame, 54), Ok(0));
    assert_eq!(result(TCP_PORT_80, &frame[..30], 54), Ok(0), "a load beyond the captured bytes rejects");
}

#[test]
fn arithmetic() {
    let cases: &[(u16, u32, u32, u32)] = &[
        (0x04, u32::MAX, 2, 1),
        (0x14, 1, 2, u32::MAX),
        (0x24, 1 << 31, 2, 0),
        (0x34, 7, 2, 3),
        (0x44, 5, 2, 7),
        (0x54, 6, 3, 2),
        (0x64, 1, 4, 16),
        (0x64, 1, 32, 0),
        (0x74, 16, 4, 1),
        (0x74, 16, 99, 0),
        (0x84, 1, 0, u32::MAX),
        (0x94, 7, 4, 3),
        (0xa4, 6, 3, 5),
    ];
    for &(code, left, right, expected) in cases {
        let constant = [(0x00, 0, 0, left), (code, 0, 0, right), (0x16, 0, 0, 0)];
        assert_eq!(result(&constant, &[], 0), Ok(expected), "code {code:#x}");
        let index = [(0x00, 0, 0, left), (0x01, 0, 0, right), (code | 0x08, 0, 0, 0), (0x16, 0, 0, 0)];
        assert_eq!(result(&index, &[], 0), Ok(expected), "code {code:#x} with the index register");
    }
    let by_zero = [(0x00, 0, 0, 1), (0x01, 0, 0, 0), (0x3c, 0, 0, 0), (0x06, 0, 0, 1)];
    assert_eq!(result(&by_zero, &[], 0), Ok(0));
}

#[test]
fn loads_stores_and_transfers() {
    let frame = [0x4f, 2, 3, 4, 5];
    assert_eq!(result(&[(0x20, 0, 0, 1), (0x16, 0, 0, 0)], &frame, 0), Ok(0x0203_0405));
    assert_eq!(result(&[(0x20, 0, 0, 2), (0x16, 0, 0, 0)], &frame, 9), Ok(0));
    assert_eq!(result(&[(0x80, 0, 0, 0), (0x16, 0, 0, 0)], &frame, 1500), Ok(1500));
    assert_eq!(result(&[(0xb1, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)], &frame, 0), Ok(60));
    assert_eq!(result(&[(0x01, 0, 0, 2), (0x50, 0, 0, 1), (0x16, 0, 0, 0)], &frame, 0), Ok(4));
    assert_eq!(result(&[(0x01, 0, 0, u32::MAX), (0x50, 0, 0, 1), (0x16, 0, 0, 0)], &frame, 0), Ok(0));
    let through_scratch =
        [(0x00, 0, 0, 42), (0x02, 0, 0, 15), (0x61, 0, 0, 15), (0x03, 0, 0, 0), (0x60, 0, 0, 0), (0x16, 0, 0, 0)];
    assert_eq!(result(&through_scratch, &[], 0), Ok(42));
}

#[test]
fn bad_programs_are_refused() {
    let refused = |instructions: &[(u16, u8, u8, u32)]| program(instructions).err();
    assert_eq!(refused(&[]), Some(ProgramError::Empty));
    assert_eq!(refused(&[(0x00, 0, 0, 1)]), Some(ProgramError::NoReturnAtEnd));
    assert_eq!(refused(&[(0x15, 0, 1, 0), (0x06, 0, 0, 0)]), Some(ProgramError::JumpOutOfProgram { at: 0 }));
    assert_eq!(refused(&[(0x05, 0, 0, u32::MAX), (0x06, 0, 0, 0)]), Some(ProgramError::JumpOutOfProgram { at: 0 }));
    assert_eq!(refused(&[(0x34, 0, 0, 0), (0x06, 0, 0, 0)]), Some(ProgramError::DivisionByZero { at: 0 }));
    assert_eq!(
        refused(&[(0x60, 0, 0, 16), (0x06, 0, 0, 0)]),
        Some(ProgramError::NoSuchScratchWord { at: 0, word: 16 })
    );
    assert_eq!(
        refused(&[(0xf5, 0, 0, 0), (0x06, 0, 0, 0)]),
        Some(ProgramError::UnknownInstruction { at: 0, code: 0xf5 })
    );
}
