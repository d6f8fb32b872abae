//! The schema of a form: one object of plain fields. [spec: client/elicitation#requested-schema]

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    model::{Json, Members, ProtocolVersion, Str, json, number, view::WriteError},
    rpc::de::DecodeError,
};

/// The fields of a form, in the order in which they are shown.
///
/// A schema that was read is written again as it was read, with every keyword; to add a field to it
/// makes it anew.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormSchema {
    properties: Members<PrimitiveSchema>,
    required: Vec<Str>,
    source: Option<Json>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// A text.
    String(StringSchema),
    /// A number, or a whole number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several texts.
    SingleSelect(SingleSelectSchema),
    /// Any of several texts. Since 2025-11-25.
    MultiSelect(MultiSelectSchema),
}

/// A text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StringSchema {
    #[serde(rename = "type")]
    kind: TypeString,
    /// Label for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// The fewest characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// What kind of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// What the field holds at first. Since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Str>,
}

names! {
    /// A kind of text. Values are not checked against it.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date such as `2026-07-28`.
        Date = "date",
        /// A time such as `2026-07-28T12:00:00Z`.
        DateTime = "date-time",
    }
}

/// A number.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NumberSchema {
    #[serde(rename = "type")]
    kind: NumberType,
    /// Label for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// The least value.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub minimum: Option<f64>,
    /// The greatest value.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub maximum: Option<f64>,
    /// What the field holds at first. Since 2025-11-25.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number::option::serialize")]
    pub default: Option<f64>,
}

names! {
    pub(super) enum NumberType {
        Number = "number",
        Integer = "integer",
    }
}

/// Yes or no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BooleanSchema {
    #[serde(rename = "type")]
    kind: TypeBoolean,
    /// Label for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Str>,
    /// What the field holds at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// One of several texts.
///
/// On the wire there are three forms: without titles (`enum`), with titles (`oneOf` of `const` and
/// `title`), and the old one with titles (`enum` and `enumNames`), the only one before 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleSelectSchema {
    /// The choices, in order.
    pub options: Vec<SelectOption>,
    /// Label for people.
    pub title: Option<Str>,
    /// What is asked.
    pub description: Option<Str>,
    /// What is chosen at first. Since 2025-11-25.
    pub default: Option<Str>,
    /// Titles are written in the old form.
    pub legacy: bool,
}

/// Any of several texts. Since 2025-11-25.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// The choices, in order.
    pub options: Vec<SelectOption>,
    /// Label for people.
    pub title: Option<Str>,
    /// What is asked.
    pub description: Option<Str>,
    /// How many must be chosen.
    pub min_items: Option<u64>,
    /// How many may be chosen.
    pub max_items: Option<u64>,
    /// What is chosen at first.
    pub default: Option<Vec<Str>>,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectOption {
    /// The value that is answered.
    pub value: Str,
    /// What the user reads; the value itself if absent.
    pub title: Option<Str>,
}

literal! { TypeString = "string", TypeBoolean = "boolean", TypeObject = "object", TypeArray = "array" }

impl FormSchema {
    /// A form without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that must be filled in. A field of the same name is replaced.
    #[must_use]
    pub fn required(mut self, name: impl Into<Str>, field: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        if !self.required.contains(&name) {
            self.required.push(name.clone());
        }
        self.properties.insert(name, field.into());
        self.source = None;
        self
    }

    /// Adds a field that may stay empty. A field of the same name is replaced.
    #[must_use]
    pub fn optional(mut self, name: impl Into<Str>, field: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.retain(|known| *known != name);
        self.properties.insert(name, field.into());
        self.source = None;
        self
    }

