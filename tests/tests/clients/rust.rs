//! tokio-postgres: values in binary, statements, portals, COPY, notifications, cancel.

use std::error::Error;
use std::io::Cursor;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::{SinkExt, StreamExt, TryStreamExt, stream};
use stillframe_tests::Server;
use stillframe_tests::deadline::PATIENCE;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, IsolationLevel, NoTls};

type Done = Result<(), Box<dyn Error>>;

pub fn run(server: &Server) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let done = runtime.block_on(async { tokio::time::timeout(PATIENCE * 2, all(server)).await });
    done.expect("it ends in time").unwrap_or_else(|error| panic!("{error:?}\n{}", server.stderr()));
}

fn config(server: &Server) -> Config {
    let mut config = Config::new();
    config.host(server.address().ip().to_string()).port(server.address().port());
    config.user("stillframe").dbname("stillframe");
    config
}

async fn connect(server: &Server) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config(server).connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn all(server: &Server) -> Done {
    let mut client = connect(server).await?;
    values(&client).await?;
    statements(&client).await?;
    portals(&mut client).await?;
    transactions(&mut client).await?;
    copies(&client).await?;
    notifications(server, &client).await?;
    cancel(&client).await?;
    client.batch_execute("drop table rust_rows").await?;
    Ok(())
}

/// A value comes back as it went.
async fn same<T>(client: &Client, kind: &str, value: T) -> Done
where
    T: ToSql + Sync + PartialEq + std::fmt::Debug,
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    let sql = format!("select $1::{kind}, $2::{kind}");
    let row = client.query_one(&sql, &[&value, &None::<T>]).await?;
    assert_eq!(row.get::<_, T>(0), value, "{kind}");
    assert_eq!(row.get::<_, Option<T>>(1), None, "{kind}");
    Ok(())
}

async fn values(client: &Client) -> Done {
    same(client, "boolean", true).await?;
    same(client, "smallint", i16::MIN).await?;
    same(client, "integer", i32::MIN).await?;
    same(client, "bigint", i64::MAX).await?;
    same(client, "oid", u32::MAX).await?;
    same(client, "real", 0.1_f32).await?;
    same(client, "double precision", f64::MIN_POSITIVE).await?;
    same(client, "text", "añ🎉".to_owned()).await?;
    same(client, "varchar", String::new()).await?;
    same(client, "bytea", vec![0_u8, 255]).await?;
    let moment = UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
    same::<SystemTime>(client, "timestamptz", moment).await?;
    same::<SystemTime>(client, "timestamp", moment).await?;
    same(client, "integer[]", vec![Some(1), None, Some(-3)]).await?;
    same(client, "text[]", vec!["a\"b\\".to_owned(), String::new()]).await?;
    Ok(())
}

async fn statements(client: &Client) -> Done {
    client
        .batch_execute("create table rust_rows (id integer primary key, name text, at timestamptz)")
        .await?;
    let put = client.prepare("insert into rust_rows (id, name) values ($1, $2)").await?;
    assert_eq!(put.params(), [Type::INT4, Type::TEXT]);
    for id in 0..100 {
        assert_eq!(client.execute(&put, &[&id, &format!("row {id}")]).await?, 1);
    }
    let get = client.prepare("select id, name, at from rust_rows where id = any($1)").await?;
    assert_eq!(get.params(), [Type::INT4_ARRAY]);
    let columns = get.columns().iter().map(|c| (c.name(), c.type_().clone()));
    let expected = [("id", Type::INT4), ("name", Type::TEXT), ("at", Type::TIMESTAMPTZ)];
    assert!(columns.eq(expected));
    assert_eq!(client.query(&get, &[&vec![1, 2, 1000]]).await?.len(), 2);
    // Many at once, before the first is answered.
    let asked = (0..50).map(|id| async move {
        let row = client.query_one("select name from rust_rows where id = $1", &[&id]).await?;
        Ok::<_, tokio_postgres::Error>(row.get::<_, String>(0) == format!("row {id}"))
    });
    assert!(futures::future::try_join_all(asked).await?.into_iter().all(|is_right| is_right));
    for (sql, state) in [
        ("select 1/0", SqlState::DIVISION_BY_ZERO),
        ("insert into rust_rows values (1)", SqlState::UNIQUE_VIOLATION),
        ("select * from rust_nobody", SqlState::UNDEFINED_TABLE),
        ("selec", SqlState::SYNTAX_ERROR),
    ] {
        let error = client.execute(sql, &[]).await.expect_err(sql);
        assert_eq!(error.code(), Some(&state), "{sql}");
    }
    let error = client.execute("insert into rust_rows values (1)", &[]).await.expect_err("twice");
    let error = error.as_db_error().ok_or("an error of the server")?;
    assert_eq!((error.table(), error.constraint()), (Some("rust_rows"), Some("rust_rows_pkey")));
    Ok(())
}

