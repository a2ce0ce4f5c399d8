//! Which process has which place, for front ends: they ask places, and processes change.
//!
//! A process has a place in an epoch from its activation on, which comes before any request of that
//! epoch. What is asked of another epoch is refused here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use stillframe_protocol::{
    Activation, Command, Epoch, Host, HostError, HostId, Incarnation, RelationId, Report,
    Retention, RowError, ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};

/// The places of a cluster.
#[derive(Debug)]
pub struct Places {
    seats: Vec<Mutex<Option<Seat>>>,
}

/// Who has a place.
#[derive(Clone)]
struct Seat {
    epoch: Epoch,
    host: Arc<dyn Host>,
}

impl Places {
    /// So many places that nobody has.
    pub fn new(hosts: u32) -> Arc<Self> {
        Arc::new(Self { seats: (0..hosts).map(|_| Mutex::default()).collect() })
    }

    /// Each place as a host, for front ends: it can be asked, staged and scanned, not commanded.
    pub fn hosts(self: &Arc<Self>) -> Vec<Arc<dyn Host>> {
        let place = |place| Arc::new(Place { places: Arc::clone(self), place }) as Arc<dyn Host>;
        (0..self.seats.len()).map(place).collect()
    }

    /// A process, for the coordinator: it has the place for which it is activated.
    pub fn candidate(self: &Arc<Self>, host: Arc<dyn Host>) -> Arc<dyn Host> {
        Arc::new(Candidate { places: Arc::clone(self), host })
    }

    fn seat(&self, place: HostId, seat: Seat) {
        let Some(place) = self.seats.get(place.0 as usize) else { return };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.as_ref().is_none_or(|older| older.epoch <= seat.epoch) {
            *place = Some(seat);
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// Whoever has a place.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    place: usize,
}

impl Place {
    fn host(&self, asked: Epoch) -> Result<Arc<dyn Host>, HostError> {
        let seat = self.places.seats[self.place].lock().unwrap_or_else(PoisonError::into_inner);
        match &*seat {
            Some(seat) if seat.epoch == asked => Ok(Arc::clone(&seat.host)),
            seat => {
                let current = seat.as_ref().map(|seat| seat.epoch);
                Err(HostError::WrongEpoch { asked, current })
            }
        }
    }
}

fn not_here() -> HostError {
    HostError::Invalid("a place is not commanded, a process is".to_owned())
}

#[async_trait]
impl Host for Place {
    async fn activate(&self, _: Activation) -> Result<Report, HostError> {
        Err(not_here())
    }

    async fn execute(&self, _: Arc<Command>) -> Result<Report, HostError> {
        Err(not_here())
    }

    async fn retain(&self, _: Epoch, _: Retention) -> Result<(), HostError> {
        Err(not_here())
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        self.host(staging.epoch)?.stage(staging).await
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.host(epoch)?.unstage(epoch, transaction).await
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        self.host(request.epoch)?.scan(request).await
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        self.host(epoch)?.view_errors(epoch, step, view).await
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        self.host(epoch)?.statistics(epoch, step).await
    }
}

/// A process that may get a place.
#[derive(Debug)]
struct Candidate {
    places: Arc<Places>,
    host: Arc<dyn Host>,
}

#[async_trait]
impl Host for Candidate {
    async fn activate(&self, activation: Activation) -> Result<Report, HostError> {
        let (place, epoch) = (activation.host, activation.epoch);
        let report = self.host.activate(activation).await?;
        self.places.seat(place, Seat { epoch, host: Arc::clone(&self.host) });
        Ok(report)
    }

    async fn execute(&self, command: Arc<Command>) -> Result<Report, HostError> {
        self.host.execute(command).await
    }

    async fn retire(&self, incarnation: Incarnation, reason: String) -> Result<(), HostError> {
        self.host.retire(incarnation, reason).await
    }

    async fn retain(&self, epoch: Epoch, retention: Retention) -> Result<(), HostError> {
        self.host.retain(epoch, retention).await
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        self.host.stage(staging).await
    }

    async fn unstage(&self, epoch: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.host.unstage(epoch, transaction).await
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        self.host.scan(request).await
    }

    async fn view_errors(
        &self,
        epoch: Epoch,
        step: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        self.host.view_errors(epoch, step, view).await
    }

    async fn statistics(&self, epoch: Epoch, step: Step) -> Result<Statistics, HostError> {
        self.host.statistics(epoch, step).await
    }
}
