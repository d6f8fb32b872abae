mod era;
mod pair;
#[allow(dead_code)]
mod script;
