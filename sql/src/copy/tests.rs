//! COPY against PostgreSQL's answers, whole and cut into pieces.

use stillframe_protocol::RelationId;

use crate::fake::{Fake, run};
use crate::{Error, Response, Session, TextColumn, TextFormat, Type};

const TABLES: &str = "
    create table one (a text);
    create table two (a int, b text);
    create table three (a text, b text, c text);
    create table num (
        i int, s smallint, b bigint, f double precision, n numeric(6,2), t boolean, d date,
        m timestamp
    );
    create table nn (a int not null, b text not null, c text)";

/// One statement with its data and PostgreSQL's answer.
struct Case {
    statement: &'static str,
    data: Vec<u8>,
    answer: String,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = vec![];
    let mut statement = "";
    for line in include_str!("postgresql.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(data) = line.strip_prefix("  <") {
            let data = unescape(data.strip_prefix(' ').unwrap_or(data));
            cases.push(Case { statement, data, answer: String::new() });
        } else if let Some(answer) = line.strip_prefix("    ") {
            let case = cases.last_mut().unwrap();
            case.answer.push_str(answer);
            case.answer.push('\n');
        } else {
            statement = line;
        }
    }
    cases
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = vec![];
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next().unwrap() {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let mut digit = || char::from(bytes.next().unwrap()).to_digit(16).unwrap();
                    (digit() * 16 + digit()) as u8
                }
                other => other,
            },
            other => other,
        });
    }
    out
}

fn escape(text: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    };
    text.iter().map(one).collect()
}

/// Feeds a COPY piece by piece; its tag.
async fn feed(session: &mut Session, statement: &str, pieces: &[&[u8]]) -> Result<String, Error> {
    let statement = session.parse(statement)?.remove(0);
    let prepared = session.prepare(statement, &[]).await?;
    match session.execute(&prepared, vec![]).await? {
        Response::CopyIn(mut copy) => {
            for piece in pieces {
                copy.write(piece).await?;
            }
            copy.finish().await
        }
        _ => panic!("not a COPY"),
    }
}

/// What a COPY answers, and what it leaves in all tables.
async fn answer(fake: &Fake, session: &mut Session, case: &Case, pieces: &[&[u8]]) -> String {
    let mut answer = String::new();
    match feed(session, case.statement, pieces).await {
        Ok(tag) => answer.push_str(&format!("{tag}\n")),
        Err(error) => {
            let message = escape(error.message.as_bytes());
            answer.push_str(&format!("{} {message}\n", error.state.code()));
            for (name, what) in
                [("detail", error.detail), ("hint", error.hint), ("context", error.context)]
            {
                if let Some(what) = what {
                    answer.push_str(&format!("{name}: {}\n", escape(what.as_bytes())));
                }
            }
        }
    }
    for relation in 16384..16389 {
        for batch in fake.take(RelationId(relation)) {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
                let kind = Type::of(field).unwrap();
                TextColumn::new(&kind, array, &TextFormat::default()).unwrap()
            });
            let columns: Vec<_> = columns.collect();
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|column| {
                    let mut out = vec![];
                    match column.write(row, &mut out) {
                        true => format!("'{}'", escape(&out)),
                        false => "NULL".to_owned(),
                    }
                });
                answer.push_str(&format!("{}\n", values.collect::<Vec<_>>().join(" | ")));
            }
        }
    }
    answer
}

async fn start() -> (std::sync::Arc<Fake>, Session) {
    let (fake, database) = Fake::start(2, 2);
    let mut session = Session::new(database, "alice");
    run(&mut session, TABLES).await.unwrap();
    (fake, session)
}

/// PostgreSQL writes booleans in a cast to text as words.
fn same(ours: &str, theirs: &str) -> bool {
    ours.replace("'t'", "'true'") == theirs
}

#[tokio::test]
async fn odd_data_is_answered_as_by_postgresql() {
    let (fake, mut session) = start().await;
    let mut differences = String::new();
    for case in cases() {
        let answer = answer(&fake, &mut session, &case, &[&case.data]).await;
        if !same(&answer, &case.answer) {
            differences.push_str(&format!(
                "{}\n  < {}\nPostgreSQL\n{}Stillframe\n{answer}\n",
                case.statement,
                escape(&case.data),
                case.answer
            ));
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[tokio::test]
async fn data_cut_byte_by_byte_is_the_same_data() {
    let (fake, mut session) = start().await;
    for case in cases() {
        let pieces: Vec<_> = case.data.chunks(1).collect();
        let answer = answer(&fake, &mut session, &case, &pieces).await;
        let cut = format!("{}\n  < {}", case.statement, escape(&case.data));
        assert!(same(&answer, &case.answer), "{cut}\n{}\n{answer}", case.answer);
    }
}