    /// Reads a schema that was made elsewhere, and keeps every keyword of it. Fails unless it is an
    /// object of plain fields.
    pub fn from_json(json: Json) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(expecting = "the schema of a form")]
        struct Root {
            #[serde(rename = "type")]
            _kind: ObjectType,
            properties: Members<PrimitiveSchema>,
            required: Option<Vec<Str>>,
        }

        let Root { properties, required, .. } = json.decode()?;
        Ok(Self { properties, required: required.unwrap_or_default(), source: Some(json) })
    }

    /// The fields, in order.
    #[must_use]
    pub const fn properties(&self) -> &Members<PrimitiveSchema> {
        &self.properties
    }

    /// Whether a field must be filled in.
    #[must_use]
    pub fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|known| known == name)
    }

    pub(super) fn required_names(&self) -> &[Str] {
        &self.required
    }

    pub(super) fn fitted(&self, version: ProtocolVersion) -> Result<Cow<'_, Self>, WriteError> {
        if version.has_elicitation_choices() {
            return Ok(Cow::Borrowed(self));
        }
        let mut properties = self.properties.clone();
        let mut failed = None;
        properties.retain(|name, field| {
            match field {
                PrimitiveSchema::SingleSelect(select) => select.legacy = true,
                PrimitiveSchema::MultiSelect(_) => failed = Some(String::from(name)),
                _ => {}
            }
            true
        });
        match failed {
            Some(name) => Err(WriteError::new(format!("{version} has no choice of several, as in {name:?}"))),
            None => Ok(Cow::Owned(Self { properties, required: self.required.clone(), source: None })),
        }
    }
}

names! {
    enum ObjectType { Object = "object" }
}

impl Serialize for FormSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct RequestedSchema<'a> {
            #[serde(rename = "type")]
            kind: TypeObject,
            properties: &'a Members<PrimitiveSchema>,
            #[serde(skip_serializing_if = "<[Str]>::is_empty")]
            required: &'a [Str],
        }

        match &self.source {
            Some(source) => source.serialize(serializer),
            None => {
                RequestedSchema { kind: TypeObject, properties: &self.properties, required: &self.required }
                    .serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for FormSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl StringSchema {
    /// Any text.
    #[must_use]
    pub fn new() -> Self {
        Default::default()
    }

    setters! { title: Str, description: Str, format: StringFormat, default: Str }
    plain_setters! { min_length: u64, max_length: u64 }
}

impl NumberSchema {
    /// Any number.
    #[must_use]
    pub const fn new() -> Self {
        Self::of(NumberType::Number)
    }

    /// A whole number.
    #[must_use]
    pub const fn integer() -> Self {
        Self::of(NumberType::Integer)
    }

    setters! { title: Str, description: Str }
    plain_setters! { minimum: f64, maximum: f64, default: f64 }

    /// Whether only whole numbers fit.
    #[must_use]
    pub const fn is_integer(&self) -> bool {
        matches!(self.kind, NumberType::Integer)
    }

    const fn of(kind: NumberType) -> Self {
        Self { kind, title: None, description: None, minimum: None, maximum: None, default: None }
    }
}

impl Default for NumberSchema {
    fn default() -> Self {
        Self::new()
    }
}

impl BooleanSchema {
    /// Yes or no.
    #[must_use]
    pub fn new() -> Self {
        Default::default()
    }

    setters! { title: Str, description: Str }
    plain_setters! { default: bool }
}

impl SingleSelectSchema {
    /// One of these: values, or pairs of value and title.
    #[must_use]
    pub fn new<O: Into<SelectOption>>(options: impl IntoIterator<Item = O>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { options, title: None, description: None, default: None, legacy: false }
    }

    setters! { title: Str, description: Str, default: Str }

    /// Writes titles in the old form, for clients that know only that.
    #[must_use]
    pub const fn legacy(mut self) -> Self {
        self.legacy = true;
        self
    }
}

impl MultiSelectSchema {
    /// Any of these: values, or pairs of value and title.
    #[must_use]
    pub fn new<O: Into<SelectOption>>(options: impl IntoIterator<Item = O>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { options, title: None, description: None, min_items: None, max_items: None, default: None }
    }

    setters! { title: Str, description: Str, default: Vec<Str> }
    plain_setters! { min_items: u64, max_items: u64 }
}

impl SelectOption {
    /// A choice that is shown as it is answered.
    #[must_use]
    pub fn new(value: impl Into<Str>) -> Self {
        Self { value: value.into(), title: None }
    }

    setters! { title: Str }
}

impl From<&'static str> for SelectOption {
    fn from(value: &'static str) -> Self {
        Self::new(value)
    }
}

impl From<String> for SelectOption {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl<V: Into<Str>, T: Into<Str>> From<(V, T)> for SelectOption {
    /// The value and its title.
    fn from((value, title): (V, T)) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }
}

macro_rules! into_primitive {
    ($($type:ident => $variant:ident),+ $(,)?) => {$(
        impl From<$type> for PrimitiveSchema {
            fn from(schema: $type) -> Self {
                Self::$variant(schema)
            }
        }
    )+};
}

into_primitive! {
    StringSchema => String, NumberSchema => Number, BooleanSchema => Boolean,
    SingleSelectSchema => SingleSelect, MultiSelectSchema => MultiSelect,
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(schema) => schema.serialize(serializer),
            Self::Number(schema) => schema.serialize(serializer),
            Self::Boolean(schema) => schema.serialize(serializer),
            Self::SingleSelect(schema) => schema.serialize(serializer),
            Self::MultiSelect(schema) => schema.serialize(serializer),
        }
    }
}

