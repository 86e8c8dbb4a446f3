//! The vectors of clients/vectors, on which every client agrees.

use std::fs;
use std::path::PathBuf;

use ldp_budget::hashes::{from_hex, sha256, to_hex};
use ldp_budget::json::Json;
use ldp_budget::{Client, Recorded};

fn vectors(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors").join(name)
}

fn read(path: PathBuf) -> Json {
    Json::parse(&fs::read_to_string(&path).unwrap()).unwrap()
}

fn text<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key).and_then(Json::text).unwrap()
}

fn client(definition: &str) -> Result<Client, String> {
    let digest = Json::parse(definition).map_err(|why| why.to_string())?;
    let digest = digest.get("digest").and_then(Json::text).unwrap_or("").to_string();
    Client::new(definition, &digest).map_err(|why| why.to_string())
}

/// A program of the vectors with the texts and the digest of a definition.
fn completed(program: &Json) -> Json {
    let mut members = program.object().unwrap().to_vec();
    for key in ["name", "title", "question", "purpose", "contact", "mechanism", "fingerprint"] {
        members.push((key.to_string(), Json::Text(String::new())));
    }
    members.push(("languages".to_string(), Json::Object(Vec::new())));
    if program.get("answers").is_none() {
        members.push(("answers".to_string(), Json::Null));
    }
    let guarantee = ["epsilon", "delta"].map(|key| (key.to_string(), Json::Null));
    members.push(("guarantee".to_string(), Json::Object(guarantee.to_vec())));
    let digest = to_hex(&sha256(Json::Object(members.clone()).canonical().as_bytes()));
    members.push(("digest".to_string(), Json::Text(digest)));
    Json::Object(members)
}

#[test]
fn every_vector_gives_its_report_from_exactly_its_bytes() {
    let mut count = 0;
    for file in fs::read_dir(vectors("cases")).unwrap() {
        let path = file.unwrap().path();
        let case = read(path.clone());
        let definition = completed(case.get("definition").unwrap());
        let digest = text(&definition, "digest").to_string();
        let client = Client::from_json(definition, &digest).unwrap();
        for vector in case.get("vectors").and_then(Json::list).unwrap() {
            let mut stream = Recorded::new(from_hex(text(vector, "stream")).unwrap());
            let own = vector.get("secret").and_then(Json::text).map_or_else(Vec::new, |own| from_hex(own).unwrap());
            let answer = client.answer_of(vector.get("answer").unwrap()).unwrap();
            let found = client.randomize_within(&answer, &own, &mut stream);
            let found = found.map(|drawn| to_hex(&drawn.report)).map_err(|why| why.to_string());
            assert_eq!(found.as_deref(), Ok(text(vector, "report")), "{path:?} {vector:?}");
            assert_eq!(stream.left(), 0, "{path:?} {vector:?}");
            count += 1;
        }
    }
    assert!(count > 2000);
}

#[test]
fn every_form_that_is_not_specified_is_refused() {
    for row in read(vectors("refusals.json")).get("forms").and_then(Json::list).unwrap() {
        assert!(client(text(row, "text")).is_err(), "{}", text(row, "name"));
    }
}

#[test]
fn every_guarantee_of_another_form_is_refused() {
    for row in read(vectors("refusals.json")).get("guarantees").and_then(Json::list).unwrap() {
        assert!(client(&row.get("definition").unwrap().canonical()).is_err(), "{}", text(row, "name"));
    }
}

#[test]
fn every_run_that_must_fail_makes_no_report() {
    for row in read(vectors("refusals.json")).get("failures").and_then(Json::list).unwrap() {
        let client = client(&row.get("definition").unwrap().canonical()).unwrap();
        let answer = client.answer_of(row.get("answer").unwrap()).unwrap();
        let mut stream = Recorded::new(vec![255; 4096]);
        let found = client.randomize(&answer, Some(&[0; 32]), &mut stream);
        assert!(found.is_err(), "{}", text(row, "name"));
    }
}

#[test]
fn definition_with_another_digest_than_the_pinned_one_is_refused() {
    let row = &read(vectors("refusals.json")).get("failures").and_then(Json::list).unwrap()[0].clone();
    assert!(Client::new(&row.get("definition").unwrap().canonical(), &"0".repeat(64)).is_err());
}
