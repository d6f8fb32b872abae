mod cache;
mod calls;
mod drivers;
mod era;
mod legacy;
mod lists;
mod pair;
mod rounds;
mod script;
mod subscriptions;
mod tasks;
#[cfg(feature = "validate")]
mod validate;
