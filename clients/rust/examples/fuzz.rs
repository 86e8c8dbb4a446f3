//! A fuzz of everything that reads what others wrote: JSON, definitions, programs, answers, amounts and records.
//!
//! ```text
//! cargo run --release --offline --example fuzz ../vectors COUNT [SEED]
//! RUSTFLAGS="-Zsanitizer=address -Cdebug-assertions -Coverflow-checks" cargo +nightly run --release --offline --example fuzz …
//! ```
//!
//! A finding is a panic, a report of the sanitizer, or a report of another size than the client says.

use std::fs;
use std::time::SystemTime;

use ldp_budget::hashes::{sha256, to_hex};
use ldp_budget::json::Json;
use ldp_budget::{units, Answer, Client, Device, Limits, MemoryStorage, Recorded};

const TOKENS: [&str; 40] = [
    "0", "1", "-1", "\"\"", "null", "true", "[]", "{}", "[", "]", "{", "}", ",", ":", "\"", "\\u0000", "\\ud800", "\\", "1e9", "8388608",
    "8388609", "9007199254740991", "9007199254740992", "\"18446744073709551616\"", "\"value\"", "\"list\"", "\"bits\"", "\"at\"", "\"put\"",
    "\"shl\"", "\"mul\"", "\"normal\"", "\"laplace\"", "\"subset\"", "\"kept_bits\"", "\"bloom\"", "\"polynomial\"", "\u{feff}", "무", "😀",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let read = |name: &str| Json::parse(&fs::read_to_string(format!("{folder}/{name}")).unwrap()).unwrap();
    let (refusals, devices) = (read("refusals.json"), read("devices.json"));
    let texts = |all: &Json, key| all.get(key).and_then(Json::list).unwrap().to_vec();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for row in texts(&refusals, "forms").iter().chain(&texts(&devices, "digests")) {
        found.push(row.get("text").and_then(Json::text).unwrap().as_bytes().to_vec());
    }
    for row in texts(&refusals, "failures").iter().chain(&texts(&refusals, "leaks")).chain(&texts(&devices, "answers")) {
        found.push(row.get("definition").unwrap().canonical().into_bytes());
    }
    found.retain(|text| text.len() < 3000);
    found
}

fn changed(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut text = seeds[chance.below(seeds.len())].clone();
    for _ in 0..1 + chance.below(3) {
        let (at, size) = (chance.below(text.len()), 1 + chance.below(12));
        let end = (at + size).min(text.len());
        let token = TOKENS[chance.below(TOKENS.len())].as_bytes().to_vec();
        match chance.below(6) {
            0 if at < text.len() => text[at] ^= 1 << chance.below(8),
            1 => drop(text.splice(at..at, token)),
            2 => drop(text.splice(at..end, token)),
            3 => drop(text.drain(at..end)),
            4 => {
                // A whole value in the place of another one: both begin after a comma or a bracket.
                let other = &seeds[chance.below(seeds.len())];
                let from = chance.below(other.len());
                let part = other[from..(from + 4 * size).min(other.len())].to_vec();
                drop(text.splice(at..end, part));
            }
            _ => {
                let value = text.iter().skip(at).position(|byte| *byte == b',').map_or(at, |place| at + place + 1);
                let until = text.iter().skip(value).position(|byte| matches!(byte, b',' | b']' | b'}')).map_or(value, |place| value + place);
                drop(text.splice(value..until, token));
            }
        }
    }
    text
}

/// True if the text was loaded and made a report.
fn tried(text: &[u8], stream: &[u8]) -> (bool, bool) {
    let Ok(text) = std::str::from_utf8(text) else {
        return (false, false);
    };
    let _ = units(text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').find(|part| !part.is_empty()).unwrap_or(""), true);
    let Ok(json) = Json::parse(text) else {
        return (false, false);
    };
    let Some(members) = json.object() else {
        return (false, false);
    };
    let mut rest: Vec<_> = members.iter().filter(|(key, _)| key != "digest").cloned().collect();
    let digest = to_hex(&sha256(Json::Object(rest.clone()).canonical().as_bytes()));
    rest.push(("digest".to_string(), Json::Text(digest.clone())));
    let Ok(client) = Client::from_json(Json::Object(rest), &digest) else {
        return (false, false);
    };
    let mut made = false;
    for answer in [Answer::Integer(1.into()), Answer::Text("a"), Answer::Number(0.5), Answer::Ticks(vec!["option 1"])] {
        if let Ok(drawn) = client.randomize(&answer, Some(&[7; 16]), &mut Recorded::new(stream.to_vec())) {
            assert_eq!(drawn.report.len(), client.report_size());
            made = true;
        }
    }
    (true, made)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (folder, count) = (&arguments[1], arguments[2].parse::<u64>().unwrap());
    let seed = arguments.get(3).map_or(1, |seed| seed.parse().unwrap());
    let (seeds, mut chance) = (seeds(folder), Chance(0x9e37_79b9_7f4a_7c15 ^ seed));
    let (mut loaded, mut made) = (0u64, 0u64);
    for place in 0..count {
        let text = changed(&seeds, &mut chance);
        let stream: Vec<u8> = (0..200).map(|_| chance.below(256) as u8).collect();
        let (was_loaded, was_made) = tried(&text, &stream);
        loaded += u64::from(was_loaded);
        made += u64::from(was_made);
        if place % 16 == 0 {
            let record = String::from_utf8_lossy(&text).into_owned();
            let limits = Limits { lifetime: "1", day: None };
            let _ = Device::open(MemoryStorage { record: Some(record) }, limits, SystemTime::now(), &mut Recorded::new(stream));
        }
    }
    println!("{count} inputs, {loaded} loaded, {made} with a report, no finding");
}
