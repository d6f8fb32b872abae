//! What a genuine token says. [RFC 7519, section 4; RFC 9068, section 2.2]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::super::Verified;
use super::Policy;
use crate::rpc::Members;
use crate::server::{Principal, Scopes};
use crate::time::UnixTime;

/// `Err` says what is wrong, for logs.
pub(super) fn read(payload: &str, policy: &Policy) -> Result<Verified, &'static str> {
    let claims =
        Members::from_json(payload).ok_or("its claims are no JSON object, or a claim stands twice")?;
    let text = |name| claims.text(name).map_err(|_| "a claim that is text is not");

    if text("iss")?.as_deref() != Some(&*policy.issuer) {
        return Err("its issuer is another");
    }
    let subject = text("sub")?.filter(|subject| !subject.is_empty()).ok_or("it has no subject")?;
    let expires = moment(claims.get("exp").ok_or("it never expires")?)?;
    let not_before = claims.get("nbf").map(moment).transpose()?;

    // One issuer may repeat a subject of another. A URI has no space, so the two cannot be mixed up.
    let mut principal = Principal::new(format!("{} {subject}", policy.issuer));
    if let Some(roles) = policy.roles.as_ref().and_then(|claim| claims.get(claim)) {
        principal = principal.with_roles(strings(roles).ok_or("its roles are no array of strings")?);
    }
    let audience = claims.get("aud").map_or_else(
        || Some(Vec::new()),
        |audience| if audience.get().starts_with('"') { one(audience) } else { strings(audience) },
    );
    let mut verified = Verified::new(principal, audience.ok_or("its audience is neither text nor texts")?)
        .scopes(scopes(&claims)?)
        .expires(expires.saturating_add(policy.leeway));
    if let Some(start) = not_before {
        let leeway = u64::try_from(policy.leeway.as_millis()).unwrap_or(u64::MAX);
        verified = verified.not_before(UnixTime::from_millis(start.as_millis().saturating_sub(leeway)));
    }
    Ok(verified)
}

/// `scope` is text; `scp`, which some issuers have instead, may be an array as well.
fn scopes(claims: &Members<'_>) -> Result<Scopes, &'static str> {
    const UNFIT: &str = "its scopes are none";
    let mut all = Scopes::NONE;
    for name in ["scope", "scp"] {
        let Some(raw) = claims.get(name) else { continue };
        let found = if raw.get().starts_with('[') && name == "scp" {
            Scopes::of(strings(raw).ok_or(UNFIT)?)
        } else {
            Scopes::parse(&claims.text(name).ok().flatten().ok_or(UNFIT)?)
        };
        all = all.union(&found.map_err(|_| UNFIT)?);
    }
    Ok(all)
}

/// Seconds since 1970, perhaps with a fraction.
fn moment(raw: &RawValue) -> Result<UnixTime, &'static str> {
    /// The end of the year 9999: later is no date but a mistake.
    const LAST: f64 = 253_402_300_799.0;
    let seconds: f64 = serde_json::from_str(raw.get()).map_err(|_| "a time is no number")?;
    if !(0.0..=LAST).contains(&seconds) {
        return Err("a time is out of range");
    }
    // In range, so nothing is cut but fractions of milliseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(UnixTime::from_millis((seconds * 1000.0) as u64))
}

fn strings(raw: &RawValue) -> Option<Vec<String>> {
    serde_json::from_str(raw.get()).ok()
}

fn one(raw: &RawValue) -> Option<Vec<String>> {
    serde_json::from_str(raw.get()).ok().map(|text| alloc::vec![text])
}
