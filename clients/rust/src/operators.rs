//! The operators of client programs: their forms, and what those without a draw compute.

use crate::draws::MOST;
use crate::error::{needs, refuse, Result};
use crate::hashes::{blake2b, shake};
use crate::integer::Integer;
use crate::program::Value;

/// Each operator: the kinds of its arguments, and of its result. `each` is a number, or a vector place by place.
const FORMS: &str = "bit:chance:number bits:chance,size:vector bit_at:odds:number bits_each:chances:vector \
    below:bound:number belows:bound,size:vector belows_from:bound,size:vector subset:bound,size:vector \
    shuffle:vector:vector geometric:odds:number laplace:places:number normal:places:number \
    kept_bits:text,word,chance,size:vector kept_belows:text,word,bound,size:vector kept_top:text,word,top:number \
    polynomial:text,function,number,bound:number bloom:text,number,number,filter,hashes:vector add:each,each:each \
    sub:each,each:each mul:each,each:each div:each,divisor:each mod:each,divisor:each shr:each,shift:each \
    shl:each,shift:each and:natural,natural:each xor:natural,natural:each min:each,each:each max:each,each:each \
    lt:each,each:each ge:each,each:each eq:each,each:each where:choice,each,each:each parity:natural:each \
    list:number:vector at:vector,number:number put:vector,number,number:vector sort:vector:vector \
    first:flags:number rank:vector,number:number onehot:number,size:vector join:flags:number floyd:vector,number:vector";

#[derive(Clone, Debug)]
pub struct Form {
    pub name: &'static str,
    pub takes: Vec<&'static str>,
    pub gives: &'static str,
    /// The range of each argument's numbers.
    pub ranges: Vec<(Option<i128>, Option<i128>)>,
}

impl Form {
    pub fn of(name: &str) -> Option<Form> {
        let row = FORMS.split_whitespace().find(|row| row.split(':').next() == Some(name))?;
        let mut parts = row.split(':');
        let name = parts.next()?;
        let takes: Vec<&str> = parts.next()?.split(',').collect();
        let ranges = takes.iter().filter(|kind| **kind != "text").map(|kind| range(kind)).collect();
        Some(Form { name, takes, gives: parts.next()?, ranges })
    }

    /// True for what reads the stream or the secret, and so is at the top of a step.
    pub fn draws(&self) -> bool {
        self.kept() || FORMS.split_whitespace().take(12).any(|row| row.split(':').next() == Some(self.name))
    }

    pub fn kept(&self) -> bool {
        self.name.starts_with("kept_")
    }
}

fn range(kind: &str) -> (Option<i128>, Option<i128>) {
    match kind {
        "chance" | "chances" => (Some(0), Some(1 << 64)),
        "odds" | "function" => (Some(0), Some((1 << 64) - 1)),
        "bound" => (Some(1), Some(1 << 63)),
        "size" => (Some(0), Some(MOST as i128)),
        "places" => (Some(0), Some(40)),
        "word" => (Some(-(1 << 63)), Some((1 << 63) - 1)),
        "top" => (Some(0), Some(64)),
        "filter" => (Some(1), Some(MOST as i128)),
        "hashes" | "shift" => (Some(0), Some(1 << 16)),
        "divisor" => (Some(1), None),
        "natural" => (Some(0), None),
        "choice" | "flags" => (Some(0), Some(1)),
        _ => (None, None),
    }
}

/// Refuse an argument outside its range.
pub fn check_ranges(form: &Form, given: &[Value]) -> Result<()> {
    for (value, (least, most)) in given.iter().zip(&form.ranges) {
        if least.is_none() {
            continue;
        }
        for number in value.numbers() {
            let fits = match number.word() {
                Some(word) => least.is_none_or(|least| word >= least) && most.is_none_or(|most| word <= most),
                None => most.is_none() && !number.is_negative(),
            };
            needs(fits, "an argument outside its range")?;
        }
    }
    Ok(())
}

/// An operator that goes over vectors one number at a time.
pub fn each(name: &str, given: &[Value]) -> Result<Value> {
    let size = given.iter().find_map(|value| match value {
        Value::Vector(vector) => Some(vector.len()),
        _ => None,
    });
    let Some(size) = size else {
        let numbers: Vec<&Integer> = given.iter().map(|value| &value.numbers()[0]).collect();
        return Ok(Value::Number(single(name, &numbers)?));
    };
    for value in given {
        if let Value::Vector(vector) = value {
            needs(vector.len() == size, "vectors of different lengths")?;
        }
    }
    let mut found = Vec::with_capacity(size);
    let mut numbers = Vec::with_capacity(given.len());
    for place in 0..size {
        numbers.clear();
        numbers.extend(given.iter().map(|value| match value {
            Value::Vector(vector) => &vector[place],
            single => &single.numbers()[0],
        }));
        found.push(single(name, &numbers)?);
    }
    Ok(Value::vector(found))
}

