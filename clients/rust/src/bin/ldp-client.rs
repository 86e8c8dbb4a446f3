//! A client on pipes, for `ldp-budget audit COLLECTION --client ldp-client` and for the conformance kit.
//!
//! Each line is JSON. `{"collection": definition}` is answered only if it is refused. Then `{"answer": …}`, with `secret` if
//! the collection memoizes, gives `{"report": hex}`, and `label`. With `stream`, the draws are from these bytes, and exactly
//! these; `own` is the secret of the collection, in place of the device's. A refusal is `{"error": text}`.

use std::io::{BufRead, Write};

use ldp_budget::hashes::{from_hex, to_hex};
use ldp_budget::json::Json;
use ldp_budget::{Client, Error, Recorded, Result, SystemStream};

fn bytes(line: &Json, key: &str) -> Result<Option<Vec<u8>>> {
    match line.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(hex) => match hex.text().and_then(from_hex) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Error::new(format!("{key} must be pairs of hexadecimal digits"))),
        },
    }
}

fn answered(client: &mut Option<Client>, line: &str) -> Result<Option<Json>> {
    if line.starts_with("{\"collection\"") {
        *client = None; // also where the text is refused
    }
    let line = Json::parse(line)?;
    if let Some(definition) = line.get("collection") {
        // A test chooses the definition here. A device has a pinned digest.
        let digest = definition.get("digest").and_then(Json::text).unwrap_or("").to_string();
        *client = Some(Client::from_json(definition.clone(), &digest)?);
        return Ok(None);
    }
    let client = client.as_ref().ok_or_else(|| Error::new("no collection: it was refused, or the first line has none"))?;
    let answer = client.answer_of(line.get("answer").ok_or_else(|| Error::new("the line has no answer"))?)?;
    let (secret, own) = (bytes(&line, "secret")?, bytes(&line, "own")?);
    let drawn = match bytes(&line, "stream")? {
        None => client.randomize(&answer, secret.as_deref(), &mut SystemStream::default())?,
        Some(stream) => {
            let mut stream = Recorded::new(stream);
            let drawn = match own {
                Some(own) => client.randomize_within(&answer, &own, &mut stream)?,
                None => client.randomize(&answer, secret.as_deref(), &mut stream)?,
            };
            if stream.left() > 0 {
                return Err(Error::new(format!("{} bytes of the stream were not read", stream.left())));
            }
            drawn
        }
    };
    let mut said = vec![("report".to_string(), Json::Text(to_hex(&drawn.report)))];
    said.extend(drawn.label.map(|label| ("label".to_string(), Json::Text(label))));
    Ok(Some(Json::Object(said)))
}

fn main() -> std::io::Result<()> {
    let (mut client, mut out) = (None, std::io::stdout().lock());
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line?;
        let said = match std::str::from_utf8(&line) {
            Ok(text) => answered(&mut client, text),
            Err(_) => {
                client = None; // the line may have named another collection
                Err(Error::new("the line is not in UTF-8"))
            }
        };
        let said = said.unwrap_or_else(|why| Some(Json::Object(vec![("error".into(), Json::Text(why.to_string()))])));
        if let Some(said) = said {
            writeln!(out, "{}", said.canonical())?;
            out.flush()?;
        }
    }
    Ok(())
}
