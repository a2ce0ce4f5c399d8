//! What a simulated client can do, as calls that are awaited. Time and chance are the wires'.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rand::Rng;
use stillframe_protocol::{
    Committed, CoordinatorError, Entry, Epoch, FrameId, Grant, HostId, LeaseId, Reservation,
    TransactionId,
};

use super::bank::{Contents, Write};
use super::checker::Checker;
use super::wires::{ClientId, Delivery, NotThere, Slot, ToHost, Wires};
use crate::machine::{Answer, Event, Reply, Request, Reserve, Ticket};

/// Who waits for which answer.
pub(super) type Answers = Rc<RefCell<BTreeMap<Ticket, (ClientId, Slot<Answer>)>>>;

/// The epoch is over, or something is gone with it: the client ends, or begins anew.
#[derive(Debug)]
pub(super) struct Over;

/// A client's connection.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: ClientId,
    pub(super) hosts: u32,
    pub(super) accounts: u64,
    pub(super) wires: Rc<RefCell<Wires>>,
    pub(super) checker: Rc<RefCell<Checker>>,
    pub(super) answers: Answers,
    /// Whether there is another epoch after this one.
    pub(super) begins_anew: bool,
    /// The transaction that is aborted when the client disappears.
    pub(super) open: Rc<RefCell<Option<TransactionId>>>,
}

/// A lease that a client holds.
pub(super) struct Held {
    pub(super) grant: Grant,
    pub(super) time_to_live: Duration,
}

impl Held {
    pub(super) fn frame(&self) -> FrameId {
        FrameId { epoch: self.grant.epoch, step: self.grant.step }
    }
}

impl Session {
    /// A number below a bound.
    pub(super) fn random(&self, below: u64) -> u64 {
        self.wires.borrow_mut().rng.random_range(0..below)
    }

    /// Whether something happens that does so once in `times`.
    pub(super) fn once_in(&self, times: u64) -> bool {
        self.random(times) == 0
    }

    pub(super) fn now(&self) -> Duration {
        self.wires.borrow().now
    }

    /// Whether to begin nothing new.
    pub(super) fn stops(&self) -> bool {
        !self.wires.borrow().faulty()
    }

    /// Waits for up to some milliseconds.
    pub(super) async fn think(&self, up_to_ms: u64) {
        let pause = Duration::from_micros(self.random(up_to_ms * 1000 + 1));
        self.sleep(pause).await;
    }

    /// A number that nobody had.
    pub(super) fn number(&self) -> u64 {
        self.wires.borrow_mut().number()
    }

    pub(super) async fn sleep(&self, pause: Duration) {
        let slot = Slot::default();
        let fill = fill(&slot, ());
        self.wires.borrow_mut().after(pause, Delivery::ToClient(self.client, fill));
        wait(&slot).await;
    }

    /// Asks the coordinator. To drop this says that nobody waits any more.
    pub(super) async fn ask(&self, request: Request) -> Answer {
        let slot = Slot::default();
        let ticket = self.send_request(request);
        self.answers.borrow_mut().insert(ticket, (self.client, Rc::clone(&slot)));
        let mut waiting = Waiting { wires: &self.wires, ticket: Some(ticket) };
        let answer = wait(&slot).await;
        waiting.ticket = None;
        answer
    }

    /// Sends a request, now and then twice.
    fn send_request(&self, request: Request) -> Ticket {
        let mut wires = self.wires.borrow_mut();
        let ticket = wires.ticket();
        if !matches!(request, Request::Reserve(_)) && wires.goes_wrong(|faults| faults.duplication)
        {
            let ticket = wires.ticket();
            let request = request.clone();
            wires.send(Delivery::ToMachine(Event::Requested { ticket, request }));
        }
        wires.send(Delivery::ToMachine(Event::Requested { ticket, request }));
        ticket
    }

    /// Leases the common step.
    pub(super) async fn lease(&self) -> Result<Held, Over> {
        let id = LeaseId(self.number().into());
        let time_to_live = Duration::from_millis(300 + self.random(700));
        match self.ask(Request::Lease { lease: id, time_to_live }).await {
            Ok(Reply::Granted(grant)) => {
                self.checker.borrow_mut().leased(&grant);
                Ok(Held { grant, time_to_live })
            }
            other => Err(self.over(other)),
        }
    }

    /// Prolongs a lease; whether it lives.
    pub(super) async fn renew(&self, lease: &Held) -> Result<bool, Over> {
        let leases = vec![(lease.grant.lease, lease.grant.step)];
        match self.ask(Request::Renew { leases }).await {
            Ok(Reply::Renewed(gone)) => Ok(gone.is_empty()),
            other => Err(self.over(other)),
        }
    }

