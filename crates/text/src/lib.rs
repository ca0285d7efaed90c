//! Text of very many rows: values as JSON and sentences write them, and documents whose gaps are filled from columns.

pub mod display_filter;
pub mod json;
pub mod sentence;
pub mod template;
pub mod texts;
