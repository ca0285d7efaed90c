//! Text of very many rows: values as JSON, sentences and tables write them, documents whose gaps are filled from
//! columns, and columns that are kept in few bytes until they are written.

pub mod comma_separated;
pub mod display_filter;
pub mod json;
pub mod packed;
pub mod sentence;
pub mod template;
pub mod texts;
