//! Hosts that register, are lost, and come again.

use super::super::{Registrar, serve};
use super::*;
use crate::cluster::Requirements;
use stillframe_protocol::{Incarnation, Registration, Standing};

fn cluster_of_processes(hosts: u32, patience: Duration) -> (Arc<dyn Coordinator>, Registrar) {
    let requirements = Requirements {
        cluster: "main".into(),
        build: "1".into(),
        hosts,
        workers: 2,
        silence_max: Duration::from_secs(5),
    };
    serve(options(patience), requirements)
}

async fn register(
    registrar: &Registrar,
    incarnation: u128,
    place: u32,
    host: &Arc<FakeHost>,
) -> Standing {
    let registration = Registration {
        cluster: "main".into(),
        build: "1".into(),
        incarnation: Incarnation(incarnation),
        place: Some(HostId(place)),
        workers: 2,
        fresh: true,
        newest_epoch: Epoch(0),
    };
    registrar.register(registration, Arc::clone(host) as Arc<dyn Host>).await.unwrap()
}

#[tokio::test]
async fn an_epoch_begins_when_all_hosts_have_registered_and_ends_with_one_of_them() {
    let (coordinator, registrar) = cluster_of_processes(2, LONG);
    let [first, second, again, third] = [(); 4].map(|()| FakeHost::new());
    let standing = register(&registrar, 11, 0, &first).await;
    assert!(matches!(standing, Standing::Waits { place: Some(HostId(0)), .. }));
    let early = coordinator.lease(LeaseId(1), LONG);
    register(&registrar, 21, 1, &second).await;
    assert_eq!(early.await.unwrap().epoch, EPOCH);
    assert_eq!(
        register(&registrar, 11, 0, &first).await,
        Standing::Member { epoch: EPOCH, place: HostId(0) }
    );
    let committed = coordinator.commit(TransactionId(1), EPOCH, everywhere()).await;
    assert_eq!(committed.unwrap().step, Step(1));

    // A commit is under way when a process takes the place of another.
    second.run(false);
    let commit = coordinator.commit(TransactionId(2), EPOCH, everywhere());
    let come = async {
        eventually("step 2 is sent", || first.state().commands.len() == 3).await;
        register(&registrar, 22, 1, &again).await
    };
    let (commit, standing) = tokio::join!(commit, come);
    assert!(matches!(commit, Err(CoordinatorError::Unknown(_))), "{commit:?}");
    assert!(matches!(standing, Standing::Waits { place: Some(HostId(1)), .. }));
    eventually("both retire", || {
        first.state().retired == Some(Incarnation(11))
            && second.state().retired == Some(Incarnation(21))
    })
    .await;
    let standing = register(&registrar, 11, 0, &first).await;
    assert!(matches!(standing, Standing::Retires { .. }));
    let stale = coordinator.reserve(TransactionId(3), frame(1), key(1), None).await;
    assert!(matches!(stale, Err(CoordinatorError::NotReady(_))));

    register(&registrar, 12, 0, &third).await;
    let grant = coordinator.lease(LeaseId(2), LONG).await.unwrap();
    assert_eq!((grant.epoch, grant.step), (Epoch(2), Step(0)));
    // The driver has let go of those that have retired.
    eventually("they are free", || {
        [&first, &second].into_iter().all(|host| Arc::strong_count(host) == 1)
    })
    .await;
}

#[tokio::test]
async fn who_waits_for_a_silent_host_is_told_so_and_the_epoch_goes_on() {
    let (coordinator, registrar) = cluster_of_processes(1, Duration::from_millis(60));
    let host = FakeHost::new();
    register(&registrar, 1, 0, &host).await;
    assert_eq!(lease_step(&coordinator, 1).await, Step(0));
    host.run(false);
    let on = BTreeSet::from([HostId(0)]);
    let first = coordinator.commit(TransactionId(1), EPOCH, on.clone());
    let second = coordinator.commit(TransactionId(2), EPOCH, on.clone());
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Err(CoordinatorError::Unknown(_))), "{first:?}");
    assert!(matches!(second, Err(CoordinatorError::NotReady(_))), "{second:?}");
    host.run(true);
    let again = coordinator.commit(TransactionId(1), EPOCH, on.clone()).await;
    assert_eq!(again.unwrap().step, Step(1));
    let withdrawn = coordinator.commit(TransactionId(2), EPOCH, on).await;
    assert_eq!(withdrawn, Err(CoordinatorError::UnknownTransaction));
    eventually("unstaged", || host.state().unstaged == [TransactionId(2)]).await;
}

#[tokio::test]
async fn a_host_that_is_reached_in_another_way_is_asked_again_that_way() {
    let (coordinator, registrar) = cluster_of_processes(1, LONG);
    let [old, new] = [(); 2].map(|()| FakeHost::new());
    old.state().unreachable = u32::MAX;
    register(&registrar, 1, 0, &old).await;
    let standing = register(&registrar, 1, 0, &new).await;
    assert!(matches!(standing, Standing::Member { .. }));
    assert_eq!(lease_step(&coordinator, 1).await, Step(0));
}
