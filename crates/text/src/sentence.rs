//! Values as sentences and reports state them.

/// Shorter times are written in microseconds.
const FINEST_S: f64 = 1e-4;

/// Append a time with three digits and a unit.
pub fn duration(out: &mut Vec<u8>, seconds: f64) {
    if seconds.is_nan() {
        out.extend_from_slice(b"an unknown time");
        return;
    }
    let size = seconds.abs();
    let (value, unit) = if size >= 1.0 {
        (seconds, "s")
    } else if size >= FINEST_S {
        (seconds * 1e3, "ms")
    } else {
        (seconds * 1e6, "us")
    };
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf s" } else { b"-inf s" });
        return;
    }
    let decimals = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    fixed(out, value, decimals);
    out.push(b' ');
    out.extend_from_slice(unit.as_bytes());
}

/// Larger numbers, and those nearer to the middle of two neighbours, are left to the exact conversion.
const PLAIN: f64 = 1e12;
const NEAR_MIDDLE: f64 = 1e-3;

/// A number with so many decimals, at most two, rounded to the nearest (of what the binary number is exactly).
fn fixed(out: &mut Vec<u8>, value: f64, decimals: usize) {
    let scale = [1_u64, 10, 100][decimals.min(2)];
    let scaled = value.abs() * scale as f64;
    if scaled >= PLAIN || (scaled.fract() - 0.5).abs() < NEAR_MIDDLE {
        out.extend_from_slice(format!("{value:.decimals$}").as_bytes());
        return;
    }
    let rounded = scaled.round() as u64;
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(rounded / scale).as_bytes());
    if decimals > 0 {
        out.push(b'.');
        digits(out, rounded % scale, decimals);
    }
}

/// The last so many digits of a number, with zeros before it.
fn digits(out: &mut Vec<u8>, mut number: u64, count: usize) {
    let begin = out.len();
    out.resize(begin + count, b'0');
    for digit in out[begin..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// Append a Unix time (ns) as RFC 3339 has it, in UTC and to the nanosecond. Years have four digits in all 64 bits of
/// it.
pub fn time(out: &mut Vec<u8>, time_ns: i64) {
    let (seconds, rest_ns) = (time_ns.div_euclid(SECOND_NS), time_ns.rem_euclid(SECOND_NS));
    let (year, month, day) = civil_date(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let parts =
        [(year, 4, b'-'), (month, 2, b'-'), (day, 2, b'T'), (hour, 2, b':'), (minute, 2, b':'), (second, 2, b'.')];
    for (number, count, behind) in parts {
        digits(out, number.unsigned_abs(), count);
        out.push(behind);
    }
    digits(out, rest_ns.unsigned_abs(), 9);
    out.push(b'Z');
}

/// Year, month and day of a day since 1970 in the Gregorian calendar, by counting from March, so that the leap day is
/// the last of a year (E. G. Richards, Explanatory Supplement to the Astronomical Almanac, 2013, ch. 15.11).
fn civil_date(day: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    const FROM_MARCH_OF_YEAR_0: i64 = 719_468;
    let from_march = day + FROM_MARCH_OF_YEAR_0;
    let (era, of_era) = (from_march.div_euclid(DAYS_OF_400_YEARS), from_march.rem_euclid(DAYS_OF_400_YEARS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    fn duration_text(seconds: f64) -> String {
        written(|out| duration(out, seconds))
    }

    fn time_text(time_ns: i64) -> String {
        written(|out| time(out, time_ns))
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_exact_conversion(
            value in prop_oneof![-2000.0..2000.0_f64, any::<f64>(), (-200_000_i32..200_000).prop_map(|n| f64::from(n) / 1e3)],
            decimals in 0_usize..3,
        ) {
            prop_assume!(value.is_finite());
            prop_assert_eq!(written(|out| fixed(out, value, decimals)), format!("{value:.decimals$}"));
        }
    }

    #[test]
    fn times_have_three_digits() {
        let written =
            [0.0, 0.000_012_34, 0.000_1, 0.005, 0.029_96, 0.25, 1.0, 61.25, 1234.5, -0.003].map(duration_text);
        let expected =
            ["0.00 us", "12.3 us", "0.10 ms", "5.00 ms", "30.0 ms", "250 ms", "1.00 s", "61.2 s", "1234 s", "-3.00 ms"];
        assert_eq!(written, expected);
        assert_eq!(duration_text(f64::NAN), "an unknown time");
        assert_eq!(duration_text(f64::NEG_INFINITY), "-inf s");
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let day_ns = DAY_S * SECOND_NS;
        assert_eq!(time_text(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(time_text(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(time_text(11_016 * day_ns), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(time_text(11_017 * day_ns + 1), "2000-03-01T00:00:00.000000001Z");
        assert_eq!(time_text(1_700_000_000_011_715_863), "2023-11-14T22:13:20.011715863Z");
    }
}
