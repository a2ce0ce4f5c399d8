//! Circuits that are replaced while steps go on.

use stillframe_protocol::{Action, Filling, HostError, Program, RelationId, Table};

use super::views::{
    LATER, MEETINGS, QUOTIENTS, TOTALS, errors, meetings, program, quotients, totals, view,
};
use super::world::*;
use crate::cluster::Cluster;

const LATER_MEETINGS: RelationId = RelationId(100);

fn pump(cluster: &Cluster, number: u64) -> Action {
    Action::Pump { step: cluster.step(), number, slices: 1 }
}

async fn filling(cluster: &mut Cluster, action: Action) -> Filling {
    cluster.execute(cluster.command(action)).await.unwrap();
    let all = cluster.filling();
    assert!(
        all.iter().all(|filling| matches!(filling, Some(filling) if
        std::mem::discriminant(filling) == std::mem::discriminant(&all[0].unwrap()))),
        "{all:?}"
    );
    all[0].unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_views_move_while_new_ones_are_filled() {
    for (hosts, workers) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
        let mut cluster = cluster(hosts, workers).await;
        let old = [totals(TOTALS, 0), meetings(MEETINGS, 0)];
        cluster.replace(program(&old)).await.unwrap();
        let owners = ["ann", "bob", "cid"];
        let rows: Vec<_> =
            (0..40_000).map(|id| (id, owners[id as usize % 3], i64::from(id), 1)).collect();
        cluster.write(vec![accounts(&rows)]).await.unwrap();
        let lines: Vec<_> = (0..100).map(|id| (id * 7, "met", 1)).collect();
        cluster.write(vec![log(&lines)]).await.unwrap();

        let new = [totals(LATER, -1), meetings(LATER_MEETINGS, -1), quotients()];
        let both = program(&[&old[..], &new].concat());
        let replacement = cluster.replacement_online(both);
        let mut state = filling(&mut cluster, replacement).await;
        let mut turns = 0;
        while matches!(state, Filling::Goes { .. }) || turns < 3 {
            // Writes that the new views must not miss, insertions and deletions.
            let before = view(&cluster, TOTALS, 3).await;
            let id = 50_000 + turns;
            cluster
                .write(vec![
                    accounts(&[
                        (id, "dan", 1, 1),
                        (turns, owners[turns as usize % 3], turns.into(), -1),
                    ]),
                    log(&[(id, "met late", 1)]),
                ])
                .await
                .unwrap();
            assert_ne!(view(&cluster, TOTALS, 3).await, before);
            for hidden in [LATER, LATER_MEETINGS, QUOTIENTS] {
                let read = cluster.scan(&cluster.request(hidden, 2)).await;
                assert!(matches!(read, Err(HostError::UnknownRelation(_))));
            }
            let next = pump(&cluster, turns as u64);
            state = filling(&mut cluster, next).await;
            turns += 1;
            assert!(turns < 1000, "it is filled in the end");
        }
        assert!(matches!(state, Filling::Done { .. }));
        cluster.cut_over().await.unwrap();
        let compare = async |cluster: &Cluster| {
            assert_eq!(view(cluster, LATER, 3).await, view(cluster, TOTALS, 3).await);
            let met = view(cluster, MEETINGS, 5).await;
            let later = view(cluster, LATER_MEETINGS, 5).await;
            assert!(met.iter().all(|row| later.contains(row)));
            later.len() - met.len()
        };
        // Account 0, which the later view alone had met, is gone.
        assert_eq!(compare(&cluster).await, 0);
        assert_eq!(errors(&cluster, QUOTIENTS, cluster.step()).await, Vec::<String>::new());
        assert_eq!(view(&cluster, QUOTIENTS, 2).await.len(), 40_000);
        cluster.write(vec![accounts(&[(0, "ann", 0, 1)])]).await.unwrap();
        assert_eq!(compare(&cluster).await, 1);
        assert_eq!(errors(&cluster, QUOTIENTS, cluster.step()).await, ["22012 division by zero"]);

        // The circuit can be replaced again, either way.
        cluster.replace(program(&new)).await.unwrap();
        cluster.write(vec![accounts(&[(0, "ann", 0, -1)])]).await.unwrap();
        assert_eq!(view(&cluster, LATER, 3).await.len(), 4);
        let mut next = cluster.replacement_online(program(&[&new[..], &old].concat()));
        while !matches!(filling(&mut cluster, next).await, Filling::Done { .. }) {
            next = pump(&cluster, 0);
        }
        cluster.cut_over().await.unwrap();
        assert_eq!(compare(&cluster).await, 0);
        cluster.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_filled_beside_leaves_the_old_circuit() {
    let mut cluster = cluster(2, 1).await;
    cluster.replace(program(&[totals(TOTALS, 0)])).await.unwrap();
    cluster.write(vec![new_accounts(0, 10)]).await.unwrap();
    let table = Table { id: RelationId(40), schema: log_schema(), key_columns: 0 };
    let more = Program { tables: [tables(), vec![table]].concat(), views: vec![totals(TOTALS, 0)] };
    let replacement = cluster.replacement_online(more.clone());
    assert_eq!(filling(&mut cluster, replacement).await, Filling::Refused);
    cluster.write(vec![new_accounts(10, 20)]).await.unwrap();
    assert_eq!(view(&cluster, TOTALS, 3).await, ["somebody 20 190"]);
    cluster.replace(more).await.unwrap();
    assert_eq!(contents(&cluster, RelationId(40), cluster.step()).await, Vec::<String>::new());
    cluster.shut_down().await;
}
