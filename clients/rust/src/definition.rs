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

fn hides(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn check_languages(definition: &Json) -> Result<()> {
    let names = definition.get("answers").and_then(Json::list).map_or(0, <[Json]>::len);
    let languages = definition.get("languages").and_then(Json::object);
    for (_, words) in languages.ok_or_else(|| Error::new("languages are no object"))? {
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
    for (key, figure) in guarantee {
        let fits = match key.as_str() {
            "epsilon" | "delta" => true,
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
