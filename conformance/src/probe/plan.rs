//! What a client is asked to do: the same JSON for people, for the suite and for the checks against real servers.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// A plan, read.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// What to do, in order.
    pub(super) steps: Vec<Step>,
    /// The steps were written down one by one: each is done, whatever the server declares.
    pub(super) is_exact: bool,
    /// What is said when the server asks.
    pub(super) answers: Answers,
    /// Whether calls may become tasks.
    pub(super) tasks: bool,
    /// For each request.
    pub(super) timeout: Option<Duration>,
    /// How long a server on pipes may be silent before it is taken for a legacy one.
    pub(super) silence: Option<Duration>,
    /// Rounds of input that are too many.
    pub(super) rounds: Option<u32>,
    /// A bearer token.
    pub(super) token: Option<String>,
}

/// What is said when the server asks; what is absent is not declared either.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    pub(super) elicitation: Option<Form>,
    pub(super) url: Option<String>,
    pub(super) sampling: Option<Value>,
    pub(super) roots: Option<Value>,
}

/// What a form is answered with.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// These values, and for other fields their defaults.
    Accept(Map<String, Value>),
    /// `decline` or `cancel`.
    Action(String),
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) act: Act,
    pub(super) name: Option<String>,
    pub(super) background: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) most: Option<Duration>,
    pub(super) progress: bool,
    pub(super) cancel: Option<Cancel>,
    pub(super) fresh: bool,
    pub(super) task: bool,
    /// Done again until the result has these values at these JSON pointers.
    pub(super) until: Option<Map<String, Value>>,
}

/// When a call is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    After(Duration),
    AtProgress,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    List(Kind),
    Call { name: String, arguments: Option<Value> },
    Read(String),
    Prompt { name: String, arguments: Map<String, Value> },
    Complete(Value),
    Subscribe(String),
    Unsubscribe(String),
    Level(String),
    Ping,
    Listen(Value),
    Unlisten(String),
    Watch(String),
    Wait(Duration),
    Join(String),
    Roots(Value),
}

/// The lists of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// Says where it is none, and what was expected there.
    pub(super) fn read(json: &Value) -> Result<Self, String> {
        let at = Place::root(json);
        let plan = at.object()?;
        let mut read = Self::default();
        let mut short = Vec::new();
        for (name, value) in plan {
            let at = at.member(name, value);
            match &**name {
                "steps" => {
                    read.steps = at.items()?.map(|at| step(&at)).collect::<Result<_, _>>()?;
                }
                "answers" => read.answers = answers(&at)?,
                "tasks" => read.tasks = at.flag()?,
                "timeout" => read.timeout = Some(at.millis()?),
                "silence" => read.silence = Some(at.millis()?),
                "rounds" => read.rounds = Some(u32::try_from(at.whole()?).unwrap_or(u32::MAX)),
                "token" => read.token = Some(at.text()?.to_owned()),
                "tool" | "resource" | "prompt" | "complete" | "mrtr" | "subscribe" | "slow" => {
                    short.push((name.as_str(), at));
                }
                other => return Err(at.wrong(&format!("no member `{other}`"))),
            }
        }
        if plan.contains_key("steps") && !short.is_empty() {
            return Err(at.wrong("either `steps` or the short form"));
        }
        read.is_exact = plan.contains_key("steps");
        if !read.is_exact {
            read.short(&short)?;
        }
        Ok(read)
    }

    /// The plan without a plan: everything is listed.
    pub(super) fn survey() -> Self {
        Self { steps: Kind::ALL.map(|kind| Step::of(Act::List(kind))).into(), ..Self::default() }
    }

    /// The short form: everything is listed, then comes what is named, in this order; last the tool once more, to
    /// show that the connection lives.
    fn short(&mut self, members: &[(&str, Place<'_>)]) -> Result<(), String> {
        self.steps = Self::survey().steps;
        let find = |name: &str| members.iter().find(|(member, _)| *member == name).map(|(_, at)| at);
        let call = |at: &Place<'_>| -> Result<Step, String> {
            Ok(Step::of(Act::Call {
                name: at.required("name")?.text()?.to_owned(),
                arguments: at.optional("arguments").map(|at| at.json.clone()),
            }))
        };
        let tool = find("tool").map(call).transpose()?;
        self.steps.extend(tool.clone());
        if let Some(at) = find("resource") {
            self.steps.push(Step::of(Act::Read(at.text()?.to_owned())));
        }
        if let Some(at) = find("prompt") {
            self.steps.push(Step::of(prompt(at, at.required("name")?.text()?)?));
        }
        if let Some(at) = find("complete") {
            for at in at.items()? {
                self.steps.push(Step::of(Act::Complete(at.json.clone())));
            }
        }
        if let Some(at) = find("mrtr") {
            let answers = at.optional("answers").map(|at| at.object().cloned()).transpose()?;
            self.answers.elicitation = Some(Form::Accept(answers.unwrap_or_default()));
            self.steps.push(call(at)?);
        }
        if let Some(at) = find("subscribe") {
            let uri = at.required("uri")?.text()?;
            let listen = Act::Listen(json!({"resourceSubscriptions": [uri]}));
            self.steps.push(Step { name: Some("subscription".to_owned()), ..Step::of(listen) });
            self.steps.push(call(&at.required("trigger")?)?);
            self.steps.push(Step::of(Act::Watch("notifications/resources/updated".to_owned())));
            self.steps.push(Step::of(Act::Unlisten("subscription".to_owned())));
        }
        if let Some(at) = find("slow") {
            let after =
                at.optional("cancelAfterMs").map_or(Ok(Duration::from_millis(100)), |at| at.millis())?;
            self.steps.push(Step { cancel: Some(Cancel::After(after)), ..call(at)? });
        }
        self.steps.extend(tool);
        Ok(())
    }
}

