//! Values as sentences and reports state them.

/// Shorter times are written in microseconds.
const FINEST_S: f64 = 1e-4;

/// A time with three digits and a unit.
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() {
        return String::from("an unknown time");
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
        return String::from(if value > 0.0 { "inf s" } else { "-inf s" });
    }
    let decimals = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A Unix time (ns) as RFC 3339 has it, in UTC and to the nanosecond. Years have four digits in all 64 bits of it.
pub fn time(time_ns: i64) -> String {
    let (seconds, rest_ns) = (time_ns.div_euclid(SECOND_NS), time_ns.rem_euclid(SECOND_NS));
    let (year, month, day) = civil_date(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest_ns:09}Z")
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

    #[test]
    fn times_have_three_digits() {
        let written = [0.0, 0.000_012_34, 0.000_1, 0.005, 0.029_96, 0.25, 1.0, 61.25, 1234.5, -0.003].map(duration);
        let expected =
            ["0.00 us", "12.3 us", "0.10 ms", "5.00 ms", "30.0 ms", "250 ms", "1.00 s", "61.2 s", "1234 s", "-3.00 ms"];
        assert_eq!(written, expected);
        assert_eq!(duration(f64::NAN), "an unknown time");
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let day_ns = DAY_S * SECOND_NS;
        assert_eq!(time(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(time(11_016 * day_ns), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(time(11_017 * day_ns + 1), "2000-03-01T00:00:00.000000001Z");
        assert_eq!(time(1_700_000_000_011_715_863), "2023-11-14T22:13:20.011715863Z");
    }
}
