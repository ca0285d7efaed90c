//! Times of flows and what is made of them, on packets as no connection has them.

use pepscope_evidence::clocks::constraints::Constraints;
use pepscope_evidence::clocks::early_acks::ClockBound;
use pepscope_evidence::clocks::lines::{ClockLine, ClockLines};
use pepscope_evidence::clocks::separation::Spared;
use pepscope_evidence::flows::times::{FlowCaptures, FlowTimes};
use pepscope_evidence::packets::Packets;
use proptest::collection::vec;
use proptest::prelude::*;

/// Small numbers and the ends of their range.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-9_i64..9, 0_i64..4000, Just(i64::MIN), Just(i64::MAX), Just(-(1_i64 << 62)), any::<i64>()]
}

/// Time, direction, sequence, acknowledgement, payload, flags, marks.
type Row = (i64, u8, i64, i64, u32, u16, u16);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let payload_bytes = prop_oneof![Just(0), 1_u32..2000, Just(u32::MAX)];
    vec((number(), 0_u8..3, number(), number(), payload_bytes, any::<u16>(), any::<u16>()), 0..30)
}

#[derive(Default)]
struct Columns {
    time_ns: Vec<i64>,
    direction: Vec<u8>,
    sequence_offset: Vec<i64>,
    acknowledgement_offset: Vec<i64>,
    payload_bytes: Vec<u32>,
    flags: Vec<u16>,
    marks: Vec<u16>,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        let mut columns = Columns::default();
        for &(time_ns, direction, sequence_offset, acknowledgement_offset, payload_bytes, flags, marks) in rows {
            columns.time_ns.push(time_ns);
            columns.direction.push(direction);
            columns.sequence_offset.push(sequence_offset);
            columns.acknowledgement_offset.push(acknowledgement_offset);
            columns.payload_bytes.push(payload_bytes);
            columns.flags.push(flags);
            columns.marks.push(marks);
        }
        columns
    }

    fn packets(&self) -> Packets<'_> {
        Packets {
            time_ns: &self.time_ns,
            direction: &self.direction,
            sequence_offset: &self.sequence_offset,
            acknowledgement_offset: &self.acknowledgement_offset,
            payload_bytes: &self.payload_bytes,
            flags: &self.flags,
            marks: &self.marks,
            ..Packets::default()
        }
    }
}

proptest! {
    #[test]
    fn no_packets_are_too_odd(
        ends in (rows(), rows()),
        shift in number(),
        began in any::<(bool, bool)>(),
        points_limit in 0_usize..9,
        line in (number(), number(), any::<f64>(), any::<f64>()),
        spared in 0_usize..4,
    ) {
        let columns = (Columns::of(&ends.0), Columns::of(&ends.1));
        let (client, server) = (columns.0.packets(), columns.1.packets());
        let flows: Vec<FlowTimes> = [(0, client, server), (1, server, client)]
            .into_iter()
            .filter_map(|(direction, sender, receiver)| {
                let (sender_began, receiver_began) = began;
                let flow = FlowCaptures { direction, sender, receiver, shift, sender_began, receiver_began };
                flow.times(points_limit, 1_000_000)
            })
            .collect();
        let (start_ns, reference_ns, offset_ns, drift) = line;
        let lines = [ClockLine { start_ns, reference_ns, offset_ns, drift }; 2];
        for flow in &flows {
            let clock = ClockBound { lines: ClockLines(&lines), spared, error_ns: 1e6 };
            let counted = flow.early_acks(clock);
            prop_assert!(counted.early <= counted.compared && counted.compared <= flow.acks.len());
            for part in flow.early_own_acks(clock) {
                prop_assert!(part.early <= part.compared);
            }
            flow.published(shift, 1e-3);
        }
        let flows: Vec<&FlowTimes> = flows.iter().collect();
        let constraints = Constraints::of_flows(&flows, began.0, Spared { lower: spared, upper: 2 }, 7);
        let data = Constraints::of_data(&flows, constraints.reference_ns, constraints.base_ns, 7);
        for made in [&constraints, &data, &constraints.thinned(3)] {
            let exact = made.separate(5e-4);
            prop_assert!(made.separate_most(5e-4, 41, exact).slack_ns >= exact.slack_ns);
            made.separable_stretches(5e-4, 41, 1e6, 9);
            made.unspared_bounds_ns();
            made.span_ns();
        }
    }
}
