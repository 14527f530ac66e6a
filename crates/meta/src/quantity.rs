//! Resource quantities: `500m`, `1Gi`, `2e3`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::{Serialize, Serializer};

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;

/// How a quantity is written; arithmetic keeps it.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub enum Format {
    /// Powers of ten with a letter: `500m`, `2k`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `1Gi`.
    BinarySi,
    /// Powers of ten with an exponent: `1e3`.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum QuantityError {
    /// Not of the form number and suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number is malformed or too large.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An exact amount, counted in billionths. Equality and order look at the amount only.
#[derive(Copy, Clone, Default)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nano: 0, format: Format::DecimalSi };

    /// A whole amount, written decimally.
    pub fn from_value(value: i64) -> Self {
        Self { nano: i128::from(value) * NANO, format: Format::DecimalSi }
    }

    /// A whole amount of bytes, written in powers of 1024.
    pub fn from_bytes(value: i64) -> Self {
        Self { nano: i128::from(value) * NANO, format: Format::BinarySi }
    }

    /// An amount in thousandths, as CPUs are counted.
    pub fn from_milli(milli: i64) -> Self {
        Self { nano: i128::from(milli) * MILLI, format: Format::DecimalSi }
    }

    /// Parses the text of a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, number, suffix) = split(text)?;
        let (scale, mut format) = suffix_scale(suffix)?;
        let mut nano = magnitude(number, scale)?;
        if format == Format::BinarySi {
            nano = nano.min(i128::from(i64::MAX) * NANO);
            if nano > 0 && nano < NANO {
                format = Format::DecimalSi;
            }
        }
        Ok(Self { nano: if negative { -nano } else { nano }, format })
    }

    /// How it is written.
    pub fn format(self) -> Format {
        self.format
    }

    /// The same amount, written otherwise.
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// The amount in whole units, rounded away from zero, kept within `i64`.
    pub fn value(self) -> i64 {
        clamp(div_away(self.nano, NANO))
    }

    /// The amount in thousandths, rounded away from zero, kept within `i64`.
    pub fn milli_value(self) -> i64 {
        clamp(div_away(self.nano, MILLI))
    }

    /// The amount as a float, for ratios shown to people.
    pub fn as_f64(self) -> f64 {
        self.nano as f64 / NANO as f64
    }

    /// The sum, unless it is too large.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { nano: self.nano.checked_add(other.nano)?, format: self.format_with(other) })
    }

    /// The difference, unless it is too large.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { nano: self.nano.checked_sub(other.nano)?, format: self.format_with(other) })
    }

    /// The amount times `numerator / denominator`, rounded towards zero.
    pub fn checked_scale(self, numerator: i64, denominator: i64) -> Option<Self> {
        let (numerator, denominator) = (i128::from(numerator), i128::from(denominator));
        let whole = self.nano.checked_div(denominator)?.checked_mul(numerator)?;
        let rest = self.nano.checked_rem(denominator)?.checked_mul(numerator)?.checked_div(denominator)?;
        Some(Self { nano: whole.checked_add(rest)?, format: self.format })
    }

    /// How many times `other` fits into this amount; `None` if `other` is nothing.
    pub fn checked_div(self, other: Self) -> Option<i64> {
        self.nano.checked_div(other.nano).map(clamp)
    }

    /// A zero has no format worth keeping.
    fn format_with(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }
}

/// Sign, number and suffix.
fn split(text: &str) -> Result<(bool, &str, &str), QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok((negative, number, suffix))
}

/// What one unit of a suffix is worth.
#[derive(Copy, Clone)]
enum Scale {
    /// Ten to the power of.
    Ten(i32),
    /// Two to the power of.
    Two(u32),
}

const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

fn suffix_scale(suffix: &str) -> Result<(Scale, Format), QuantityError> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((Scale::Ten(*power), Format::DecimalSi));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((Scale::Two(*power), Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
    Ok((Scale::Ten(exponent), Format::DecimalExponent))
}

/// The billionths of `number` units, rounded up.
fn magnitude(number: &str, scale: Scale) -> Result<i128, QuantityError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(QuantityError::Number);
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.is_empty() && fraction.is_empty() {
        return Ok(0);
    }
    // 38 digits always fit into an i128; more precision than this nobody needs.
    let kept = 38usize.saturating_sub(whole.len()).min(fraction.len());
    let digits: i128 = format!("{whole}{}", &fraction[..kept]).parse().map_err(|_| QuantityError::Number)?;
    let cut = kept < fraction.len();
    let (mut value, mut power) = (digits, -(kept as i64) + 9);
    match scale {
        Scale::Ten(exponent) => power += i64::from(exponent),
        Scale::Two(exponent) => {
            value = value.checked_mul(1i128 << exponent).ok_or(QuantityError::Number)?;
        }
    }
    let nano = if power >= 0 {
        let factor = u32::try_from(power).ok().and_then(|power| 10i128.checked_pow(power));
        factor.and_then(|factor| value.checked_mul(factor)).ok_or(QuantityError::Number)?
    } else {
        // Who asks for something gets something, however little.
        match u32::try_from(-power).ok().and_then(|power| 10i128.checked_pow(power)) {
            Some(divisor) => value / divisor + i128::from(value % divisor != 0 || cut),
            None => 1,
        }
    };
    Ok(nano)
}

