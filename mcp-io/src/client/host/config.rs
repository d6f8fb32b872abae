//! The servers of a configuration.

use super::Host;
#[cfg(feature = "http")]
use crate::client::http::Network;
use crate::client::{ConfigError, Servers, Way};

#[cfg(feature = "http")]
impl<R: Network> Host<R> {
    /// Adds the servers of a configuration, under their names there, except those that are disabled. What is wrong
    /// with the others comes back.
    ///
    /// ```no_run
    /// # use mcp_io::client::{Host, Servers};
    /// # fn example<R: mcp_io::client::http::Network>(host: Host<R>) -> Result<(), Box<dyn std::error::Error>> {
    /// let servers = Servers::parse(&std::fs::read_to_string("mcp.json")?)?;
    /// for (name, wrong) in host.add_all(&servers) {
    ///     eprintln!("{name}: {wrong}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_all(&self, servers: &Servers) -> Vec<(String, ConfigError)> {
        self.each(servers, |name, way| match way.child(self.runtime.clone()) {
            Some(child) => self.add(name, child),
            None => self.add_url(name, way),
        })
    }

    fn add_url(&self, name: &str, way: &Way) {
        if let Some(remote) = way.remote(self.runtime.clone()) {
            self.add(name, remote);
        }
    }
}

#[cfg(not(feature = "http"))]
impl<R: crate::Runtime> Host<R> {
    /// Adds the servers of a configuration, under their names there, except those that are disabled, and those at
    /// URLs, for which the feature `http` is needed. What is wrong with the others comes back.
    pub fn add_all(&self, servers: &Servers) -> Vec<(String, ConfigError)> {
        self.each(servers, |name, way| {
            if let Some(child) = way.child(self.runtime.clone()) {
                self.add(name, child);
            }
        })
    }
}

impl<R: crate::Runtime> Host<R> {
    fn each(&self, servers: &Servers, add: impl Fn(&str, &Way)) -> Vec<(String, ConfigError)> {
        let mut wrong = Vec::new();
        for (name, entry) in servers.iter() {
            match entry {
                Ok(entry) if entry.disabled => {}
                Ok(entry) => add(name, &entry.way),
                Err(error) => wrong.push((name.to_owned(), error.clone())),
            }
        }
        wrong
    }
}
