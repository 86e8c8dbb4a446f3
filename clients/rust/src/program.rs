//! The interpreter of client programs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::draws::{Draws, Stream, MOST};
use crate::error::{needs, refuse, Error, Result};
use crate::hashes::shake;
use crate::integer::Integer;
use crate::json::Json;
use crate::normal::normal;
use crate::operators::{bloom, check_ranges, each, polynomial, whole, Form};
use crate::tables;

const MOST_DEPTH: usize = 100;

#[derive(Clone, Debug)]
pub enum Value {
    Number(Integer),
    Vector(Arc<Vec<Integer>>),
    /// A table of vectors of one length.
    Rows(Arc<Vec<Arc<Vec<Integer>>>>),
}

impl Value {
    pub fn number(word: i128) -> Value {
        Value::Number(Integer::from(word))
    }

    pub fn vector(numbers: Vec<Integer>) -> Value {
        Value::Vector(Arc::new(numbers))
    }

    fn words(words: impl IntoIterator<Item = u64>) -> Value {
        Value::vector(words.into_iter().map(|word| Integer::from(i128::from(word))).collect())
    }

    pub fn numbers(&self) -> &[Integer] {
        match self {
            Value::Number(number) => std::slice::from_ref(number),
            Value::Vector(vector) => vector,
            Value::Rows(_) => &[],
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Value::Number(_) => Kind::Number,
            Value::Vector(_) => Kind::Vector,
            Value::Rows(_) => Kind::Rows,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    Vector,
    Rows,
}

enum Expression {
    Constant(Value),
    /// The value of a name, by its place.
    Name(usize),
    Call { form: Form, text: String, given: Vec<Expression> },
}

enum Part {
    Uint { name: usize, size: usize, count: usize },
    Packed { name: usize, count: usize },
    Double { name: usize, origin: f64, step: f64, plus: Integer },
}

pub struct Program {
    context: String,
    /// The tables; the value of the answer comes before them, and those of the steps after them.
    tables: Vec<Value>,
    steps: Vec<Expression>,
    parts: Vec<Part>,
    memo: Option<usize>,
    /// The bytes of a report.
    pub size: usize,
}

struct Names {
    places: HashMap<String, usize>,
    kinds: Vec<Kind>,
}

impl Names {
    fn define(&mut self, name: &str, kind: Kind) -> Result<()> {
        let letters = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        needs(letters && name.starts_with(|first: char| first.is_ascii_lowercase()), "a name of other characters")?;
        needs(self.places.insert(name.to_string(), self.kinds.len()).is_none(), "a name twice")?;
        self.kinds.push(kind);
        Ok(())
    }
}

/// A number as a program writes it.
pub fn literal(json: &Json) -> Result<Integer> {
    match json {
        Json::Integer(number) => Ok(Integer::from(i128::from(*number))),
        Json::Text(text) => Integer::parse(text).ok_or_else(|| Error::new(format!("no number, and no earlier name: {text:?}"))),
        _ => refuse("neither a number, a name nor an operator"),
    }
}

/// A count, which is written as a number.
pub fn counted(json: Option<&Json>, least: i64, most: i64) -> Result<i64> {
    match json {
        Some(Json::Integer(number)) if (least..=most).contains(number) => Ok(*number),
        _ => refuse(format!("a count must be a number from {least} to {most}")),
    }
}

/// True if an object has exactly these keys.
pub fn has_keys(json: &Json, keys: &[&str]) -> bool {
    json.object().is_some_and(|members| members.len() == keys.len() && keys.iter().all(|key| json.get(key).is_some()))
}

fn member<'a>(definition: &'a Json, key: &str) -> Result<&'a Json> {
    definition.get(key).ok_or_else(|| Error::new(format!("the definition has no {key}")))
}

