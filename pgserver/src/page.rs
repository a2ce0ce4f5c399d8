//! What the cluster is at, for people and for Prometheus: a page that refreshes itself, and `/metrics`.
//!
//! Both are read from the system tables, by SQL, as any client could.

mod metrics;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use stillframe_sql::{Database, Error};
use tokio::net::TcpListener;

use crate::table::Table;

/// Seconds after which the page asks again.
const REFRESH_SECONDS: u32 = 2;

/// What is shown, each under its name.
const SECTIONS: [(&str, &str); 7] = [
    ("Hosts", "SELECT * FROM stillframe.hosts ORDER BY host"),
    ("Workers", "SELECT * FROM stillframe.workers ORDER BY host, worker"),
    (
        "Views and tables",
        "SELECT schema, name, step, lag_steps, entries, sqlstate, error \
         FROM stillframe.views ORDER BY schema, name",
    ),
    (
        "Running queries",
        "SELECT pid, usename AS \"user\", application_name AS application, client_addr AS client, \
         state, now() - query_start AS since, query FROM pg_stat_activity \
         WHERE state <> 'idle' ORDER BY query_start",
    ),
    ("Jobs", "SELECT * FROM stillframe.jobs ORDER BY job"),
    ("Leases", "SELECT * FROM stillframe.leases ORDER BY step, lease"),
    (
        "Newest steps",
        "SELECT step, clock, transactions, took_us FROM stillframe.steps ORDER BY step DESC LIMIT 12",
    ),
];

/// Steps of the last ten seconds that are still remembered.
const RATE: &str = "SELECT count(*), coalesce(sum(transactions), 0), \
    coalesce(round(avg(took_us)), 0)::bigint, coalesce(max(step), 0) FROM stillframe.steps \
    WHERE clock > now() - interval '10 seconds'";

/// Serves the page for as long as this is polled.
///
/// # Errors
///
/// If the listener fails.
pub(crate) async fn serve(listener: TcpListener, database: Arc<Database>) -> io::Result<()> {
    let router =
        Router::new().route("/", get(page)).route("/metrics", get(exposition)).with_state(database);
    axum::serve(listener, router).await
}

async fn page(State(database): State<Arc<Database>>) -> Response {
    match render(&database).await {
        Ok(page) => Html(page.into_string()).into_response(),
        Err(error) => failed(&error),
    }
}

async fn exposition(State(database): State<Arc<Database>>) -> Response {
    match metrics::exposition(&database).await {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => failed(&error),
    }
}

/// A cluster that can't answer is unavailable, and says why.
fn failed(error: &Error) -> Response {
    let page = html! {
        (head())
        body { h1 { "Stillframe" } p class="error" { (error.state.code()) ": " (error.message) } }
    };
    (StatusCode::SERVICE_UNAVAILABLE, Html(page.into_string())).into_response()
}

async fn render(database: &Arc<Database>) -> Result<Markup, Error> {
    let rate = Table::read(database, RATE).await?;
    let rate = rate.rows.first().cloned().unwrap_or_default();
    let number = |place: usize| rate.get(place).cloned().flatten().unwrap_or_default();
    let mut sections = vec![];
    for (name, sql) in SECTIONS {
        sections.push((name, Table::read(database, sql).await?));
    }
    Ok(html! {
        (head())
        body {
            h1 { "Stillframe" }
            p {
                "step " strong { (number(3)) } " · in the last 10 seconds "
                strong { (number(0)) } " steps of " strong { (number(1)) }
                " transactions, " strong { (number(2)) } " µs each"
            }
            @for (name, table) in &sections { section { h2 { (name) } (rows(table)) } }
        }
    })
}

fn head() -> Markup {
    html! {
        (DOCTYPE)
        head {
            meta charset="utf-8";
            meta http-equiv="refresh" content=(REFRESH_SECONDS);
            title { "Stillframe" }
            style { (PreEscaped(include_str!("page/page.css"))) }
        }
    }
}

fn rows(table: &Table) -> Markup {
    html! {
        @if table.rows.is_empty() { p class="none" { "none" } } @else {
            table {
                tr { @for column in &table.columns { th { (column) } } }
                @for row in &table.rows {
                    tr { @for value in row { td { (value.as_deref().unwrap_or("")) } } }
                }
            }
        }
    }
}
