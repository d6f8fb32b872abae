//! Schemas from types.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::model::{ElicitForm, JsonSchema as Schema, Str};
use crate::rpc::de;

/// The schema of a type, as hosts like it: 2020-12 without formats of its own, subschemas in place instead of `$ref` (a recursive
/// type still needs them), without a title made from the type's name.
pub(crate) fn of<T: JsonSchema>() -> Schema {
    Schema::from_serialize(&value_of::<T>()).unwrap_or_else(|_| Schema::any_object())
}

/// The doc comment of a type.
pub(crate) fn description<T: JsonSchema>() -> Option<String> {
    generate::<T>().get("description").and_then(Value::as_str).map(str::to_owned)
}

/// The schema of the arguments of a tool: its root is an object, its description became the tool's.
pub(crate) fn arguments<T: JsonSchema>() -> Schema {
    let mut schema = value_of::<T>();
    if let Value::Object(members) = &mut schema {
        members.remove("description");
        members.entry("type").or_insert_with(|| Value::from("object"));
    }
    Schema::from_serialize(&schema).unwrap_or_else(|_| Schema::any_object())
}

fn generate<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(forget_number_format))
        .with_transform(RecursiveTransform(forget_null_of_mirrored));
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Names such as `uint64` are no formats of JSON Schema: validators warn of them, strict ones refuse.
fn forget_number_format(schema: &mut schemars::Schema) {
    const NUMBERS: &[&str] = &["int", "uint", "float", "double"];
    let is_number = |name: &str| NUMBERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit()));
    if schema.get("format").and_then(Value::as_str).is_some_and(is_number) {
        schema.remove("format");
    }
}

/// An argument that is mirrored into a header has one type, so `Option<T>` is written as `T` that need not be
/// there. A null that comes anyway is read as before. [spec: server/tools#x-mcp-header]
fn forget_null_of_mirrored(schema: &mut schemars::Schema) {
    if schema.get("x-mcp-header").is_none() {
        return;
    }
    let Some(Value::Array(types)) = schema.get_mut("type") else { return };
    types.retain(|kind| kind != "null");
    if let [one] = &types[..] {
        let one = one.clone();
        schema.insert("type".into(), one);
    }
}

fn value_of<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>();
    if let Value::Object(members) = &mut schema {
        members.remove("title");
    }
    schema
}

/// A property of an object type.
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
}

/// The properties of an object type, in the order of the schema.
pub(crate) fn properties<T: JsonSchema>() -> Vec<Property> {
    let schema = generate::<T>();
    let required = required(&schema);
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, property)| Property {
            name: name.clone(),
            description: property.get("description").and_then(Value::as_str).map(str::to_owned),
            required: required.contains(name),
        })
        .collect()
}

fn required(schema: &Value) -> Vec<String> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// A type that a user can be asked for: a struct of strings, numbers, booleans, enums without data, and
/// lists of such enums; or `Option`s of these. Implemented for every type that has a schema and can be
/// read; one that is not flat fails when it is asked for.
pub trait Elicit: Sized {
    /// The form.
    ///
    /// # Errors
    ///
    /// The type is not flat: says where.
    fn form(message: Str) -> Result<ElicitForm, Str>;

    /// Reads the JSON text of the content that the user gave.
    ///
    /// # Errors
    ///
    /// The content does not fit: says where.
    fn read(content: &str) -> Result<Self, Str>;
}

impl<T: JsonSchema + DeserializeOwned> Elicit for T {
    fn form(message: Str) -> Result<ElicitForm, Str> {
        let schema = generate::<T>();
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Err(Str::Borrowed("a form needs a struct with named fields"));
        };
        let mut flat = Map::new();
        for (name, property) in properties {
            flat.insert(
                name.clone(),
                flatten(property).ok_or_else(|| {
                    Str::Owned(format!(
                        "the field {name:?} is not flat: a form has strings, numbers, booleans and enums"
                    ))
                })?,
            );
        }
        let mut form = Map::new();
        form.insert("type".to_string(), Value::from("object"));
        form.insert("properties".to_string(), Value::Object(flat));
        let required = required(&schema);
        if !required.is_empty() {
            form.insert("required".to_string(), Value::from(required));
        }
        let text = Value::Object(form).to_string();
        ElicitForm::from_schema_json(message, &text)
            .map_err(|e| Str::Owned(format!("the form is not flat: {e}")))
    }

    fn read(content: &str) -> Result<Self, Str> {
        de::from_str(content).map_err(|e| Str::Owned(format!("the answer does not fit {e}")))
    }
}

/// One property in the restricted form of elicitation. `None` if it has no such form.
fn flatten(property: &Value) -> Option<Value> {
    const KEEP: &[&str] = &[
        "title",
        "description",
        "default",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "enum",
        "minItems",
        "maxItems",
    ];
    const FORMATS: &[&str] = &["email", "uri", "date", "date-time"];
    let property = property.as_object()?;
    let mut flat = Map::new();
    for key in KEEP {
        if let Some(value) = property.get(*key).filter(|v| !v.is_null()) {
            flat.insert((*key).to_string(), value.clone());
        }
    }
    if let Some(values) = flat.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|v| !v.is_null());
    }
    if let Some(format) = property.get("format").and_then(Value::as_str).filter(|f| FORMATS.contains(f)) {
        flat.insert("format".to_string(), Value::from(format));
    }
    // `Option<T>` of an enum: one branch is null.
    if let Some(branches) = property.get("anyOf").and_then(Value::as_array) {
        let mut real = branches.iter().filter(|b| b.get("type").and_then(Value::as_str) != Some("null"));
        let (only, None) = (real.next()?, real.next()) else { return None };
        let mut inner = flatten(only)?;
        if let Value::Object(inner) = &mut inner {
            for (key, value) in flat {
                inner.insert(key, value);
            }
        }
        return Some(inner);
    }
    if let Some(titled) = property.get("oneOf").and_then(Value::as_array) {
        let titled: Option<Vec<Value>> = titled.iter().map(titled_choice).collect();
        flat.insert("type".to_string(), Value::from("string"));
        flat.insert("oneOf".to_string(), Value::Array(titled?));
        return Some(Value::Object(flat));
    }
    let kind = match property.get("type")? {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null")?.to_owned(),
        _ => return None,
    };
    if kind == "array" {
        let items = property.get("items")?.as_object()?;
        let mut flat_items = Map::new();
        if let Some(values) = items.get("enum") {
            flat_items.insert("type".to_string(), Value::from("string"));
            flat_items.insert("enum".to_string(), values.clone());
        } else {
            let titled: Option<Vec<Value>> =
                items.get("oneOf")?.as_array()?.iter().map(titled_choice).collect();
            flat_items.insert("anyOf".to_string(), Value::Array(titled?));
        }
        flat.insert("items".to_string(), Value::Object(flat_items));
    } else if !matches!(&*kind, "string" | "number" | "integer" | "boolean") {
        return None;
    }
    flat.insert("type".to_string(), Value::from(kind));
    Some(Value::Object(flat))
}

/// A variant with a doc comment: the comment is its title.
fn titled_choice(branch: &Value) -> Option<Value> {
    let value = branch.get("const")?.as_str()?;
    let title =
        branch.get("title").or_else(|| branch.get("description")).and_then(Value::as_str).unwrap_or(value);
    let mut choice = Map::new();
    choice.insert("const".to_string(), Value::from(value));
    choice.insert("title".to_string(), Value::from(title));
    Some(Value::Object(choice))
}