impl Program {
    /// The program of a definition. Refuses every form that the specification does not define.
    pub fn new(definition: &Json) -> Result<Program> {
        let context = member(definition, "context")?.text().ok_or_else(|| Error::new("the context is no text"))?;
        let mut names = Names { places: HashMap::new(), kinds: Vec::new() };
        names.define("value", Kind::Number)?;
        let mut found = Vec::new();
        for (name, table) in member(definition, "tables")?.object().ok_or_else(|| Error::new("the tables are no object"))? {
            let table = tables::read(table)?;
            names.define(name, table.kind())?;
            found.push(table);
        }
        let (mut steps, mut kept) = (Vec::new(), false);
        for step in member(definition, "steps")?.list().ok_or_else(|| Error::new("the steps are no list"))? {
            let Some([Json::Text(name), expression]) = step.list() else {
                return refuse("a step that is not a name and an expression");
            };
            let (compiled, kind) = compile(expression, &names, 0)?;
            needs(kind != Kind::Rows, "a step that is a table of vectors")?;
            kept |= matches!(&compiled, Expression::Call { form, .. } if form.kept());
            names.define(name, kind)?;
            steps.push(compiled);
        }
        let memo = member(definition, "memo")?.text().ok_or_else(|| Error::new("the memo is no text"))?;
        let memo = match (kept, memo) {
            (false, "") => None,
            (true, name) => Some(*names.places.get(name).filter(|place| names.kinds[**place] == Kind::Number).ok_or_else(|| Error::new("the memo is no number"))?),
            _ => return refuse("a memo of a program that keeps nothing"),
        };
        let report = member(definition, "report")?;
        needs(has_keys(report, &["dtype", "shape", "parts"]), "other keys of the report")?;
        needs(report.get("dtype").and_then(Json::text).is_some(), "a dtype that is no text")?;
        for size in report.get("shape").and_then(Json::list).ok_or_else(|| Error::new("a shape that is no list"))? {
            counted(Some(size), 0, MOST as i64)?;
        }
        let parts = report.get("parts").and_then(Json::list).unwrap_or(&[]);
        needs(!parts.is_empty(), "a report without parts")?;
        let first = 1 + found.len(); // the value and the tables come before the steps
        let parts = parts.iter().map(|part| read_part(part, &names, first)).collect::<Result<Vec<Part>>>()?;
        let size = parts.iter().map(Part::size).sum();
        needs(size <= MOST, "a report of more than 2**23 bytes")?;
        Ok(Program { context: context.to_string(), tables: found, steps, parts, memo, size })
    }

    /// True if reports repeat draws that were made from the secret.
    pub fn memoises(&self) -> bool {
        self.memo.is_some()
    }

    /// One report of a number, and the number that the memo names. `own` is the secret of the collection.
    pub fn run(&self, value: Integer, own: &[u8], stream: &mut dyn Stream) -> Result<(Vec<u8>, Option<Integer>)> {
        let mut known = Vec::with_capacity(1 + self.tables.len() + self.steps.len());
        known.push(Value::Number(value));
        known.extend(self.tables.iter().cloned());
        let mut draws = Draws::new(stream);
        for step in &self.steps {
            let found = self.evaluate(step, &known, own, &mut draws)?;
            known.push(found);
        }
        let mut report = Vec::with_capacity(self.size);
        for part in &self.parts {
            part.write(&known, &mut report)?;
        }
        Ok((report, self.memo.map(|place| known[place].numbers()[0].clone())))
    }

