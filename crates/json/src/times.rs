//! Times as RFC 3339 has them.

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A Unix time in UTC and to the nanosecond, in quotation marks; years have four digits from 1 to 9999.
pub fn write_time(bytes: &mut Vec<u8>, time_ns: i64) {
    let (seconds, rest_ns) = (time_ns.div_euclid(NS_PER_SECOND), time_ns.rem_euclid(NS_PER_SECOND));
    let (days, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    bytes.extend_from_slice(
        format!("\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest_ns:09}Z\"").as_bytes(),
    );
}

/// Year, month and day of a day since the epoch in the Gregorian calendar. Years begin in March here, so that a leap day
/// is the last one, and 400 of them have 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let since_march = days + 719_468; // 0000-03-01
    let (era, day_of_era) = (since_march.div_euclid(ERA_DAYS), since_march.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(time_ns: i64) -> String {
        let mut bytes = Vec::new();
        write_time(&mut bytes, time_ns);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn times_have_days_of_the_calendar() {
        assert_eq!(text(0), "\"1970-01-01T00:00:00.000000000Z\"");
        assert_eq!(text(951_827_696_000_000_007), "\"2000-02-29T12:34:56.000000007Z\"");
        assert_eq!(text(4_107_542_399_999_999_999), "\"2100-02-28T23:59:59.999999999Z\"");
        assert_eq!(text(-1), "\"1969-12-31T23:59:59.999999999Z\"");
    }
}
