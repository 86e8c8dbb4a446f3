//! How an answer becomes an integer.

use crate::error::{needs, refuse, Error, Result};
use crate::hashes::blake2b;
use crate::integer::Integer;
use crate::json::{Json, LARGEST};
use crate::natural::Natural;
use crate::program::{counted, has_keys, literal};
use crate::tables::double;
use crate::text::canonical;

/// An answer, as an app has it.
#[derive(Clone, Debug)]
pub enum Answer<'a> {
    /// The name of an answer, a word, or any text where any text is an answer.
    Text(&'a str),
    /// The number of an answer that has no name.
    Integer(Integer),
    /// A number of a range.
    Number(f64),
    /// The names of the ticked options.
    Ticks(Vec<&'a str>),
}

pub enum Input {
    Names { names: Vec<String> },
    Ticks { names: Vec<String>, most: usize, numbered: usize },
    Count { count: Integer, text: bool },
    Word { length: usize },
    Range { lower: f64, upper: f64, by: f64, times: bool, last: i64 },
}

impl Input {
    pub fn new(definition: &Json) -> Result<Input> {
        let input = definition.get("input").unwrap_or(&Json::Null);
        let names = match definition.get("answers") {
            None | Some(Json::Null) => None,
            Some(names) => Some(names.list().ok_or_else(|| Error::new("answers that are no list"))?),
        };
        let most = definition.get("at_most");
        let kind = input.get("kind").and_then(Json::text).unwrap_or("");
        needs(kind == "answer" || (names.is_none() && most.is_none()), "names of what are no choices")?;
        match kind {
            "answer" => {
                needs(has_keys(input, &["kind", "count", "text"]), "another input")?;
                let count = literal(input.get("count").unwrap_or(&Json::Null))?;
                needs(count >= Integer::from(1), "no answers")?;
                let Some(Json::Bool(text)) = input.get("text") else {
                    return refuse("a text that is neither true nor false");
                };
                let Some(names) = names else {
                    if most.is_some() {
                        counted(most, 1, 200)?;
                    }
                    return Ok(Input::Count { count, text: *text });
                };
                let names = names.iter().map(|name| name.text().map(canonical)).collect::<Option<Vec<String>>>();
                let names = names.ok_or_else(|| Error::new("an answer that is no text"))?;
                let mut sorted: Vec<&String> = names.iter().collect();
                sorted.sort();
                let own = sorted.windows(2).all(|pair| pair[0] != pair[1]) && !names.iter().any(String::is_empty);
                needs(own, "answers that are not each a text of its own")?;
                if most.is_none() {
                    needs(count == Integer::from(names.len() as i128), "more or fewer names than answers")?;
                    return Ok(Input::Names { names });
                }
                let most = counted(most, 1, names.len() as i64)? as usize;
                let all = Integer::from(1).shift_left(names.len())?;
                let numbered = if count == sets(names.len(), most)? { most } else { names.len() };
                needs(numbered == most || count == all, "another number of sets than the options have")?;
                Ok(Input::Ticks { names, most, numbered })
            }
            "word" => {
                needs(has_keys(input, &["kind", "length"]), "another input")?;
                Ok(Input::Word { length: counted(input.get("length"), 1, 512)? as usize })
            }
            "number" => {
                let times = input.get("times").is_some();
                let key = if times { "times" } else { "step" };
                needs(has_keys(input, &["kind", "lower", "upper", "last", key]), "another input")?;
                let read = |key| double(input.get(key).unwrap_or(&Json::Null));
                let (lower, upper, by) = (read("lower")?, read("upper")?, read(key)?);
                needs(lower <= upper && by > 0.0, "no range of numbers")?;
                let widest = if times { (upper - lower) * by } else { (upper - lower) / by };
                needs(widest.is_finite(), "numbers that no double holds")?;
                Ok(Input::Range { lower, upper, by, times, last: counted(input.get("last"), 0, LARGEST)? })
            }
            _ => refuse(format!("this client does not know answers of the kind {kind}")),
        }
    }

    /// The number of an answer.
    pub fn number(&self, answer: &Answer<'_>) -> Result<Integer> {
        match (self, answer) {
            (Input::Names { names }, Answer::Text(text)) => place(names, text).map(|place| Integer::from(place as i128)),
            (Input::Ticks { names, most, numbered }, Answer::Ticks(ticks)) => {
                let mut places = ticks.iter().map(|tick| place(names, tick)).collect::<Result<Vec<usize>>>()?;
                places.sort_unstable_by(|a, b| b.cmp(a));
                needs(places.windows(2).all(|pair| pair[0] != pair[1]), "an option that is ticked twice")?;
                needs(places.len() <= *most, "more ticks than there may be")?;
                let mut sum = Integer::from(0);
                for (i, place) in places.into_iter().enumerate() {
                    sum = sum.add(&sets(place, numbered - i)?)?;
                }
                Ok(sum)
            }
            (Input::Count { count, .. }, Answer::Integer(number)) => within(number.clone(), count),
            (Input::Count { count, text: true }, Answer::Text(text)) => {
                let text = canonical(text);
                needs(!text.is_empty(), "an answer without a character")?;
                if let Some(number) = Integer::parse(&text) {
                    return within(number, count);
                }
                let digits = text.strip_prefix('-').unwrap_or(&text);
                let number = digits.starts_with(|first: char| ('1'..='9').contains(&first)) && digits.bytes().all(|byte| byte.is_ascii_digit());
                needs(!number, "a number that is no answer")?;
                let word = u64::from_le_bytes(blake2b::<8>(text.as_bytes(), b"", b"ldp-budget text"));
                Ok(Integer::from(i128::from(word)).div_mod(count)?.1)
            }
            (Input::Word { length }, Answer::Text(text)) => {
                let mut bytes = canonical(text).into_bytes();
                needs((1..=*length).contains(&bytes.len()) && !bytes.contains(&0), "a word of no or too many bytes, or with a NUL")?;
                bytes.resize(*length, 0);
                Integer::from_natural(Natural::from_bytes(&bytes)).checked()
            }
            (Input::Range { lower, upper, by, times, last }, Answer::Number(x)) => {
                needs(x >= lower && x <= upper, "a number outside the range")?;
                let point = if *times { ((x - lower) * by).round_ties_even() } else { ((x - lower) / by).floor() };
                Ok(Integer::from(i128::from((point.max(0.0) as i64).min(*last))))
            }
            _ => refuse("an answer of another kind"),
        }
    }
}

fn within(number: Integer, count: &Integer) -> Result<Integer> {
    needs(!number.is_negative() && number < *count, "a number that is no answer")?;
    Ok(number)
}

fn place(names: &[String], name: &str) -> Result<usize> {
    let name = canonical(name);
    names.iter().position(|each| *each == name).ok_or_else(|| Error::new("a text that is none of the answers"))
}

/// How many sets there are of at most `most` of so many options.
fn sets(options: usize, most: usize) -> Result<Integer> {
    let (mut found, mut ways) = (Integer::from(0), Integer::from(1));
    for i in 0..=most.min(options) {
        found = found.add(&ways)?;
        let next = ways.mul(&Integer::from((options - i) as i128))?;
        ways = next.div_mod(&Integer::from(i as i128 + 1))?.0;
    }
    Ok(found)
}
