//! The budget and the outbox of a device: each report is charged, drawn and kept in one step, before it is sent.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::amounts::{epsilon_of, units};
use crate::answers::Answer;
use crate::client::Client;
use crate::draws::Stream;
use crate::error::{needs, refuse, Error, Result};
use crate::hashes::{from_hex, sha256, to_hex};
use crate::json::Json;
use crate::storage::Storage;

const FORMAT: &str = "ldp-budget device 1";
const SECONDS_A_DAY: u64 = 86_400;
/// The parts of a definition that say how kept draws are read.
const PROGRAM: [&str; 6] = ["context", "input", "memo", "report", "steps", "tables"];

/// The limits of a device, as decimals of ε.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    pub lifetime: &'a str,
    pub day: Option<&'a str>,
}

/// A report on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub collection: String,
    pub digest: String,
    /// `None` after it was settled.
    pub report: Option<Vec<u8>>,
    /// What travels with the report; `None` where nothing is memoized, or where reports hide what they repeat.
    pub label: Option<String>,
    /// What was charged, in units of 1e-9 of ε.
    pub units: i64,
}

/// What was spent, and the limits, as decimals of ε. The day is that of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    pub lifetime: (String, String),
    pub day: Option<(String, String)>,
}

/// A device that keeps limits.
pub struct Device<S: Storage> {
    storage: S,
    /// True if nothing was kept before: then tell the user that earlier reports do not count.
    pub fresh: bool,
}

#[derive(Clone)]
struct State {
    secret: Vec<u8>,
    lifetime: i64,
    day: Option<i64>,
    spent: i64,
    spent_today: i64,
    /// Days since 1970 in UTC.
    date: i64,
    once: Vec<String>,
    programs: Vec<(String, String)>,
    outbox: Vec<Entry>,
}

impl<S: Storage> Device<S> {
    /// The device of a storage. Limits that are there already are lowered, and not raised. `stream` makes the secret of a new one.
    pub fn open(mut storage: S, limits: Limits<'_>, now: SystemTime, stream: &mut dyn Stream) -> Result<Device<S>> {
        let limit = |text: &str| units(text, false).ok_or_else(|| Error::new(format!("a limit must be a decimal up to 9007199: got {text:?}")));
        let (lifetime, day) = (limit(limits.lifetime)?, limits.day.map(limit).transpose()?);
        let mut fresh = false;
        storage.update(&mut |record| {
            let mut state = match record {
                Some(record) => State::read(record)?,
                None => {
                    fresh = true;
                    State::new(lifetime, date_of(now), stream)?
                }
            };
            state.lifetime = state.lifetime.min(lifetime);
            state.day = state.day.into_iter().chain(day).min();
            Ok(Some(state.written()))
        })?;
        Ok(Device { storage, fresh })
    }

    /// The report of a key: charged and drawn now, or the one that was drawn under this key before; then the answer is not used.
    pub fn draw(&mut self, key: &str, client: &Client, answer: &Answer<'_>, now: SystemTime, stream: &mut dyn Stream) -> Result<Entry> {
        let mut found = None;
        self.storage.update(&mut |record| {
            let mut state = known(record)?;
            if let Some(entry) = state.outbox.iter().find(|entry| entry.key == key) {
                found = Some(entry.clone());
                return Ok(None);
            }
            client.check(answer)?; // what is no answer costs nothing
            let (cost, once) = cost_of(client.definition())?;
            state.bind(client)?;
            let label = match once {
                true => client.randomize(answer, Some(&state.secret), stream)?.label,
                false => None,
            };
            let paid = state.charge(cost, label.map(|label| format!("{} {label}", text(client.definition(), "digest"))), date_of(now))?;
            let drawn = client.randomize(answer, Some(&state.secret), stream)?;
            let entry = Entry {
                key: key.to_string(),
                collection: text(client.definition(), "name").to_string(),
                digest: text(client.definition(), "digest").to_string(),
                report: Some(drawn.report),
                label: drawn.label.filter(|_| client.sends_label()),
                units: paid,
            };
            found = Some(entry.clone());
            state.outbox.push(entry);
            Ok(Some(state.written()))
        })?;
        found.ok_or_else(|| Error::new("the storage did not pass on its record"))
    }

