//! Reading an exchange file.

use std::fmt;

use serde_json::Value;

use super::hosted::{self, Hosted};
use super::{Exchange, Head, HostStep, Step};

/// Why a file is no exchange: where, what was expected, what came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was expected and what came.
    pub problem: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

impl std::error::Error for ParseError {}

/// Reads an exchange; `file` names it in errors. Blank lines are allowed between steps.
///
/// # Errors
///
/// Names the file, the line, what was expected and what came.
pub fn parse(file: &str, text: &str) -> Result<Exchange, ParseError> {
    let mut head = None;
    let mut steps = Vec::new();
    let mut client: Option<Hosted> = None;
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        let fail = |problem| ParseError { file: file.to_owned(), line, problem };
        if content.trim().is_empty() {
            continue;
        }
        let mut value: Value = serde_json::from_str(content)
            .map_err(|error| fail(format!("expected one JSON object: {error}")))?;
        if head.is_none() {
            if hosted::is_client(&value)
                && let Value::Object(members) = &mut value
            {
                client = Some(Hosted::take(members).map_err(fail)?);
            }
            head = Some(Head::read(value).map_err(fail)?);
        } else if let Some(client) = &mut client {
            client.steps.push(HostStep::read(line, value).map_err(fail)?);
        } else {
            steps.push(Step::read(line, value).map_err(fail)?);
        }
    }
    let fail = |problem: &str| ParseError { file: file.to_owned(), line: 1, problem: problem.to_owned() };
    let head = head.ok_or_else(|| fail("expected a head, got an empty file"))?;
    if steps.is_empty() && client.as_ref().is_none_or(|client| client.steps.is_empty()) {
        return Err(fail("expected at least one step after the head"));
    }
    Ok(Exchange { head, steps, hosted: client })
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Kind, Side, Signature, Transport};
    use super::*;
    use crate::requirement::Level;
    use crate::revision::Revision;

    const HEAD: &str = r#"{"exchange":"tools/unknown","about":"An unknown tool.","side":"server","revisions":["2025-11-25","2026-07-28"],"transports":["stdio","http"],"requires":["T02"],"needs":{"capabilities":["tools"],"tools":["echo(text)"]},"level":"must"}"#;

    fn problem(steps: &str) -> String {
        parse("x.jsonl", &format!("{HEAD}\n{steps}\n")).unwrap_err().to_string()
    }

    #[test]
    fn the_head_and_the_steps_are_read() {
        let text = format!(
            "{HEAD}\n{}\n\n{}\n",
            r#"{"send":{"method":"tools/call","params":{"name":"no-such-tool"}},"as":"call"}"#,
            r#"{"expect":{"error":{"code":-32602,"message":{"$type":"string"}}},"for":"call","level":"should"}"#
        );
        let exchange = parse("x.jsonl", &text).unwrap();
        let head = &exchange.head;
        assert_eq!((head.name.as_str(), head.side, head.handshake), ("tools/unknown", Side::Server, true));
        assert_eq!(head.transports, [Transport::Stdio, Transport::Http]);
        assert!(head.revisions.contains(Revision::V2026_07_28));
        assert!(!head.revisions.contains(Revision::V2025_06_18));
        assert_eq!(head.needs.tools, [Signature::parse("echo(text)").unwrap()]);
        assert!(
            matches!(&exchange.steps[0].action, Action::Send(send) if send.name.as_deref() == Some("call"))
        );
        let Action::Expect(expect) = &exchange.steps[1].action else { panic!("not an expectation") };
        assert_eq!((expect.kind.clone(), expect.of.as_deref()), (Kind::Response, Some("call")));
        assert_eq!((exchange.steps[1].line, exchange.steps[1].level), (4, Some(Level::Should)));
    }

    #[test]
    fn text_that_is_sent_as_it_stands_may_have_headers() {
        let step = r#"{"send_text":"x","headers":{"HOST":{"$ref":"authority"}}}"#;
        let exchange = parse("x.jsonl", &format!("{HEAD}\n{step}\n")).unwrap();
        let Action::SendText(text) = &exchange.steps[0].action else { panic!("not text") };
        assert_eq!((text.text.as_str(), text.headers.len()), (Some("x"), 1));
        assert!(problem(r#"{"send_text":"x","headers":5}"#).contains("`headers`: expected an object"));
    }

    #[test]
    fn errors_name_the_file_the_line_and_what_was_expected() {
        assert_eq!(
            parse("x.jsonl", "").unwrap_err().to_string(),
            "x.jsonl:1: expected a head, got an empty file"
        );
        assert!(parse("x.jsonl", HEAD).unwrap_err().to_string().contains("at least one step"));
        assert!(problem("{\"send\"").starts_with("x.jsonl:2: expected one JSON object:"));
        assert!(problem("[]").contains("step: expected an object, got []"));
        assert!(problem(r#"{"sends":{}}"#).contains("step: expected one of `send`"));
        assert!(problem(r#"{"wait":5,"wile":1}"#).contains("got `wile`"));
        assert!(
            problem(r#"{"expect_nothing":"x"}"#).contains("expected a whole number, 0 or more, got \"x\"")
        );
        assert!(
            problem(r#"{"expect":{"results":{}}}"#).contains("an object with `result`, `error` or `method`")
        );
        assert!(problem(r#"{"expect":{"result":{"$sort":1}}}"#).contains("`$sort`"));
        assert!(problem(r#"{"send":{"method":"a","params":{"$reff":"x"}}}"#).contains("`$reff`"));
        assert!(problem(r#"{"send_bytes":"-_"}"#).contains("standard base64"));
        assert!(problem(r#"{"split":[3,3]}"#).contains("ascending"));
        assert!(problem(r#"{"unordered":[{"wait":1}]}"#).contains("`expect` steps only"));
        assert!(problem(r#"{"close":"stdout"}"#).contains("expected `stdin`, got `stdout`"));
        assert!(
            problem(r#"{"send":{"method":"a"},"only":"2030-01-01"}"#).contains("`only`: expected a revision")
        );
        let head = HEAD.replace("2025-11-25", "2025-11-26");
        assert!(parse("x", &head).unwrap_err().to_string().contains("x:1: `revisions`: expected a revision"));
        let head = HEAD.replace("echo(text)", "echo(text");
        assert!(parse("x", &head).unwrap_err().to_string().contains("`needs.tools`: expected a `)`"));
        let head = HEAD.replace("\"about\"", "\"abut\"");
        assert!(parse("x", &head).unwrap_err().to_string().contains("expected a member `about`"));
    }

    #[test]
    fn a_level_follows_from_what_is_cited_and_a_head_can_lower_it() {
        let level = |requires: &str, level: &str, revision| {
            let head = HEAD.replace("\"T02\"", requires).replace("\"must\"", level);
            parse("x", &format!("{head}\n{{\"wait\":0}}")).unwrap().head.level_on(revision)
        };
        let cited = "\"S-RES-08\",\"LS-RES-01\"";
        assert_eq!(level(cited, "\"must\"", Revision::V2026_07_28), Level::Must);
        assert_eq!(level(cited, "\"must\"", Revision::V2025_11_25), Level::Should);
        assert_eq!(level(cited, "\"should\"", Revision::V2026_07_28), Level::Should);
    }
}