fn div_away(value: i128, unit: i128) -> i128 {
    value / unit + (value % unit).signum()
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let small = self.nano.unsigned_abs() < 1024 * NANO.unsigned_abs();
        if self.format == Format::BinarySi && !small && self.nano % NANO == 0 {
            let (mut value, mut step) = (self.nano / NANO, 0);
            while value % 1024 == 0 && step < BINARY.len() {
                value /= 1024;
                step += 1;
            }
            let suffix = if step == 0 { "" } else { BINARY[step - 1].0 };
            return write!(f, "{value}{suffix}");
        }
        let (mut value, mut power) = (self.nano, -9);
        let exponential = self.format == Format::DecimalExponent;
        while value % 1000 == 0 && (exponential || power < 18) {
            value /= 1000;
            power += 3;
        }
        if exponential {
            return if power == 0 { write!(f, "{value}") } else { write!(f, "{value}e{power}") };
        }
        let suffix = DECIMAL.iter().find(|(_, known)| *known == power).map_or("", |(name, _)| *name);
        write!(f, "{value}{suffix}")
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Add for Quantity {
    type Output = Self;

    /// Adds; at the ends of the range it stays there.
    fn add(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano), format: self.format_with(other) }
    }
}

impl Sub for Quantity {
    type Output = Self;

    /// Subtracts; at the ends of the range it stays there.
    fn sub(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_sub(other.nano), format: self.format_with(other) }
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { nano: self.nano.saturating_neg(), format: self.format }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text.trim()).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_value(value))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Quantity, E> {
                Ok(Quantity { nano: i128::from(value) * NANO, format: Format::DecimalSi })
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Quantity, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }
        }
        deserializer.deserialize_any(Text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quantity_is_written_in_its_canonical_form() {
        for (text, canonical) in [
            ("0", "0"),
            ("0Ki", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("+1", "1"),
            ("-1.5", "-1500m"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.5Mi", "512Ki"),
            ("1Ki", "1Ki"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("0.0001Ki", "102400u"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e-1", "1200e-3"),
            ("100e1", "1e3"),
            ("1E", "1E"),
            ("1000E", "1000E"),
            ("100000", "100k"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("10Ei", "9223372036854775807"),
            ("001", "1"),
            ("1e-30", "1e-9"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for (text, error) in [
            ("", QuantityError::Format),
            (".", QuantityError::Format),
            (" 1", QuantityError::Format),
            ("1 ", QuantityError::Format),
            ("aoeu", QuantityError::Format),
            ("1+1.0M", QuantityError::Format),
            ("1.1.M", QuantityError::Number),
            ("1i", QuantityError::Suffix),
            ("0.1mi", QuantityError::Suffix),
            ("1K", QuantityError::Suffix),
            ("3e-", QuantityError::Suffix),
            ("1e99", QuantityError::Number),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn arithmetic_keeps_the_format_and_rounds_away_from_zero() {
        let memory = Quantity::parse("1Gi").unwrap();
        assert_eq!((memory + memory).to_string(), "2Gi");
        assert_eq!((Quantity::ZERO + memory).to_string(), "1Gi");
        assert_eq!((memory - memory - memory).to_string(), "-1Gi");
        assert_eq!(Quantity::parse("1500m").unwrap().value(), 2);
        assert_eq!(Quantity::parse("-1500m").unwrap().value(), -2);
        assert_eq!(Quantity::parse("1u").unwrap().milli_value(), 1);
        assert_eq!(Quantity::parse("2").unwrap().milli_value(), 2000);
        assert_eq!(memory.checked_scale(1, 2).unwrap().to_string(), "512Mi");
        assert_eq!(memory.checked_scale(1, 0), None);
        assert_eq!(Quantity::from_milli(2500).checked_div(Quantity::from_milli(1000)), Some(2));
        assert_eq!(memory.checked_div(Quantity::ZERO), None);
    }

    #[test]
    fn json_takes_text_and_numbers() {
        for (json, canonical) in [("\"1Gi\"", "\"1Gi\""), ("2", "\"2\""), ("0.5", "\"500m\""), ("null", "\"0\"")] {
            let quantity: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&quantity).unwrap(), canonical);
        }
        assert!(serde_json::from_str::<Quantity>("\"x\"").is_err());
        assert!(serde_json::from_str::<Quantity>("[]").is_err());
    }

    proptest! {
        #[test]
        fn the_canonical_form_reads_back(number in "-?[0-9]{1,12}(\\.[0-9]{0,12})?", suffix in "[numkMGTPE]|[KMGTP]i|e-?[0-9]|") {
            if let Ok(quantity) = Quantity::parse(&format!("{number}{suffix}")) {
                let text = quantity.to_string();
                let again = Quantity::parse(&text).unwrap();
                prop_assert_eq!(again, quantity);
                prop_assert_eq!(again.to_string(), text);
            }
        }

        #[test]
        fn no_text_makes_parsing_fail_hard(text in "[-+0-9.eEinumkKMGTP]{0,60}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity + quantity, -quantity, quantity.value(), quantity.milli_value(), quantity.to_string());
            }
        }
    }
}