/// `{"const":…,"title":…}`
#[derive(Serialize, Deserialize)]
struct Titled {
    #[serde(rename = "const")]
    value: Str,
    title: Str,
}

fn has_titles(options: &[SelectOption]) -> bool {
    options.iter().any(|option| option.title.is_some())
}

fn values(options: &[SelectOption]) -> Vec<&Str> {
    options.iter().map(|option| &option.value).collect()
}

fn titles(options: &[SelectOption]) -> Vec<&Str> {
    options.iter().map(|option| option.title.as_ref().unwrap_or(&option.value)).collect()
}

fn titled(options: &[SelectOption]) -> Vec<Titled> {
    let title = |option: &SelectOption| option.title.as_ref().unwrap_or(&option.value).clone();
    options.iter().map(|option| Titled { value: option.value.clone(), title: title(option) }).collect()
}

impl Serialize for SingleSelectSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "LegacyTitledEnumSchema", rename_all = "camelCase")]
        struct Plain<'a> {
            #[serde(rename = "type")]
            kind: TypeString,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: &'a Option<Str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: &'a Option<Str>,
            #[serde(rename = "enum")]
            values: Vec<&'a Str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            enum_names: Option<Vec<&'a Str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            default: &'a Option<Str>,
        }

        #[derive(Serialize)]
        #[serde(rename = "TitledSingleSelectEnumSchema", rename_all = "camelCase")]
        struct WithTitles<'a> {
            #[serde(rename = "type")]
            kind: TypeString,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: &'a Option<Str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: &'a Option<Str>,
            one_of: Vec<Titled>,
            #[serde(skip_serializing_if = "Option::is_none")]
            default: &'a Option<Str>,
        }

        let Self { options, title, description, default, legacy } = self;
        let kind = TypeString;
        let has_titles = has_titles(options);
        if has_titles && !legacy {
            return WithTitles { kind, title, description, one_of: titled(options), default }
                .serialize(serializer);
        }
        let enum_names = has_titles.then(|| titles(options));
        Plain { kind, title, description, values: values(options), enum_names, default }.serialize(serializer)
    }
}

impl Serialize for MultiSelectSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename = "MultiSelectEnumSchema", rename_all = "camelCase")]
        struct Multi<'a, I> {
            #[serde(rename = "type")]
            kind: TypeArray,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: &'a Option<Str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            description: &'a Option<Str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            min_items: &'a Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_items: &'a Option<u64>,
            items: I,
            #[serde(skip_serializing_if = "Option::is_none")]
            default: &'a Option<Vec<Str>>,
        }

        #[derive(Serialize)]
        struct PlainItems<'a> {
            #[serde(rename = "type")]
            kind: TypeString,
            #[serde(rename = "enum")]
            values: Vec<&'a Str>,
        }

        #[derive(Serialize)]
        struct TitledItems {
            #[serde(rename = "anyOf")]
            any_of: Vec<Titled>,
        }

        let Self { options, title, description, min_items, max_items, default } = self;
        let kind = TypeArray;
        if has_titles(options) {
            let items = TitledItems { any_of: titled(options) };
            return Multi { kind, title, description, min_items, max_items, items, default }
                .serialize(serializer);
        }
        let items = PlainItems { kind: TypeString, values: values(options) };
        Multi { kind, title, description, min_items, max_items, items, default }.serialize(serializer)
    }
}