    fn evaluate(&self, expression: &Expression, known: &[Value], own: &[u8], draws: &mut Draws<'_>) -> Result<Value> {
        let (form, text, given) = match expression {
            Expression::Constant(value) => return Ok(value.clone()),
            Expression::Name(place) => return Ok(known[*place].clone()),
            Expression::Call { form, text, given } => (form, text, given),
        };
        let given = given.iter().map(|each| self.evaluate(each, known, own, draws)).collect::<Result<Vec<Value>>>()?;
        check_ranges(form, &given)?;
        let word = |i: usize| given[i].numbers()[0].word().unwrap_or(0);
        let size = |i: usize| given[i].numbers()[0].size();
        let bits = |bits: Vec<bool>| Value::vector(bits.into_iter().map(Integer::from).collect());
        Ok(match form.name {
            "bit" => Value::Number(Integer::from(draws.bit(word(0) as u128)?)),
            "bits" => bits(draws.bits(word(0) as u128, size(1))?),
            "bit_at" => Value::Number(Integer::from(draws.bit_at(word(0) as u64)?)),
            "bits_each" => {
                let chances = given[0].numbers().iter().map(|t| draws.bit(t.word().unwrap_or(0) as u128));
                bits(chances.collect::<Result<_>>()?)
            }
            "below" => Value::number(i128::from(draws.below(word(0) as u64)?)),
            "belows" => Value::words(draws.belows(word(0) as u64, size(1))?),
            "belows_from" => {
                check_last(word(0), size(1))?;
                let drawn = (0..size(1)).map(|i| draws.below(word(0) as u64 + i as u64));
                Value::words(drawn.collect::<Result<Vec<u64>>>()?)
            }
            "subset" => Value::words(draws.subset(word(0) as u64, size(1))?),
            "shuffle" => {
                let mut row = given[0].numbers().to_vec();
                draws.shuffle(&mut row)?;
                Value::vector(row)
            }
            "geometric" => Value::number(i128::from(draws.geometric(word(0) as u64)?)),
            "laplace" => Value::Number(draws.laplace(word(0) as u32)?),
            "normal" => Value::Number(normal(draws, word(0) as u32)?),
            "kept_bits" => {
                bits(self.kept(own, text, word(0), size(2)).into_iter().map(|kept| i128::from(kept) < word(1)).collect())
            }
            "kept_belows" => {
                check_last(word(1), size(2))?;
                let kept = self.kept(own, text, word(0), size(2)).into_iter().enumerate();
                Value::words(kept.map(|(i, kept)| kept % (word(1) as u64 + i as u64)))
            }
            "kept_top" => {
                let kept = self.kept(own, text, word(0), 1)[0];
                Value::number(i128::from(kept) >> (64 - word(1)))
            }
            "polynomial" => Value::number(polynomial(text, word(0) as u64, &given[1].numbers()[0], word(2) as u64)),
            "bloom" => {
                Value::vector(bloom(text, &given[0].numbers()[0], &given[1].numbers()[0], word(2) as u64, size(3)))
            }
            "list" => Value::vector(given.iter().map(|each| each.numbers()[0].clone()).collect()),
            name if form.gives == "each" => each(name, &given)?,
            name => whole(name, &given)?,
        })
    }

    /// The first words of the secret for a label and a value.
    fn kept(&self, own: &[u8], label: &str, v: i128, count: usize) -> Vec<u64> {
        let name = format!("{} {label}", self.context);
        let mut data = b"ldp-budget memoised words 1".to_vec();
        data.extend((name.len() as u64).to_le_bytes());
        data.extend(name.as_bytes());
        data.extend((own.len() as u64).to_le_bytes());
        data.extend(own);
        data.extend((v as i64).to_le_bytes());
        shake(136, &data, count)
    }
}

fn check_last(b: i128, n: usize) -> Result<()> {
    needs(b + (n as i128 - 1).max(0) <= 1 << 63, "a bound beyond 2**63")
}

