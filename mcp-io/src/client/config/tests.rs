use super::*;

fn read(text: &str) -> Servers {
    let value = |name: &str| match name {
        "TOKEN" => Some("secret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    Servers::parse_with(text, value).unwrap()
}

fn one(entry: &str) -> Result<Entry, String> {
    let servers = read(&format!(r#"{{ "mcpServers": {{ "a/b": {entry} }} }}"#));
    servers.0.into_iter().next().unwrap().1.map_err(|error| error.to_string())
}

#[test]
fn programs_and_urls_are_read() {
    let text = r#"{ "inputs": [], "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "${NONE:-server}", "$HOME", "~"],
                   "env": { "KEY": "${TOKEN}", "B": "x${EMPTY:-d}y${EMPTY}z" }, "cwd": "/data",
                   "disabled": true, "autoApprove": [1.5, null] },
        "team": { "url": "https://h/${env:TOKEN}/mcp", "type": "http", "headers": { "X": "a ${TOKEN}" } },
        "old": { "transport": "sse", "url": "https://h/sse" }, "bad": {} } }"#;
    let servers = read(text);
    let names: Vec<_> = servers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["files", "team", "old", "bad"]);
    let files = servers.get("files").unwrap().unwrap();
    assert_eq!((files.disabled, &*files.unknown), (true, &["autoApprove".to_owned()][..]));
    let Way::Program { command, args, env, cwd } = &files.way else { panic!("{files:?}") };
    assert_eq!((&**command, &**args), ("npx", &["-y", "server", "$HOME", "~"].map(String::from)[..]));
    assert_eq!(cwd.as_deref(), Some("/data".as_ref()));
    assert_eq!((&*env["KEY"], &*env["B"]), ("secret", "xdyz"));
    let team = servers.get("team").unwrap().unwrap();
    let Way::Url { url, headers, sse } = &team.way else { panic!("{team:?}") };
    assert_eq!((&**url, *sse), ("https://h/secret/mcp", false));
    assert_eq!(headers, &[("X".to_owned(), "a secret".to_owned())]);
    assert!(matches!(&servers.get("old").unwrap().unwrap().way, Way::Url { sse: true, .. }));
    assert!(servers.get("bad").unwrap().is_err());
    assert!(!format!("{servers:?}").contains("secret"));
    assert!(Servers::parse("\u{FEFF}{\"servers\":{}}").unwrap().iter().next().is_none());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (entry, error) in [
        ("[]", ": expected an object, found an array"),
        ("{}", ": expected command or url, found neither"),
        (r#"{"command":"x","url":"y"}"#, ": expected command or url, found both"),
        (r#"{"command":5}"#, "/command: expected a text, found a number"),
        (r#"{"command":" "}"#, "/command: expected a text, found an empty one"),
        (r#"{"command":"x","args":"y"}"#, "/args: expected an array of texts, found a text"),
        (r#"{"command":"x","args":["y",null]}"#, "/args/1: expected a text, found null"),
        (r#"{"command":"x","env":{"A":true}}"#, "/env/A: expected a text, found true or false"),
        (r#"{"command":"x","env":{"A=B":"c"}}"#, "/env/A=B: expected the name of a variable or a header"),
        (r#"{"command":"x","env":[]}"#, "/env: expected an object, found an array"),
        (
            r#"{"command":"x","args":["a\u0000"]}"#,
            "/args/0: found a character 0, which no program can be given",
        ),
        (r#"{"command":"x","headers":{}}"#, "/headers: a server with command has none"),
        (r#"{"url":"x","args":[]}"#, "/args: a server with url has none"),
        (
            r#"{"url":"x","type":"stdio"}"#,
            "/type: expected http or streamable-http or streamableHttp or sse, found \"stdio\"",
        ),
        (r#"{"command":"x","type":"http"}"#, "/type: expected stdio, found \"http\""),
        (r#"{"command":"x","type":"stdio","transport":"stdio"}"#, ": expected type or transport, found both"),
        (r#"{"command":"x","disabled":"no"}"#, "/disabled: expected true or false, found a text"),
        (r#"{"command":"${NONE}"}"#, "/command: expected a value for ${NONE}, found none"),
        (r#"{"command":"${A"}"#, "/command: expected a } for each ${, found the end of the text"),
        (r#"{"command":"${input:key}"}"#, "/command: expected ${NAME} or ${NAME:-else}, found ${input:key}"),
        (r#"{"command":"${A:-${B}}"}"#, "/command: expected ${NAME} or ${NAME:-else}, found ${A:-${B}"),
        (r#"{"command":"${}"}"#, "/command: expected ${NAME} or ${NAME:-else}, found ${}"),
    ] {
        assert_eq!(one(entry).unwrap_err(), format!("at /mcpServers/a~1b{error}"), "{entry}");
    }
    for (text, error) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "expected an object, found an array"),
        ("{}", "expected a member mcpServers, found none"),
        (r#"{"servers":{},"mcpServers":{}}"#, "expected mcpServers or servers, found both"),
        (r#"{"mcpServers":[]}"#, "at /mcpServers: expected an object, found an array"),
    ] {
        assert_eq!(Servers::parse(text).unwrap_err().to_string(), error, "{text}");
    }
    let twice = Servers::parse(r#"{"mcpServers":{"a":{},"a":{}}}"#).unwrap_err().to_string();
    assert!(twice.contains("expected each name once, found \"a\" twice"), "{twice}");
    // Deep nesting is bounded.
    assert!(Servers::parse(&"[".repeat(100_000)).is_err());
}
