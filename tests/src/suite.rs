//! Trials one after the other on one server, which must be as good as new after each.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Trial};

use crate::deadline::{PATIENCE, poll};
use crate::wire::{rows, sqlstate};
use crate::{Layout, Server, Wire};

/// A trial: its name and what it does with the server.
pub type Act = (&'static str, fn(&Server));

/// Runs the trials on a server of this layout; the exit code of the test.
pub fn run(layout: Layout, acts: Vec<Act>) -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let shared = Arc::new(OnceLock::new());
    let trials = acts.into_iter().map(|(name, act)| {
        let shared = Arc::clone(&shared);
        Trial::test(name, move || {
            let server = shared.get_or_init(|| Server::start_layout(layout));
            act(server);
            every_lease_is_free(server);
            Ok(())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let server = Arc::into_inner(shared).and_then(OnceLock::into_inner);
    if let Some(Err(error)) = server.map(Server::stop) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Panics if a lease is still held after a while, on a server where nobody does anything.
pub fn every_lease_is_free(server: &Server) {
    let mut wire = server.wire();
    // A step of its own, so that this session's lease can be told from any older one.
    answer(&mut wire, "create table if not exists lease_check (n int)");
    answer(&mut wire, "insert into lease_check values (1)");
    let held = || {
        let sql = "select step from stillframe.leases where step < stillframe.current_step()";
        let held = answer(&mut wire, sql);
        if held.is_empty() { Ok(()) } else { Err(held) }
    };
    let mut held = held;
    if poll(PATIENCE, || held().ok()).is_none() {
        panic!("leases that nobody holds: {:?}\n{}", held(), server.stderr());
    }
    answer(&mut wire, "drop table lease_check");
    wire.close();
}

/// The rows of a statement that must succeed.
pub fn answer(wire: &mut Wire, sql: &str) -> Vec<Vec<String>> {
    let messages = wire.query(sql);
    assert_eq!(sqlstate(&messages), None, "{sql}\n{messages:?}");
    rows(&messages)
}
