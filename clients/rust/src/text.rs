//! The canonical form of a text: Unicode's normal form NFC, without spaces and invisible characters at its ends.

use crate::normalization_tables::{CLASSES, PAIRS};

const HANGUL: u32 = 0xac00;
const LEADS: u32 = 0x1100;
const VOWELS: u32 = 0x1161;
const TAILS: u32 = 0x11a7;

/// A text as every client compares and hashes it.
pub fn canonical(text: &str) -> String {
    if text.is_ascii() {
        return text.trim_matches(is_blank).to_string();
    }
    nfc(text).trim_matches(is_blank).to_string()
}

fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(character,
            '\u{1c}'..='\u{1f}' | '\u{85}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn nfc(text: &str) -> String {
    let mut characters = Vec::with_capacity(text.len());
    for character in text.chars() {
        decompose(character as u32, &mut characters);
    }
    // Within a run of marks, those of a lower class come first; the order within a class stays.
    let mut start = 0;
    while start < characters.len() {
        let end = (start + 1..=characters.len())
            .find(|end| characters.get(*end).is_none_or(|code| class(*code) == 0))
            .unwrap_or(characters.len());
        let from = start + usize::from(class(characters[start]) == 0);
        characters[from..end].sort_by_key(|code| class(*code));
        start = end;
    }
    compose(&characters).into_iter().filter_map(char::from_u32).collect()
}

fn class(code: u32) -> u8 {
    let row = CLASSES.partition_point(|(_, last, _)| *last < code);
    CLASSES.get(row).filter(|(first, _, _)| *first <= code).map_or(0, |(_, _, class)| *class)
}

fn decompose(code: u32, out: &mut Vec<u32>) {
    if let Some(place) = code.checked_sub(HANGUL).filter(|place| *place < 11172) {
        out.push(LEADS + place / 588);
        out.push(VOWELS + place % 588 / 28);
        if place % 28 > 0 {
            out.push(TAILS + place % 28);
        }
        return;
    }
    match PAIRS.binary_search_by_key(&code, |row| row.0) {
        Ok(row) => {
            let (_, first, second, _) = PAIRS[row];
            decompose(first, out);
            if second > 0 {
                out.push(second);
            }
        }
        Err(_) => out.push(code),
    }
}

fn compose(characters: &[u32]) -> Vec<u32> {
    let mut out: Vec<u32> = Vec::with_capacity(characters.len());
    let mut starter: Option<usize> = None;
    let mut last = 0;
    for code in characters {
        let own = class(*code);
        if let Some(at) = starter {
            // A mark is blocked by one of its class or a higher one between it and the starter; a starter by any.
            let free = out.len() == at + 1 || (last < own && last > 0);
            if let Some(both) = pair(out[at], *code).filter(|_| free) {
                out[at] = both;
                continue;
            }
        }
        if own == 0 {
            starter = Some(out.len());
        }
        last = own;
        out.push(*code);
    }
    out
}

fn pair(first: u32, second: u32) -> Option<u32> {
    if let (Some(lead), Some(vowel)) = (first.checked_sub(LEADS), second.checked_sub(VOWELS)) {
        if lead < 19 && vowel < 21 {
            return Some(HANGUL + 588 * lead + 28 * vowel);
        }
    }
    if let (Some(place), Some(tail)) = (first.checked_sub(HANGUL), second.checked_sub(TAILS)) {
        if place < 11172 && place % 28 == 0 && tail > 0 && tail < 28 {
            return Some(first + tail);
        }
    }
    PAIRS.iter().find(|row| row.1 == first && row.2 == second && row.3).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_ordered_and_composed() {
        for (text, expected) in [
            ("e\u{301}", "é"),
            ("a\u{323}\u{302}", "ậ"),
            ("a\u{302}\u{323}", "ậ"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("\u{d558}\u{11ab}", "한"),
            ("\u{212b}", "Å"),
            ("\u{958}", "\u{915}\u{93c}"),
            ("\u{301}a", "\u{301}a"),
            ("a\u{5ae}\u{315}\u{300}\u{5ae}b", "à\u{5ae}\u{5ae}\u{315}b"),
        ] {
            assert_eq!(canonical(text), expected, "{text:?}");
        }
    }

    #[test]
    fn blanks_and_invisible_characters_at_the_ends_are_dropped() {
        assert_eq!(canonical("\u{feff}\u{1c} \u{200b}a\u{a0}b\u{2069}\n\u{3000}"), "a\u{a0}b");
        assert_eq!(canonical("\u{ad}"), "");
    }
}
