//! Whole numbers as text, compared by value.

/// 2^53 - 1: beyond it, peers that keep numbers as doubles see other numbers.
const MOST: i64 = (1 << 53) - 1;

/// The value of a number in the notation of JSON if it is whole and every peer can hold it: `42`, `42.0`,
/// `4.2e1`. Exact, whatever the length of the text.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(split) => split,
        None => (mantissa, ""),
    };
    let (whole, fraction) = (whole.as_bytes(), fraction.as_bytes());
    let sound = !whole.is_empty()
        && (whole.len() == 1 || whole[0] != b'0')
        && whole.iter().chain(fraction).all(u8::is_ascii_digit);
    if !sound {
        return None;
    }
    let digits = || whole.iter().chain(fraction);
    let counts = |(at, digit): (usize, &u8)| (*digit != b'0').then_some(at);
    let mut counting = digits().enumerate().filter_map(counts);
    let Some(first) = counting.next() else { return Some(0) };
    let last = counting.last().unwrap_or(first);
    // The power of ten of the last digit that counts.
    let power = i64::try_from(whole.len()).ok()? - 1 - i64::try_from(last).ok()?;
    let power = u32::try_from(power.checked_add(exponent)?).ok()?;
    let mut value = 0_i64;
    for digit in digits().take(last + 1).skip(first) {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    value = value.checked_mul(10_i64.checked_pow(power)?)?;
    (value <= MOST).then_some(if negative { -value } else { value })
}

/// One that is too large for an `i64` becomes the largest: the sign is all that still counts.
fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    /// S-HDR-21, B-HDR-01
    #[test]
    fn whole_numbers_are_compared_by_value() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e999999999999999999999", 0),
            ("42", 42),
            ("42.0", 42),
            ("4.2e1", 42),
            ("420E-1", 42),
            ("42.000e+0", 42),
            ("0.042e3", 42),
            ("-7", -7),
            ("1e15", 1_000_000_000_000_000),
            ("9007199254740991", MOST),
            ("-9007199254740991", -MOST),
            ("9007199254740991.0000", MOST),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "+42",
            "042",
            "-042",
            "42.",
            ".5",
            "4 2",
            "0x2a",
            "1e",
            "1e+",
            "--1",
            "1.5",
            "42.5e0",
            "1e-1",
            "9007199254740992",
            "9007199254740993",
            "-9007199254740992",
            "1e16",
            "1e400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "NaN",
            "Infinity",
            "true",
            "1,0",
            "1_0",
            "٤",
            "9007199254740991.1",
            "1.e1",
            "1e1.0",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(100_000)), None);
        assert_eq!(parse(&format!("1{}e-100000", "0".repeat(100_000))), Some(1));
    }

    proptest! {
        #[test]
        fn what_json_writes_is_read(value in -MOST..=MOST, zeros in 0_usize..20) {
            prop_assert_eq!(parse(&format!("{value}")), Some(value));
            prop_assert_eq!(parse(&format!("{value}.{}0", "0".repeat(zeros))), Some(value));
        }

        #[test]
        fn nothing_panics(text in "-?[0-9]{0,20}(\\.[0-9]{0,20})?(e[-+]?[0-9]{0,20})?") {
            let _ = parse(&text);
        }
    }
}
