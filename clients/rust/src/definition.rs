//! The public definition of a collection: its keys, its texts and its digest.

use crate::error::{needs, refuse, Error, Result};
use crate::hashes::{sha256, to_hex};
use crate::json::Json;
use crate::tables::is_decimal;

const TEXTS: [&str; 10] =
    ["contact", "context", "digest", "fingerprint", "format", "mechanism", "memo", "name", "purpose", "question"];
const OTHERS: [&str; 9] = ["title", "version", "answers", "guarantee", "input", "languages", "report", "steps", "tables"];
const OPTIONAL: [&str; 2] = ["labels", "at_most"];

/// A definition from its text, after checking its digest and the form of everything but its program.
pub fn read(text: &str, agreed: &str) -> Result<Json> {
    let definition = Json::parse(text)?;
    check(&definition, agreed)?;
    Ok(definition)
}

/// Refuses another form of the definition, and another digest than the one agreed on.
pub fn check(definition: &Json, agreed: &str) -> Result<()> {
    let members = definition.object().ok_or_else(|| Error::new("the definition is no object"))?;
    needs(definition.is_whole(), "the definition has a number that is not written as a whole one")?;
    let rest = members.iter().filter(|(key, _)| key != "digest").cloned().collect();
    let digest = to_hex(&sha256(Json::Object(rest).canonical().as_bytes()));
    let stated = definition.get("digest").and_then(Json::text);
    needs(stated == Some(&digest), "the definition has another digest than it states")?;
    if digest != agreed {
        return refuse(format!("the definition has the digest {digest}, and not the agreed {agreed}"));
    }
    let known = |key: &str| TEXTS.contains(&key) || OTHERS.contains(&key) || OPTIONAL.contains(&key);
    needs(members.iter().all(|(key, _)| known(key)), "the definition has keys of its own")?;
    for key in TEXTS.iter().chain(&OTHERS) {
        needs(definition.get(key).is_some(), &format!("the definition has no {key}"))?;
    }
    for key in TEXTS.iter().chain(&["title"]) {
        needs(definition.get(key).and_then(Json::text).is_some(), &format!("{key} is no text"))?;
    }
    needs(definition.get("format").and_then(Json::text) == Some("ldp-budget client"), "another format")?;
    needs(definition.get("version") == Some(&Json::Integer(1)), "another version than 1")?;
    for key in ["name", "mechanism"] {
        let text = definition.get(key).and_then(Json::text).unwrap_or("");
        needs(!text.chars().any(hides), "a name that no line can show")?;
    }
    let memo = definition.get("memo").and_then(Json::text) != Some("");
    if let Some(labels) = definition.get("labels") {
        needs(memo && *labels == Json::Bool(true), "labels of no memo")?;
    }
    check_languages(definition)?;
    check_guarantee(definition, memo)
}

/// True for what no line shows, or shows elsewhere.
fn hides(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{1680}' | '\u{180e}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{3000}' | '\u{feff}')
}

/// True for the tag of a language, such as `ko` and `de-AT`.
fn is_tag(tag: &str) -> bool {
    tag.split('-').enumerate().all(|(i, part)| {
        let fits = |byte: u8| if i == 0 { byte.is_ascii_alphabetic() } else { byte.is_ascii_alphanumeric() };
        (if i == 0 { 2..=8 } else { 1..=8 }).contains(&part.len()) && part.bytes().all(fits)
    })
}

fn check_languages(definition: &Json) -> Result<()> {
    let names = definition.get("answers").and_then(Json::list).map_or(0, <[Json]>::len);
    let languages = definition.get("languages").and_then(Json::object);
    for (tag, words) in languages.ok_or_else(|| Error::new("languages are no object"))? {
        needs(is_tag(tag), "a language without a tag")?;
        for (key, said) in words.object().ok_or_else(|| Error::new("a translation is no object"))? {
            let fits = match key.as_str() {
                "title" | "question" | "purpose" => said.text().is_some(),
                "answers" => said.list().is_some_and(|said| said.len() == names && said.iter().all(|each| each.text().is_some())),
                _ => false,
            };
            needs(fits, "other translations")?;
        }
    }
    Ok(())
}

fn check_guarantee(definition: &Json, memo: bool) -> Result<()> {
    let guarantee = definition.get("guarantee").and_then(Json::object).ok_or_else(|| Error::new("no guarantee"))?;
    needs(["epsilon", "delta"].iter().all(|key| guarantee.iter().any(|(name, _)| name == key)), "no epsilon or no delta")?;
    let one_sided = guarantee.iter().any(|(name, said)| name == "kind" && said.text() == Some("one-sided"));
    for (key, figure) in guarantee {
        let fits = match key.as_str() {
            "epsilon" | "delta" => true,
            "eta" => one_sided,
            "answer_epsilon" | "lifetime_epsilon" => memo,
            "kind" | "relation" | "words" => {
                needs(figure.text().is_some(), "a guarantee whose words are no text")?;
                continue;
            }
            _ => false,
        };
        needs(fits, "a guarantee with figures of its own")?;
        needs(*figure == Json::Null || figure.text().is_some_and(is_decimal), "a figure that is no decimal")?;
    }
    Ok(())
}
