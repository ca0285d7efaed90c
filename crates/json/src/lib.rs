//! JSON text of many documents of one shape: the shape is written once, values are filled in column by column.
//!
//! A column of values becomes one run of bytes, and so does a column of documents: no text of its own is made for any of
//! them. The crate knows no contract; names, order and white space are its callers'.

pub mod filters;
pub mod listed;
pub mod template;
pub mod texts;
pub mod times;
pub mod values;
