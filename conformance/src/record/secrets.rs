//! What is personal or secret is replaced by placeholders: the same value by the same one, so that what was equal
//! stays equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

/// A shorter value is replaced where it stands as a secret, but not looked for elsewhere: it may mean something else.
const TELLING: usize = 8;

/// So many are looked for elsewhere. A peer may make up more.
const SOUGHT: usize = 1_000;

/// Names that are no person's.
const NOBODY: [&str; 12] = [
    "root", "user", "users", "home", "admin", "runner", "shared", "public", "default", "ubuntu", "node",
    "app",
];

/// Members in which words belong to the protocol.
const PROTOCOL: [&str; 7] =
    ["jsonrpc", "method", "type", "role", "mimeType", "resultType", "protocolVersion"];

/// Replaces secrets, and remembers them.
#[derive(Debug)]
pub(super) struct Secrets {
    /// Further names of members, as [`plain`] makes them.
    names: Vec<String>,
    /// Placeholders by what they stand for.
    known: BTreeMap<String, String>,
    counts: BTreeMap<String, u32>,
    /// What is looked for everywhere.
    sought: Vec<String>,
    /// Placeholders of people by their names.
    people: BTreeMap<String, String>,
    /// The home of whoever records.
    home: Option<String>,
    text: Arc<Texts>,
}

#[derive(Debug)]
struct Texts {
    member: Regex,
    parameter: Regex,
    bearer: Regex,
    signed: Regex,
    password: Regex,
    windows: Regex,
    home: Regex,
}

impl Texts {
    fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            // In text that is no JSON, such as the first half of a message.
            member: Regex::new(r#""([A-Za-z][A-Za-z0-9_.-]*)"(\s*:\s*)"((?:[^"\\]|\\.)*)"#)?,
            parameter: Regex::new(r#"\b([A-Za-z][A-Za-z0-9_.-]*)=([^&\s"'<>#;,]+)"#)?,
            bearer: Regex::new(r"(?i)\b(bearer\s+)([A-Za-z0-9._~+/-]{8,}=*)")?,
            signed: Regex::new(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")?,
            password: Regex::new(r#"(://[^/\s:@"]+:)([^/\s@"]+)@"#)?,
            windows: Regex::new(r#"([A-Za-z]:[\\/]+Users[\\/]+)([^\\/:*?"<>|\r\n]+)([\\/])"#)?,
            home: Regex::new(r#"(/home/|/Users/|[A-Za-z]:\\+Users\\+)([^/\\\s"'<>:;,|?*()]+)"#)?,
        })
    }
}

impl Secrets {
    /// `names` are further names of members whose values are secrets.
    ///
    /// # Errors
    ///
    /// None that a user could bring about.
    pub(super) fn new(names: &[String]) -> Result<Self, String> {
        let home = ["HOME", "USERPROFILE"].iter().find_map(|name| std::env::var(name).ok());
        Self::of(names, home)
    }

    fn of(names: &[String], home: Option<String>) -> Result<Self, String> {
        let home = home.map(|home| home.trim_end_matches(['/', '\\']).to_owned());
        Ok(Self {
            names: names.iter().map(|name| plain(name)).collect(),
            known: BTreeMap::new(),
            counts: BTreeMap::new(),
            sought: Vec::new(),
            people: BTreeMap::new(),
            home: home.filter(|home| home.len() > 2),
            text: Arc::new(Texts::new().map_err(|error| error.to_string())?),
        })
    }

    /// Replaces what is secret in a message.
    pub(super) fn replace(&mut self, message: &mut Value) {
        self.value(message, "", false);
    }

    /// The value of a header; its name is in lower case.
    pub(super) fn header(&mut self, name: &str, value: &str) -> String {
        match name {
            "authorization" | "proxy-authorization" => match value.trim().split_once(' ') {
                Some((scheme, rest)) => format!("{scheme} {}", self.secret("token", rest.trim())),
                None => self.secret("token", value.trim()),
            },
            "cookie" => {
                let cookies = value.split(';').map(|cookie| self.cookie(cookie.trim()));
                cookies.collect::<Vec<_>>().join("; ")
            }
            "set-cookie" => match value.split_once(';') {
                Some((cookie, rest)) => format!("{};{rest}", self.cookie(cookie.trim())),
                None => self.cookie(value.trim()),
            },
            "mcp-session-id" => self.secret("session", value.trim()),
            _ if self.is_secret(name) => self.secret(name, value.trim()),
            _ => self.text(value),
        }
    }

    fn cookie(&mut self, cookie: &str) -> String {
        match cookie.split_once('=') {
            Some((name, value)) => format!("{name}={}", self.secret("cookie", value)),
            None => self.secret("cookie", cookie),
        }
    }

    /// A text that may hold something secret.
    pub(super) fn text(&mut self, text: &str) -> String {
        let trimmed = text.trim_start();
        if trimmed.starts_with(['{', '['])
            && let Ok(mut inner) = serde_json::from_str::<Value>(text)
        {
            let before = inner.clone();
            self.replace(&mut inner);
            return if inner == before { text.to_owned() } else { inner.to_string() };
        }
        let patterns = Arc::clone(&self.text);
        let mut text = patterns.member.replace_all(text, |found: &Captures<'_>| {
            if self.is_secret(&found[1]) {
                format!("\"{}\"{}\"{}", &found[1], &found[2], self.secret(&found[1], &found[3]))
            } else {
                found[0].to_owned()
            }
        });
        text = patterns
            .parameter
            .replace_all(&text, |found: &Captures<'_>| {
                if self.is_secret(&found[1]) {
                    format!("{}={}", &found[1], self.secret(&found[1], &found[2]))
                } else {
                    found[0].to_owned()
                }
            })
            .into_owned()
            .into();
        text = patterns
            .bearer
            .replace_all(&text, |found: &Captures<'_>| {
                // Words that follow are no tokens.
                let token = found[2].bytes().any(|byte| byte.is_ascii_digit()) || found[2].len() >= 20;
                let shown = if token { self.secret("token", &found[2]) } else { found[2].to_owned() };
                format!("{}{shown}", &found[1])
            })
            .into_owned()
            .into();
        text = patterns
            .signed
            .replace_all(&text, |found: &Captures<'_>| self.secret("token", &found[0]))
            .into_owned()
            .into();
        text = patterns
            .password
            .replace_all(&text, |found: &Captures<'_>| {
                format!("{}{}@", &found[1], self.secret("password", &found[2]))
            })
            .into_owned()
            .into();
        let text = self.homes(&text, &patterns);
        self.words(&text)
    }

