//! `${NAME}` in a text.

/// `text` with the values of the names in it, or what is wrong.
pub(super) fn expand(text: &str, value: &impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded += before;
        let Some((inner, after)) = after.split_once('}') else {
            return Err("expected a } for each ${, found the end of the text".into());
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
            return Err(format!("expected ${{NAME}} or ${{NAME:-else}}, found ${{{inner}}}"));
        }
        match (value(name), default) {
            (Some(value), None) => expanded += &value,
            (Some(value), Some(_)) if !value.is_empty() => expanded += &value,
            (_, Some(default)) => expanded += default,
            (None, None) => return Err(format!("expected a value for ${{{name}}}, found none")),
        }
        rest = after;
    }
    Ok(expanded + rest)
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
