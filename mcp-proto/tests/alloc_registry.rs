//! How often the registry allocates: not at all, once it is built and the output buffer has grown.
#![allow(missing_docs, clippy::unwrap_used)]

use allocation_counter::measure;
use mcp_proto::model::{JsonSchema, Prompt, ProtocolVersion, Resource, ResourceTemplate, Tool};
use mcp_proto::registry::{Access, Kind, Registry};
use mcp_proto::server::Principal;

const ITEMS: usize = 300;

fn registry() -> Registry<usize> {
    (0..ITEMS)
        .fold(Registry::builder().page_size(100), |builder, n| {
            let tool = Tool::new(format!("tool-{n}"), JsonSchema::any_object()).title("A title");
            let access = if n % 7 == 0 { Access::any_role(["admin"]) } else { Access::Everyone };
            builder
                .tool_with(tool, n, access)
                .prompt(Prompt::new(format!("prompt-{n}")), n)
                .resource(Resource::new(format!("test:{n}"), "r"), n)
        })
        .template(ResourceTemplate::new("test:t/{name}", "t"), ITEMS)
        .build()
        .unwrap()
}

/// How many allocations `f` makes when it runs a second time.
fn again(mut f: impl FnMut()) -> u64 {
    f();
    measure(f).count_total
}

#[test]
fn the_counter_counts() {
    assert!(again(|| drop(Vec::<u8>::with_capacity(10))) > 0);
}

#[test]
fn a_second_list_allocates_nothing() {
    let registry = registry();
    let admin = Principal::new("a").with_roles(["user", "admin"]);
    for version in ProtocolVersion::ALL {
        for who in [None, Some(&admin)] {
            let mut out = Vec::new();
            registry.list_tools(version, who, None, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let cursor = text.split("\"nextCursor\":\"").nth(1).unwrap().split('"').next().unwrap();
            let mut out = Vec::new();
            let count = again(|| {
                out.clear();
                registry.list_tools(version, who, None, &mut out).unwrap();
                registry.list_tools(version, who, Some(cursor), &mut out).unwrap();
                registry.list_prompts(version, who, None, &mut out).unwrap();
                registry.list_resources(version, who, None, &mut out).unwrap();
                registry.list_templates(version, who, None, &mut out).unwrap();
            });
            assert_eq!(count, 0, "{version}");
            assert!(out.len() > 100 * 30, "something was listed");
        }
    }
}

#[test]
fn finding_an_item_allocates_nothing() {
    let registry = registry();
    let version = ProtocolVersion::LATEST;
    let count = again(|| {
        assert_eq!(registry.tool(version, None, "tool-299").unwrap().handler(), &299);
        assert_eq!(registry.prompt(version, None, "prompt-0").unwrap().handler(), &0);
        assert_eq!(registry.resource(version, None, "test:150").unwrap().handler(), &150);
        assert!(!registry.set_enabled(Kind::Tool, "tool-1", true));
        assert!(registry.prompt(version, None, "prompt-0").unwrap().check_arguments(&[]).is_ok());
    });
    assert_eq!(count, 0);
}
