//! Reading a scenario field by field, so that every refusal names the field, its value and what is allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pepscope_path::{Nanoseconds, SettingsError};
use serde_json::{Map, Number, Value};

mod error;
mod tables;
#[cfg(test)]
mod tests;

pub use error::ScenarioError;

/// The longest time that a scenario may mention.
pub const MOST_SECONDS: f64 = 1e7;

/// What reading a part of a scenario gives.
pub type Read<T> = Result<T, ScenarioError>;

/// One table of a scenario while it is read. A field that is null counts as absent.
pub struct Fields {
    place: String,
    given: Map<String, Value>,
    known: Vec<&'static str>,
    /// What was read, defaults included.
    resolved: Map<String, Value>,
}

impl Fields {
    /// The outermost table of a scenario in JSON.
    ///
    /// # Errors
    /// If it is no JSON, or no table.
    pub fn parse(text: &str) -> Read<Self> {
        let value = serde_json::from_str(text).map_err(|cause| ScenarioError::NotJson { cause: cause.to_string() })?;
        Self::of(String::new(), value)
    }

    fn of(place: String, value: Value) -> Read<Self> {
        match value {
            Value::Object(given) => Ok(Self { place, given, known: Vec::new(), resolved: Map::new() }),
            other => {
                let field = if place.is_empty() { "the scenario".to_owned() } else { place };
                Err(ScenarioError::Refused { field, value: other.to_string(), allowed: "a table".to_owned() })
            }
        }
    }

