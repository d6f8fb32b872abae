//! To come.

pub mod uri_template;
