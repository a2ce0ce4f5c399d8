//! A client that holds a frame for a while and reads it again and again.

use std::time::Duration;

use super::super::session::{Over, Session};

/// Leases, reads, renews in time and reads the same, releases; sometimes forgets to.
pub(super) async fn read(session: &Session) -> Result<(), Over> {
    let lease = session.lease().await?;
    let mut renewed_at = session.now();
    let first = session.read(&lease).await?;
    for _ in 0..session.random(6) {
        let before = session.now();
        session.sleep(lease.time_to_live / 3).await;
        let lives = session.renew(&lease).await?;
        if !session.checker.borrow().lives(lease.grant.epoch) {
            return Err(Over);
        }
        // A host that stands still may have kept it for long.
        let in_time = renewed_at + lease.time_to_live / 2 > before;
        session.checker.borrow_mut().expect(lives || !in_time, || {
            format!("lease {} was renewed in time and is gone", lease.grant.lease)
        });
        if !lives {
            return Ok(());
        }
        renewed_at = session.now();
        let again = session.read(&lease).await?;
        let in_time = renewed_at + lease.time_to_live.mul_f64(0.7) > session.now();
        if !session.checker.borrow().lives(lease.grant.epoch) || (again.is_none() && !in_time) {
            return Err(Over);
        }
        session.checker.borrow_mut().expect(again == first, || {
            format!("step {} reads {first:?}, and then {again:?}", lease.grant.step)
        });
    }
    if session.once_in(8) {
        sleep_in(session, lease.time_to_live).await;
        let late = session.read(&lease).await?;
        session.checker.borrow_mut().expect(late.is_none() || late == first, || {
            format!("step {} reads {first:?}, and late {late:?}", lease.grant.step)
        });
        session.renew(&lease).await?;
    }
    if !session.once_in(10) {
        session.release(&lease);
    }
    Ok(())
}

/// Misses the time to renew a lease.
async fn sleep_in(session: &Session, time_to_live: Duration) {
    session.sleep(time_to_live.mul_f64(0.8)).await;
    session.think(time_to_live.as_millis() as u64).await;
}
