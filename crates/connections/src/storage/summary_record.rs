//! Summaries as bytes and back, for temporary files: only the process that wrote them reads them.

use pepscope_wire::segment::TunnelKind;

use crate::connection::Close;
use crate::missing::MissingPackets;
use crate::summary::{ConnectionSummary, FlowSummary};
use crate::{for_each_connection_field, for_each_flow_field};

/// The bytes that are left of a record.
struct Rest<'a>(&'a [u8]);

/// A value that can be written to a record and read back; `None` for bytes that are no such value.
trait Cell<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(rest: &mut Rest<'a>) -> Option<Self>;
}

macro_rules! number_cell {
    ($($kind:ty),*) => {$(
        impl<'a> Cell<'a> for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(rest: &mut Rest<'a>) -> Option<Self> {
                let (head, tail) = rest.0.split_first_chunk()?;
                rest.0 = tail;
                Some(<$kind>::from_le_bytes(*head))
            }
        }
    )*};
}
number_cell!(u8, u16, u32, u64, i64, f64);

impl<'a> Cell<'a> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(rest: &mut Rest<'a>) -> Option<Self> {
        u8::take(rest).map(|value| value != 0)
    }
}

impl<'a> Cell<'a> for [u8; 16] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(rest: &mut Rest<'a>) -> Option<Self> {
        let (head, tail) = rest.0.split_first_chunk()?;
        rest.0 = tail;
        Some(*head)
    }
}

/// At most 40 bytes, as TCP options have.
impl<'a> Cell<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.len() as u8);
        out.extend_from_slice(self);
    }

    fn take(rest: &mut Rest<'a>) -> Option<Self> {
        let length = usize::from(u8::take(rest)?);
        let (head, tail) = rest.0.split_at_checked(length)?;
        rest.0 = tail;
        Some(head)
    }
}

impl<'a, T: Cell<'a>> Cell<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(rest: &mut Rest<'a>) -> Option<Self> {
        Some(if bool::take(rest)? { Some(T::take(rest)?) } else { None })
    }
}

macro_rules! choice_cell {
    ($kind:ty: $($choice:path),*) => {
        impl<'a> Cell<'a> for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                let place = [$($choice),*].iter().position(|choice| choice == self);
                out.push(place.unwrap_or_default() as u8);
            }

            fn take(rest: &mut Rest<'a>) -> Option<Self> {
                [$($choice),*].get(usize::from(u8::take(rest)?)).copied()
            }
        }
    };
}
choice_cell!(Close: Close::Fin, Close::Reset, Close::Open);
choice_cell!(
    MissingPackets: MissingPackets::None,
    MissingPackets::All,
    MissingPackets::PureAcknowledgements,
    MissingPackets::Data
);
choice_cell!(
    TunnelKind: TunnelKind::None,
    TunnelKind::GtpU,
    TunnelKind::Gre,
    TunnelKind::IpInIp,
    TunnelKind::Vxlan,
    TunnelKind::Udp,
    TunnelKind::Geneve,
    TunnelKind::L2tp
);

macro_rules! record_cell {
    ($kind:ident: $($field:ident),*) => {
        impl<'a> Cell<'a> for $kind<'a> {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(rest: &mut Rest<'a>) -> Option<Self> {
                Some($kind { $($field: Cell::take(rest)?),* })
            }
        }
    };
}
macro_rules! flow_record {
    ($($field:ident),*) => {
        record_cell!(FlowSummary: $($field,)* syn_options, missing_packets);
    };
}
for_each_flow_field!(flow_record);
macro_rules! connection_record {
    ($($field:ident),*) => {
        record_cell!(
            ConnectionSummary: $($field,)* first_frame, client_address, server_address, close, tunnel, up, down
        );
    };
}
for_each_connection_field!(connection_record);

/// Append a summary's bytes.
pub(crate) fn encode_summary(summary: &ConnectionSummary<'_>, out: &mut Vec<u8>) {
    summary.put(out);
}

/// The summary of these bytes, all of them.
pub(crate) fn decode_summary(bytes: &[u8]) -> Option<ConnectionSummary<'_>> {
    let mut rest = Rest(bytes);
    ConnectionSummary::take(&mut rest).filter(|_| rest.0.is_empty())
}