fn single(name: &str, given: &[&Integer]) -> Result<Integer> {
    let a = given[0];
    let b = given.get(1).copied().unwrap_or(a);
    Ok(match name {
        "add" => a.add(b)?,
        "sub" => a.sub(b)?,
        "mul" => a.mul(b)?,
        "div" => a.div_mod(b)?.0,
        "mod" => a.div_mod(b)?.1,
        "shr" => a.shift_right(b.size()),
        "shl" => a.shift_left(b.size())?,
        "and" => a.bitwise(b, |a, b| a & b),
        "xor" => a.bitwise(b, |a, b| a ^ b),
        "min" => a.min(b).clone(),
        "max" => a.max(b).clone(),
        "lt" => Integer::from(a < b),
        "ge" => Integer::from(a >= b),
        "eq" => Integer::from(a == b),
        "where" => given[if a.is_zero() { 2 } else { 1 }].clone(),
        "parity" => Integer::from(a.is_odd_parity()),
        _ => return refuse(format!("no operator {name}")),
    })
}

fn place(number: &Integer, size: usize) -> Result<usize> {
    match number.word() {
        Some(word) if word >= 0 && word < size as i128 => Ok(word as usize),
        _ => refuse("a position outside a vector"),
    }
}

/// An operator on whole vectors.
pub fn whole(name: &str, given: &[Value]) -> Result<Value> {
    if let (Value::Rows(rows), "at") = (&given[0], name) {
        return Ok(Value::Vector(rows[place(&given[1].numbers()[0], rows.len())?].clone()));
    }
    let vector = given[0].numbers();
    let number = |i: usize| &given[i].numbers()[0];
    Ok(match name {
        "at" => Value::Number(vector[place(number(1), vector.len())?].clone()),
        "put" => {
            let mut found = vector.to_vec();
            found[place(number(1), vector.len())?] = number(2).clone();
            Value::vector(found)
        }
        "sort" => {
            let mut found = vector.to_vec();
            found.sort();
            Value::vector(found)
        }
        "first" => Value::number(vector.iter().position(|bit| !bit.is_zero()).unwrap_or(0) as i128),
        "rank" => {
            needs(vector.windows(2).all(|pair| pair[0] <= pair[1]), "a rank in a vector that does not ascend")?;
            Value::number(vector.partition_point(|entry| entry <= number(1)) as i128)
        }
        "onehot" => {
            let size = number(1).size();
            let mut found = vec![Integer::from(0); size];
            found[place(number(0), size)?] = Integer::from(1);
            Value::vector(found)
        }
        "join" => {
            let mut sum = Integer::from(0);
            for (i, bit) in vector.iter().enumerate().filter(|(_, bit)| !bit.is_zero()) {
                sum = sum.add(&bit.shift_left(i)?)?;
            }
            Value::Number(sum)
        }
        "floyd" => {
            let mut seen = std::collections::BTreeSet::new();
            let mut found = Vec::with_capacity(vector.len());
            let base = number(1).sub(&Integer::from(1))?;
            for (i, entry) in vector.iter().enumerate() {
                let own = if seen.contains(entry) { base.add(&Integer::from(i as i128))? } else { entry.clone() };
                seen.insert(own.clone());
                found.push(own);
            }
            Value::vector(found)
        }
        _ => return refuse(format!("no operator {name}")),
    })
}

const PRIME: u128 = (1 << 61) - 1;

pub fn polynomial(seed: &str, j: u64, v: &Integer, m: u64) -> i128 {
    let key = blake2b::<32>(seed.as_bytes(), b"", b"ldp-budget seed");
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)) % PRIME;
    let x = word(&blake2b::<8>(v.to_string().as_bytes(), &key, b"value"));
    let coefficients = blake2b::<24>(&j.to_le_bytes(), &key, b"coefficients");
    let (a, b, c) = (word(&coefficients[..8]), word(&coefficients[8..16]), word(&coefficients[16..]));
    let y = (((a * x + b) % PRIME) * x + c) % PRIME;
    ((u128::from(m) * y) >> 61) as i128
}

pub fn bloom(seed: &str, j: &Integer, v: &Integer, m: u64, n: usize) -> Vec<Integer> {
    let mut bits = vec![Integer::from(0); m as usize];
    for word in shake(168, format!("ldp-budget bloom 1:{seed}:{j}:{v}").as_bytes(), n) {
        bits[(word % m) as usize] = Integer::from(1);
    }
    bits
}
