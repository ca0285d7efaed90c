//! Quantities sampled at equal intervals.

use pepscope_path::Nanoseconds;

/// One quantity over time; a sample at which it did not exist is not a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The part that was sampled: `server`, `mobile`, or a hop's name.
    pub place: String,
    /// The flow it belongs to, if it belongs to one.
    pub flow: Option<u32>,
    /// What it is, with its unit.
    pub quantity: &'static str,
    pub values: Vec<f64>,
}

/// Samples of everything that the parts of a simulation observe of themselves.
#[derive(Clone, Debug, Default)]
pub struct Series {
    times_ns: Vec<Nanoseconds>,
    columns: Vec<Column>,
    /// Where the next value is looked for first: values come in the same order each time, but for flows that begin.
    next: usize,
}

impl Series {
    pub(crate) fn begin_sample(&mut self, now: Nanoseconds) {
        self.times_ns.push(now);
        self.next = 0;
    }

    pub(crate) fn record(&mut self, place: &str, flow: Option<u32>, quantity: &'static str, value: f64) {
        let is_it = |column: &Column| column.quantity == quantity && column.flow == flow && column.place == place;
        let index = match self.columns.get(self.next).filter(|column| is_it(column)) {
            Some(_) => self.next,
            None => self.columns.iter().position(is_it).unwrap_or_else(|| {
                let place = place.to_owned();
                self.columns.push(Column { place, flow, quantity, values: Vec::new() });
                self.columns.len() - 1
            }),
        };
        let column = &mut self.columns[index];
        column.values.resize(self.times_ns.len() - 1, f64::NAN);
        column.values.push(value);
        self.next = index + 1;
    }

    pub(crate) fn finish(&mut self) {
        for column in &mut self.columns {
            column.values.resize(self.times_ns.len(), f64::NAN);
        }
    }

    /// True times of the samples.
    #[must_use]
    pub fn times_ns(&self) -> &[Nanoseconds] {
        &self.times_ns
    }

    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::Series;

    #[test]
    fn quantities_that_come_late_or_go_are_not_numbers_elsewhere() {
        let mut series = Series::default();
        series.begin_sample(0);
        series.record("server", None, "a", 1.0);
        series.record("server", Some(1), "a", 2.0);
        series.begin_sample(10);
        series.record("server", None, "a", 3.0);
        series.record("mobile", None, "a", 4.0);
        series.finish();
        assert_eq!(series.times_ns(), [0, 10]);
        assert_eq!(series.columns()[0].values, [1.0, 3.0]);
        assert_eq!(series.columns()[1].values[0], 2.0);
        assert!(series.columns()[1].values[1].is_nan());
        assert!(series.columns()[2].values[0].is_nan());
        assert_eq!(series.columns()[2].values[1], 4.0);
    }
}
