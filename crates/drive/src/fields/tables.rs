//! Tables within tables.

use serde_json::{Map, Value};

use super::{Fields, Read};

impl Fields {
    /// A table within this one; where there is none, one without fields is read.
    ///
    /// # Errors
    /// Whatever `read` refuses, and fields that it does not know.
    pub fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Fields) -> Read<T>) -> Read<T> {
        let value = self.take(name).unwrap_or_else(|| Value::Object(Map::new()));
        let (section, resolved) = Self::inner(self.path(name), value, read)?;
        self.resolve(name, resolved);
        Ok(section)
    }

    /// A table within this one, or `None` where there is none.
    ///
    /// # Errors
    /// Whatever `read` refuses, and fields that it does not know.
    pub fn optional_section<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields) -> Read<T>,
    ) -> Read<Option<T>> {
        let Some(value) = self.take(name) else {
            self.resolve(name, Value::Null);
            return Ok(None);
        };
        let (section, resolved) = Self::inner(self.path(name), value, read)?;
        self.resolve(name, resolved);
        Ok(Some(section))
    }

    /// Tables in order, or `None` where there is no such field.
    ///
    /// # Errors
    /// Whatever `read` refuses, and fields that it does not know.
    pub fn optional_sections<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Fields) -> Read<T>,
    ) -> Read<Option<Vec<T>>> {
        let given = match self.take(name) {
            None => return Ok(None),
            Some(Value::Array(given)) => given,
            Some(other) => return Err(self.refuse(name, other, "a list of tables")),
        };
        let (mut sections, mut resolved) = (Vec::new(), Vec::new());
        for (index, value) in given.into_iter().enumerate() {
            let (section, as_read) = Self::inner(format!("{}[{index}]", self.path(name)), value, &mut read)?;
            sections.push(section);
            resolved.push(as_read);
        }
        self.resolve(name, resolved);
        Ok(Some(sections))
    }

    /// Gives a list of tables that is not there its default: one table for each list of fields.
    pub fn default_tables<const N: usize>(&mut self, name: &'static str, tables: &[[(&str, &str); N]]) {
        if self.given.get(name).is_none_or(Value::is_null) {
            let table = |fields: &[(&str, &str); N]| -> Value {
                fields.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect::<Map<_, _>>().into()
            };
            self.given.insert(name.to_owned(), tables.iter().map(table).collect());
        }
    }

    /// Whether there is such a field.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|value| !value.is_null())
    }

    /// Gives a field that is not there a value.
    pub fn default_integer(&mut self, name: &'static str, value: u64) {
        if !self.is_given(name) {
            self.given.insert(name.to_owned(), value.into());
        }
    }

    /// Gives a field that is not there the value of another.
    pub fn default_to_sibling(&mut self, name: &'static str, sibling: &'static str) {
        if self.given.get(name).is_none_or(Value::is_null) {
            if let Some(value) = self.given.get(sibling).cloned() {
                self.given.insert(name.to_owned(), value);
            }
        }
    }

    /// Tables in order; none where there is no such field.
    ///
    /// # Errors
    /// Whatever `read` refuses, and fields that it does not know.
    pub fn sections<T>(&mut self, name: &'static str, read: impl FnMut(&mut Fields) -> Read<T>) -> Read<Vec<T>> {
        Ok(self.optional_sections(name, read)?.unwrap_or_else(|| {
            self.resolve(name, Vec::<Value>::new());
            Vec::new()
        }))
    }

    fn inner<T>(place: String, value: Value, read: impl FnOnce(&mut Fields) -> Read<T>) -> Read<(T, Value)> {
        let mut fields = Self::of(place, value)?;
        let section = read(&mut fields)?;
        Ok((section, fields.finish()?))
    }
}