    pub(super) fn release(&self, lease: &Held) {
        self.tell(Event::Released { lease: lease.grant.lease });
    }

    /// Reads everything at a leased step; none if the lease has expired.
    pub(super) async fn read(&self, lease: &Held) -> Result<Option<Contents>, Over> {
        let mut contents = Contents::default();
        let first = self.random(u64::from(self.hosts)) as u32;
        for place in 0..self.hosts {
            let host = HostId((first + place) % self.hosts);
            let slot = Slot::default();
            let frame = lease.frame();
            let scan = ToHost::Scan {
                lease: lease.grant.lease,
                frame,
                client: self.client,
                slot: Rc::clone(&slot),
            };
            if !self.wires.borrow_mut().send_to_member(frame.epoch, host, scan) {
                return Err(Over);
            }
            match wait(&slot).await {
                Ok(Some(part)) => contents.merge(&part),
                Ok(None) => return Ok(None),
                Err(NotThere) => return Err(Over),
            }
        }
        self.checker.borrow_mut().read(lease.frame(), &contents);
        Ok(Some(contents))
    }

    /// Opens a transaction.
    pub(super) fn begin(&self) -> TransactionId {
        let id = TransactionId(self.number().into());
        *self.open.borrow_mut() = Some(id);
        id
    }

    pub(super) async fn reserve(
        &self,
        transaction: TransactionId,
        frame: Option<FrameId>,
        entries: Vec<Entry>,
        timeout: Option<Duration>,
    ) -> Result<Result<Reservation, CoordinatorError>, Over> {
        let reserve = Reserve { transaction, frame, entries, timeout };
        match self.ask(Request::Reserve(reserve)).await {
            Ok(Reply::Reserved(reservation)) => Ok(Ok(reservation)),
            Err(error @ (CoordinatorError::Deadlock | CoordinatorError::LockTimeout)) => {
                Ok(Err(error))
            }
            other => Err(self.over(other)),
        }
    }

    /// Stages writes and commits.
    pub(super) async fn commit(
        &self,
        transaction: TransactionId,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<Committed, Over> {
        self.checker.borrow_mut().stages(transaction, epoch, &writes);
        let mut by_host = BTreeMap::<HostId, Vec<Write>>::new();
        for (host, write) in writes.iter().flat_map(|write| write.shards(self.hosts)) {
            by_host.entry(host).or_default().push(write);
        }
        let staged_on = by_host.keys().copied().collect();
        for (host, writes) in by_host {
            let slot = Slot::default();
            let stage = ToHost::Stage(epoch, transaction, writes, self.client, Rc::clone(&slot));
            let sent = self.wires.borrow_mut().send_to_member(epoch, host, stage);
            if !sent || !wait(&slot).await {
                self.abort(transaction);
                return Err(Over);
            }
        }
        match self.ask(Request::Commit { transaction, epoch, staged_on }).await {
            Ok(Reply::Committed(committed)) => {
                *self.open.borrow_mut() = None;
                Ok(committed)
            }
            other => Err(self.over(other)),
        }
    }

    pub(super) fn abort(&self, transaction: TransactionId) {
        *self.open.borrow_mut() = None;
        self.tell(Event::Aborted { transaction });
    }

    /// What to do after an answer that doesn't fit.
    pub(super) fn over(&self, answer: Answer) -> Over {
        self.checker.borrow_mut().refused(&answer);
        Over
    }

    fn tell(&self, event: Event) {
        let mut wires = self.wires.borrow_mut();
        if wires.goes_wrong(|faults| faults.duplication) {
            wires.send(Delivery::ToMachine(event.clone()));
        }
        wires.send(Delivery::ToMachine(event));
    }
}

/// Tells the coordinator, if it is dropped, that nobody waits.
struct Waiting<'a> {
    wires: &'a RefCell<Wires>,
    ticket: Option<Ticket>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let event = Event::Cancelled { ticket };
            self.wires.borrow_mut().send(Delivery::ToMachine(event));
        }
    }
}

/// Puts a value where a client waits for it.
pub(super) fn fill<T: 'static>(slot: &Slot<T>, value: T) -> Box<dyn FnOnce()> {
    let slot = Rc::clone(slot);
    Box::new(move || *slot.borrow_mut() = Some(value))
}

async fn wait<T>(slot: &Slot<T>) -> T {
    poll_fn(|_| slot.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)).await
}
