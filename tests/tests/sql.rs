//! SQL behaviour: every script of `tests/sqllogictest`, on every layout, in every variant.
//!
//! A trial is named `LAYOUT/VARIANT/SCRIPT`. Scripts share one server per layout and run side by
//! side, which is why no two of them may create the same name. `STILLFRAME_LAYOUTS=1x1,2x2` chooses
//! other layouts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use stillframe_tests::script::{Product, Script, Session, Variant};
use stillframe_tests::{Client, Layout, Server};

/// One worker, and many hosts with several workers each, as processes.
const LAYOUTS: &str = "1x1,3x2p";

/// One layout's server, started by the first trial that needs it.
struct Shared {
    layout: Layout,
    server: OnceLock<Server>,
}

impl Shared {
    fn server(&self) -> &Server {
        self.server.get_or_init(|| Server::start_layout(self.layout))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest");
    let scripts: Vec<_> = Script::load_all(&folder).into_iter().map(Arc::new).collect();
    // A script's variants create the same names: one at a time on each server.
    let layouts = std::env::var("STILLFRAME_LAYOUTS").unwrap_or_else(|_| LAYOUTS.to_owned());
    let shared: Vec<_> = layouts
        .split(',')
        .map(|layout| layout.parse().unwrap_or_else(|error| panic!("{error}")))
        .map(|layout| Arc::new(Shared { layout, server: OnceLock::new() }))
        .collect();

    let mut trials = vec![Trial::test("names_are_unique", {
        let scripts = scripts.clone();
        move || names_are_unique(&scripts)
    })];
    for shared in &shared {
        let turns: Vec<_> = scripts.iter().map(|_| Arc::new(Mutex::new(()))).collect();
        for variant in Variant::ALL {
            for (script, turn) in scripts.iter().zip(&turns) {
                if script.variant(variant).is_some() {
                    trials.push(trial(shared, variant, script, turn));
                }
            }
        }
    }

    let conclusion = libtest_mimic::run(&arguments, trials);
    let mut healthy = !conclusion.has_failed();
    for shared in shared {
        let server = Arc::into_inner(shared).and_then(|shared| shared.server.into_inner());
        if let Some(Err(error)) = server.map(Server::stop) {
            eprintln!("{error}");
            healthy = false;
        }
    }
    if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn trial(
    shared: &Arc<Shared>,
    variant: Variant,
    script: &Arc<Script>,
    turn: &Arc<Mutex<()>>,
) -> Trial {
    let name = format!("{}/{variant}/{}", shared.layout, script.name);
    let (shared, script, turn) = (Arc::clone(shared), Arc::clone(script), Arc::clone(turn));
    Trial::test(name, move || {
        // Whoever panicked has reported it.
        let _turn = turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = shared.server();
        let address = server.address();
        let connect = || async move {
            let client = Client::connect(address).await?;
            Ok(match variant {
                Variant::AsWritten => Session::asking_again(client),
                _ => Session::new(client, Product::Stillframe),
            })
        };
        runtime.block_on(script.run(Product::Stillframe, variant, connect)).map_err(Failed::from)
    })
}

fn names_are_unique(scripts: &[Arc<Script>]) -> Result<(), Failed> {
    let mut owners = BTreeMap::new();
    for script in scripts {
        for name in script.created().into_iter().map(|created| created.name) {
            let owner = owners.entry(name.clone()).or_insert(&script.name);
            if *owner != &script.name {
                return Err(format!("both {owner} and {} create {name}", script.name).into());
            }
        }
    }
    Ok(())
}