fn compile(expression: &Json, names: &Names, depth: usize) -> Result<(Expression, Kind)> {
    let Some(call) = expression.list() else {
        if let Some(place) = expression.text().and_then(|name| names.places.get(name)) {
            return Ok((Expression::Name(*place), names.kinds[*place]));
        }
        return Ok((Expression::Constant(Value::Number(literal(expression)?)), Kind::Number));
    };
    needs(depth < MOST_DEPTH, "operators that are too deep within each other")?;
    let name = call.first().and_then(Json::text).ok_or_else(|| Error::new("a call without an operator"))?;
    let form = Form::of(name).ok_or_else(|| Error::new(format!("this client does not know the operator {name}")))?;
    needs(depth == 0 || !form.draws(), "a draw within an expression")?;
    let (mut given, mut takes, mut text) = (&call[1..], &form.takes[..], "");
    if name != "list" {
        needs(given.len() == takes.len(), "another number of arguments")?;
    }
    if takes[0] == "text" {
        text = given[0].text().ok_or_else(|| Error::new("a label or a seed that is no text"))?;
        needs(text.len() <= 200 && text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "a label of other characters")?;
        (given, takes) = (&given[1..], &takes[1..]);
    }
    let compiled = given.iter().map(|each| compile(each, names, depth + 1)).collect::<Result<Vec<_>>>()?;
    let kinds: Vec<Kind> = compiled.iter().map(|(_, kind)| *kind).collect();
    let gives = if name == "at" && kinds == [Kind::Rows, Kind::Number] {
        Kind::Vector
    } else {
        for (i, kind) in kinds.iter().enumerate() {
            let wanted = takes[if name == "list" { 0 } else { i }];
            let fits = match wanted {
                "each" | "divisor" | "shift" | "natural" | "choice" => *kind != Kind::Rows,
                "vector" | "chances" | "flags" => *kind == Kind::Vector,
                _ => *kind == Kind::Number,
            };
            needs(fits, "an argument of another kind")?;
        }
        let vector = form.gives == "vector" || (form.gives == "each" && kinds.contains(&Kind::Vector));
        if vector { Kind::Vector } else { Kind::Number }
    };
    let given = compiled.into_iter().map(|(each, _)| each).collect();
    Ok((Expression::Call { form, text: text.to_string(), given }, gives))
}

fn read_part(part: &Json, names: &Names, first: usize) -> Result<Part> {
    let Some([Json::Text(kind), Json::Text(name), sizes @ ..]) = part.list() else {
        return refuse("a part of the report that is not a kind, a name and sizes");
    };
    let place = *names.places.get(name).filter(|place| **place >= first).ok_or_else(|| Error::new("a part that is no step"))?;
    let known = names.kinds[place];
    needs(known != Kind::Rows, "a part that is a table of vectors")?;
    let most = MOST as i64;
    Ok(match (kind.as_str(), sizes) {
        ("uint", [size, count]) => Part::Uint {
            name: place,
            size: counted(Some(size), 1, 8)? as usize,
            count: counted(Some(count), 0, most)? as usize,
        },
        ("packed", [count]) => Part::Packed { name: place, count: counted(Some(count), 0, most)? as usize },
        ("float64", [origin, step, plus]) => {
            needs(known == Kind::Number, "a double of a vector")?;
            Part::Double { name: place, origin: tables::double(origin)?, step: tables::double(step)?, plus: literal(plus)? }
        }
        _ => return refuse(format!("this client does not know the part {kind} of a report, or not with {} sizes", sizes.len())),
    })
}

impl Part {
    fn size(&self) -> usize {
        match self {
            Part::Uint { size, count, .. } => size * count,
            Part::Packed { count, .. } => count.div_ceil(8),
            Part::Double { .. } => 8,
        }
    }

    fn write(&self, known: &[Value], report: &mut Vec<u8>) -> Result<()> {
        match self {
            Part::Uint { name, size, count } => {
                let numbers = known[*name].numbers();
                needs(numbers.len() == *count, "a part of another length")?;
                for number in numbers {
                    let word = number.word().filter(|word| *word >= 0 && word >> (8 * size) == 0);
                    let word = word.ok_or_else(|| Error::new("an integer that its bytes cannot hold"))?;
                    report.extend(&word.to_le_bytes()[..*size]);
                }
            }
            Part::Packed { name, count } => {
                let numbers = known[*name].numbers();
                needs(numbers.len() == *count, "a part of another length")?;
                for byte in numbers.chunks(8) {
                    let mut packed = 0;
                    for (i, bit) in byte.iter().enumerate() {
                        match bit.word() {
                            Some(word @ 0..=1) => packed |= (word as u8) << i,
                            _ => return refuse("a bit that is neither 0 nor 1"),
                        }
                    }
                    report.push(packed);
                }
            }
            Part::Double { name, origin, step, plus } => {
                let number = origin + known[*name].numbers()[0].add(plus)?.to_double() * step;
                needs(number.is_finite(), "a double that is not finite")?;
                report.extend(number.to_le_bytes());
            }
        }
        Ok(())
    }
}