    fn homes(&mut self, text: &str, patterns: &Texts) -> String {
        let mut text = text.to_owned();
        if let Some(home) = self.home.clone() {
            text = replace_path(&text, &home, |_| self.person_at(&home));
        }
        let text = patterns.windows.replace_all(&text, |found: &Captures<'_>| {
            format!("{}{}{}", &found[1], self.person(&found[2]), &found[3])
        });
        let text = text.into_owned();
        let replaced = patterns.home.replace_all(&text, |found: &Captures<'_>| {
            let at = found.get(0).map_or(0, |found| found.start());
            if is_in_url(&text[..at]) {
                return found[0].to_owned();
            }
            format!("{}{}", &found[1], self.person(&found[2]))
        });
        replaced.into_owned()
    }

    /// A home that is not known as one by its form.
    fn person_at(&mut self, home: &str) -> String {
        let name = home.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        let stem = &home[..home.len() - name.len()];
        let stem = if stem.contains("home/") || stem.contains("Users") { stem } else { "/home/" };
        format!("{stem}{}", self.person(&name))
    }

    fn person(&mut self, name: &str) -> String {
        let is_placeholder =
            name.strip_prefix("user-").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if is_placeholder {
            return name.to_owned();
        }
        let next = self.people.len() + 1;
        self.people.entry(name.to_owned()).or_insert_with(|| format!("user-{next}")).clone()
    }

    /// Replaces what is known to be secret, and the names of people as words of their own.
    fn words(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.sought.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            if let Some(placeholder) = self.known.get(secret) {
                text = text.replace(secret.as_str(), placeholder);
            }
        }
        for (name, placeholder) in &self.people {
            let common = name.len() < 3 || NOBODY.contains(&name.to_ascii_lowercase().as_str());
            if !common && text.contains(name.as_str()) {
                text = replace_word(&text, name, placeholder);
            }
        }
        text
    }

    /// Replaces in a whole step what was found out to be secret after it was said.
    pub(super) fn again(&self, step: &mut Map<String, Value>) {
        for (name, value) in step.iter_mut() {
            self.know(name, value);
        }
    }

    fn know(&self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) if !PROTOCOL.contains(&name) => *text = self.words(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.know(name, item)),
            Value::Object(members) => {
                let kept = std::mem::take(members);
                for (name, mut value) in kept {
                    self.know(&name, &mut value);
                    members.insert(self.words(&name), value);
                }
            }
            _ => {}
        }
    }

    /// `of` is the name of the member that the value is, `schema` whether it stands in the definition of members.
    fn value(&mut self, value: &mut Value, of: &str, schema: bool) {
        if !schema && self.is_secret(of) {
            return self.hide(value, of);
        }
        match value {
            Value::String(text) if !PROTOCOL.contains(&of) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, of, schema)),
            Value::Object(members) => {
                let kept = std::mem::take(members);
                for (name, mut value) in kept {
                    let defines = of == "properties" && value.is_object();
                    self.value(&mut value, &name, defines);
                    members.insert(self.text(&name), value);
                }
            }
            _ => {}
        }
    }

    /// Everything below a member that is secret.
    fn hide(&mut self, value: &mut Value, of: &str) {
        match value {
            Value::String(text) => *text = self.secret(of, text),
            Value::Number(number) => *value = json!(self.secret(of, &number.to_string())),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide(item, of)),
            Value::Object(members) => members.values_mut().for_each(|value| self.hide(value, of)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The placeholder for a secret.
    fn secret(&mut self, kind: &str, secret: &str) -> String {
        if secret.is_empty() || secret.starts_with("redacted-") {
            return secret.to_owned();
        }
        if let Some(known) = self.known.get(secret) {
            return known.clone();
        }
        let kind = kind.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let count = self.counts.entry(kind.clone()).or_default();
        *count += 1;
        let placeholder = format!("redacted-{kind}-{count}");
        self.known.insert(secret.to_owned(), placeholder.clone());
        if secret.len() >= TELLING && self.sought.len() < SOUGHT {
            self.sought.push(secret.to_owned());
            // The longer ones first, for one may be a part of another.
            self.sought.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
        placeholder
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = plain(name);
        const OPEN: [&str; 4] = ["progresstoken", "pagetoken", "nextpagetoken", "continuationtoken"];
        const ENDS: [&str; 14] = [
            "token",
            "secret",
            "password",
            "passwd",
            "passphrase",
            "apikey",
            "accesskey",
            "secretkey",
            "privatekey",
            "credential",
            "credentials",
            "authorization",
            "cookie",
            "sessionid",
        ];
        self.names.contains(&name)
            || (!OPEN.contains(&name.as_str()) && ENDS.iter().any(|end| name.ends_with(end)))
    }
}

/// A name however it is written: `access_token`, `accessToken`, `Access-Token`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether what follows the text is a part of a web address.
fn is_in_url(before: &str) -> bool {
    let word =
        before.rsplit(|c: char| c.is_whitespace() || "\"'()<>,".contains(c)).next().unwrap_or_default();
    word.contains("http://") || word.contains("https://")
}

/// Replaces a path where it stands as a whole, or with more behind it.
fn replace_path(text: &str, path: &str, mut with: impl FnMut(&str) -> String) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, found) = (&rest[..at], &rest[at..]);
        let after = &found[path.len()..];
        let goes_on = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.';
        let whole = !after.starts_with(goes_on) && !before.ends_with(char::is_alphanumeric);
        done.push_str(before);
        if whole && !is_in_url(&format!("{done}{before}")) {
            done.push_str(&with(path));
        } else {
            done.push_str(path);
        }
        rest = after;
    }
    done.push_str(rest);
    done
}