impl Step {
    pub(super) const fn of(act: Act) -> Self {
        Self {
            act,
            name: None,
            background: false,
            timeout: None,
            most: None,
            progress: false,
            cancel: None,
            fresh: false,
            task: false,
            until: None,
        }
    }
}

fn step(at: &Place<'_>) -> Result<Step, String> {
    let members = at.object()?;
    let mut acts = Vec::new();
    let mut step = Step::of(Act::Ping);
    for (name, value) in members {
        let inner = at.member(name, value);
        match &**name {
            "as" => step.name = Some(inner.text()?.to_owned()),
            "background" => step.background = inner.flag()?,
            "timeout" => step.timeout = Some(inner.millis()?),
            "most" => step.most = Some(inner.millis()?),
            "progress" => step.progress = inner.flag()?,
            "fresh" => step.fresh = inner.flag()?,
            "task" => step.task = inner.flag()?,
            "until" => {
                step.until = Some(inner.object()?.clone());
                // What is asked again is to be told anew.
                step.fresh = true;
            }
            "cancel" if value == "progress" => step.cancel = Some(Cancel::AtProgress),
            "cancel" => step.cancel = Some(Cancel::After(inner.millis()?)),
            "arguments" => {}
            _ => acts.push(act(at, name, &inner)?),
        }
    }
    match <[Act; 1]>::try_from(acts) {
        Ok([act]) => Ok(Step { act, ..step }),
        Err(acts) => Err(at.wrong(&format!("one thing to do, not {}", acts.len()))),
    }
}

fn act(step: &Place<'_>, name: &str, at: &Place<'_>) -> Result<Act, String> {
    let text = || at.text().map(str::to_owned);
    Ok(match name {
        "list" => Act::List(match at.text()? {
            "tools" => Kind::Tools,
            "resources" => Kind::Resources,
            "templates" => Kind::Templates,
            "prompts" => Kind::Prompts,
            _ => return Err(at.wrong("`tools`, `resources`, `templates` or `prompts`")),
        }),
        "call" => {
            Act::Call { name: text()?, arguments: step.optional("arguments").map(|at| at.json.clone()) }
        }
        "read" => Act::Read(text()?),
        "prompt" => prompt(step, at.text()?)?,
        "complete" => Act::Complete(at.json.clone()),
        "subscribe" => Act::Subscribe(text()?),
        "unsubscribe" => Act::Unsubscribe(text()?),
        "level" => Act::Level(text()?),
        "ping" => Act::Ping,
        "listen" => Act::Listen(at.json.clone()),
        "unlisten" => Act::Unlisten(text()?),
        "watch" => Act::Watch(text()?),
        "wait" => Act::Wait(at.millis()?),
        "join" => Act::Join(text()?),
        "roots" => Act::Roots(at.json.clone()),
        other => return Err(step.wrong(&format!("something to do, not `{other}`"))),
    })
}

/// Gets a prompt: its arguments stand beside its name.
fn prompt(at: &Place<'_>, name: &str) -> Result<Act, String> {
    let arguments = at.optional("arguments").map(|at| at.object().cloned()).transpose()?;
    Ok(Act::Prompt { name: name.to_owned(), arguments: arguments.unwrap_or_default() })
}

