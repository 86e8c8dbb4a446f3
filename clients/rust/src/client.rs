//! A client: the definition that was agreed on, and the reports that it draws.

use crate::answers::{Answer, Input};
use crate::definition;
use crate::draws::Stream;
use crate::error::{refuse, Error, Result};
use crate::hashes::{blake2b, sha256, to_hex};
use crate::json::Json;
use crate::program::Program;

const LEAST_SECRET: usize = 16;
/// The mechanisms whose reports hide which answers repeat.
const HIDES_REPEATS: [&str; 2] = ["rappor", "loloha"];

pub struct Client {
    definition: Json,
    program: Program,
    input: Input,
}

/// A report, which is sent once, and the label that is sent with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub report: Vec<u8>,
    /// Which memoized draw the report repeats. `None` where nothing is memoized.
    pub label: Option<String>,
}

impl Client {
    /// The client of a definition with the digest that was agreed on.
    pub fn new(text: &str, digest: &str) -> Result<Client> {
        Client::of(definition::read(text, digest)?)
    }

    /// The client of a definition that was read already, such as a part of a larger text.
    pub fn from_json(definition: Json, digest: &str) -> Result<Client> {
        definition::check(&definition, digest)?;
        Client::of(definition)
    }

    fn of(definition: Json) -> Result<Client> {
        Ok(Client { program: Program::new(&definition)?, input: Input::new(&definition)?, definition })
    }

    pub fn definition(&self) -> &Json {
        &self.definition
    }

    /// The digest that was agreed on.
    pub fn digest(&self) -> &str {
        self.text("digest")
    }

    /// The bytes of a report.
    pub fn report_size(&self) -> usize {
        self.program.size
    }

    /// True if reports repeat draws that are made from a secret.
    pub fn memoises(&self) -> bool {
        self.program.memoises()
    }

    /// True if the label travels with a report.
    pub fn sends_label(&self) -> bool {
        let hides = HIDES_REPEATS.contains(&self.text("mechanism"));
        self.memoises() && (!hides || self.definition.get("labels").is_some())
    }

    /// Refuses what is no answer, before anything is drawn.
    pub fn check(&self, answer: &Answer<'_>) -> Result<()> {
        self.input.number(answer).map(|_| ())
    }

    /// One report. A client that memoizes needs the secret of the device, of at least 16 bytes.
    pub fn randomize(&self, answer: &Answer<'_>, secret: Option<&[u8]>, stream: &mut dyn Stream) -> Result<Drawn> {
        let own = match secret {
            _ if !self.memoises() => Vec::new(),
            Some(secret) if secret.len() >= LEAST_SECRET => {
                within(secret, &format!("collection {}", self.text("fingerprint"))).to_vec()
            }
            _ => return refuse("the collection memoizes: it needs a secret of at least 16 bytes"),
        };
        self.randomize_within(answer, &own, stream)
    }

    /// The same with the secret of the collection, which the test vectors have.
    pub fn randomize_within(&self, answer: &Answer<'_>, own: &[u8], stream: &mut dyn Stream) -> Result<Drawn> {
        let number = self.input.number(answer)?;
        let (report, memo) = self.program.run(number, own, stream)?;
        let label = memo.map(|memo| {
            let key = within(own, &format!("{} labels", self.text("context")));
            to_hex(&blake2b::<16>(memo.to_string().as_bytes(), &key, b""))
        });
        Ok(Drawn { report, label })
    }

    /// An answer as a JSON value has it: a text, a number, or a list of texts.
    pub fn answer_of<'a>(&self, json: &'a Json) -> Result<Answer<'a>> {
        Ok(match (json, &self.input) {
            (Json::Integer(number), Input::Range { .. }) => Answer::Number(*number as f64),
            (Json::Double(number), Input::Range { .. }) => Answer::Number(*number),
            (Json::Integer(number), _) => Answer::Integer(i128::from(*number).into()),
            (Json::List(list), _) => {
                let names = list.iter().map(Json::text).collect::<Option<Vec<&str>>>();
                Answer::Ticks(names.ok_or_else(|| Error::new("a tick that is no text"))?)
            }
            (Json::Text(text), Input::Range { .. }) if text.contains(['.', 'e']) => {
                Answer::Number(text.parse().map_err(|_| Error::new("no number"))?)
            }
            (Json::Text(text), Input::Count { text: false, .. }) if text.len() > 15 => {
                Answer::Integer(crate::Integer::parse(text).ok_or_else(|| Error::new("no integer"))?)
            }
            (Json::Text(text), _) => Answer::Text(text),
            _ => return refuse("an answer of another kind"),
        })
    }

    fn text(&self, key: &str) -> &str {
        self.definition.get(key).and_then(Json::text).unwrap_or("")
    }
}

/// The secret of a collection, or of its labels.
fn within(secret: &[u8], context: &str) -> [u8; 32] {
    blake2b::<32>(context.as_bytes(), &sha256(secret), b"ldp-budget")
}
