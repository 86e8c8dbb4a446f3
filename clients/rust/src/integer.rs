//! Exact integers: a machine word of 128 bits as long as it holds the number, else a sign and a magnitude.

use std::cmp::Ordering;

use crate::error::{refuse, Result};
use crate::natural::Natural;

/// The most bits of a number of a program.
pub const MOST_BITS: usize = 4096;

#[derive(Clone, Debug)]
pub enum Integer {
    Word(i128),
    /// A number that no `Word` holds.
    Wide(Box<(bool, Natural)>),
}

use Integer::{Wide, Word};

impl Integer {
    fn of(negative: bool, magnitude: Natural) -> Integer {
        match magnitude.to_u128() {
            Some(low) if low <= i128::MAX as u128 => Word(if negative { -(low as i128) } else { low as i128 }),
            _ => Wide(Box::new((negative, magnitude))),
        }
    }

    fn parts(&self) -> (bool, Natural) {
        match self {
            Word(word) => (*word < 0, Natural::from(word.unsigned_abs())),
            Wide(wide) => (wide.0, wide.1.clone()),
        }
    }

    pub fn from_natural(magnitude: Natural) -> Integer {
        Integer::of(false, magnitude)
    }

    /// A number as a program writes it, without a leading zero; `None` for any other text.
    pub fn parse(text: &str) -> Option<Integer> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let leading = digits.as_bytes().first()?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.len() > 1234 {
            return None;
        }
        if *leading == b'0' && text != "0" {
            return None;
        }
        let found = Integer::of(text.starts_with('-'), Natural::from_decimal(digits));
        found.checked().ok()
    }

    /// The number itself, unless it has more bits than a program's numbers have.
    pub fn checked(self) -> Result<Integer> {
        match &self {
            Wide(wide) if wide.1.bits() > MOST_BITS => refuse("a number of more than 4096 bits"),
            _ => Ok(self),
        }
    }

    pub fn word(&self) -> Option<i128> {
        match self {
            Word(word) => Some(*word),
            Wide(_) => None,
        }
    }

    /// The number as a size that was checked before.
    pub fn size(&self) -> usize {
        self.word().map_or(0, |word| word as usize)
    }

    pub fn is_negative(&self) -> bool {
        match self {
            Word(word) => *word < 0,
            Wide(wide) => wide.0,
        }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Word(0))
    }

    pub fn add(&self, other: &Integer) -> Result<Integer> {
        if let (Word(a), Word(b)) = (self, other) {
            if let Some(sum) = a.checked_add(*b) {
                return Ok(Word(sum));
            }
        }
        let ((sign, a), (other_sign, b)) = (self.parts(), other.parts());
        signed_sum(sign, a, other_sign, b).checked()
    }

    pub fn sub(&self, other: &Integer) -> Result<Integer> {
        if let (Word(a), Word(b)) = (self, other) {
            if let Some(difference) = a.checked_sub(*b) {
                return Ok(Word(difference));
            }
        }
        let ((sign, a), (other_sign, b)) = (self.parts(), other.parts());
        signed_sum(sign, a, !other_sign, b).checked()
    }

    pub fn mul(&self, other: &Integer) -> Result<Integer> {
        if let (Word(a), Word(b)) = (self, other) {
            if let Some(product) = a.checked_mul(*b) {
                return Ok(Word(product));
            }
        }
        let ((sign, a), (other_sign, b)) = (self.parts(), other.parts());
        Integer::of(sign != other_sign, a.mul(&b)).checked()
    }

    /// The quotient, rounded down, and the rest, by a divisor above 0.
    pub fn div_mod(&self, divisor: &Integer) -> Result<(Integer, Integer)> {
        if let (Word(a), Word(b)) = (self, divisor) {
            return Ok((Word(a.div_euclid(*b)), Word(a.rem_euclid(*b))));
        }
        let ((negative, a), (_, b)) = (self.parts(), divisor.parts());
        let (quotient, rest) = a.div_mod(&b);
        if !negative || rest.is_zero() {
            return Ok((Integer::of(negative, quotient), Integer::of(false, rest)));
        }
        Ok((Integer::of(true, quotient.add(&Natural::from(1))), Integer::of(false, b.sub(&rest))))
    }

    pub fn shift_left(&self, places: usize) -> Result<Integer> {
        match self {
            Word(0) => Ok(Word(0)),
            Word(word) if places < 127 && (word << places) >> places == *word => Ok(Word(word << places)),
            _ if places > MOST_BITS => refuse("a number of more than 4096 bits"),
            _ => {
                let (negative, magnitude) = self.parts();
                Integer::of(negative, magnitude.shift_left(places)).checked()
            }
        }
    }

    /// Divided by 2**places, rounded down.
    pub fn shift_right(&self, places: usize) -> Integer {
        match self {
            Word(word) => Word(word >> places.min(127)),
            Wide(wide) => {
                let (magnitude, exact) = wide.1.shift_right(places);
                let up = wide.0 && !exact;
                Integer::of(wide.0, if up { magnitude.add(&Natural::from(1)) } else { magnitude })
            }
        }
    }

    /// Bit by bit, of numbers that are not negative.
    pub fn bitwise(&self, other: &Integer, operate: fn(u128, u128) -> u128) -> Integer {
        if let (Word(a), Word(b)) = (self, other) {
            return Word(operate(*a as u128, *b as u128) as i128);
        }
        Integer::of(false, self.parts().1.bitwise(&other.parts().1, operate))
    }

    pub fn is_odd_parity(&self) -> bool {
        match self {
            Word(word) => word.count_ones() % 2 == 1,
            Wide(wide) => wide.1.ones() % 2 == 1,
        }
    }

    /// The nearest double, ties to even; infinite where none is near.
    pub fn to_double(&self) -> f64 {
        match self {
            Word(word) => *word as f64,
            Wide(wide) => {
                let magnitude = wide.1.to_double();
                if wide.0 {
                    -magnitude
                } else {
                    magnitude
                }
            }
        }
    }
}

