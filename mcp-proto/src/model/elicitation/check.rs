//! Answers against the fields that were asked for.

use alloc::{format, vec::Vec};
use core::fmt;

use super::schema::{FormSchema, PrimitiveSchema, SelectOption};
use crate::model::{Json, Members, Str, json, number};
use crate::rpc::PointerToken;

/// The values of an accepted form do not fit its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidContent {
    /// The field.
    pub property: Str,
    /// What was expected of it, and what came.
    pub reason: Str,
}

impl FormSchema {
    /// Checks the values of a form: required fields are there, and each value has the type, the length,
    /// the size or is one of the choices that its field asks for. Fields that were not asked for are
    /// passed over; formats are not checked. [spec: client/elicitation#security-considerations]
    pub fn check(&self, content: &Members<Json>) -> Result<(), InvalidContent> {
        let fault = |property: &Str, reason: Str| InvalidContent { property: property.clone(), reason };
        if let Some(name) = self.required_names().iter().find(|name| !content.contains(name)) {
            return Err(fault(name, "required, but missing".into()));
        }
        for (name, field) in self.properties().iter() {
            if let Some(value) = content.get(name) {
                check(field, value).map_err(|reason| fault(name, reason))?;
            }
        }
        Ok(())
    }
}

fn check(field: &PrimitiveSchema, value: &Json) -> Result<(), Str> {
    match field {
        PrimitiveSchema::String(schema) => {
            let text = value.as_str().ok_or_else(|| mismatch("a string", value))?;
            let length = text.chars().count() as u64;
            within(length, schema.min_length, schema.max_length, "characters")
        }
        PrimitiveSchema::Number(schema) => {
            let number = value.as_f64().ok_or_else(|| mismatch("a number", value))?;
            if schema.is_integer() && !number::is_whole(number) {
                return Err("expected a whole number".into());
            }
            match (schema.minimum, schema.maximum) {
                (Some(least), _) if number < least => Err(format!("expected at least {least}").into()),
                (_, Some(most)) if number > most => Err(format!("expected at most {most}").into()),
                _ => Ok(()),
            }
        }
        PrimitiveSchema::Boolean(_) => {
            value.as_bool().map(drop).ok_or_else(|| mismatch("true or false", value))
        }
        PrimitiveSchema::SingleSelect(schema) => {
            let text = value.as_str().ok_or_else(|| mismatch("a string", value))?;
            chosen(&text, &schema.options)
        }
        PrimitiveSchema::MultiSelect(schema) => {
            let texts: Vec<Str> = value.decode().map_err(|_| mismatch("an array of strings", value))?;
            within(texts.len() as u64, schema.min_items, schema.max_items, "choices")?;
            texts.iter().try_for_each(|text| chosen(text, &schema.options))
        }
    }
}

fn mismatch(expected: &str, value: &Json) -> Str {
    format!("expected {expected}, found {}", json::described(value)).into()
}

fn within(count: u64, least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), Str> {
    match (least, most) {
        (Some(least), _) if count < least => {
            Err(format!("expected at least {least} {what}, found {count}").into())
        }
        (_, Some(most)) if count > most => {
            Err(format!("expected at most {most} {what}, found {count}").into())
        }
        _ => Ok(()),
    }
}

fn chosen(text: &str, options: &[SelectOption]) -> Result<(), Str> {
    if options.iter().any(|option| option.value == text) {
        Ok(())
    } else {
        Err("expected one of the choices".into())
    }
}

impl fmt::Display for InvalidContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at /content/{}: {}", PointerToken(&self.property), self.reason)
    }
}

impl core::error::Error for InvalidContent {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::{
        model::{BooleanSchema, MultiSelectSchema, NumberSchema, SingleSelectSchema, StringSchema},
        rpc::de,
    };

    #[test]
    fn each_kind_of_field_is_checked() {
        // M03, S-ELIC-25
        let schema = FormSchema::new()
            .required("name", StringSchema::new().min_length(2).max_length(3))
            .optional("n", NumberSchema::integer().minimum(0.0).maximum(10.0))
            .optional("x", NumberSchema::new())
            .optional("b", BooleanSchema::new())
            .optional("a/b", SingleSelectSchema::new(["r", "g"]))
            .optional("m", MultiSelectSchema::new([("r", "Red"), ("g", "Green")]).min_items(1).max_items(2));
        let check = |text: &str| {
            schema.check(&de::from_str::<Members<Json>>(text).unwrap()).map_err(|e| e.to_string())
        };
        for good in [
            r#"{"name":"äöü"}"#,
            r#"{"name":"ab","n":3.0,"x":1.5,"b":false,"a/b":"g","m":["r","g"],"more":{}}"#,
            r#"{"name":"a\"b","n":1e1}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("{}", "at /content/name: required, but missing"),
            (r#"{"name":5}"#, "at /content/name: expected a string, found a number"),
            (r#"{"name":null}"#, "at /content/name: expected a string, found null"),
            (r#"{"name":"a"}"#, "at /content/name: expected at least 2 characters, found 1"),
            (r#"{"name":"abcd"}"#, "at /content/name: expected at most 3 characters, found 4"),
            (r#"{"name":"ab","n":1.5}"#, "at /content/n: expected a whole number"),
            (r#"{"name":"ab","n":"1"}"#, "at /content/n: expected a number, found a string"),
            (r#"{"name":"ab","n":-1}"#, "at /content/n: expected at least 0"),
            (r#"{"name":"ab","n":11}"#, "at /content/n: expected at most 10"),
            (r#"{"name":"ab","b":"true"}"#, "at /content/b: expected true or false, found a string"),
            (r#"{"name":"ab","a/b":"x"}"#, "at /content/a~1b: expected one of the choices"),
            (r#"{"name":"ab","m":[]}"#, "at /content/m: expected at least 1 choices, found 0"),
            (r#"{"name":"ab","m":["r","r","r"]}"#, "at /content/m: expected at most 2 choices, found 3"),
            (r#"{"name":"ab","m":["z"]}"#, "at /content/m: expected one of the choices"),
            (r#"{"name":"ab","m":"r"}"#, "at /content/m: expected an array of strings, found a string"),
        ] {
            assert_eq!(check(bad), Err(expected.into()), "{bad}");
        }
    }
}
