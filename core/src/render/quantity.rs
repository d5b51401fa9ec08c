//! Quantities of Kubernetes by value.

use thiserror::Error;

/// Billionths per unit.
const NANO: i128 = 1_000_000_000;

/// A quantity by its value: `1Gi` and `1024Mi` are equal. Exact to one billionth of a unit, the finest that Kubernetes
/// knows; what is finer is rounded away from zero, as `resource.ParseQuantity` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    nanos: i128,
}

/// Why a string is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// It does not read `<number><suffix>`.
    #[error("not a quantity: write a number with a suffix such as Mi, Gi, m or none")]
    Malformed,
    /// It is beyond what can be held.
    #[error("the quantity is too large")]
    TooLarge,
}

impl Amount {
    /// Reads a quantity (grammar in `k8s.io/apimachinery/pkg/api/resource/quantity.go`).
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(end).ok_or(QuantityError::Malformed)?;
        let (digits, decimals) = digits(number)?;
        let scale = Scale::parse(suffix)?;
        let nanos = scale.nanos(digits, decimals)?;
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
        })
    }

    /// Whole units, rounded up as `Quantity.Value` does; negative ones count as 0.
    pub fn units(self) -> u64 {
        let up = self.nanos.saturating_add(NANO - 1).div_euclid(NANO);
        u64::try_from(up.max(0)).unwrap_or(u64::MAX)
    }
}

/// The digits of a number without its point, and how many of them stand behind it.
fn digits(number: &str) -> Result<(i128, u32), QuantityError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::Malformed);
    }
    let all = format!("{whole}{}", fraction.trim_end_matches('0'));
    let decimals = fraction.trim_end_matches('0').len();
    if all.trim_start_matches('0').len() > 30 {
        return Err(QuantityError::TooLarge);
    }
    let value = if all.is_empty() {
        0
    } else {
        all.parse().map_err(|_| QuantityError::Malformed)?
    };
    Ok((
        value,
        u32::try_from(decimals).map_err(|_| QuantityError::TooLarge)?,
    ))
}

/// What a suffix multiplies by.
enum Scale {
    /// Two to this power.
    Binary(u32),
    /// Ten to this power.
    Decimal(i32),
}

impl Scale {
    fn parse(suffix: &str) -> Result<Self, QuantityError> {
        let scale = match suffix {
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            _ => {
                let power = suffix
                    .strip_prefix(['e', 'E'])
                    .ok_or(QuantityError::Malformed)?;
                let power: i32 = power.parse().map_err(|_| QuantityError::Malformed)?;
                Self::Decimal(power)
            }
        };
        Ok(scale)
    }

    /// `digits / 10^decimals` of this scale in billionths, rounded up.
    fn nanos(&self, digits: i128, decimals: u32) -> Result<i128, QuantityError> {
        if digits == 0 {
            return Ok(0);
        }
        let (factor, power) = match self {
            Self::Binary(power) => (1i128 << power.min(&64), 9),
            Self::Decimal(power) => (1, power.saturating_add(9)),
        };
        let power = power.saturating_sub(i32::try_from(decimals).unwrap_or(i32::MAX));
        let scaled = digits.checked_mul(factor).ok_or(QuantityError::TooLarge)?;
        let tens = 10i128.checked_pow(power.unsigned_abs());
        if power >= 0 {
            return tens
                .and_then(|tens| scaled.checked_mul(tens))
                .ok_or(QuantityError::TooLarge);
        }
        // Anything above zero that is finer than a billionth counts as one.
        Ok(tens.map_or(1, |tens| {
            scaled.div_euclid(tens) + i128::from(scaled.rem_euclid(tens) != 0)
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).expect(text)
    }

    #[test]
    fn equal_values_are_equal_however_they_are_written() {
        let table = [
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1", "1000m"),
            ("1e3", "1k"),
            ("1E3", "1k"),
            ("1.5Gi", "1536Mi"),
            ("1E", "1000P"),
            (".5", "0.50"),
            ("1.", "1"),
            ("+1", "1"),
            ("-0", "0"),
            ("100n", "0.0000001"),
            ("1Ei", "1024Pi"),
            ("12e-1", "1200m"),
        ];
        for (one, other) in table {
            assert_eq!(amount(one), amount(other), "{one} {other}");
        }
        assert_ne!(amount("1G"), amount("1Gi"));
        assert!(amount("-1") < amount("0"));
    }

    #[test]
    fn units_are_rounded_up() {
        assert_eq!(amount("1Gi").units(), 1 << 30);
        assert_eq!(amount("1m").units(), 1);
        assert_eq!(amount("1.1Ki").units(), 1127);
        assert_eq!(amount("-5").units(), 0);
        assert_eq!(amount("0.1n").units(), 1);
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for bad in [
            "", "-", ".", "Gi", "1gi", "1 Gi", "1..2", "1.2.3", "1e", "1ee3", "0x10", "1Gi ", "ü",
        ] {
            assert_eq!(Amount::parse(bad), Err(QuantityError::Malformed), "{bad}");
        }
        for large in [
            "1e40",
            "9999999999999999999999999999999999",
            "99999999999999999999Ei",
        ] {
            assert_eq!(
                Amount::parse(large),
                Err(QuantityError::TooLarge),
                "{large}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = Amount::parse(&text);
        }

        #[test]
        fn no_almost_quantity_makes_it_panic(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,40}[eEkKMGTPinum]{0,2}-?[0-9]{0,12}") {
            let _ = Amount::parse(&text).map(Amount::units);
        }

        #[test]
        fn whole_numbers_keep_their_value(number in 0u64..=(1 << 62)) {
            prop_assert_eq!(amount(&number.to_string()).units(), number);
        }

        #[test]
        fn a_larger_suffix_is_a_thousand_and_twenty_four_smaller_ones(number in 0u64..=1_000_000) {
            prop_assert_eq!(amount(&format!("{number}Gi")), amount(&format!("{}Mi", number * 1024)));
        }
    }
}
