//! The headers of a response, as an HTTP stack has them.

/// The headers of a response. Implement it for the type that your HTTP stack has; it is implemented for
/// slices of pairs, and with feature `http` for `http::HeaderMap`.
pub trait Fields {
    /// Every value of a header, in the order they came. `name` is in lower case; the case that was sent does
    /// not count.
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]>;

    /// The first value of a header.
    fn first<'h>(&'h self, name: &str) -> Option<&'h [u8]> {
        self.values(name).next()
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Fields for [(N, V)] {
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        let name = alloc::string::String::from(name);
        self.iter().filter(move |(n, _)| n.as_ref().eq_ignore_ascii_case(&name)).map(|(_, v)| v.as_ref())
    }
}

#[cfg(feature = "http")]
impl Fields for ::http::HeaderMap {
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.get_all(name).iter().map(::http::HeaderValue::as_bytes)
    }
}

impl<F: Fields + ?Sized> Fields for &F {
    fn values<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        (**self).values(name)
    }
}
