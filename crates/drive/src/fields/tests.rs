use super::{Fields, Read};

fn sentence<T>(text: &str, read: impl FnOnce(&mut Fields) -> Read<T>) -> String {
    let mut fields = Fields::parse(text).unwrap();
    match read(&mut fields) {
        Err(error) => error.to_string(),
        Ok(_) => fields.finish().unwrap_err().to_string(),
    }
}

#[test]
fn refusals_name_field_value_and_range() {
    let read = |fields: &mut Fields| {
        fields.sections("path", |hop| hop.section("down", |line| line.number("rate_bit_s", 1.0..=1e12, 1e6)))
    };
    assert_eq!(
        sentence(r#"{"path": [{"down": {"rate_bit_s": -5}}]}"#, read),
        "path[0].down.rate_bit_s must be a number from 1 to 1e12, got -5"
    );
    assert_eq!(
        sentence(r#"{"path": [{}, {"down": {"rate": 1}}]}"#, read),
        "path[1].down.rate is not a field; fields are rate_bit_s"
    );
    assert_eq!(sentence(r#"{"path": 3}"#, read), "path must be a list of tables, got 3");
}

#[test]
fn missing_fields_and_wrong_names_are_refused_with_the_allowed_ones() {
    assert_eq!(
        sentence("{}", |fields| fields.required_integer("bytes", 0..=9)),
        "bytes is missing; it must be a whole number from 0 to 9"
    );
    assert_eq!(
        sentence(r#"{"control": "vegas"}"#, |fields| fields.choice("control", &[("reno", 1), ("cubic", 2)])),
        r#"control must be one of reno, cubic, got "vegas""#
    );
    assert_eq!(
        sentence(r#"{"bytes": 1.5}"#, |fields| fields.integer("bytes", 0..=9, 0)),
        "bytes must be a whole number from 0 to 9, got 1.5"
    );
}

#[test]
fn read_settings_are_reported_with_defaults() {
    let mut fields = Fields::parse(r#"{"a": 1e3, "c": {"d": true}}"#).unwrap();
    assert_eq!(fields.integer("a", 0..=9999, 5), Ok(1000));
    assert_eq!(fields.number("b", 0.0..=1.0, 0.5), Ok(0.5));
    assert_eq!(fields.section("c", |inner| inner.flag("d", false)), Ok(true));
    assert_eq!(fields.finish().unwrap().to_string(), r#"{"a":1000,"b":0.5,"c":{"d":true}}"#);
}
