//! Amounts of a device's budget: integers in units of 1e-9 of ε, from decimals.

use crate::json::LARGEST;
use crate::natural::Natural;
use crate::tables::decimal;

const PLACES: i64 = 9;
/// A power of ten beyond every amount.
const MOST_PLACES: i64 = 1000;

/// A decimal in units, rounded up or down. `None` for another text, and for more than 2**53 - 1.
pub fn units(text: &str, up: bool) -> Option<i64> {
    let (digits, exponent) = decimal(text)?;
    let places = exponent + PLACES;
    let ten = |power: i64| (0..power).fold(Natural::from(1), |ten, _| ten.mul(&Natural::from(10)));
    if digits.is_zero() {
        return Some(0);
    }
    let found = if places >= 0 {
        if places > MOST_PLACES {
            return None;
        }
        digits.mul(&ten(places))
    } else {
        let (whole, rest) = digits.div_mod(&ten(-places));
        if up && !rest.is_zero() { whole.add(&Natural::from(1)) } else { whole }
    };
    found.to_decimal().parse::<i64>().ok().filter(|units| *units <= LARGEST)
}

/// The decimal of some units.
pub fn epsilon_of(units: i64) -> String {
    let text = format!("{units:010}");
    let (whole, fraction) = text.split_at(text.len() - PLACES as usize);
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}
