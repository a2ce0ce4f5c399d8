//! What clients ask of the catalogs, over a cluster in memory.

use futures::StreamExt;

use crate::fake::{Fake, run};
use crate::{Error, Response, Session, TextColumn};

/// Rows as text, and the OIDs of the columns' types.
struct Answer {
    types: Vec<u32>,
    rows: Vec<Vec<Option<String>>>,
}

async fn ask(session: &mut Session, sql: &str) -> Result<Answer, Error> {
    let statement = session.parse(sql)?.remove(0);
    let prepared = session.prepare(statement, &[]).await?;
    let Response::Rows(mut rows) = session.execute(&prepared, vec![]).await? else {
        panic!("{sql} returns no rows");
    };
    let types = rows.columns.iter().map(|column| column.kind.oid()).collect();
    let mut texts = vec![];
    while let Some(batch) = rows.batches.next().await {
        let batch = batch?;
        let columns: Vec<_> = rows
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(column, array)| {
                TextColumn::new(&column.kind, array, &session.text_format()).unwrap()
            })
            .collect();
        texts.extend((0..batch.num_rows()).map(|row| {
            let text = |column: &TextColumn| {
                let mut text = vec![];
                column.write(row, &mut text).then(|| String::from_utf8(text).unwrap())
            };
            columns.iter().map(text).collect::<Vec<_>>()
        }));
    }
    Ok(Answer { types, rows: texts })
}

/// Each row with its values between bars.
async fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = ask(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).rows;
    let shown = |row: Vec<Option<String>>| {
        row.into_iter().map(|value| value.unwrap_or_default()).collect::<Vec<_>>().join("|")
    };
    rows.into_iter().map(shown).collect()
}

async fn session() -> Session {
    let mut session = Session::new(Fake::start(2, 2).1, "alice");
    let setup = "create table orders (id int primary key, name varchar(40) not null, \
                 price numeric(10,2), made timestamp, ok boolean);
                 create view cheap as select id, name from orders where price < 10;
                 create materialized view totals as
                     select name, count(*) as n, sum(price) as total from orders group by name";
    run(&mut session, setup).await.unwrap();
    session
}

async fn oid(session: &mut Session, name: &str) -> String {
    let sql = format!("select oid from pg_class where relname = '{name}'");
    texts(session, &sql).await.remove(0)
}

#[tokio::test]
async fn psql_s_questions_are_answered_with_its_types() {
    let mut session = session().await;
    let orders = oid(&mut session, "orders").await;
    let totals = oid(&mut session, "totals").await;
    let mut wrong = vec![];
    for question in include_str!("psql.sql").split("\n---\n") {
        let question = question.replace("{{orders}}", &orders).replace("{{totals}}", &totals);
        let (sql, types) = question.split_once("\n-- => ").unwrap();
        let types: Vec<u32> = types.split_whitespace().map(|oid| oid.parse().unwrap()).collect();
        match ask(&mut session, sql).await {
            Err(error) => wrong.push(format!("{sql}\n  {error:?}")),
            Ok(answer) if answer.types != types => {
                wrong.push(format!("{sql}\n  {:?}, expected {types:?}", answer.types));
            }
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[tokio::test]
async fn what_others_do_is_for_superusers() {
    let database = Fake::start(1, 1).1;
    let mut owner = Session::new(database.clone(), "owner").of_process(1);
    let mut guest = Session::new(database.clone(), "guest").restricted().of_process(2);
    let asked =
        "select usename, coalesce(state, 'hidden'), query from pg_stat_activity order by pid";
    texts(&mut owner, "select 1 as secret").await;
    let seen = texts(&mut guest, asked).await;
    assert_eq!(
        seen,
        ["owner|hidden|<insufficient privilege>".to_owned(), format!("guest|active|{asked}"),]
    );
    owner.transaction_status();
    let own = format!("guest|active|{asked}");
    assert_eq!(texts(&mut owner, asked).await, [format!("owner|active|{asked}"), own]);
    drop(guest);
    assert_eq!(texts(&mut owner, asked).await, [format!("owner|active|{asked}")]);
}