async fn portals(client: &mut Client) -> Done {
    let transaction = client.transaction().await?;
    let portal = transaction.bind("select id from rust_rows order by id", &[]).await?;
    let mut seen = vec![];
    loop {
        let rows = transaction.query_portal(&portal, 33).await?;
        if rows.is_empty() {
            break;
        }
        seen.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
        // A statement between the portions changes nothing of them.
        transaction.execute("update rust_rows set name = name where id = 99", &[]).await?;
    }
    assert!(seen.into_iter().eq(0..100));
    transaction.rollback().await?;
    let mut rows =
        pin!(client.query_raw("select g from generate_series(1, 100000) g", [0_i32; 0]).await?);
    let mut count = 0;
    while rows.try_next().await?.is_some() {
        count += 1;
    }
    assert_eq!(count, 100_000);
    Ok(())
}

async fn transactions(client: &mut Client) -> Done {
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let mut outer = builder.start().await?;
    outer.execute("delete from rust_rows where id >= 50", &[]).await?;
    let inner = outer.transaction().await?;
    inner.execute("delete from rust_rows", &[]).await?;
    inner.rollback().await?;
    let row = outer.query_one("select count(*) from rust_rows", &[]).await?;
    assert_eq!(row.get::<_, i64>(0), 50);
    outer.rollback().await?;
    let reading = client.build_transaction().read_only(true).start().await?;
    let error = reading.execute("delete from rust_rows", &[]).await.expect_err("it only reads");
    assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    Ok(())
}

async fn copies(client: &Client) -> Done {
    client.execute("delete from rust_rows", &[]).await?;
    let sink = client.copy_in::<_, Cursor<Vec<u8>>>("copy rust_rows (id, name) from stdin");
    let mut sink = pin!(sink.await?);
    for id in 0..1000 {
        sink.send(Cursor::new(format!("{id}\tn\\t{id}\n").into_bytes())).await?;
    }
    assert_eq!(sink.finish().await?, 1000);
    let parts = client.copy_out("copy (select name from rust_rows where id = 7) to stdout").await?;
    let parts: Vec<_> = parts.try_collect().await?;
    assert_eq!(parts.concat(), b"n\\t7\n");

    let kinds = [Type::INT4, Type::TEXT, Type::TIMESTAMPTZ];
    let sink = client.copy_in("copy rust_rows from stdin (format binary)").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &kinds));
    for id in 1000..1100 {
        let name = (id % 2 == 0).then(|| format!("b{id}"));
        writer.as_mut().write(&[&id, &name, &UNIX_EPOCH]).await?;
    }
    assert_eq!(writer.finish().await?, 100);
    let out = client
        .copy_out("copy (select * from rust_rows where id >= 1000 order by id) to stdout binary");
    let mut rows = pin!(BinaryCopyOutStream::new(out.await?, &kinds));
    let mut id = 1000;
    while let Some(row) = rows.try_next().await? {
        assert_eq!(row.get::<i32>(0), id);
        assert_eq!(row.get::<Option<&str>>(1).is_some(), id % 2 == 0);
        assert_eq!(row.get::<SystemTime>(2), UNIX_EPOCH);
        id += 1;
    }
    assert_eq!(id, 1100);
    Ok(())
}

async fn notifications(server: &Server, client: &Client) -> Done {
    let (listener, mut connection) = config(server).connect(NoTls).await?;
    let (hears, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(told) = message {
                let _ = hears.send((told.channel().to_owned(), told.payload().to_owned()));
            }
        }
    });
    listener.batch_execute("listen rust_news").await?;
    client.batch_execute("begin; notify rust_news, 'never'; rollback").await?;
    client.batch_execute("notify rust_news, 'now'").await?;
    let told = heard.recv().await;
    assert_eq!(told, Some(("rust_news".to_owned(), "now".to_owned())));
    Ok(())
}

async fn cancel(client: &Client) -> Done {
    let token = client.cancel_token();
    let endless =
        "select count(*) from generate_series(1, 9000000) a, generate_series(1, 9000000) b";
    let canceled = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    };
    let (answer, canceled) = tokio::join!(client.query(endless, &[]), canceled);
    canceled?;
    assert_eq!(answer.expect_err("it never ends").code(), Some(&SqlState::QUERY_CANCELED));
    Ok(())
}