/// Replaces a word that is not a part of another.
fn replace_word(text: &str, word: &str, with: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let after = &rest[at + word.len()..];
        let alone = !after.starts_with(char::is_alphanumeric) && !rest[..at].ends_with(char::is_alphanumeric);
        done.push_str(&rest[..at]);
        done.push_str(if alone { with } else { word });
        rest = after;
    }
    done.push_str(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        Secrets::of(&["pin".to_owned()], Some("/data/people/grace/".to_owned())).unwrap()
    }

    fn replaced(secrets: &mut Secrets, mut message: Value) -> Value {
        secrets.replace(&mut message);
        message
    }

    #[test]
    fn members_that_hold_secrets_are_replaced_whatever_their_spelling() {
        let mut secrets = secrets();
        let message = json!({
            "access_token": "a\"b\\cdefgh", "refreshToken": "second-one", "API-Key": "third-one",
            "nested": [{"client_secret": ["x1", "x2"], "Password": {"value": "hunter22"}}], "PIN": 1234,
            "said": "it was a\"b\\cdefgh, not x1", "progressToken": "p-1", "nextPageToken": "n", "maxTokens": 100,
        });
        let text = replaced(&mut secrets, message);
        assert_eq!(text["access_token"], "redacted-access-token-1");
        assert_eq!(text["said"], "it was redacted-access-token-1, not x1");
        assert_eq!(
            text["nested"][0]["client_secret"],
            json!(["redacted-client-secret-1", "redacted-client-secret-2"])
        );
        assert_eq!(text["nested"][0]["Password"]["value"], "redacted-password-1");
        assert_eq!(text["PIN"], "redacted-pin-1");
        assert_eq!((&text["progressToken"], &text["maxTokens"]), (&json!("p-1"), &json!(100)));
        assert_eq!(text["nextPageToken"], "n");
        for secret in ["hunter22", "second-one", "third-one", "x2", "1234"] {
            assert!(!text.to_string().contains(secret), "{secret} in {text}");
        }
    }

    #[test]
    fn the_definition_of_a_secret_member_is_none() {
        let schema = json!({"properties": {"password": {"type": "string", "description": "yours"}}});
        assert_eq!(replaced(&mut secrets(), schema.clone()), schema);
        let given = replaced(&mut secrets(), json!({"properties": {"password": "hunter22"}}));
        assert_eq!(given["properties"]["password"], "redacted-password-1");
    }

    #[test]
    fn equal_secrets_stay_equal_wherever_they_stand() {
        let mut secrets = secrets();
        let token = "s3cr3t-t0k3n-value";
        let first = secrets.header("authorization", &format!("Bearer {token}"));
        assert_eq!(first, "Bearer redacted-token-1");
        let texts = [
            format!("curl -H 'Authorization: bearer {token}' x"),
            format!("{{\"text\":\"{token}\"}}"),
            format!("http://h/mcp?access_token={token}&a=b"),
            format!("{{\"access_token\":\"{token}\",\"half"),
            format!("http://ada:{token}@h/"),
        ];
        for text in texts {
            let shown = secrets.text(&text);
            assert!(shown.contains("redacted-token-1") && !shown.contains(token), "{shown}");
        }
        assert_eq!(secrets.header("proxy-authorization", "Basic dXNlcjpwYXNz"), "Basic redacted-token-2");
        assert_eq!(secrets.header("mcp-session-id", "8d0c9a4e"), "redacted-session-1");
        let set = secrets.header("set-cookie", "sid=abcdefgh1; Path=/; HttpOnly");
        assert_eq!(set, "sid=redacted-cookie-1; Path=/; HttpOnly");
        assert_eq!(
            secrets.header("cookie", "a=1; sid=abcdefgh1"),
            "a=redacted-cookie-2; sid=redacted-cookie-1"
        );
        assert_eq!(secrets.header("x-api-key", "key-of-mine"), "redacted-x-api-key-1");
        assert_eq!(secrets.text("needs a bearer authentication"), "needs a bearer authentication");
        let signed = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln";
        assert!(!secrets.text(&format!("got {signed}.")).contains("eyJ"));
    }

    #[test]
    fn homes_and_the_names_in_them_are_replaced() {
        let mut secrets = secrets();
        let text = secrets.text("/home/ada/x, file:///Users/bob/y and C:\\Users\\Ada Lovelace\\z, /home/ada");
        assert_eq!(text, "/home/user-3/x, file:///Users/user-1/y and C:\\Users\\user-2\\z, /home/user-3");
        assert_eq!(secrets.text("/data/people/grace/notes by grace"), "/home/user-4/notes by user-4");
        assert_eq!(secrets.text("/data/people/gracejones"), "/data/people/gracejones");
        assert_eq!(secrets.text("adapter of ada"), "adapter of user-3");
        let url = "https://example.com/home/about";
        assert_eq!(secrets.text(url), url);
        let mut shell = Secrets::of(&[], Some("/root".to_owned())).unwrap();
        assert_eq!(shell.text("/root/a is no /rooted, root"), "/home/user-1/a is no /rooted, root");
        let keys = replaced(&mut shell, json!({"/home/eve/a": 1, "method": "eve", "x": "eve"}));
        assert_eq!(keys["/home/user-2/a"], 1);
        assert_eq!(keys["method"], "eve");
    }

    #[test]
    fn what_was_said_before_it_was_known_is_replaced_at_the_end() {
        let mut secrets = secrets();
        let mut step = Map::from_iter([("server".to_owned(), json!({"text": "late-secret-1 of eve"}))]);
        secrets.replace(step.get_mut("server").unwrap());
        assert_eq!(step["server"]["text"], "late-secret-1 of eve");
        replaced(&mut secrets, json!({"secret": "late-secret-1", "path": "/home/eve"}));
        secrets.again(&mut step);
        assert_eq!(step["server"]["text"], "redacted-secret-1 of user-1");
    }
}