/// The keywords of every kind of field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "the schema of a field")]
struct Keywords {
    #[serde(rename = "type")]
    kind: FieldType,
    title: Option<Str>,
    description: Option<Str>,
    #[serde(default, deserialize_with = "json::present")]
    default: Option<Json>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    format: Option<Str>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    #[serde(rename = "enum")]
    values: Option<Vec<Str>>,
    enum_names: Option<Vec<Str>>,
    one_of: Option<Vec<Titled>>,
    items: Option<Items>,
    min_items: Option<u64>,
    max_items: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "the schema of the items")]
struct Items {
    #[serde(rename = "enum")]
    values: Option<Vec<Str>>,
    any_of: Option<Vec<Titled>>,
}

names! {
    enum FieldType {
        String = "string",
        Number = "number",
        Integer = "integer",
        Boolean = "boolean",
        Array = "array",
    }
}

/// A default of another type than the field, a format that is not known and a keyword of another kind
/// of field say nothing, and are passed over.
impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Keywords {
            kind,
            title,
            description,
            default,
            min_length,
            max_length,
            format,
            minimum,
            maximum,
            values,
            enum_names,
            one_of,
            items,
            min_items,
            max_items,
        } = Keywords::deserialize(deserializer)?;
        let default_text =
            || default.as_ref().and_then(Json::as_str).map(|text| Str::Owned(text.into_owned()));
        Ok(match (kind, values, one_of) {
            (FieldType::String, Some(values), _) => Self::SingleSelect(SingleSelectSchema {
                legacy: enum_names.is_some(),
                options: named(values, enum_names.unwrap_or_default()),
                default: default_text(),
                title,
                description,
            }),
            (FieldType::String, None, Some(titled)) => Self::SingleSelect(SingleSelectSchema {
                legacy: false,
                options: titled.into_iter().map(SelectOption::from).collect(),
                default: default_text(),
                title,
                description,
            }),
            (FieldType::String, None, None) => Self::String(StringSchema {
                kind: TypeString,
                default: default_text(),
                format: format.as_deref().and_then(StringFormat::parse),
                title,
                description,
                min_length,
                max_length,
            }),
            (FieldType::Number | FieldType::Integer, ..) => Self::Number(NumberSchema {
                kind: if kind == FieldType::Integer { NumberType::Integer } else { NumberType::Number },
                default: default.as_ref().and_then(Json::as_f64),
                title,
                description,
                minimum,
                maximum,
            }),
            (FieldType::Boolean, ..) => Self::Boolean(BooleanSchema {
                kind: TypeBoolean,
                default: default.as_ref().and_then(Json::as_bool),
                title,
                description,
            }),
            (FieldType::Array, ..) => Self::MultiSelect(MultiSelectSchema {
                options: match items.ok_or_else(|| D::Error::missing_field("items"))? {
                    Items { any_of: Some(titled), .. } => {
                        titled.into_iter().map(SelectOption::from).collect()
                    }
                    Items { values: Some(values), .. } => named(values, Vec::new()),
                    _ => return Err(D::Error::custom("expected `enum` or `anyOf` in the items of a choice")),
                },
                default: default.as_ref().and_then(|json| json.decode().ok()),
                title,
                description,
                min_items,
                max_items,
            }),
        })
    }
}

impl From<Titled> for SelectOption {
    fn from(Titled { value, title }: Titled) -> Self {
        Self { value, title: Some(title) }
    }
}

