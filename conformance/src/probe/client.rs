//! The client of a plan: what it declares, and what it says when the server asks.

use std::time::Duration;

use mcp_proto::client::{CallOptions, Mode, Rounds};
use mcp_proto::model::{CreateMessageResult, ElicitForm, ElicitResult, Implementation, Json, Members, Root};
use mcp_proto::service::client::{Client, ClientBuilder, Refusal};
use serde_json::{Map, Value};

use super::heard::Heard;
use super::plan::{Act, Answers, Form, Plan};

/// Declares a client that can do what the plan wants, and no more.
///
/// # Errors
///
/// An answer of the plan is none.
pub(super) fn declare(plan: &Plan, mode: Mode, heard: &Heard) -> Result<ClientBuilder, String> {
    let identity = Implementation::new("mcp-conformance-probe", env!("CARGO_PKG_VERSION"));
    let mut client = Client::with_identity(identity).mode(mode).tasks(plan.tasks);
    client = answering(client, &plan.answers)?;
    let mut options = CallOptions::default();
    options.timeout = Some(plan.timeout.unwrap_or(Duration::from_secs(30)));
    if let Some(timeout) = plan.timeout {
        client = client.handshake_timeout(timeout);
    }
    if let Some(silence) = plan.silence {
        client = client.probe_timeout(silence);
    }
    if let Some(max) = plan.rounds {
        options.rounds = Rounds::Auto { max };
    }
    client = client.options(options);
    let ears = heard.clone();
    client = client.on_log(move |message| ears.log(serde_json::to_value(&message).unwrap_or_default()));
    let ears = heard.clone();
    client = client.on_notification(move |method, params| {
        ears.notification(method, params.decode::<Value>().unwrap_or_default());
    });
    let ears = heard.clone();
    client = client.on_elicitation_complete(move |id| {
        ears.notification("notifications/elicitation/complete", serde_json::json!({"elicitationId": id}));
    });
    client = client.on_violation(|violation| {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "mcp-conformance: the server: {}", violation.detail);
    });
    // Where it takes a subscription to hear of changes, the plan says so itself.
    let waits = |act: &Act| matches!(act, Act::Watch(method) if method.ends_with("list_changed"));
    let listens = plan.steps.iter().any(|step| matches!(step.act, Act::Listen(_)));
    if !listens && plan.steps.iter().any(|step| waits(&step.act)) {
        let ears = heard.clone();
        client = client.on_change(move |change| ears.change(&change));
    }
    Ok(client)
}

fn answering(mut client: ClientBuilder, answers: &Answers) -> Result<ClientBuilder, String> {
    if let Some(form) = answers.elicitation.clone() {
        client = client.on_elicit(move |asked, _| {
            let answer = fill(&form, &asked);
            async move { answer }
        });
    }
    if let Some(action) = answers.url.clone() {
        client = client.on_elicit_url(move |_, _| {
            let answer = match &*action {
                "accept" => Ok(ElicitResult::accept_url()),
                other => refuse(other),
            };
            async move { answer }
        });
    }
    if let Some(sampling) = &answers.sampling {
        let answer: CreateMessageResult = read(sampling, "sampling")?;
        client = client.on_sample(move |_, _| {
            let answer = answer.clone();
            async move { Ok(answer) }
        });
    }
    if let Some(roots) = &answers.roots {
        client = client.roots(self::roots(roots)?);
    }
    Ok(client)
}

pub(super) fn roots(json: &Value) -> Result<Vec<Root>, String> {
    read(json, "roots")
}

fn read<T: for<'de> serde::Deserialize<'de>>(json: &Value, what: &str) -> Result<T, String> {
    Json::from_serialize(json)
        .map_err(|error| error.to_string())
        .and_then(|json| json.decode::<T>().map_err(|error| error.to_string()))
        .map_err(|error| format!("the plan at `/answers/{what}`: {error}"))
}

/// The fields of the form that the plan has a value for, and the defaults of the others.
fn fill(form: &Form, asked: &ElicitForm) -> Result<ElicitResult, Refusal> {
    let values: &Map<String, Value> = match form {
        Form::Action(action) => return refuse(action),
        Form::Accept(values) => values,
    };
    let mut content: Members<Json> = asked.defaults();
    for (name, _) in asked.requested_schema.properties().iter() {
        if let Some(value) = values.get(&**name) {
            content.insert(name.clone(), Json::from_serialize(value)?);
        }
    }
    Ok(ElicitResult::accept(content))
}

fn refuse(action: &str) -> Result<ElicitResult, Refusal> {
    match action {
        "decline" => Ok(ElicitResult::decline()),
        "cancel" => Ok(ElicitResult::cancel()),
        other => Err(Refusal::new(format!("the plan answers {other:?}"))),
    }
}
