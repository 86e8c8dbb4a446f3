//! Tables of a program, and doubles that are written as decimals.

use std::sync::Arc;

use crate::draws::MOST;
use crate::error::{needs, refuse, Error, Result};
use crate::integer::Integer;
use crate::json::Json;
use crate::natural::Natural;
use crate::program::{counted, has_keys, literal, Value};

/// A table: a vector, vectors of one length, or running totals of numbers that fall geometrically.
pub fn read(table: &Json) -> Result<Value> {
    let Some(list) = table.list() else {
        return falling(table);
    };
    needs(list.len() <= MOST, "a table that is too long")?;
    if list.iter().all(|entry| entry.list().is_none()) {
        return Ok(Value::vector(list.iter().map(literal).collect::<Result<_>>()?));
    }
    let mut rows: Vec<Arc<Vec<Integer>>> = Vec::with_capacity(list.len());
    for row in list {
        let row = row.list().ok_or_else(|| Error::new("a table of vectors and numbers"))?;
        needs(row.len() <= MOST && rows.first().is_none_or(|first| first.len() == row.len()), "vectors of different lengths")?;
        rows.push(Arc::new(row.iter().map(literal).collect::<Result<_>>()?));
    }
    Ok(Value::Rows(Arc::new(rows)))
}

/// The digits of a decimal above or equal to 0, and the power of ten that they are multiplied by.
pub fn decimal(text: &str) -> Option<(Natural, i64)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "0"),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits(integer, 400) || !digits(fraction, 400) || !digits(unsigned, 3) {
        return None;
    }
    let places = if mantissa.contains('.') { fraction.len() } else { 0 };
    let all = format!("{integer}{}", if places > 0 { fraction } else { "" });
    Some((Natural::from_decimal(&all), exponent.parse::<i64>().ok()? - places as i64))
}

/// True for a decimal of at least 0, as definitions write it.
pub fn is_decimal(text: &str) -> bool {
    decimal(text).is_some()
}

/// A double that is written as a decimal.
pub fn double(json: &Json) -> Result<f64> {
    let text = json.text().filter(|text| is_decimal(text.strip_prefix('-').unwrap_or(text)));
    match text.and_then(|text| text.parse::<f64>().ok()) {
        Some(number) if number.is_finite() => Ok(number),
        _ => refuse("a text that is no double"),
    }
}

struct Powers(Vec<Natural>);

impl Powers {
    fn of(&mut self, power: usize) -> &Natural {
        while self.0.len() <= power {
            let next = self.0[self.0.len() - 1].mul(&Natural::from(10));
            self.0.push(next);
        }
        &self.0[power]
    }
}

/// The most places of a whole part that a number of 4096 bits has room for.
const MOST_PLACES: i64 = 1240;

fn falling(table: &Json) -> Result<Value> {
    needs(has_keys(table, &["first", "ratio", "digits", "floor", "count"]), "another table")?;
    let read = |key| table.get(key).and_then(Json::text).and_then(decimal).ok_or_else(|| Error::new("a table of no decimals"));
    let ((mut weight, mut exponent), (ratio, power)) = (read("first")?, read("ratio")?);
    let digits = counted(table.get("digits"), 1, 1000)? as usize;
    let count = counted(table.get("count"), 0, MOST as i64)? as usize;
    let floor = literal(table.get("floor").unwrap_or(&Json::Null))?;
    needs(!floor.is_negative(), "a table below 0")?;
    let mut powers = Powers(vec![Natural::from(1)]);
    let most = powers.of(digits).clone();
    let mut total = Integer::from(0);
    let mut totals = vec![total.clone()];
    for _ in 0..count {
        let size = weight.to_decimal_places();
        needs(weight.is_zero() || size as i64 + exponent <= MOST_PLACES, "a number of more than 4096 bits")?;
        let whole = if weight.is_zero() || size as i64 + exponent < 0 {
            Natural::from(0)
        } else if exponent < 0 {
            weight.div_mod(powers.of(-exponent as usize)).0
        } else {
            weight.mul(powers.of(exponent as usize))
        };
        let whole = Integer::from_natural(whole);
        total = total.add((&whole).max(&floor))?;
        totals.push(total.clone());
        weight = weight.mul(&ratio);
        exponent += power;
        // Cut at once by nearly as many digits as are too many, and then one by one.
        let cut = weight.to_decimal_places().saturating_sub(digits + 1);
        if cut > 0 && weight >= most {
            weight = weight.div_mod(powers.of(cut)).0;
            exponent += cut as i64;
        }
        while weight >= most {
            weight = weight.div_mod(powers.of(1)).0;
            exponent += 1;
        }
    }
    Ok(Value::vector(totals))
}