/// Values with their titles, as far as there are any.
fn named(values: Vec<Str>, titles: Vec<Str>) -> Vec<SelectOption> {
    let mut titles = titles.into_iter();
    values.into_iter().map(|value| SelectOption { value, title: titles.next() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::de;

    fn text(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn every_kind_of_field_is_written_and_read() {
        let fields: [(PrimitiveSchema, &str); 11] = [
            (StringSchema::new().into(), r#"{"type":"string"}"#),
            (
                StringSchema::new()
                    .title("T")
                    .description("D")
                    .min_length(1)
                    .max_length(9)
                    .format(StringFormat::DateTime)
                    .default("x")
                    .into(),
                r#"{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"date-time","default":"x"}"#,
            ),
            (
                NumberSchema::new().minimum(0.5).maximum(10.0).default(1.0).into(),
                r#"{"type":"number","minimum":0.5,"maximum":10,"default":1}"#, // T06
            ),
            (NumberSchema::integer().title("N").into(), r#"{"type":"integer","title":"N"}"#),
            (BooleanSchema::new().default(false).into(), r#"{"type":"boolean","default":false}"#),
            (
                SingleSelectSchema::new(["r", "g"]).default("r").into(),
                r#"{"type":"string","enum":["r","g"],"default":"r"}"#,
            ),
            (
                SingleSelectSchema::new([("r", "Red"), ("g", "Green")]).title("C").into(),
                r#"{"type":"string","title":"C","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#,
            ),
            (
                SingleSelectSchema::new([("r", "Red")]).legacy().into(),
                r#"{"type":"string","enum":["r"],"enumNames":["Red"]}"#,
            ),
            (
                MultiSelectSchema::new(["r", "g"]).min_items(1).max_items(2).default(["g".into()]).into(),
                r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["r","g"]},"default":["g"]}"#,
            ),
            (
                MultiSelectSchema::new([("r", "Red")]).into(),
                r#"{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"}]}}"#,
            ),
            (
                MultiSelectSchema::new([] as [&str; 0]).into(),
                r#"{"type":"array","items":{"type":"string","enum":[]}}"#,
            ),
        ];
        for (field, expected) in fields {
            assert_eq!(text(&field), expected);
            assert_eq!(de::from_str::<PrimitiveSchema>(expected).unwrap(), field, "{expected}");
        }
    }

    #[test]
    fn what_is_no_flat_field_is_refused() {
        for (bad, place) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"object","properties":{}}}}"#,
                "/properties/a/type",
            ),
            (r#"{"type":"object","properties":{"a":{"type":["string","null"]}}}"#, "/properties/a/type"),
            (r#"{"type":"object","properties":{"a":{}}}"#, "/properties/a/type"),
            (r#"{"type":"object","properties":{"a":{"type":"array"}}}"#, "/properties/a/items"),
            (r#"{"type":"array","properties":{}}"#, "/type"),
            (r#"{"type":"object"}"#, "/properties"),
            (r#"{"properties":{}}"#, "/type"),
            ("[]", "root"),
        ] {
            let error = format!("{}", FormSchema::from_json(Json::parse(bad).unwrap()).unwrap_err());
            assert!(error.contains(place), "{bad}: {error}");
        }
    }

    #[test]
    fn a_schema_that_was_read_keeps_order_and_keywords() {
        // M03
        let source = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object","properties":{"z":{"type":"string","pattern":"^a","format":"phone"},"a":{"type":"string","enum":["x"],"enumNames":["X"]},"m":{"type":"number","default":"no","multipleOf":1.0}},"required":["m","z"]}"#;
        let schema: FormSchema = de::from_str(source).unwrap();
        assert_eq!(text(&schema), source);
        assert!(schema.is_required("m") && !schema.is_required("a"));
        let names: Vec<&str> = schema.properties().iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["z", "a", "m"]);
        let more = schema.optional("m", BooleanSchema::new());
        assert_eq!(
            text(&more),
            r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string","enum":["x"],"enumNames":["X"]},"m":{"type":"boolean"}},"required":["z"]}"#
        );
    }

    #[test]
    fn an_older_revision_has_one_form_of_choice() {
        let schema = FormSchema::new().optional("c", SingleSelectSchema::new([("r", "Red")]));
        let old = schema.fitted(ProtocolVersion::V2025_06_18).unwrap();
        assert_eq!(
            text(&old),
            r#"{"type":"object","properties":{"c":{"type":"string","enum":["r"],"enumNames":["Red"]}}}"#
        );
        assert!(matches!(schema.fitted(ProtocolVersion::V2025_11_25), Ok(Cow::Borrowed(_))));
        let several = schema.optional("m", MultiSelectSchema::new(["a"]));
        let error = several.fitted(ProtocolVersion::V2025_06_18).unwrap_err();
        assert!(format!("{error}").contains("\"m\""), "{error}");
    }
}
