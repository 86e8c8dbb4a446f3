//! The vectors of clients/vectors/devices.json: digests, answers, labels, amounts, and the device budget.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ldp_budget::hashes::{from_hex, to_hex};
use ldp_budget::json::Json;
use ldp_budget::{units, Answer, Client, Device, FileStorage, Limits, MemoryStorage, Recorded, Storage, SystemStream};

fn vectors() -> Json {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/devices.json");
    Json::parse(&fs::read_to_string(path).unwrap()).unwrap()
}

fn rows<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json.get(key).and_then(Json::list).unwrap()
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key).and_then(Json::text).unwrap()
}

fn client(definition: &Json) -> Client {
    Client::from_json(definition.clone(), text(definition, "digest")).unwrap()
}

#[test]
fn every_text_of_a_definition_has_its_digest() {
    for row in rows(&vectors(), "digests") {
        let found = Client::new(text(row, "text"), text(row, "digest"));
        assert!(found.is_ok(), "{}", text(row, "name"));
        assert!(Client::new(text(row, "text"), &"0".repeat(64)).is_err());
    }
}

#[test]
fn every_answer_gives_its_report_and_label_or_is_refused() {
    let mut count = 0;
    for case in rows(&vectors(), "answers") {
        let client = client(case.get("definition").unwrap());
        for row in rows(case, "rows") {
            let secret = from_hex(text(row, "secret")).unwrap();
            let mut stream = Recorded::new(from_hex(text(row, "stream")).unwrap());
            let answer = client.answer_of(row.get("answer").unwrap());
            let drawn = answer.and_then(|answer| client.randomize(&answer, Some(&secret), &mut stream));
            if row.get("refused").is_some() {
                assert!(drawn.is_err(), "{row:?}");
                continue;
            }
            let drawn = drawn.unwrap_or_else(|why| panic!("{row:?}: {why}"));
            assert_eq!((to_hex(&drawn.report).as_str(), stream.left()), (text(row, "report"), 0), "{row:?}");
            assert_eq!(drawn.label.as_deref(), row.get("label").and_then(Json::text), "{row:?}");
            count += 1;
        }
    }
    assert!(count > 50);
}

#[test]
fn every_amount_is_rounded_outward() {
    for row in rows(&vectors(), "amounts") {
        for (key, up) in [("down", false), ("up", true)] {
            let found = units(text(row, "text"), up).map_or(Json::Null, Json::Integer);
            assert_eq!(Some(&found), row.get(key), "{}", text(row, "text"));
        }
    }
}

/// A time such as 2026-11-21T08:00:00Z, by the days of the Gregorian calendar.
fn time(text: &str) -> SystemTime {
    let part = |from: usize, to: usize| text[from..to].parse::<i64>().unwrap();
    let (year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    let shifted = if month > 2 { year } else { year - 1 };
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719_469;
    let seconds = ((days * 24 + part(11, 13)) * 60 + part(14, 16)) * 60 + part(17, 19);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64)
}

fn limits(json: &Json) -> Limits<'_> {
    Limits { lifetime: text(json, "lifetime"), day: json.get("day").and_then(Json::text) }
}

/// Do what a scenario says, in a storage that is opened again for each event.
fn played<S: Storage>(scenario: &Json, definitions: &Json, storage: impl Fn() -> S) {
    let start = SystemTime::UNIX_EPOCH;
    let mut last = Json::Null;
    for (place, event) in rows(scenario, "events").iter().enumerate() {
        let name = format!("{} {place}", text(scenario, "name"));
        if let Some(given) = event.get("open") {
            last = given.clone();
        }
        let mut device = Device::open(storage(), limits(&last), start, &mut SystemStream::default()).unwrap();
        if let Some(definition) = event.get("draw").and_then(Json::text) {
            let client = client(definitions.get(definition).unwrap());
            let answer = client.answer_of(event.get("answer").unwrap()).unwrap();
            let key = event.get("key").and_then(Json::text).map_or_else(|| format!("event {place}"), str::to_string);
            let before = device.waiting().unwrap();
            let found = device.draw(&key, &client, &answer, time(text(event, "now")), &mut SystemStream::default());
            let says = match &found {
                Ok(entry) if before.contains(entry) => "again",
                Ok(_) => "drawn",
                Err(why) if why.is_over_budget() => "over",
                Err(_) => "refused",
            };
            assert_eq!(says, text(event, "says"), "{name}");
        }
        let spent = units(&device.balance(start).unwrap().lifetime.0, false).map(Json::Integer);
        assert_eq!(spent.as_ref(), event.get("spent"), "{name}");
    }
}

#[test]
fn every_budget_says_and_spends_what_the_specification_says() {
    let made = vectors();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for (place, scenario) in rows(&made, "budgets").iter().enumerate() {
        let path = folder.join(format!("device-{}-{place}.json", std::process::id()));
        played(scenario, made.get("definitions").unwrap(), || FileStorage::new(&path));
        fs::remove_file(path).unwrap();
    }
}

struct Full(MemoryStorage);

impl Storage for Full {
    fn update(&mut self, change: &mut dyn FnMut(Option<&str>) -> ldp_budget::Result<Option<String>>) -> ldp_budget::Result<()> {
        match change(self.0.record.as_deref())? {
            Some(_) if self.0.record.is_some() => Err(ldp_budget::Error::new("the disk is full")),
            Some(after) => {
                self.0.record = Some(after);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[test]
fn charge_that_cannot_be_stored_returns_no_report() {
    let made = vectors();
    let client = client(made.get("definitions").and_then(|all| all.get("oue")).unwrap());
    let (limits, now, mut stream) = (Limits { lifetime: "1", day: None }, SystemTime::now(), SystemStream::default());
    let mut device = Device::open(Full(MemoryStorage::default()), limits, now, &mut stream).unwrap();
    assert!(device.fresh);
    assert!(device.draw("a", &client, &Answer::Integer(0.into()), now, &mut stream).is_err());
    assert_eq!(device.balance(now).unwrap().lifetime.0, "0");
}

#[test]
fn record_that_cannot_be_read_is_refused() {
    let limits = Limits { lifetime: "1", day: Some("1") };
    let (now, mut stream) = (SystemTime::now(), SystemStream::default());
    for record in ["", "{}", "null"] {
        let storage = MemoryStorage { record: Some(record.to_string()) };
        assert!(Device::open(storage, limits, now, &mut stream).is_err(), "{record:?}");
    }
}

#[test]
fn settled_report_is_not_drawn_again() {
    let made = vectors();
    let client = client(made.get("definitions").and_then(|all| all.get("oue")).unwrap());
    let (limits, now, mut stream) = (Limits { lifetime: "1", day: None }, SystemTime::now(), SystemStream::default());
    let mut device = Device::open(MemoryStorage::default(), limits, now, &mut stream).unwrap();
    let answer = Answer::Integer(0.into());
    assert_eq!(device.draw("a", &client, &answer, now, &mut stream).unwrap().units, 1_000_000_000);
    device.settle("a").unwrap();
    assert_eq!(device.draw("a", &client, &answer, now, &mut stream).unwrap().report, None);
    assert_eq!(device.waiting().unwrap(), []);
    assert!(device.settle("b").is_err());
}
