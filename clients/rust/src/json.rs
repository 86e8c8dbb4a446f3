//! Strict JSON (RFC 8259): UTF-8 without a byte order mark, no repeated key, no lone surrogate.

use crate::error::{refuse, Error, Result};

/// The largest integer that a definition writes as a number: 2**53 - 1.
pub const LARGEST: i64 = (1 << 53) - 1;
/// No value of a definition is this deep: operators are at most 100 deep.
const MOST_DEPTH: usize = 128;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number that is written as a whole one, without `-0`, of at most 2**53 - 1.
    Integer(i64),
    /// Any other number. No definition has one.
    Double(f64),
    Text(String),
    List(Vec<Json>),
    /// In the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Result<Json> {
        let mut parser = Parser { text, at: 0 };
        parser.space();
        let found = parser.value(MOST_DEPTH)?;
        parser.space();
        if parser.at < text.len() {
            return refuse(format!("no JSON: more text after its end, at byte {}", parser.at));
        }
        Ok(found)
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> Option<&[Json]> {
        match self {
            Json::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// True if all numbers within are written as whole ones.
    pub fn is_whole(&self) -> bool {
        match self {
            Json::Double(_) => false,
            Json::List(list) => list.iter().all(Json::is_whole),
            Json::Object(members) => members.iter().all(|(_, value)| value.is_whole()),
            _ => true,
        }
    }

    /// Canonical JSON: sorted keys, no spaces, ASCII only.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Integer(number) => out.push_str(&number.to_string()),
            Json::Double(number) => out.push_str(&format!("{number:?}")),
            Json::Text(text) => write_text(text, out),
            Json::List(list) => {
                out.push('[');
                for (i, value) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                out.push('{');
                for (i, (name, value)) in sorted.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(format!("no JSON: {what}, at byte {}", self.at))
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) {
            return Ok(());
        }
        Err(self.wrong(&format!("{:?} is missing", byte as char)))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth == 0 {
            return Err(self.wrong("too deep"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
                    if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.wrong("a value is missing"))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json> {
        let mut found = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Json::List(found));
        }
        loop {
            self.space();
            found.push(self.value(depth - 1)?);
            self.space();
            if self.take(b']') {
                return Ok(Json::List(found));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json> {
        let mut found: Vec<(String, Json)> = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Json::Object(found));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key is missing"));
            }
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            let value = self.value(depth - 1)?;
            found.push((name, value));
            self.space();
            if self.take(b'}') {
                break;
            }
            self.expect(b',')?;
        }
        let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(self.wrong(&format!("the key {:?} is repeated", pair[0])));
        }
        Ok(Json::Object(found))
    }

    fn string(&mut self) -> Result<String> {
        let mut found = String::new();
        self.at += 1;
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            // The bytes that end a run are ASCII, so a character is never cut.
            found.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(found);
                }
                Some(b'\\') => {
                    self.at += 1;
                    found.push(self.escape()?);
                }
                _ => return Err(self.wrong("a text has a control character, or no end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let kind = self.peek();
        self.at += 1;
        Ok(match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.unit()?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first) && self.take(b'\\') && self.take(b'u') {
                    units.push(self.unit()?);
                }
                let mut read = char::decode_utf16(units);
                match (read.next(), read.next()) {
                    (Some(Ok(character)), None) => character,
                    _ => return Err(self.wrong("half of a character")),
                }
            }
            _ => return Err(self.wrong("an escape that there is not")),
        })
    }

    fn unit(&mut self) -> Result<u16> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or(&[]);
        let mut unit = 0;
        for digit in digits {
            unit = unit << 4 | (*digit as char).to_digit(16).ok_or_else(|| self.wrong("no hexadecimal digit"))? as u16;
        }
        if digits.is_empty() {
            return Err(self.wrong("no hexadecimal digits"));
        }
        self.at += 4;
        Ok(unit)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Json> {
        let start = self.at;
        self.take(b'-');
        let zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || (zero && digits > 1) {
            return Err(self.wrong("a number begins with a zero, or has no digit"));
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            if self.digits() == 0 {
                return Err(self.wrong("a number has no digit after its point"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            whole = false;
            let _ = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return Err(self.wrong("a number has no digit in its exponent"));
            }
        }
        let token = &self.text[start..self.at];
        match token.parse::<i64>() {
            Ok(number) if whole && token != "-0" && number.abs() <= LARGEST => Ok(Json::Integer(number)),
            _ => Ok(Json::Double(token.parse().map_err(|_| self.wrong("no number"))?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_json_is_refused() {
        let wrong = [
            "", "{", "[1,]", "{\"a\":1,}", "01", "1.", ".5", "+1", "1e", "nul", "[1] 2", "\"\n\"", "\"\\x\"", "\"\\u12\"",
            "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "\u{feff}1",
            "'a'", "NaN", "Infinity", "[1 2]", "{1:2}", "\"\\ud800\\ud800\"",
        ];
        for text in wrong {
            assert!(Json::parse(text).is_err(), "{text:?}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn number_that_is_not_whole_is_a_double() {
        for text in ["1.0", "1e3", "-0", "9007199254740992", "-9007199254740992", "1E400"] {
            assert!(!Json::parse(text).unwrap().is_whole(), "{text}");
        }
        assert_eq!(Json::parse(" [9007199254740991, -1, 0] ").unwrap().canonical(), "[9007199254740991,-1,0]");
    }

    #[test]
    fn canonical_text_is_ascii_with_sorted_keys() {
        let found = Json::parse("{\"b\": \"é\\/\\u007f😀\\u0000\", \"a\": [true, null]}").unwrap();
        assert_eq!(found.canonical(), r#"{"a":[true,null],"b":"\u00e9/\u007f\ud83d\ude00\u0000"}"#);
    }
}