fn signed_sum(sign: bool, a: Natural, other_sign: bool, b: Natural) -> Integer {
    if sign == other_sign {
        return Integer::of(sign, a.add(&b));
    }
    match a.cmp(&b) {
        Ordering::Equal => Word(0),
        Ordering::Greater => Integer::of(sign, a.sub(&b)),
        Ordering::Less => Integer::of(other_sign, b.sub(&a)),
    }
}

impl From<i128> for Integer {
    fn from(word: i128) -> Integer {
        Word(word)
    }
}

impl From<bool> for Integer {
    fn from(bit: bool) -> Integer {
        Word(i128::from(bit))
    }
}

impl std::fmt::Display for Integer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Word(word) => write!(formatter, "{word}"),
            Wide(wide) => write!(formatter, "{}{}", if wide.0 { "-" } else { "" }, wide.1.to_decimal()),
        }
    }
}

impl PartialEq for Integer {
    fn eq(&self, other: &Integer) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Integer {}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Integer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Integer) -> Ordering {
        match (self, other) {
            (Word(a), Word(b)) => a.cmp(b),
            (Word(_), Wide(wide)) => {
                if wide.0 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (Wide(_), Word(_)) => other.cmp(self).reverse(),
            (Wide(a), Wide(b)) => match (a.0, b.0) {
                (false, false) => a.1.cmp(&b.1),
                (true, true) => b.1.cmp(&a.1),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(bits: usize) -> Integer {
        Integer::from(1).shift_left(bits).unwrap()
    }

    #[test]
    fn division_of_a_negative_number_rounds_down() {
        let number = power(200).mul(&Integer::from(-1)).unwrap().sub(&Integer::from(1)).unwrap();
        let (quotient, rest) = number.div_mod(&power(130)).unwrap();
        assert_eq!(quotient, power(70).mul(&Integer::from(-1)).unwrap().sub(&Integer::from(1)).unwrap());
        assert_eq!(rest, power(130).sub(&Integer::from(1)).unwrap());
        assert_eq!(number.shift_right(130), quotient);
        let (quotient, rest) = Integer::from(-7).div_mod(&Integer::from(2)).unwrap();
        assert_eq!((quotient, rest), (Integer::from(-4), Integer::from(1)));
    }

    #[test]
    fn numbers_end_at_4096_bits() {
        let largest = power(4095).add(&power(4095).sub(&Integer::from(1)).unwrap()).unwrap();
        assert!(largest.add(&Integer::from(1)).is_err());
        assert!(power(4095).shift_left(1).is_err());
        assert!(power(2048).mul(&power(2048)).is_err());
        assert_eq!(Integer::parse(&largest.to_string()), Some(largest));
    }

    #[test]
    fn numbers_at_the_end_of_a_word_keep_their_value() {
        for bits in [62, 63, 64, 126, 127, 128, 129] {
            let number = power(bits);
            assert_eq!(number.sub(&Integer::from(1)).unwrap().add(&Integer::from(1)).unwrap(), number);
            let negative = number.mul(&Integer::from(-1)).unwrap();
            assert_eq!(Integer::parse(&negative.to_string()).unwrap(), negative);
            assert_eq!(negative.shift_right(bits), Integer::from(-1));
            assert_eq!(number.to_double(), 2f64.powi(bits as i32));
        }
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "-", "01", "-0", "+1", "1.0", " 1", "1 ", "\u{661}", "0x1"] {
            assert_eq!(Integer::parse(text), None, "{text}");
        }
    }
}