fn answers(at: &Place<'_>) -> Result<Answers, String> {
    let mut answers = Answers::default();
    for (name, value) in at.object()? {
        let at = at.member(name, value);
        match &**name {
            "elicitation" => {
                let content = at.object()?;
                answers.elicitation = Some(match content.get("$action") {
                    Some(action) => Form::Action(action.as_str().unwrap_or_default().to_owned()),
                    None => Form::Accept(content.clone()),
                });
            }
            "form" => answers.elicitation = Some(Form::Action(at.text()?.to_owned())),
            "url" => answers.url = Some(at.text()?.to_owned()),
            "sampling" => answers.sampling = Some(value.clone()),
            "roots" => answers.roots = Some(value.clone()),
            other => return Err(at.wrong(&format!("no answer to `{other}`"))),
        }
    }
    Ok(answers)
}

/// A value and where it stands.
struct Place<'p> {
    json: &'p Value,
    pointer: String,
}

impl<'p> Place<'p> {
    fn root(json: &'p Value) -> Self {
        Self { json, pointer: String::new() }
    }

    fn member(&self, name: &str, json: &'p Value) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        Self { json, pointer: format!("{}/{name}", self.pointer) }
    }

    fn optional(&self, name: &str) -> Option<Self> {
        self.json.get(name).map(|json| self.member(name, json))
    }

    fn required(&self, name: &str) -> Result<Self, String> {
        self.optional(name).ok_or_else(|| self.wrong(&format!("a member `{name}`")))
    }

    fn object(&self) -> Result<&'p Map<String, Value>, String> {
        self.json.as_object().ok_or_else(|| self.wrong("an object"))
    }

    fn items(&self) -> Result<impl Iterator<Item = Self>, String> {
        let items = self.json.as_array().ok_or_else(|| self.wrong("an array"))?;
        Ok(items.iter().enumerate().map(|(index, json)| self.member(&index.to_string(), json)))
    }

    fn text(&self) -> Result<&'p str, String> {
        self.json.as_str().ok_or_else(|| self.wrong("a string"))
    }

    fn flag(&self) -> Result<bool, String> {
        self.json.as_bool().ok_or_else(|| self.wrong("`true` or `false`"))
    }

    fn whole(&self) -> Result<u64, String> {
        self.json.as_u64().ok_or_else(|| self.wrong("a whole number from 0"))
    }

    fn millis(&self) -> Result<Duration, String> {
        self.whole().map(Duration::from_millis)
    }

    fn wrong(&self, expected: &str) -> String {
        let mut got = self.json.to_string();
        if got.len() > 80 {
            got = format!("{}…", got.chars().take(79).collect::<String>());
        }
        format!("the plan at `{}`: expected {expected}, found {got}", self.pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_lists_does_and_shows_that_the_connection_lives() {
        let plan = json!({
            "tool": {"name": "echo", "arguments": {"text": "a"}},
            "mrtr": {"name": "deploy", "arguments": {"env": "x"}, "answers": {"confirm": true}},
            "subscribe": {"uri": "config://app", "trigger": {"name": "touch"}},
            "slow": {"name": "slow", "arguments": {"ms": 9000}, "cancelAfterMs": 50},
        });
        let plan = Plan::read(&plan).unwrap();
        assert_eq!(plan.steps.len(), 4 + 1 + 1 + 4 + 1 + 1);
        assert!(matches!(&plan.steps[4].act, Act::Call { name, .. } if name == "echo"));
        assert!(matches!(&plan.steps[11].act, Act::Call { name, .. } if name == "echo"));
        assert_eq!(plan.steps[10].cancel, Some(Cancel::After(Duration::from_millis(50))));
        assert!(
            matches!(&plan.answers.elicitation, Some(Form::Accept(content)) if content["confirm"] == true)
        );
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_place() {
        for (plan, expected) in [
            (json!([]), "at ``: expected an object"),
            (json!({"steps": [{"list": "tool"}]}), "at `/steps/0/list`: expected `tools`"),
            (
                json!({"steps": [{"call": "a", "read": "b"}]}),
                "at `/steps/0`: expected one thing to do, not 2",
            ),
            (json!({"steps": [{"as": "a"}]}), "at `/steps/0`: expected one thing to do, not 0"),
            (json!({"steps": [{"dance": true}]}), "something to do, not `dance`"),
            (json!({"steps": [], "tool": {"name": "a"}}), "either `steps` or the short form"),
            (json!({"tool": {}}), "at `/tool`: expected a member `name`"),
            (json!({"timeout": -1}), "at `/timeout`: expected a whole number from 0, found -1"),
            (json!({"answers": {"model": 1}}), "at `/answers/model`: expected no answer to `model`"),
            (json!({"toool": 1}), "expected no member `toool`"),
        ] {
            let problem = Plan::read(&plan).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