    /// The report of a key has arrived: it is deleted. The charge stays, and nothing is drawn again under this key.
    pub fn settle(&mut self, key: &str) -> Result<()> {
        self.storage.update(&mut |record| {
            let mut state = known(record)?;
            let entry = state.outbox.iter_mut().find(|entry| entry.key == key).ok_or_else(|| Error::new("no report has this key"))?;
            entry.report = None;
            entry.label = None;
            Ok(Some(state.written()))
        })
    }

    /// The reports that have not arrived, oldest first.
    pub fn waiting(&mut self) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.storage.update(&mut |record| {
            found = known(record)?.outbox.into_iter().filter(|entry| entry.report.is_some()).collect();
            Ok(None)
        })?;
        Ok(found)
    }

    pub fn balance(&mut self, now: SystemTime) -> Result<Balance> {
        let mut found = Balance { lifetime: (String::new(), String::new()), day: None };
        self.storage.update(&mut |record| {
            let state = known(record)?;
            found.lifetime = (epsilon_of(state.spent), epsilon_of(state.lifetime));
            found.day = state.day.map(|limit| (epsilon_of(state.today(date_of(now)).0), epsilon_of(limit)));
            Ok(None)
        })?;
        Ok(found)
    }
}

fn known(record: Option<&str>) -> Result<State> {
    State::read(record.ok_or_else(|| Error::new("the budget of this device was cleared: open it again, and say so to the user"))?)
}

/// Days since 1970 in UTC. Of a clock before 1970, 0.
fn date_of(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |passed| (passed.as_secs() / SECONDS_A_DAY) as i64)
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key).and_then(Json::text).unwrap_or("")
}

/// What a report costs in units, and if an answer is charged once.
fn cost_of(definition: &Json) -> Result<(i64, bool)> {
    let guarantee = definition.get("guarantee").unwrap_or(&Json::Null);
    let figure = |key: &str, up| guarantee.get(key).and_then(Json::text).and_then(|text| units(text, up));
    let together = guarantee.get("answer_epsilon").is_some();
    let all = figure(if together { "answer_epsilon" } else { "epsilon" }, true);
    match (figure("epsilon", true), figure("delta", false), all) {
        (Some(one), Some(delta), Some(all)) if delta < 1_000_000_000 => Ok((one.max(all), together)),
        _ => refuse("a device charges promises of an ε, with a δ below 1"),
    }
}

impl State {
    fn new(lifetime: i64, date: i64, stream: &mut dyn Stream) -> Result<State> {
        let mut secret = vec![0; 32];
        stream.fill(&mut secret)?;
        let (once, programs, outbox) = (Vec::new(), Vec::new(), Vec::new());
        Ok(State { secret, lifetime, day: None, spent: 0, spent_today: 0, date, once, programs, outbox })
    }

    /// What was spent on the date that counts, and that date: a clock that goes back refills nothing.
    fn today(&self, date: i64) -> (i64, i64) {
        if date > self.date { (0, date) } else { (self.spent_today, self.date) }
    }

    /// Charge, unless it was charged once for all; return what was charged.
    fn charge(&mut self, cost: i64, once: Option<String>, date: i64) -> Result<i64> {
        if once.as_ref().is_some_and(|label| self.once.contains(label)) {
            return Ok(0);
        }
        let (today, date) = self.today(date);
        for (period, spent, limit) in [("lifetime", self.spent, Some(self.lifetime)), ("day", today, self.day)] {
            if limit.is_some_and(|limit| spent.saturating_add(cost) > limit) {
                let limit = epsilon_of(limit.unwrap_or(0));
                let said = format!("over the budget of this device: {} of {limit} spent for its {period}, asked {}", epsilon_of(spent), epsilon_of(cost));
                return Err(Error::over_budget(said));
            }
        }
        (self.spent, self.spent_today, self.date) = (self.spent + cost, today + cost, date);
        self.once.extend(once);
        Ok(cost)
    }

