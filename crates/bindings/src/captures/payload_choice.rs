//! The payload that exchanges ask for, chosen while a capture is read.

use pepscope_connections::{ChoosePieces, Offered};
use pepscope_evidence::exchanges::{AskedPayload, Data};

#[derive(Default)]
struct ByExchanges(AskedPayload);

/// A choice for one reading of a capture.
pub(crate) fn by_exchanges() -> Box<dyn ChoosePieces + Send> {
    Box::new(ByExchanges::default())
}

impl ChoosePieces for ByExchanges {
    fn is_wanted(&mut self, connection: usize, side: usize, offered: &Offered<'_>) -> bool {
        let data = Data {
            start: offered.start,
            end: offered.end,
            acknowledged: offered.acknowledgement,
            bytes: offered.bytes,
            is_new: offered.is_new,
            flags: offered.flags,
            marks: offered.marks,
            begins: offered.begins,
        };
        self.0.asks_for(connection, side, &data)
    }
}
