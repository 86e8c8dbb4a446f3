//! Natural numbers of any size, in limbs of 32 bits, the lowest first.

use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Natural {
    /// Without zeros at the end.
    limbs: Vec<u32>,
}

impl Natural {
    fn of(mut limbs: Vec<u32>) -> Natural {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Natural { limbs }
    }

    pub fn from(mut number: u128) -> Natural {
        let mut limbs = Vec::with_capacity(4);
        while number > 0 {
            limbs.push(number as u32);
            number >>= 32;
        }
        Natural { limbs }
    }

    /// The number of a big-endian text of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Natural {
        let limbs = bytes.rchunks(4).map(|chunk| chunk.iter().fold(0, |limb, byte| limb << 8 | u32::from(*byte)));
        Natural::of(limbs.collect())
    }

    /// The number of a text of ASCII digits.
    pub fn from_decimal(digits: &str) -> Natural {
        let mut found = Natural::from(0);
        for chunk in digits.as_bytes().chunks(9) {
            let low = chunk.iter().fold(0, |sum, digit| 10 * sum + u32::from(digit - b'0'));
            found.mul_small(10u32.pow(chunk.len() as u32), low);
        }
        found
    }

    fn mul_small(&mut self, factor: u32, plus: u32) {
        let mut carry = u64::from(plus);
        for limb in &mut self.limbs {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.limbs.push(carry as u32);
        }
    }

    fn div_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0;
        for limb in self.limbs.iter_mut().rev() {
            let part = rest << 32 | u64::from(*limb);
            *limb = (part / u64::from(divisor)) as u32;
            rest = part % u64::from(divisor);
        }
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
        rest as u32
    }

    pub fn to_decimal(&self) -> String {
        let (mut rest, mut groups) = (self.clone(), Vec::new());
        while !rest.is_zero() {
            groups.push(rest.div_small(1_000_000_000));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text += &format!("{group:09}");
        }
        text
    }

    pub fn to_u128(&self) -> Option<u128> {
        if self.limbs.len() > 4 {
            return None;
        }
        Some(self.limbs.iter().rev().fold(0, |number, limb| number << 32 | u128::from(*limb)))
    }

    pub fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    pub fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |limb| 32 * self.limbs.len() - limb.leading_zeros() as usize)
    }

    /// How many decimal digits the number has, or one fewer.
    pub fn to_decimal_places(&self) -> usize {
        // 30102/100000 is a little less than log10(2).
        self.bits().saturating_sub(1) * 30102 / 100_000 + usize::from(!self.is_zero())
    }

    pub fn ones(&self) -> u32 {
        self.limbs.iter().map(|limb| limb.count_ones()).sum()
    }

    pub fn add(&self, other: &Natural) -> Natural {
        let (long, short) = if self.limbs.len() < other.limbs.len() { (other, self) } else { (self, other) };
        let mut limbs = long.limbs.clone();
        let mut carry = 0;
        for (i, limb) in limbs.iter_mut().enumerate() {
            carry += u64::from(*limb) + short.limbs.get(i).map_or(0, |limb| u64::from(*limb));
            *limb = carry as u32;
            carry >>= 32;
        }
        limbs.push(carry as u32);
        Natural::of(limbs)
    }

    /// The difference from a number that is not larger.
    pub fn sub(&self, other: &Natural) -> Natural {
        let mut limbs = self.limbs.clone();
        let mut borrow = 0;
        for (i, limb) in limbs.iter_mut().enumerate() {
            let difference = i64::from(*limb) - other.limbs.get(i).map_or(0, |limb| i64::from(*limb)) - borrow;
            *limb = difference as u32;
            borrow = i64::from(difference < 0);
        }
        Natural::of(limbs)
    }

    pub fn mul(&self, other: &Natural) -> Natural {
        let mut limbs = vec![0u32; self.limbs.len() + other.limbs.len()];
        for (i, a) in self.limbs.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in other.limbs.iter().enumerate() {
                carry += u64::from(limbs[i + j]) + u64::from(*a) * u64::from(*b);
                limbs[i + j] = carry as u32;
                carry >>= 32;
            }
            limbs[i + other.limbs.len()] = carry as u32;
        }
        Natural::of(limbs)
    }

    /// The quotient and the rest (Knuth, The Art of Computer Programming 2, Algorithm 4.3.1 D). The divisor is above 0.
    pub fn div_mod(&self, divisor: &Natural) -> (Natural, Natural) {
        if *self < *divisor {
            return (Natural::from(0), self.clone());
        }
        if let [small] = divisor.limbs[..] {
            let mut quotient = self.clone();
            let rest = quotient.div_small(small);
            return (quotient, Natural::from(u128::from(rest)));
        }
        // Shifted so that the highest bit of the divisor is 1, a quotient digit is at most 2 too large.
        let turn = divisor.limbs[divisor.limbs.len() - 1].leading_zeros() as usize;
        let by = divisor.shift_left(turn).limbs;
        let mut rest = self.shift_left(turn).limbs;
        rest.resize(rest.len().max(self.limbs.len()) + 1, 0);
        let size = by.len();
        let (high, next) = (u64::from(by[size - 1]), u64::from(by[size - 2]));
        let mut quotient = vec![0; rest.len() - size];
        for j in (0..quotient.len()).rev() {
            let top = u64::from(rest[j + size]) << 32 | u64::from(rest[j + size - 1]);
            let (mut digit, mut left) = (top / high, top % high);
            while digit >> 32 != 0 || digit * next > (left << 32 | u64::from(rest[j + size - 2])) {
                digit -= 1;
                left += high;
                if left >> 32 != 0 {
                    break;
                }
            }
            let (mut borrow, mut carry) = (0i64, 0u64);
            for (i, limb) in by.iter().enumerate() {
                carry += digit * u64::from(*limb);
                let difference = i64::from(rest[i + j]) - borrow - i64::from(carry as u32);
                rest[i + j] = difference as u32;
                borrow = i64::from(difference < 0);
                carry >>= 32;
            }
            let difference = i64::from(rest[j + size]) - borrow - carry as i64;
            rest[j + size] = difference as u32;
            if difference < 0 {
                digit -= 1;
                let mut carry = 0;
                for (i, limb) in by.iter().enumerate() {
                    carry += u64::from(rest[i + j]) + u64::from(*limb);
                    rest[i + j] = carry as u32;
                    carry >>= 32;
                }
                rest[j + size] = rest[j + size].wrapping_add(carry as u32);
            }
            quotient[j] = digit as u32;
        }
        (Natural::of(quotient), Natural::of(rest).shift_right(turn).0)
    }

    pub fn shift_left(&self, places: usize) -> Natural {
        let (limbs, bits) = (places / 32, places % 32);
        let mut found = vec![0; limbs + self.limbs.len() + 1];
        for (i, limb) in self.limbs.iter().enumerate() {
            let wide = u64::from(*limb) << bits;
            found[limbs + i] |= wide as u32;
            found[limbs + i + 1] = (wide >> 32) as u32;
        }
        Natural::of(found)
    }

    /// Divided by 2**places, rounded down, and true if nothing was rounded.
    pub fn shift_right(&self, places: usize) -> (Natural, bool) {
        let (limbs, bits) = (places / 32, places % 32);
        if limbs >= self.limbs.len() {
            return (Natural::from(0), self.is_zero());
        }
        let exact = self.limbs[..limbs].iter().all(|limb| *limb == 0) && self.limbs[limbs] & ((1 << bits) - 1) == 0;
        let kept = &self.limbs[limbs..];
        let shifted = kept.iter().enumerate().map(|(i, limb)| {
            let above = kept.get(i + 1).map_or(0, |limb| u64::from(*limb));
            ((above << 32 | u64::from(*limb)) >> bits) as u32
        });
        (Natural::of(shifted.collect()), exact)
    }

    pub fn bitwise(&self, other: &Natural, operate: fn(u128, u128) -> u128) -> Natural {
        let size = self.limbs.len().max(other.limbs.len());
        let limb = |limbs: &[u32], i: usize| limbs.get(i).map_or(0, |limb| u128::from(*limb));
        Natural::of((0..size).map(|i| operate(limb(&self.limbs, i), limb(&other.limbs, i)) as u32).collect())
    }

    /// The nearest double, ties to even; infinite where none is near.
    pub fn to_double(&self) -> f64 {
        let bits = self.bits();
        if bits <= 128 {
            return self.to_u128().unwrap_or(0) as f64;
        }
        if bits > 1024 {
            return f64::INFINITY;
        }
        let (high, exact) = self.shift_right(bits - 128);
        // What was cut off decides nothing but a tie.
        let high = high.to_u128().unwrap_or(0) | u128::from(!exact);
        high as f64 * 2f64.powi((bits - 128) as i32)
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Natural) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Natural) -> Ordering {
        let by_length = self.limbs.len().cmp(&other.limbs.len());
        by_length.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_times_its_divisor_is_the_number_again() {
        // Numbers of all ones and zeros are those for which a digit of the quotient is guessed wrong.
        let shapes = [1u128, u128::MAX, 1 << 127, (1 << 96) - 1, u128::MAX << 64, 0x8000_0000_0000_0000_ffff_ffff];
        let numbers: Vec<Natural> = shapes
            .iter()
            .flat_map(|low| shapes.iter().map(|high| Natural::from(*high).shift_left(128).add(&Natural::from(*low))))
            .chain(shapes.iter().map(|low| Natural::from(*low)))
            .collect();
        for a in &numbers {
            for b in &numbers {
                let number = a.mul(a).add(b);
                let (quotient, rest) = number.div_mod(b);
                assert!(rest < *b);
                assert_eq!(quotient.mul(b).add(&rest), number);
            }
        }
    }

    #[test]
    fn the_nearest_double_of_a_tie_is_even() {
        let half = Natural::from((1 << 53) + 1).shift_left(200);
        assert_eq!(half.to_double(), 2f64.powi(253));
        assert_eq!(half.add(&Natural::from(1)).to_double(), (2f64.powi(53) + 2.0) * 2f64.powi(200));
        assert_eq!(Natural::from(1).shift_left(1024).to_double(), f64::INFINITY);
        assert_eq!(Natural::from(1).shift_left(1024).sub(&Natural::from(1)).to_double(), f64::INFINITY);
    }
}