    /// Two programs that read the same kept draws would together give away more than both are charged: the first one stays.
    fn bind(&mut self, client: &Client) -> Result<()> {
        if !client.memoises() {
            return Ok(());
        }
        let definition = client.definition();
        let parts = PROGRAM.iter().filter_map(|key| Some((key.to_string(), definition.get(key)?.clone()))).collect();
        let program = to_hex(&sha256(Json::Object(parts).canonical().as_bytes()));
        let fingerprint = text(definition, "fingerprint");
        match self.programs.iter().find(|(known, _)| known == fingerprint) {
            Some((_, known)) => needs(*known == program, "another program has read the draws that this device keeps for the collection"),
            None => {
                self.programs.push((fingerprint.to_string(), program));
                Ok(())
            }
        }
    }

    fn written(&self) -> String {
        let said = |text: &str| Json::Text(text.to_string());
        let maybe = |text: Option<String>| text.map_or(Json::Null, Json::Text);
        let entry = |entry: &Entry| {
            let report = entry.report.as_ref().map(|report| to_hex(report));
            Json::List(vec![
                said(&entry.key),
                said(&entry.collection),
                said(&entry.digest),
                maybe(report),
                maybe(entry.label.clone()),
                Json::Integer(entry.units),
            ])
        };
        let pairs = self.programs.iter().map(|(one, other)| Json::List(vec![said(one), said(other)]));
        let members = [
            ("date", Json::Integer(self.date)),
            ("day", self.day.map_or(Json::Null, Json::Integer)),
            ("format", said(FORMAT)),
            ("lifetime", Json::Integer(self.lifetime)),
            ("once", Json::List(self.once.iter().map(|label| said(label)).collect())),
            ("outbox", Json::List(self.outbox.iter().map(entry).collect())),
            ("programs", Json::List(pairs.collect())),
            ("secret", said(&to_hex(&self.secret))),
            ("spent", Json::Integer(self.spent)),
            ("spent_today", Json::Integer(self.spent_today)),
        ];
        Json::Object(members.into_iter().map(|(key, value)| (key.to_string(), value)).collect()).canonical()
    }

    /// What cannot be read must not look like nothing spent.
    fn read(record: &str) -> Result<State> {
        let damaged = || Error::new("the record of this device's budget is damaged: clear it, and say so to the user");
        Json::parse(record).ok().and_then(|record| State::of(&record)).ok_or_else(damaged)
    }

    fn of(record: &Json) -> Option<State> {
        let whole = |json: &Json| match json {
            Json::Integer(number @ 0..) => Some(*number),
            _ => None,
        };
        let maybe = |json: &Json| match json {
            Json::Null => Some(None),
            Json::Text(text) => Some(Some(text.clone())),
            _ => None,
        };
        let number = |key: &str| whole(record.get(key)?);
        let said = |json: &Json| json.text().map(str::to_string);
        let entry = |json: &Json| {
            let [key, collection, digest, report, label, units] = json.list()? else {
                return None;
            };
            let report = match maybe(report)? {
                Some(hex) => Some(from_hex(&hex)?),
                None => None,
            };
            let (key, collection, digest) = (said(key)?, said(collection)?, said(digest)?);
            Some(Entry { key, collection, digest, report, label: maybe(label)?, units: whole(units)? })
        };
        let pair = |json: &Json| match json.list()? {
            [one, other] => Some((said(one)?, said(other)?)),
            _ => None,
        };
        (record.get("format")?.text()? == FORMAT).then_some(())?;
        Some(State {
            secret: from_hex(record.get("secret")?.text()?).filter(|secret| secret.len() == 32)?,
            lifetime: number("lifetime")?,
            day: match record.get("day")? {
                Json::Null => None,
                day => Some(whole(day)?),
            },
            spent: number("spent")?,
            spent_today: number("spent_today")?,
            date: number("date")?,
            once: record.get("once")?.list()?.iter().map(said).collect::<Option<_>>()?,
            programs: record.get("programs")?.list()?.iter().map(pair).collect::<Option<_>>()?,
            outbox: record.get("outbox")?.list()?.iter().map(entry).collect::<Option<_>>()?,
        })
    }
}
