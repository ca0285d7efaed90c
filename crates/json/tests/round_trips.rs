//! What is written is JSON, and says the same when it is read.

use pepscope_json::filters::write_connection_filter;
use pepscope_json::listed::{Around, Pieces};
use pepscope_json::template::{filled, Filling};
use pepscope_json::texts::Texts;
use pepscope_json::values::{write_float, write_integer, write_text};
use proptest::prelude::*;
use serde_json::Value;

fn texts(of: &[&str]) -> Texts {
    let mut texts = Texts::default();
    of.iter().for_each(|text| texts.push(text.as_bytes()));
    texts
}

fn all(texts: &Texts) -> Vec<String> {
    (0..texts.len()).map(|place| String::from_utf8_lossy(texts.get(place).unwrap_or_default()).into_owned()).collect()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn texts_and_numbers_are_read_as_they_were(text in ".*", float in proptest::num::f64::NORMAL, whole: i64) {
        let read: Value = serde_json::from_slice(&written(|bytes| write_text(bytes, text.as_bytes())))?;
        prop_assert_eq!(read, Value::from(text));
        let digits = String::from_utf8(written(|bytes| write_float(bytes, float)))?;
        prop_assert_eq!(digits.parse::<f64>()?, float);
        let read: Value = serde_json::from_slice(&written(|bytes| write_integer(bytes, whole)))?;
        prop_assert_eq!(read, Value::from(whole));
    }
}

#[test]
fn what_is_no_number_is_null() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(written(|bytes| write_float(bytes, value)), b"null");
    }
}

#[test]
fn gaps_are_filled_from_columns_or_from_one_text() {
    let numbers = texts(&["1", "22", ""]);
    let columns = [Filling::Each(&numbers), Filling::All(b"x")];
    let made = filled(&[b"<", b"-", b">"], &columns, 3).map(|texts| all(&texts));
    assert_eq!(made, Some(vec!["<1-x>".to_owned(), "<22-x>".to_owned(), "<-x>".to_owned()]));
    assert_eq!(filled(&[b"<", b">"], &columns, 3), None);
    assert_eq!(filled(&[b"<", b"-", b">"], &columns, 4), None);
}

#[test]
fn pieces_are_written_document_by_document() {
    let forms = [texts(&["a0", "a1"]), texts(&["b0"])];
    let pieces = Pieces { ends: vec![0, 2, 2, 3], form: vec![0, 1, 0], place: vec![0, 0, 1] };
    let around = Around { before: b"[", between: b",", behind: b"]", without: b"[]" };
    let forms: Vec<&Texts> = forms.iter().collect();
    let document = |number: usize| {
        let mut bytes = Vec::new();
        let endings: [&[u8]; 2] = [b"!", b"?"];
        pieces.write(&mut bytes, number, &forms, around, |place| endings[place])?;
        String::from_utf8(bytes).ok()
    };
    let made: Vec<_> = (0..4).map(document).collect();
    assert_eq!(made, [Some("[a0!,b0?]".to_owned()), Some("[]".to_owned()), Some("[a1!]".to_owned()), None]);
    assert_eq!([0, 1, 2, 3].map(|number| pieces.count(number)), [Some(2), Some(0), Some(1), None]);
}

#[test]
fn filters_name_both_ends_and_the_frames() {
    let filter = |client, server, frames| {
        String::from_utf8_lossy(&written(|bytes| write_connection_filter(bytes, client, server, "tcp", frames)))
            .into_owned()
    };
    assert_eq!(
        filter("10.0.0.1:4000", "10.0.0.2:80", Some((3, 9))),
        "ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && tcp.port == 4000 && tcp.port == 80 && !icmp \
         && frame.number in {3..9}"
    );
    assert_eq!(
        filter("[fd00::1]:80", "[fd00::2]:80", None),
        "ipv6.addr == fd00::1 && ipv6.addr == fd00::2 && tcp.srcport == 80 && tcp.dstport == 80 && !icmpv6"
    );
}
