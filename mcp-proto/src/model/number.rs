//! Numbers on the wire: whole numbers without `.0`, never `NaN`.

use serde::{Deserialize, Deserializer, Serializer, de, ser};

use super::Json;

/// 2^53: up to here every whole number has an exact `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The whole number that `value` is, if it is one that `f64` holds exactly.
pub(crate) fn whole(value: f64) -> Option<i64> {
    #[allow(clippy::cast_possible_truncation)] // the range is checked
    let whole = value as i64;
    #[allow(clippy::cast_precision_loss)]
    (value.abs() <= EXACT && whole as f64 == value).then_some(whole)
}

/// Whether `value` has no fractional part. Beyond 2^53 no `f64` has one.
pub(crate) fn is_whole(value: f64) -> bool {
    value.is_finite() && (value.abs() > EXACT || whole(value).is_some())
}

/// Writes `1` for `1.0`: strict peers refuse a fraction where they expect an integer.
pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match whole(*value) {
        Some(whole) => serializer.serialize_i64(whole),
        None if value.is_finite() => serializer.serialize_f64(*value),
        None => Err(ser::Error::custom("a number must be finite")),
    }
}

/// The same for an optional member; use it with `skip_serializing_if`.
pub(crate) mod option {
    use super::Serializer;

    #[allow(clippy::ref_option)] // the signature is serde's
    pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// Reads how long an answer stays fresh, in milliseconds. What is negative or no number is 0, and a fraction
/// is cut off: a hint that cannot be right must not cost the message that carries it. [spec: server/utilities/caching]
pub(crate) fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let json = Json::deserialize(deserializer)?;
    let value = serde_json::from_str::<f64>(json.get()).unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    Ok(value as u64)
}

/// Reads a duration of a task in milliseconds, where `null` is told apart. A negative one is 0, and a fraction
/// is cut off.
pub(crate) fn maybe_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(value) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    if value.is_nan() {
        return Err(de::Error::custom("expected milliseconds"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    Ok(Some(value as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        #[derive(serde::Serialize)]
        struct T(#[serde(serialize_with = "serialize")] f64);
        let text = |v: f64| serde_json::to_string(&T(v));
        // T06
        assert_eq!(text(60000.0).unwrap(), "60000");
        assert_eq!(text(-0.0).unwrap(), "0");
        assert_eq!(text(0.5).unwrap(), "0.5");
        assert_eq!(text(1e300).unwrap(), "1e+300");
        assert!(text(f64::NAN).is_err() && text(f64::INFINITY).is_err());
    }

    #[test]
    fn odd_milliseconds_do_not_fail() {
        #[derive(Deserialize)]
        struct T {
            #[serde(default, deserialize_with = "millis")]
            ttl: u64,
        }
        let ttl = |t: &str| serde_json::from_str::<T>(t).unwrap().ttl;
        assert_eq!(ttl(r#"{"ttl":60000.0}"#), 60000);
        assert_eq!(ttl(r#"{"ttl":-5}"#), 0);
        assert_eq!(ttl(r#"{"ttl":null}"#), 0);
        assert_eq!(ttl("{}"), 0);
        assert_eq!(ttl(r#"{"ttl":1e300}"#), u64::MAX);
        // C-CACHE-05, E08
        for odd in [r#""60000""#, "true", "[60000]", r#"{"a":[1]}"#] {
            assert_eq!(ttl(&format!(r#"{{"ttl":{odd}}}"#)), 0, "{odd}");
        }
    }
}
