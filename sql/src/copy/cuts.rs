//! Random data cut at random is the same data.

use proptest::prelude::*;
use stillframe_protocol::RelationId;

use super::format::Format;
use super::reader::Reader;
use super::statement::{CopyOption, OptionValue};
use crate::catalog::{Catalog, Column, Relation, RelationKind};
use crate::fake::texts;
use crate::text::TextFormat;
use crate::write::Target;
use crate::{Error, Type};

/// A table of three texts, or of an integer and two texts.
fn target(first: Type) -> Target {
    let kinds = [("a", first), ("b", Type::Text), ("c", Type::Text)];
    let columns = kinds.map(|(name, kind)| Column::new(name.to_owned(), kind));
    let relation = Relation {
        id: RelationId(1),
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: columns.into(),
        kind: RelationKind::Table { key: vec![] },
        constraints: vec![],
        storage: None,
        comment: None,
    };
    let mut catalog = Catalog::default();
    catalog.relations.insert(relation.id, relation.clone());
    Target::new(&catalog.into(), &relation).unwrap()
}

fn option(name: &str, value: &str) -> CopyOption {
    CopyOption { name: name.to_owned(), value: OptionValue::Text(value.to_owned()) }
}

fn read(first: &Type, options: &[CopyOption], pieces: &[&[u8]]) -> Result<Vec<String>, Error> {
    let format = Format::new(options).unwrap();
    let target = target(first.clone());
    let mut reader = Reader::new(&target, &[0, 1, 2], format, &TextFormat::default()).unwrap();
    let mut rows = vec![];
    for piece in pieces {
        reader.push(piece);
        while let Some(batch) = reader.next_batch()? {
            let count = batch.line_numbers.len();
            rows.extend(texts(&target.rows(batch.values, count)?));
        }
    }
    reader.complete();
    while let Some(batch) = reader.next_batch()? {
        let count = batch.line_numbers.len();
        rows.extend(texts(&target.rows(batch.values, count)?));
    }
    Ok(rows)
}

/// Mostly what has a meaning to COPY.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(&b"\n"[..]),
        1 => Just(&b"\r\n"[..]),
        1 => Just(&b"\r"[..]),
        4 => Just(&b","[..]),
        3 => Just(&b"\t"[..]),
        4 => Just(&b"\""[..]),
        2 => Just(&b"\"\""[..]),
        2 => Just(&b"\\"[..]),
        1 => Just(&b"\\N"[..]),
        1 => Just(&b"\\.\n"[..]),
        1 => Just(&b"\\x41"[..]),
        4 => Just(&b"1"[..]),
        3 => Just(&b"x"[..]),
        2 => Just("ü€𝄞".as_bytes()),
        1 => Just(&b"1,2,3\n"[..]),
        2 => Just(&b"1\t2\t3\n"[..]),
        1 => Just(&b"\xe2"[..]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cut_data_is_the_same_data(
        data in data(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        is_csv in any::<bool>(),
        has_header in any::<bool>(),
        has_numbers in any::<bool>(),
        escape in prop::sample::select(vec!["\"", "\\", "x"]),
    ) {
        let mut options = vec![];
        if is_csv {
            options.extend([option("format", "csv"), option("escape", escape)]);
        }
        if has_header {
            options.push(option("header", "true"));
        }
        let first = if has_numbers { Type::Integer } else { Type::Text };
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
        places.extend([0, data.len()]);
        places.sort_unstable();
        let pieces: Vec<_> = places.windows(2).map(|ends| &data[ends[0]..ends[1]]).collect();
        prop_assert_eq!(read(&first, &options, &pieces), read(&first, &options, &[&data]));
    }
}
