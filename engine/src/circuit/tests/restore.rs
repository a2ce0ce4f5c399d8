//! A circuit that goes on from the checkpoint of another one: what both compute keeps its state,
//! what is new is filled from it.

use std::path::Path;

use dbsp::circuit::{
    CircuitConfig, CircuitStorageConfig, ConcurrentRestoreOutcome, Mode, StorageConfig,
    StorageOptions,
};
use stillframe_protocol::Program;
use uuid::Uuid;

use super::cluster::Cluster;
use super::differential::{check, check_only, program, views};
use super::model::{Random, Tables, order};
use super::plans::Rows;

/// The configuration of a host with storage of its own.
fn persistent(
    directory: &Path,
    host: usize,
    config: CircuitConfig,
    checkpoint: Option<Uuid>,
    deferred: bool,
) -> CircuitConfig {
    let path = directory.join(format!("host{host}"));
    std::fs::create_dir_all(&path).unwrap();
    let storage = StorageConfig {
        path: path.to_string_lossy().into_owned(),
        cache: dbsp::circuit::StorageCacheConfig::default(),
    };
    let storage = CircuitStorageConfig::for_config(storage, StorageOptions::default())
        .unwrap()
        .with_init_checkpoint(checkpoint)
        .with_defer_restore(deferred);
    config.with_mode(Mode::Persistent).with_storage(Some(storage))
}

/// Views in another order, with some left out.
fn only(all: &[(&'static str, Rows)], keep: impl Fn(usize) -> bool) -> Vec<(&'static str, Rows)> {
    all.iter().enumerate().filter(|(place, _)| keep(*place)).map(|(_, view)| view.clone()).collect()
}

fn names(views: &[(&'static str, Rows)]) -> Vec<&'static str> {
    views.iter().map(|view| view.0).collect()
}

/// How many views of [`views`] read tables only: they may come in any order.
fn plain_views(all: &[(&'static str, Rows)]) -> usize {
    let tables = |rows: &Rows| rows.0.relations().iter().all(|relation| relation.0 < 100);
    all.iter().position(|(_, rows)| !tables(rows)).unwrap()
}

/// A filled cluster's checkpoints, by host.
fn checkpoints(
    shape: (usize, usize),
    directory: &Path,
    before: &Program,
    names: &[&'static str],
    model: &mut Tables,
    random: &mut Random,
) -> Vec<Uuid> {
    let path = directory.to_owned();
    let cluster = Cluster::start(shape, before, move |host, config| {
        persistent(&path, host, config, None, false)
    });
    for _ in 0..4 {
        model.change(random);
        cluster.step(&model.take_changes());
    }
    check(&cluster, before, names, model);
    cluster.on_all(|_, host| host.handle.checkpoint().run().unwrap().uuid)
}

fn restore(shape: (usize, usize), seed: u64) {
    let all = views();
    let plain = plain_views(&all);
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let mut model = Tables::new();
    let mut views = only(&all, |place| place < plain && place % 2 == 0);
    let (before, known) = (program(&views), names(&views));
    let mut checkpoint =
        checkpoints(shape, directory.path(), &before, &known, &mut model, &mut random);

    // More views, fewer views, the same again backwards; each from the checkpoint before.
    let mut backwards = only(&all, |place| place < plain && place % 3 != 0);
    backwards.reverse();
    for next in [all.clone(), only(&all, |place| place < plain && place % 3 == 0), backwards] {
        views = next;
        let program = program(&views);
        let path = directory.path().to_owned();
        let cluster = Cluster::start(shape, &program, move |host, config| {
            persistent(&path, host, config, Some(checkpoint[host]), false)
        });
        let mut steps = 0;
        while cluster.on_all(|_, host| host.handle.bootstrap_in_progress())[0] {
            cluster.step(&[]);
            steps += 1;
            assert!(steps < 100, "new views are filled in the end");
        }
        cluster.step(&[]);
        check(&cluster, &program, &names(&views), &model);
        for _ in 0..2 {
            model.change(&mut random);
            cluster.step(&model.take_changes());
            check(&cluster, &program, &names(&views), &model);
        }
        checkpoint = cluster.on_all(|_, host| host.handle.checkpoint().run().unwrap().uuid);
    }
}

#[test]
fn one_worker_goes_on_from_a_checkpoint() {
    restore((1, 1), 4);
}

#[test]
fn two_hosts_go_on_from_a_checkpoint() {
    restore((2, 2), 5);
}

/// New views are filled beside a circuit that goes on stepping.
fn fill_beside(shape: (usize, usize), seed: u64) {
    let all = views();
    let plain = plain_views(&all);
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let mut model = Tables::new();
    // An error that only new views raise, and that must be found in the past.
    model.insert(super::model::ORDERS, order(1000, None, Some(i32::MAX), Some(0.0), Some("x")));
    let program = program(&all);
    let is_old = |place: usize| place < plain && place.is_multiple_of(2);
    let old_names = names(&only(&all, is_old));
    // A view that stays keeps its number.
    let old_views = program.views.iter().enumerate().filter(|(place, _)| is_old(*place));
    let old_views = old_views.map(|(_, view)| view.clone()).collect();
    let before = Program { tables: program.tables.clone(), views: old_views };
    let checkpoint =
        checkpoints(shape, directory.path(), &before, &old_names, &mut model, &mut random);

    let path = directory.path().to_owned();
    let restored = checkpoint.clone();
    let cluster = Cluster::start(shape, &program, move |host, config| {
        persistent(&path, host, config, Some(restored[host]), true)
    });
    let outcomes = cluster.on_all(move |number, host| {
        let base = checkpoint[number].to_string().into();
        match host.handle.start_concurrent_bootstrap(base).unwrap() {
            ConcurrentRestoreOutcome::Concurrent(_) => None,
            other => Some(format!("{other:?}")),
        }
    });
    assert!(outcomes.iter().all(Option::is_none), "{outcomes:?}");
    let mut done = false;
    let mut steps = 0;
    while !done || steps < 3 {
        model.change(&mut random);
        cluster.step(&model.take_changes());
        check_only(&cluster, &program, &names(&all), &old_names, &model);
        if !done {
            done = cluster.on_all(|_, host| host.handle.step_bootstrap_circuit().unwrap())[0];
        }
        steps += 1;
        assert!(steps < 1000, "new views are filled in the end");
    }
    cluster.on_all(|_, host| host.handle.sync_concurrent_bootstrap().unwrap());
    while !cluster.on_all(|_, host| host.handle.step_bootstrap_circuit().unwrap())[0] {}
    cluster.on_all(|_, host| host.handle.complete_concurrent_bootstrap().unwrap());
    cluster.step(&[]);
    check(&cluster, &program, &names(&all), &model);
    model.change(&mut random);
    model.delete_order(1000);
    cluster.step(&model.take_changes());
    check(&cluster, &program, &names(&all), &model);
}

#[test]
fn one_worker_fills_views_beside() {
    fill_beside((1, 1), 6);
}

#[test]
fn two_hosts_fill_views_beside() {
    fill_beside((2, 2), 7);
}
