//! Failures of other operators: none of them breaks a rule with the real decisions, each does with a decision that has the same
//! fault.

use std::collections::BTreeSet;
use std::path::Path;

use wellcake_core::step;
use wellcake_model_tests::museum::{Piece, PieceError, read};

/// Pieces that the museum has at least.
const LEAST: usize = 20;

fn pieces() -> Vec<Piece> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    read(&folder).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn no_incident_breaks_a_rule_and_the_cluster_comes_to_rest() {
    for piece in pieces() {
        let end = piece.replay(step, |_, _| {});
        assert!(end.is_ok(), "{}: {end:?}", piece.name);
    }
}

#[test]
fn each_incident_breaks_its_rule_when_a_decision_with_the_same_fault_meets_it() {
    for piece in pieces() {
        let name = &piece.name;
        let wrong = piece.wrong();
        let wrong = wrong.unwrap_or_else(|| panic!("{name}: there is no {}", piece.head.wrong));
        let violation = piece
            .replay(wrong.brain, |_, _| {})
            .expect_err(&format!("{name}: {} breaks nothing", wrong.name));
        assert_eq!(
            violation.invariant, piece.head.breaks,
            "{name}: {violation}"
        );
    }
}

#[test]
fn the_museum_has_at_least_twenty_incidents_with_their_sources() {
    let pieces = pieces();
    assert!(pieces.len() >= LEAST, "{} pieces", pieces.len());
    let titles: BTreeSet<&str> = pieces
        .iter()
        .map(|piece| piece.head.title.as_str())
        .collect();
    assert_eq!(titles.len(), pieces.len(), "titles are unique");
    for piece in &pieces {
        assert!(
            !piece.head.from.is_empty(),
            "{} names no report",
            piece.name
        );
    }
}

const HEAD: &str = r#"{"museum":1,"title":"t","from":["B1"],"happened":"h","here":"i","pods":2,"disk":"None","profile":"Cache","breaks":"b","wrong":"w"}"#;

fn refusal(text: &str) -> String {
    let refused: Result<Piece, PieceError> = Piece::parse("a", text);
    refused.expect_err("it is damaged").to_string()
}

#[test]
fn damage_is_told_with_the_line() {
    let good = format!("{HEAD}\n\"Write\"\n{{\"Kill\":1}}\n");
    assert_eq!(
        Piece::parse("a", &good).expect("it is whole").events.len(),
        2
    );
    assert_eq!(refusal(""), "line 1 is missing: the file is empty");
    assert!(refusal("{}\n").starts_with("line 1 is no head of a piece: missing field `museum`"));
    let cut = good.trim_end().trim_end_matches('}');
    assert!(
        refusal(cut).starts_with("line 3 is no event: EOF"),
        "{}",
        refusal(cut)
    );
    let unknown = good.replace("Kill", "Explode");
    assert!(refusal(&unknown).starts_with("line 3 is no event: unknown variant `Explode`"));
    let nobody = good.replace("{\"Kill\":1}", "{\"Kill\":2}");
    assert!(
        refusal(&nobody).starts_with("line 3 cannot happen with 2 pods"),
        "{}",
        refusal(&nobody)
    );
    let odd = good.replace("\"pods\"", "\"nodes\"");
    assert!(refusal(&odd).starts_with("line 1 is no head of a piece: unknown field `nodes`"));
}

#[test]
fn a_newer_piece_is_refused_by_its_version() {
    let newer = HEAD.replace("\"museum\":1", "\"museum\":2,\"more\":[]");
    let why = refusal(&newer);
    assert!(
        why.starts_with("line 1 is of schema 2, and this program reads schema 1"),
        "{why}"
    );
}
