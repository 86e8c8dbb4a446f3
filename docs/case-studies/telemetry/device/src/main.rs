//! The telemetry command of an installation: draw the reports of a week once, then send all that have not arrived.
//!
//!     telemetry-device STATE DEFINITIONS HOST:PORT API_KEY INSTALLATION WEEK METRIC=ANSWER...
//!
//! STATE is a file: the secret, what was spent, and the outbox. A second call with the same week draws nothing new.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::SystemTime;

use ldp_budget::{Answer, Client, Device, Entry, FileStorage, Limits, SystemStream};

const LIFETIME: &str = "12";
/// The digests that the program pins: it draws by these definitions and by no other one.
const METRICS: [(&str, &str); 5] = [
    ("database", "a70b9a772061292567a226e7f60064334cda807020380f27324040ff449fa46a"),
    ("users", "50a3af0d4d19dd21592bb157a0334ca13e0eb33a7df3217969849acaf5847b6c"),
    ("version", "2a58682e89d2b616a5198574c80163bbf8ae6d51f522bc5958641455a6a7d23d"),
    ("features", "35e7110051c554b5bb5241706c594d542dc11366a3ad05448992a29b7a6db92c"),
    ("importer", "f0c4f7fd00e6e2ed215e59e58272e378710eef6b75f7f8f2a7c87c30c36d9b9c"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [state, definitions, address, api_key, installation, week, answers @ ..] = &words[..] else {
        return Err("usage: telemetry-device STATE DEFINITIONS HOST:PORT API_KEY INSTALLATION WEEK METRIC=ANSWER...".into());
    };
    let (now, mut stream) = (SystemTime::now(), SystemStream::default());
    let mut device = Device::open(FileStorage::new(state), Limits { lifetime: LIFETIME, day: None }, now, &mut stream)?;
    for word in answers {
        let (metric, answer) = word.split_once('=').ok_or("an answer is METRIC=ANSWER")?;
        let (_, digest) = METRICS.iter().find(|(name, _)| *name == metric).ok_or("no such metric")?;
        let client = Client::new(&std::fs::read_to_string(format!("{definitions}/{metric}.json"))?, digest)?;
        let answer = match metric {
            "features" => Answer::Ticks(answer.split(',').filter(|tick| !tick.is_empty()).collect()),
            _ => Answer::Text(answer),
        };
        match device.draw(&format!("{week}/{metric}"), &client, &answer, now, &mut stream) {
            Err(error) if error.is_over_budget() => println!("refused {metric}"),
            drawn => drop(drawn?),
        }
    }
    for entry in device.waiting()? {
        match sent(address, api_key, installation, &entry) {
            Ok(status @ (200 | 409)) => {
                device.settle(&entry.key)?;
                println!("{} {}", if status == 200 { "arrived" } else { "refused" }, entry.key);
            }
            _ => println!("waits {}", entry.key), // the next call sends the same bytes under the same key
        }
    }
    println!("spent {}", device.balance(now)?.lifetime.0);
    Ok(())
}

/// Send one report; the status of the response.
fn sent(address: &str, api_key: &str, installation: &str, entry: &Entry) -> Result<u16, Box<dyn Error>> {
    let report = entry.report.as_deref().unwrap_or_default();
    let label = entry.label.as_ref().map_or(String::new(), |label| format!("X-Label: {label}\r\n"));
    let head = format!(
        "POST /v1/collections/{}/reports HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {api_key}\r\nX-User: {installation}\r\n\
         X-Collection: {}\r\nIdempotency-Key: {}\r\n{label}Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        entry.collection,
        entry.digest,
        entry.key,
        report.len()
    );
    let mut line = TcpStream::connect(address)?;
    line.write_all(&[head.as_bytes(), report].concat())?;
    let mut response = String::new();
    line.read_to_string(&mut response)?;
    Ok(response.split(' ').nth(1).ok_or("no status")?.parse()?)
}