    /// The whole name of a field of this table.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        if self.place.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.place)
        }
    }

    /// The name of this table.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The text that a field has, without reading it.
    #[must_use]
    pub fn given_text(&self, name: &str) -> Option<&str> {
        self.given.get(name)?.as_str()
    }

    /// The value of a field that is there, without reading it.
    #[must_use]
    pub fn given_value(&self, name: &str) -> Option<Value> {
        self.given.get(name).filter(|value| !value.is_null()).cloned()
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    /// Records the value that a field was read as.
    pub fn resolve(&mut self, name: &'static str, value: impl Into<Value>) {
        self.resolved.insert(name.to_owned(), value.into());
    }

    /// A refusal of the field called `name`.
    pub fn refuse(&self, name: &str, value: impl Display, allowed: impl Into<String>) -> ScenarioError {
        ScenarioError::Refused { field: self.path(name), value: value.to_string(), allowed: allowed.into() }
    }

    /// A number, or `None` where there is none.
    ///
    /// # Errors
    /// If it is something else or outside the range.
    pub fn optional_number(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Read<Option<f64>> {
        let Some(value) = self.take(name) else {
            self.resolve(name, Value::Null);
            return Ok(None);
        };
        match value.as_f64().filter(|number| range.contains(number)) {
            Some(number) => {
                self.resolve(name, value);
                Ok(Some(number))
            }
            None => Err(self.refuse(name, value, between(&range))),
        }
    }

    /// A number that has a default.
    ///
    /// # Errors
    /// If it is something else or outside the range.
    pub fn number(&mut self, name: &'static str, range: RangeInclusive<f64>, default: f64) -> Read<f64> {
        let given = self.optional_number(name, range)?;
        if given.is_none() {
            self.resolve(name, default);
        }
        Ok(given.unwrap_or(default))
    }

    /// A number that has to be there.
    ///
    /// # Errors
    /// If it is missing, something else or outside the range.
    pub fn required_number(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Read<f64> {
        let allowed = between(&range);
        self.optional_number(name, range)?.ok_or_else(|| ScenarioError::Missing { field: self.path(name), allowed })
    }

    /// A time in seconds that has a default.
    ///
    /// # Errors
    /// If it is no number or outside the range.
    pub fn seconds(&mut self, name: &'static str, range: RangeInclusive<f64>, default: f64) -> Read<Nanoseconds> {
        self.number(name, range, default).map(nanoseconds)
    }

    /// A time in seconds, or `None` where there is none.
    ///
    /// # Errors
    /// If it is no number or outside the range.
    pub fn optional_seconds(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Read<Option<Nanoseconds>> {
        Ok(self.optional_number(name, range)?.map(nanoseconds))
    }

    /// A whole number, or `None` where there is none. `1e6` is one too.
    ///
    /// # Errors
    /// If it is something else or outside the range.
    pub fn optional_integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Read<Option<u64>> {
        let Some(value) = self.take(name) else {
            self.resolve(name, Value::Null);
            return Ok(None);
        };
        match value.as_u64().or_else(|| whole(&value)).filter(|number| range.contains(number)) {
            Some(number) => {
                self.resolve(name, number);
                Ok(Some(number))
            }
            None => Err(self.refuse(name, value, format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// A whole number that has a default.
    ///
    /// # Errors
    /// If it is something else or outside the range.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<u64>, default: u64) -> Read<u64> {
        let given = self.optional_integer(name, range)?;
        if given.is_none() {
            self.resolve(name, default);
        }
        Ok(given.unwrap_or(default))
    }

    /// A whole number that has to be there.
    ///
    /// # Errors
    /// If it is missing, something else or outside the range.
    pub fn required_integer(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Read<u64> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.optional_integer(name, range)?.ok_or_else(|| ScenarioError::Missing { field: self.path(name), allowed })
    }

    /// True or false.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn flag(&mut self, name: &'static str, default: bool) -> Read<bool> {
        let value = self.take(name).unwrap_or(Value::Bool(default));
        let flag = value.as_bool().ok_or_else(|| self.refuse(name, value, "true or false"))?;
        self.resolve(name, flag);
        Ok(flag)
    }

    /// A text.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn text(&mut self, name: &'static str, default: &str) -> Read<String> {
        Ok(self.optional_text(name, "a text")?.unwrap_or_else(|| {
            self.resolve(name, default);
            default.to_owned()
        }))
    }

    /// A text, or `None` where there is none; `allowed` describes the valid texts.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn optional_text(&mut self, name: &'static str, allowed: &str) -> Read<Option<String>> {
        match self.take(name) {
            None => {
                self.resolve(name, Value::Null);
                Ok(None)
            }
            Some(Value::String(text)) => {
                self.resolve(name, text.clone());
                Ok(Some(text))
            }
            Some(other) => Err(self.refuse(name, other, allowed)),
        }
    }

    /// A text that has to be there and may be long: the resolved scenario has its length and a hash (FNV-1a) instead.
    ///
    /// # Errors
    /// If it is missing or no text.
    pub fn long_text(&mut self, name: &'static str) -> Read<String> {
        let missing = ScenarioError::Missing { field: self.path(name), allowed: "a text".to_owned() };
        let text = self.optional_text(name, "a text")?.ok_or(missing)?;
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        self.resolve(name, format!("{} bytes, FNV-1a {hash:016x}", text.len()));
        Ok(text)
    }

    /// A table of any fields, empty by default.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn any_table(&mut self, name: &'static str) -> Read<Value> {
        match self.take(name).unwrap_or_else(|| Value::Object(Map::new())) {
            table @ Value::Object(_) => {
                self.resolve(name, table.clone());
                Ok(table)
            }
            other => Err(self.refuse(name, other, "a table")),
        }
    }

    /// One of a few names; the first is the default.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> Read<T> {
        let value = self.take(name);
        let chosen = match &value {
            None => choices.first(),
            Some(value) => choices.iter().find(|choice| value.as_str() == Some(choice.0)),
        };
        match chosen {
            Some(&(text, chosen)) => {
                self.resolve(name, text);
                Ok(chosen)
            }
            None => {
                let names: Vec<_> = choices.iter().map(|choice| choice.0).collect();
                Err(self.refuse(name, value.unwrap_or_default(), format!("one of {}", names.join(", "))))
            }
        }
    }

    /// The name of the kind of this table.
    ///
    /// # Errors
    /// If it is missing or no text; whether it is known is for the caller to say.
    pub fn kind(&mut self, kinds: &[&'static str]) -> Read<&'static str> {
        let allowed = format!("one of {}", kinds.join(", "));
        let Some(value) = self.take("kind") else {
            return Err(ScenarioError::Missing { field: self.path("kind"), allowed });
        };
        match kinds.iter().find(|kind| value.as_str() == Some(kind)) {
            Some(kind) => {
                self.resolve("kind", *kind);
                Ok(kind)
            }
            None => Err(self.refuse("kind", value, allowed)),
        }
    }

    /// A list of numbers, or `None` where there is none.
    ///
    /// # Errors
    /// If anything in it is no whole number in the range.
    pub fn optional_integers(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Read<Option<Vec<u64>>> {
        let Some(value) = self.take(name) else {
            self.resolve(name, Value::Null);
            return Ok(None);
        };
        let numbers = value.as_array().and_then(|values| {
            values
                .iter()
                .map(|value| value.as_u64().filter(|number| range.contains(number)))
                .collect::<Option<Vec<_>>>()
        });
        match numbers {
            Some(numbers) => {
                self.resolve(name, value);
                Ok(Some(numbers))
            }
            None => {
                let allowed = format!("a list of whole numbers from {} to {}", range.start(), range.end());
                Err(self.refuse(name, value, allowed))
            }
        }
    }

    /// A list of numbers, or `None` where there is none.
    ///
    /// # Errors
    /// If anything in it is no number in the range.
    pub fn optional_numbers(&mut self, name: &'static str, range: RangeInclusive<f64>) -> Read<Option<Vec<f64>>> {
        let Some(value) = self.take(name) else {
            self.resolve(name, Value::Null);
            return Ok(None);
        };
        let number = |value: &Value| value.as_f64().filter(|number| range.contains(number));
        match value.as_array().and_then(|values| values.iter().map(number).collect()) {
            Some(numbers) => {
                self.resolve(name, value);
                Ok(Some(numbers))
            }
            None => Err(self.refuse(name, value, format!("a list of numbers, each {}", between(&range)))),
        }
    }

    /// A refusal by the component that this table describes.
    #[must_use]
    pub fn refused_by(&self, error: &SettingsError) -> ScenarioError {
        Self::refusal(&self.place, error)
    }

    /// A refusal by the component that the table called `place` describes.
    #[must_use]
    pub fn refusal(place: &str, error: &SettingsError) -> ScenarioError {
        ScenarioError::Refused {
            field: format!("{place}: {}", error.field),
            value: error.value.clone(),
            allowed: error.allowed.to_owned(),
        }
    }

    /// Everything that was read, with defaults in place of what was not given.
    ///
    /// # Errors
    /// If fields are left that no reader asked for.
    pub fn finish(self) -> Read<Value> {
        match self.given.keys().next() {
            Some(name) => Err(ScenarioError::Unknown { field: self.path(name), known: self.known }),
            None => Ok(Value::Object(self.resolved)),
        }
    }
}

/// Seconds in whole nanoseconds; anything beyond half a millennium is that.
#[must_use]
pub fn nanoseconds(seconds: f64) -> Nanoseconds {
    (seconds * 1e9).round() as Nanoseconds
}

fn between(range: &RangeInclusive<f64>) -> String {
    format!("a number from {} to {}", plain(*range.start()), plain(*range.end()))
}

/// Large and small numbers with an exponent, as people write them.
fn plain(number: f64) -> String {
    if number != 0.0 && !(1e-4..1e6).contains(&number.abs()) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

fn whole(value: &Value) -> Option<u64> {
    let number = value.as_number().and_then(Number::as_f64)?;
    let is_whole = (0.0..9_007_199_254_740_992.0).contains(&number) && (number as u64) as f64 == number;
    is_whole.then_some(number as u64)
}
