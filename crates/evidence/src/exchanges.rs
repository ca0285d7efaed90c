//! Exchanges: a question of one side and the other side's answer, of every connection, from one capture.
//!
//! Where a connection is split, its transport acknowledges a question after the near leg alone, while the answer of the
//! application has to cross the hidden one. So each exchange stands here with the time of the acknowledgement, the time
//! of the answer, and the round trips of the same moment. In a capture at the server judge by what the client's side
//! answers (`asked` 1), at the client by what the server answers (`asked` 0).

mod answer_times;
mod application;
mod asked_payload;
mod first_flight;
mod http2;
mod kind;
mod proxy_requests;
mod round_trips;
mod sent;
mod socks;
mod stream;
mod text;
mod tls;
mod tls_turns;
mod turns;
mod unasked;

pub use answer_times::AnswerTimes;
pub use asked_payload::{AskedPayload, Data};
pub use kind::Kind;
pub use round_trips::{RoundTrips, PROMPT_QUANTILES, QUANTILES};
pub use turns::{find_turns, Turn};

use crate::columns::by_connection_columns;
use crate::packets::Packets;
use round_trips::Samples;

/// Calls a macro with the columns of exchanges: name and type.
#[macro_export]
macro_rules! for_each_exchange_column {
    ($act:ident) => {
        $act! {
            connection: u32,
            asked: u8,
            kind: u8,
            strict: bool,
            first: bool,
            repeated: bool,
            crossed: bool,
            question_ns: i64,
            acknowledged_ns: i64,
            answered_ns: i64,
            question_bytes: i64,
            answer_bytes: i64,
            question_span_ns: i64,
            flight_bytes: i64,
            idle_ns: i64,
            round_trip_ns: i64,
        }
    };
}

/// Calls a macro with the columns of round trips: name and type.
#[macro_export]
macro_rules! for_each_round_trip_column {
    ($act:ident) => {
        $act! {
            connection: u32,
            asked: u8,
            count: u32,
            plain_count: u32,
            least_of_all_ns: i64,
            least_ns: i64,
            quantile_10_ns: i64,
            quantile_20_ns: i64,
            quantile_60_ns: i64,
            quantile_90_ns: i64,
            prompt_count: u32,
            prompt_10_ns: i64,
            prompt_60_ns: i64,
            handshake_ns: i64,
        }
    };
}

macro_rules! exchange_columns {
    ($($name:ident: $element:ty,)*) => {
        by_connection_columns! {
            /// Exchanges as columns of one length; `pepscope.captures.exchanges.Exchanges` says what they hold.
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct ExchangeColumns { $($name: $element,)* }
        }
    };
}
for_each_exchange_column!(exchange_columns);

macro_rules! round_trip_columns {
    ($($name:ident: $element:ty,)*) => {
        by_connection_columns! {
            /// Round trips as columns of one length, two rows a connection: of its data up, and down.
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct RoundTripColumns { $($name: $element,)* }
        }
    };
}
for_each_round_trip_column!(round_trip_columns);

impl ExchangeColumns {
    fn push(&mut self, connection: u32, turn: &Turn, (kind, strict): (Kind, bool)) {
        self.connection.push(connection);
        self.asked.push(turn.asked);
        self.kind.push(kind as u8);
        self.strict.push(strict);
        self.first.push(turn.first);
        self.repeated.push(turn.repeated);
        self.crossed.push(turn.crossed);
        self.question_ns.push(turn.question_ns);
        self.acknowledged_ns.push(turn.acknowledged_ns);
        self.answered_ns.push(turn.answered_ns);
        self.question_bytes.push(turn.question_bytes);
        self.answer_bytes.push(turn.answer_bytes);
        self.question_span_ns.push(turn.question_span_ns);
        self.flight_bytes.push(turn.flight_bytes);
        self.idle_ns.push(turn.idle_ns);
        self.round_trip_ns.push(-1);
    }
}

impl RoundTripColumns {
    fn push(&mut self, connection: u32, asked: u8, found: &RoundTrips) {
        self.connection.push(connection);
        self.asked.push(asked);
        self.count.push(found.count);
        self.plain_count.push(found.plain_count);
        self.least_of_all_ns.push(found.least_of_all_ns);
        self.least_ns.push(found.least_ns);
        let [tenth, fifth, three_fifths, nine_tenths] = found.quantiles_ns;
        self.quantile_10_ns.push(tenth);
        self.quantile_20_ns.push(fifth);
        self.quantile_60_ns.push(three_fifths);
        self.quantile_90_ns.push(nine_tenths);
        self.prompt_count.push(found.prompt_count);
        let [prompt_tenth, prompt_three_fifths] = found.prompt_ns;
        self.prompt_10_ns.push(prompt_tenth);
        self.prompt_60_ns.push(prompt_three_fifths);
        self.handshake_ns.push(found.handshake_ns);
    }
}

/// Takes the exchanges of one connection after the other.
#[derive(Debug, Default)]
pub struct ExchangeReader {
    pub exchanges: ExchangeColumns,
    pub round_trips: RoundTripColumns,
    turns: Vec<Turn>,
    samples: Samples,
}

impl ExchangeReader {
    /// Adds the connection with this number: its packets, stream offset and bytes of the pieces that are kept of both
    /// directions' payload, and which port the server has, which few connections are asked for.
    pub fn add<'a>(
        &mut self,
        connection: u32,
        packets: &Packets<'_>,
        payload: [impl Iterator<Item = (i64, &'a [u8])>; 2],
        server_port: impl Fn() -> Option<u16>,
    ) {
        self.turns.clear();
        find_turns(packets, &mut self.turns);
        let kinds = application::classify(packets, payload, &self.turns, server_port);
        let base = self.exchanges.connection.len();
        for (turn, kind) in self.turns.iter().zip(kinds) {
            self.exchanges.push(connection, turn, kind);
        }
        for asked in [0, 1] {
            let found = self.samples.take(packets, asked);
            self.round_trips.push(connection, asked, &found);
            let rows = self.turns.iter().enumerate().filter(|(_, turn)| turn.asked == asked);
            let mut places = rows.clone().map(|(row, _)| base.saturating_add(row));
            self.samples.around(rows.map(|(_, turn)| turn.question_ns), |least_ns| {
                if let Some(cell) = places.next().and_then(|place| self.exchanges.round_trip_ns.get_mut(place)) {
                    *cell = least_ns;
                }
            });
        }
    }
}
