use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use ProtocolVersion as V;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{
    CacheScope, InvalidToolName, JsonSchema, PromptArgument, TaskSupport, ToolExecution, view,
};
use crate::rpc::code;

type Numbered = RegistryBuilder<usize>;

fn builder() -> Numbered {
    Registry::builder()
}

fn tool(name: impl Into<String>) -> Tool {
    Tool::new(name.into(), JsonSchema::any_object())
}

fn with_schema(schema: &str) -> Tool {
    Tool::new("t", JsonSchema::parse(schema).unwrap())
}

/// The answers of one page; the whole as text.
fn tools_page(
    registry: &Registry<usize>,
    version: V,
    who: Option<&Principal>,
    cursor: Option<&str>,
) -> String {
    let mut out = Vec::new();
    registry.list_tools(version, who, cursor, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// All names by walking all pages, and the length of each page.
fn walk(
    registry: &Registry<usize>,
    who: Option<&Principal>,
    mut between: impl FnMut(),
) -> (Vec<String>, Vec<usize>) {
    let (mut names, mut pages) = (Vec::new(), Vec::new());
    let mut cursor: Option<String> = None;
    loop {
        let page: Value =
            serde_json::from_str(&tools_page(registry, V::LATEST, who, cursor.as_deref())).unwrap();
        let tools = page["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|t| t["name"].as_str().unwrap().to_string()));
        pages.push(tools.len());
        assert!(pages.len() < 1_000, "the walk ends");
        let Some(next) = page.get("nextCursor") else { return (names, pages) };
        cursor = Some(next.as_str().unwrap().to_string());
        between();
    }
}

fn bytes(error: &Error) -> String {
    let mut out = Vec::new();
    error.write(&mut out);
    String::from_utf8(out).unwrap()
}

fn problem(builder: Numbered) -> Problem {
    builder.build().unwrap_err().problem
}

/// S-TOOL-07, S-TOOL-08, S-TOOL-09
#[test]
fn tool_names_keep_the_rules() {
    let named = |name: &str| problem(builder().tool(tool(name), 0));
    assert_eq!(named(""), Problem::ToolName(InvalidToolName::Empty));
    assert_eq!(named(&"x".repeat(129)), Problem::ToolName(InvalidToolName::TooLong));
    assert_eq!(named("a b"), Problem::ToolName(InvalidToolName::Character(' ')));
    assert!(builder().tool(tool("A-z_0.9"), 0).tool(tool("x".repeat(128)), 1).build().is_ok());
}

/// S-TOOL-10: names differ, and case counts.
#[test]
fn nothing_is_registered_twice() {
    let twice = builder().tool(tool("b"), 0).tool(tool("a"), 1).tool(tool("b"), 2).build().unwrap_err();
    assert_eq!((twice.kind, &*twice.name, &twice.problem), (Kind::Tool, "b", &Problem::Duplicate));
    assert_eq!(twice.to_string(), "tool `b`: it is registered twice; names of tools must be unique");
    assert!(builder().tool(tool("b"), 0).tool(tool("B"), 1).build().is_ok());

    let twice = builder().prompt(Prompt::new("p"), 0).prompt(Prompt::new("p"), 1);
    assert_eq!(problem(twice), Problem::Duplicate);
    let resource = || Resource::new("a:b", "n");
    let twice = builder().resource(resource(), 0).resource(resource(), 1).build().unwrap_err();
    assert_eq!(twice.to_string(), "resource `a:b`: it is registered twice; each resource must be unique");
    let template = || ResourceTemplate::new("a:{b}", "n");
    let twice = builder().template(template(), 0).template(template(), 1);
    assert_eq!(problem(twice), Problem::Duplicate);
    // Kinds do not share names.
    let same = builder().tool(tool("n"), 0).prompt(Prompt::new("n"), 1);
    assert!(same.resource(resource(), 0).template(ResourceTemplate::new("a:b", "n"), 2).build().is_ok());
}

/// S-TOOL-06, T05
#[test]
fn input_schemas_describe_an_object() {
    for bad in [r"{}", r#"{"type":"string"}"#, r#"{"type":["object"]}"#, r#"{"properties":{}}"#] {
        let error = builder().tool(with_schema(bad), 0).build().unwrap_err();
        assert_eq!(error.problem, Problem::InputSchema, "{bad}");
        assert!(
            error
                .to_string()
                .starts_with(r#"tool `t`: the root of the input schema must say "type":"object""#)
        );
    }
}

/// S-HDR-05 to S-HDR-10: the rules are tested where they are read; here, that they are asked.
#[test]
fn header_annotations_are_checked_and_kept() {
    let schema = |t: &str| {
        format!(r#"{{"type":"object","properties":{{"r":{{"type":"{t}","x-mcp-header":"Region"}}}}}}"#)
    };
    let error = builder().tool(with_schema(&schema("number")), 0).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool `t`: invalid `x-mcp-header` in the input schema: /properties/r/x-mcp-header: expected an argument \
         of type integer, string or boolean, found \"number\""
    );
    let registry = builder().tool(with_schema(&schema("string")), 0).tool(tool("plain"), 1).build().unwrap();
    let arguments = registry.tool(V::LATEST, None, "t").unwrap().header_arguments();
    assert_eq!((arguments.len(), arguments[0].name()), (1, "Region"));
    assert!(registry.tool(V::LATEST, None, "plain").unwrap().header_arguments().is_empty());
}

/// S-RES-07
#[test]
fn uris_are_uris() {
    let at = |uri: &str| problem(builder().resource(Resource::new(uri.to_string(), "n"), 0));
    for bad in ["", "readme", "/etc/passwd", "1a:b", ":b", "a_b:c", "é:b"] {
        assert_eq!(at(bad), Problem::NoScheme, "{bad:?}");
    }
    for (bad, odd) in
        [("a:b c", ' '), ("a:é", 'é'), ("a:\n", '\n'), ("a:{b}", '{'), ("a:%", '%'), ("a:%4g", '%')]
    {
        assert_eq!(at(bad), Problem::UriCharacter(odd), "{bad:?}");
    }
    for good in ["a:", "file:///a%20b", "x-y.z+1://h:1/p?q=[1]#f", "urn:a:b", "data:,"] {
        assert!(builder().resource(Resource::new(good, "n"), 0).build().is_ok(), "{good}");
    }
    assert!(matches!(
        problem(builder().template(ResourceTemplate::new("a:{b", "n"), 0)),
        Problem::Template(_)
    ));
}

#[test]
fn prompts_and_their_arguments_have_names() {
    assert_eq!(problem(builder().prompt(Prompt::new(""), 0)), Problem::NoName);
    let with = |names: &[&str]| {
        let arguments: Vec<_> = names.iter().map(|n| PromptArgument::new(n.to_string())).collect();
        builder().prompt(Prompt::new("p").arguments(arguments), 0)
    };
    assert_eq!(problem(with(&["a", ""])), Problem::NoArgumentName);
    assert_eq!(problem(with(&["a", "b", "a"])), Problem::DuplicateArgument("a".into()));
    assert!(with(&["a", "A"]).build().is_ok());
}

#[test]
fn what_has_no_json_form_is_refused() {
    let annotations = crate::model::Annotations::new().priority(f64::NAN);
    let error =
        builder().resource(Resource::new("a:b", "n").annotations(annotations), 0).build().unwrap_err();
    assert!(
        matches!(error.problem, Problem::Unwritable(_)) && error.to_string().contains("finite"),
        "{error}"
    );
}

/// LS-TOOL-01, LS-TOOL-02, S-WIRE-05: each revision gets what it has, in the same bytes as the typed result.
#[test]
fn lists_are_as_the_revision_has_them() {
    let full = tool("full")
        .title("T")
        .output_schema(JsonSchema::parse(r#"{"type":"array"}"#).unwrap())
        .execution(ToolExecution::new(TaskSupport::Optional));
    let tools = [full, tool("plain").description("d")];
    let registry = builder().tool(tools[0].clone(), 0).tool(tools[1].clone(), 1).cache(
        Kind::Tool,
        5,
        CacheScope::Public,
    );
    let registry = registry.build().unwrap();
    for version in V::ALL {
        use crate::model::{ListToolsResult, ResultBody};
        let typed = ListToolsResult::new(tools.clone()).cache(5, CacheScope::Public);
        let mut expected = Vec::new();
        view::write(&mut expected, version, &*typed.fitted(version)).unwrap();
        assert_eq!(
            tools_page(&registry, version, None, None),
            String::from_utf8(expected).unwrap(),
            "{version}"
        );
    }
    assert!(!tools_page(&registry, V::V2025_11_25, None, None).contains("outputSchema"));
    assert!(tools_page(&registry, V::LATEST, None, None).contains("outputSchema"));
}

#[test]
fn each_list_has_its_own_member() {
    let registry = builder()
        .resource(Resource::new("a:b", "n").title("T"), 0)
        .template(ResourceTemplate::new("a:{b}", "n"), 0)
        .prompt(Prompt::new("p"), 0)
        .cache(Kind::Prompt, 60_000, CacheScope::Public)
        .build()
        .unwrap();
    let text = |list: &dyn Fn(&mut Vec<u8>) -> Result<(), Error>| {
        let mut out = b"before".to_vec();
        list(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let hints = r#","ttlMs":0,"cacheScope":"private""#;
    let v = V::LATEST;
    assert_eq!(text(&|o| registry.list_tools(v, None, None, o)), format!(r#"before{{"tools":[]{hints}}}"#));
    assert_eq!(
        text(&|o| registry.list_resources(v, None, None, o)),
        format!(r#"before{{"resources":[{{"uri":"a:b","name":"n","title":"T"}}]{hints}}}"#)
    );
    assert_eq!(
        text(&|o| registry.list_templates(v, None, None, o)),
        format!(r#"before{{"resourceTemplates":[{{"uriTemplate":"a:{{b}}","name":"n"}}]{hints}}}"#)
    );
    assert_eq!(
        text(&|o| registry.list_prompts(v, None, None, o)),
        r#"before{"prompts":[{"name":"p"}],"ttlMs":60000,"cacheScope":"public"}"#
    );
    assert_eq!(
        text(&|o| registry.list_resources(V::V2025_03_26, None, None, o)),
        r#"before{"resources":[{"uri":"a:b","name":"n"}]}"#
    );
}

/// S-CACHE-03, S-CACHE-04: one item that is not for everyone makes all pages private, also those that
/// someone sees who sees everything.
#[test]
fn what_differs_by_caller_is_private() {
    let all = |terms: Terms| {
        let b = builder().page_size(1).cache(Kind::Tool, 9, CacheScope::Public);
        b.tool(tool("a"), 0).tool_with(tool("b"), 1, terms).build().unwrap()
    };
    let admin = Principal::new("x").with_roles(["admin"]);
    let scope = |registry: &Registry<usize>, who| {
        let page: Value = serde_json::from_str(&tools_page(registry, V::LATEST, who, None)).unwrap();
        page["cacheScope"].as_str().unwrap().to_string()
    };
    assert_eq!(scope(&all(Terms::new().disabled()), None), "public");
    for access in [Access::any_role(["admin"]), Access::when(|_| true)] {
        let registry = all(access.into());
        assert_eq!(
            (scope(&registry, None), scope(&registry, Some(&admin))),
            ("private".into(), "private".into())
        );
    }
}

/// P01, S-PAGE-03: never page one for a cursor that was not issued.
#[test]
fn odd_cursors_are_refused() {
    let many = |size: usize, kind: fn(Numbered, usize) -> Numbered| {
        (0..4).fold(builder().page_size(size), kind).build().unwrap()
    };
    let tools = many(2, |b, n| b.tool(tool(n.to_string()), n));
    let prompts = many(2, |b, n| b.prompt(Prompt::new(n.to_string()), n));
    let page: Value = serde_json::from_str(&tools_page(&tools, V::LATEST, None, None)).unwrap();
    let cursor = page["nextCursor"].as_str().unwrap();
    for bad in ["", "bogus", "2", "5", &cursor[1..], &format!("{cursor}=")] {
        let mut out = b"x".to_vec();
        let error = tools.list_tools(V::LATEST, None, Some(bad), &mut out).unwrap_err();
        assert_eq!((error.code, &out[..]), (code::INVALID_PARAMS, &b"x"[..]), "{bad:?}");
    }
    // One of another list, and one of a list that has no pages any more.
    assert!(prompts.list_prompts(V::LATEST, None, Some(cursor), &mut Vec::new()).is_err());
    let whole = many(4, |b, n| b.tool(tool(n.to_string()), n));
    assert!(whole.list_tools(V::LATEST, None, Some(cursor), &mut Vec::new()).is_err());
    assert_eq!(walk(&whole, None, || {}).1, [4]);
    assert_eq!(walk(&many(0, |b, n| b.tool(tool(n.to_string()), n)), None, || {}).1, [4], "0 = no bound");
    // The same in another process, also with other page sizes.
    let again = many(3, |b, n| b.tool(tool(n.to_string()), n));
    assert!(tools_page(&again, V::LATEST, None, Some(cursor)).starts_with(r#"{"tools":[{"name":"2""#));
}

#[test]
fn a_secret_changes_cursors() {
    let cursor = |secret: &str| {
        let b = builder().page_size(1).cursor_secret(secret).tool(tool("a"), 0).tool(tool("b"), 0);
        let page: Value =
            serde_json::from_str(&tools_page(&b.build().unwrap(), V::LATEST, None, None)).unwrap();
        page["nextCursor"].to_string()
    };
    assert_eq!(cursor("s"), cursor("s"));
    assert_ne!(cursor("s"), cursor(""));
}

/// Which of the items a caller sees, and how it was hidden.
#[derive(Debug, Clone, Copy)]
enum Hidden {
    No,
    Off,
    Role,
    Predicate,
}

fn hidden() -> impl Strategy<Value = Hidden> {
    prop_oneof![
        3 => Just(Hidden::No),
        1 => Just(Hidden::Off),
        1 => Just(Hidden::Role),
        1 => Just(Hidden::Predicate)
    ]
}

fn terms(hidden: Hidden) -> Terms {
    match hidden {
        Hidden::No => Terms::new(),
        Hidden::Off => Terms::new().disabled(),
        Hidden::Role => Access::any_role(["admin"]).into(),
        Hidden::Predicate => Access::when(|p| p.is_some_and(|p| p.id() == "root")).into(),
    }
}

proptest! {
    /// S-TOOL-02, S-TOOL-04: walking gives every visible item once, in order, for any page size and any
    /// visibility; every page but the last is full.
    #[test]
    fn pages_add_up(items in proptest::collection::vec(hidden(), 0..40), size in 1..12usize) {
        let registry = items.iter().enumerate().fold(builder().page_size(size), |b, (n, hidden)| {
            b.tool_with(tool(n.to_string()), n, terms(*hidden))
        });
        let registry = registry.build().unwrap();
        let admin = Principal::new("root").with_roles(["admin"]);
        for (who, sees) in [
            (None, (|h| matches!(h, Hidden::No)) as fn(&Hidden) -> bool),
            (Some(&admin), |h| !matches!(h, Hidden::Off)),
        ] {
            let expected: Vec<String> =
                items.iter().enumerate().filter(|(_, h)| sees(h)).map(|(n, _)| n.to_string()).collect();
            let (names, pages) = walk(&registry, who, || {});
            prop_assert_eq!(&names, &expected);
            prop_assert_eq!(pages.len(), expected.len().div_ceil(size).max(1));
            prop_assert!(pages.iter().rev().skip(1).all(|page| *page == size));
            // Look-ups agree with the list.
            for (n, item) in items.iter().enumerate() {
                prop_assert_eq!(registry.tool(V::LATEST, who, &n.to_string()).is_ok(), sees(item));
            }
        }
    }

    /// S-PAGE-01: whatever is switched between two pages, nothing comes twice or out of order, and what was
    /// on all the time is not missed.
    #[test]
    fn switches_between_pages_do_no_harm(
        count in 1..30usize,
        size in 1..6usize,
        switches in proptest::collection::vec((0..30usize, any::<bool>()), 0..40),
    ) {
        let registry = (0..count).fold(builder().page_size(size), |b, n| b.tool(tool(n.to_string()), n));
        let registry = registry.build().unwrap();
        let mut touched = vec![false; count];
        let mut left = switches.iter();
        let (names, _) = walk(&registry, None, || {
            for (n, on) in left.by_ref().take(3) {
                registry.set_enabled(Kind::Tool, &n.to_string(), *on);
                if let Some(touched) = touched.get_mut(*n) {
                    *touched = true;
                }
            }
        });
        let names: Vec<usize> = names.iter().map(|n| n.parse().unwrap()).collect();
        prop_assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", names);
        for (n, touched) in touched.iter().enumerate() {
            prop_assert!(*touched || names.contains(&n), "{} is missing in {:?}", n, names);
        }
    }
}

/// Everything by one name of each kind, and what the errors are.
fn errors(registry: &Registry<usize>, version: V) -> Vec<String> {
    let open = Principal::new("someone").with_roles(["user"]);
    let mut all = Vec::new();
    for who in [None, Some(&open)] {
        all.push(bytes(&registry.tool(version, who, "x").unwrap_err()));
        all.push(bytes(&registry.prompt(version, who, "x").unwrap_err()));
        all.push(bytes(&registry.resource(version, who, "a:x").unwrap_err()));
        all.push(bytes(&registry.resource(version, who, "b:x").unwrap_err()));
        for reference in
            [CompletionReference::Prompt("x".into()), CompletionReference::Resource("b:{x}".into())]
        {
            all.push(bytes(&registry.completion(version, who, &reference).unwrap_err()));
        }
        all.push(bytes(
            &registry.completion(version, who, &CompletionReference::Resource("a:x".into())).unwrap_err(),
        ));
        assert!(!registry.offers_resource(who, "a:x") && !registry.offers_resource(who, "b:x"));
        for list in
            [Registry::list_tools, Registry::list_prompts, Registry::list_resources, Registry::list_templates]
        {
            let mut out = Vec::new();
            list(registry, version, who, None, &mut out).unwrap();
            all.push(String::from_utf8(out).unwrap());
        }
    }
    all
}

/// S-TOOL-16, S-RES-12, S-CACHE-06, S-CACHE-07, T02: what is hidden answers in the same bytes as what does
/// not exist, in every revision and through every door.
#[test]
fn hidden_is_unknown() {
    let with = |terms: Terms| {
        builder()
            .tool_with(tool("x"), 0, terms.clone())
            .prompt_with(Prompt::new("x"), 0, terms.clone())
            .resource_with(Resource::new("a:x", "n"), 0, terms.clone())
            .template_with(ResourceTemplate::new("b:{x}", "n"), 0, terms)
            .build()
            .unwrap()
    };
    let empty = builder().build().unwrap();
    for version in V::ALL {
        let unknown = errors(&empty, version);
        for hidden in [Hidden::Off, Hidden::Role, Hidden::Predicate] {
            assert_eq!(errors(&with(terms(hidden)), version), unknown, "{hidden:?}");
        }
    }
}

/// S-RES-08, LS-RES-01, S-PROMPT-08, S-COMPL-03, T02
#[test]
fn unknown_names_have_their_codes() {
    let registry = builder().build().unwrap();
    for version in V::ALL {
        let tool = registry.tool(version, None, "nope").unwrap_err();
        assert_eq!((tool.code, &*tool.message), (-32602, "Unknown tool: nope"));
        assert_eq!(registry.prompt(version, None, "nope").unwrap_err().code, -32602);
        for reference in
            [CompletionReference::Prompt("p".into()), CompletionReference::Resource("a:{b}".into())]
        {
            assert_eq!(registry.completion(version, None, &reference).unwrap_err().code, -32602);
        }
        let resource = registry.resource(version, None, "a:\"b\"").unwrap_err();
        assert_eq!(resource.code, if version.is_modern() { -32602 } else { -32002 });
        assert_eq!(resource.data.unwrap().get(), r#"{"uri":"a:\"b\""}"#);
    }
    let long = "é".repeat(100_000);
    for error in [
        registry.tool(V::LATEST, None, &long).unwrap_err(),
        registry.prompt(V::LATEST, None, &long).unwrap_err(),
        registry.resource(V::LATEST, None, &long).unwrap_err(),
        registry.completion(V::LATEST, None, &CompletionReference::Resource(long.into())).unwrap_err(),
    ] {
        assert!(bytes(&error).len() < 300, "a peer's text is cut");
    }
}

#[test]
fn switches_tell_whether_they_changed_anything() {
    let registry = builder()
        .tool(tool("t"), 0)
        .prompt(Prompt::new("p"), 0)
        .resource(Resource::new("a:b", "n"), 0)
        .template_with(ResourceTemplate::new("b:{x}", "n"), 0, Terms::new().disabled())
        .build()
        .unwrap();
    for (kind, name, on) in [
        (Kind::Tool, "t", true),
        (Kind::Prompt, "p", true),
        (Kind::Resource, "a:b", true),
        (Kind::ResourceTemplate, "b:{x}", false),
    ] {
        assert!(!registry.set_enabled(kind, name, on), "it is so already");
        assert!(registry.set_enabled(kind, name, !on));
        assert!(!registry.set_enabled(kind, name, !on));
        assert!(!registry.set_enabled(kind, "nope", on));
    }
    assert!(registry.tool(V::LATEST, None, "t").is_err() && registry.prompt(V::LATEST, None, "p").is_err());
    assert!(!registry.offers_resource(None, "a:b") && registry.offers_resource(None, "b:1"));
}

/// R01: exact before templates, the most specific template first, hidden ones passed over.
#[test]
fn uris_lead_to_the_closest_item() {
    let admin = Principal::new("a").with_roles(["admin"]);
    let registry = builder()
        .template(ResourceTemplate::new("a:{+all}", "n"), 1)
        .template(ResourceTemplate::new("a:u/{name}", "n"), 2)
        .template_with(ResourceTemplate::new("a:u/{name}/secret", "n"), 3, Access::any_role(["admin"]))
        .resource(Resource::new("a:u/root", "n"), 4)
        .resource_with(Resource::new("a:u/off", "n"), 5, Terms::new().disabled())
        .build()
        .unwrap();
    let found = |who, uri: &str| {
        let found = registry.resource(V::LATEST, who, uri).unwrap();
        let text = |name| found.captures().and_then(|c| c.text(name)).map(ToString::to_string);
        (*found.handler(), text("name").or_else(|| text("all")))
    };
    assert_eq!(found(None, "a:u/root"), (4, None));
    assert_eq!(found(None, "a:u/bob%20b"), (2, Some("bob b".into())));
    assert_eq!(found(None, "a:v/bob"), (1, Some("v/bob".into())));
    assert_eq!(found(Some(&admin), "a:u/bob/secret"), (3, Some("bob".into())));
    assert_eq!(found(None, "a:u/bob/secret"), (1, Some("u/bob/secret".into())));
    assert_eq!(found(None, "a:u/off"), (2, Some("off".into())));
}

/// M01, S-COMPL-03: a template is named by itself, not by a URI that follows it.
#[test]
fn completion_finds_what_it_is_about() {
    let registry = builder()
        .prompt_with(Prompt::new("p"), 0, Terms::new().completes())
        .prompt(Prompt::new("mute"), 1)
        .template_with(ResourceTemplate::new("a:{b}", "n"), 2, Terms::new().completes())
        .resource_with(Resource::new("c:d", "n"), 3, Terms::new().completes())
        .build()
        .unwrap();
    let completer = |reference| {
        let found = registry.completion(V::LATEST, None, &reference);
        found.map(|found| found.completer().copied()).map_err(|e| e.code)
    };
    assert_eq!(completer(CompletionReference::Prompt("p".into())), Ok(Some(0)));
    assert_eq!(completer(CompletionReference::Prompt("mute".into())), Ok(None));
    assert_eq!(completer(CompletionReference::Resource("a:{b}".into())), Ok(Some(2)));
    assert_eq!(completer(CompletionReference::Resource("c:d".into())), Ok(None));
    assert_eq!(completer(CompletionReference::Resource("a:x".into())), Err(-32602));
}

/// M02, S-PROMPT-09
#[test]
fn required_arguments_are_asked_for() {
    let arguments = [
        PromptArgument::new("code").required(true),
        PromptArgument::new("style").required(false),
        PromptArgument::new("lang"),
        PromptArgument::new("who").required(true),
    ];
    let registry = builder().prompt(Prompt::new("p").arguments(arguments), 0).prompt(Prompt::new("bare"), 1);
    let registry = registry.build().unwrap();
    let check = |prompt: &str, names: &[&str]| {
        let given: Vec<_> = names.iter().map(|n| (Cow::Borrowed(*n), Cow::Borrowed(""))).collect();
        registry.prompt(V::LATEST, None, prompt).unwrap().check_arguments(&given)
    };
    assert!(check("p", &["who", "extra", "code"]).is_ok());
    assert!(check("bare", &[]).is_ok() && check("bare", &["extra"]).is_ok());
    for (given, missing) in [(&[][..], "code"), (&["code", "style"], "who"), (&["who", "Code"], "code")] {
        let error = check("p", given).unwrap_err();
        assert_eq!(error.code, -32602);
        assert!(error.message.contains(&format!("{missing:?}")), "{error}");
    }
}

/// S-TOOL-01, S-RES-01, S-PROMPT-01, S-COMPL-01
#[test]
fn capabilities_follow_what_is_registered() {
    let declared = |b: Numbered| serde_json::to_value(b.build().unwrap().capabilities()).unwrap();
    assert_eq!(declared(builder()), json!({}));
    assert_eq!(
        declared(builder().list_changed(Kind::Tool).subscribe()),
        json!({}),
        "flags alone declare nothing"
    );
    assert_eq!(declared(builder().tool_with(tool("t"), 0, Terms::new().disabled())), json!({"tools": {}}));
    assert_eq!(
        declared(
            builder().template(ResourceTemplate::new("a:{b}", "n"), 0).subscribe().list_changed(Kind::Tool)
        ),
        json!({"resources": {"subscribe": true}})
    );
    let all = builder()
        .tool(tool("t"), 0)
        .resource(Resource::new("a:b", "n"), 0)
        .prompt_with(Prompt::new("p"), 0, Terms::new().completes())
        .list_changed(Kind::Tool)
        .list_changed(Kind::ResourceTemplate)
        .list_changed(Kind::Prompt);
    assert_eq!(
        declared(all),
        json!({
            "tools": {"listChanged": true},
            "resources": {"listChanged": true},
            "prompts": {"listChanged": true},
            "completions": {}
        })
    );
    let template = ResourceTemplate::new("a:{b}", "n");
    assert_eq!(
        declared(builder().template_with(template, 0, Terms::new().completes())),
        json!({"resources": {}, "completions": {}})
    );
}

#[test]
fn debug_output_needs_nothing_of_handlers_and_tells_no_secret() {
    struct Opaque;
    let b = Registry::builder().cursor_secret("hush").tool(tool("t"), Opaque);
    assert!(!format!("{b:?}").contains("hush"));
    let registry = b.build().unwrap();
    assert!(format!("{registry:?}").contains("\"t\""));
}

/// The machine takes the answer of a list as it is.
#[test]
fn the_machine_sends_a_page() {
    use crate::model::Implementation;
    use crate::model::method::ListTools;
    use crate::server::{Channel, Config, Connection, Event};
    use crate::time::Instant;

    let registry = builder().tool(tool("t"), 0).build().unwrap();
    let config = Config::builder(Implementation::new("s", "1")).capabilities(registry.capabilities()).build();
    let mut connection = Connection::new(config);
    let request = br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut out = Vec::new();
    let Some(Event::Request(incoming)) = connection.handle(request, Instant::ZERO, &mut out) else {
        panic!("{}", String::from_utf8_lossy(&out))
    };
    let version = incoming.version;
    let (pending, params) = incoming.decode::<ListTools>().unwrap();
    let mut body = Vec::new();
    registry.list_tools(version, None, params.cursor.as_deref(), &mut body).unwrap();
    assert!(connection.respond_raw(pending, &body, &mut out).is_written());
    let answer: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["tools"], json!([{"name": "t", "inputSchema": {"type": "object"}}]));
    assert_eq!(answer["result"]["cacheScope"], "private");
}

/// It is shared between threads when handlers are.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Registry<usize>>();
};
