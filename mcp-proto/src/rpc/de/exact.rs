//! Integers from the digits of a JSON number, whatever its spelling.

use serde::de::Visitor;

use super::fault::{Fault, described_text, wording};

/// The widest value a visitor is shown.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// Whatever fits `i64` or `u64`.
    Usual,
    Signed128,
    Unsigned128,
}

/// Shows `visitor` the integer that `text`, a JSON value, stands for.
pub(super) fn visit<'de, V: Visitor<'de>>(
    text: &'de str,
    width: Width,
    visitor: V,
) -> Result<V::Value, Fault> {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Err(Fault::mismatch(described_text(text), wording(&visitor)));
    }
    match (integer(text), width) {
        (Number::Fraction, _) => Err(Fault::mismatch(described_text(text), wording(&visitor))),
        (Number::Integer { negative: false, magnitude }, Width::Usual) if magnitude <= u64::MAX.into() => {
            visitor.visit_u64(magnitude as u64)
        }
        (Number::Integer { negative: true, magnitude }, Width::Usual) if magnitude <= 1 << 63 => {
            visitor.visit_i64((magnitude as i128).wrapping_neg() as i64)
        }
        (Number::Integer { negative: false, magnitude }, Width::Unsigned128) => visitor.visit_u128(magnitude),
        (Number::Integer { negative: false, magnitude }, Width::Signed128) if magnitude < 1 << 127 => {
            visitor.visit_i128(magnitude as i128)
        }
        (Number::Integer { negative: true, magnitude }, Width::Signed128) if magnitude <= 1 << 127 => {
            visitor.visit_i128((magnitude as i128).wrapping_neg())
        }
        (Number::Integer { .. } | Number::Huge, _) => {
            Err(Fault::mismatch(described_text(text), wording(&visitor)))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Number {
    /// Zero is never negative.
    Integer {
        negative: bool,
        magnitude: u128,
    },
    Fraction,
    /// An integer beyond 128 bits.
    Huge,
}

/// The value of a JSON number, which `text` is known to be. Linear in the length of the text, and no
/// exponent makes it more.
fn integer(text: &str) -> Number {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());

    let Some((last, _)) = digits().enumerate().filter(|(_, digit)| *digit != b'0').last() else {
        return Number::Integer { negative: false, magnitude: 0 };
    };
    // How many of the digits, zeros appended as needed, stand before the point.
    let exponent: i64 =
        exponent.parse().unwrap_or_else(|_| if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
    let before_point = exponent.saturating_add(whole.len() as i64);
    if before_point <= last as i64 {
        return Number::Fraction;
    }
    let mut magnitude: u128 = 0;
    for digit in digits().take(last + 1) {
        let next = magnitude.checked_mul(10).and_then(|m| m.checked_add(u128::from(digit - b'0')));
        let Some(next) = next else { return Number::Huge };
        magnitude = next;
    }
    // The magnitude is not zero, so 39 more digits are beyond any width.
    for _ in 0..(before_point - 1 - last as i64).min(39) {
        let Some(next) = magnitude.checked_mul(10) else { return Number::Huge };
        magnitude = next;
    }
    Number::Integer { negative, magnitude }
}
