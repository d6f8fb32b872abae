mod calls;
mod era;
mod pair;
mod rounds;
#[allow(dead_code)]
mod script;
