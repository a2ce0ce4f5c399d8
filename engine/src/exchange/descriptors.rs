//! The descriptors of dbsp's listeners.
//!
//! dbsp never lets go of the listener of a circuit with several hosts: the task that accepts
//! connections and the directory it delivers them to keep each other alive for ever. If the task
//! can't be ended ([`lost_tasks`](super::lost_tasks)), the descriptor's number is lost, but not what
//! it refers to. So all circuits of a host use two
//! numbers in turn: when a circuit has ended, its number is made to refer to an idle socket, on
//! which the lost task waits for ever; the circuit after the next is given the number again.
//!
//! Two, because a circuit and its successor live at the same time for a moment, and so that a task
//! that was about to accept when its circuit ended finds the idle socket and not another circuit's.

use std::io;
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use super::lost_tasks;

/// The two descriptors of one host.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// Listens where nobody connects.
    idle: TcpListener,
    /// Lost to dbsp: never closed, only made to refer to something else.
    lost: [Option<RawFd>; 2],
    turn: usize,
}

/// Stands for a listener that dbsp was given.
#[derive(Debug)]
pub(crate) struct Lent {
    place: usize,
    address: SocketAddr,
}

impl Descriptors {
    pub(crate) fn new() -> io::Result<Self> {
        let idle = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        idle.set_nonblocking(true)?;
        Ok(Self { idle, lost: [None; 2], turn: 0 })
    }

    /// The same listener under a number that will be lost to dbsp.
    pub(crate) fn lend(&mut self, listener: TcpListener) -> io::Result<(TcpListener, Lent)> {
        let lent = Lent { place: self.turn, address: listener.local_addr()? };
        let listener = match self.lost[lent.place] {
            None => {
                self.lost[lent.place] = Some(listener.as_raw_fd());
                listener
            }
            Some(number) => {
                refer(number, &listener)?;
                // SAFETY: the number is open and stands for a listener. The lost task that owned
                // it before will neither use nor close it: it waits for a socket that is gone.
                unsafe { TcpListener::from_raw_fd(number) }
            }
        };
        self.turn = 1 - self.turn;
        Ok((listener, lent))
    }

    /// The circuit has ended: closes its listener and takes the number back.
    pub(crate) fn reclaim(&mut self, lent: &Lent) -> io::Result<()> {
        match self.lost[lent.place] {
            Some(number) if refers(number, lent.address) => {
                if lost_tasks::end_listener(number) {
                    self.forget(lent);
                    return Ok(());
                }
                refer(number, &self.idle)
            }
            _ => {
                self.forget(lent);
                Ok(())
            }
        }
    }

    /// The circuit was never built: dbsp has closed the listener, and its number is anybody's.
    pub(crate) fn forget(&mut self, lent: &Lent) {
        self.lost[lent.place] = None;
    }
}

/// Whether a descriptor is still the listener of this address.
fn refers(number: RawFd, address: SocketAddr) -> bool {
    // SAFETY: not dropped, so nothing is closed; a number that isn't a socket is only an error.
    let listener = ManuallyDrop::new(unsafe { TcpListener::from_raw_fd(number) });
    listener.local_addr().is_ok_and(|local| local == address)
}

/// Makes a descriptor refer to what another one refers to, and closes what it referred to.
fn refer(number: RawFd, to: &TcpListener) -> io::Result<()> {
    // SAFETY: plain system calls; both descriptors are open.
    let result = unsafe {
        match libc::dup2(to.as_raw_fd(), number) {
            -1 => -1,
            number => libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC),
        }
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    /// What a lost task would see: the number, not owned.
    fn accepts(number: RawFd) -> bool {
        // SAFETY: open for the whole test, and not dropped.
        let listener = ManuallyDrop::new(unsafe { TcpListener::from_raw_fd(number) });
        listener.set_nonblocking(true).unwrap();
        listener.accept().is_ok()
    }

    fn bind() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn numbers_come_again_and_listeners_are_closed() {
        let mut descriptors = Descriptors::new().unwrap();
        let mut numbers = Vec::new();
        let mut old: Option<(Lent, SocketAddr, RawFd)> = None;
        for _ in 0..6 {
            let (listener, address) = bind();
            let (listener, lent) = descriptors.lend(listener).unwrap();
            let number = listener.as_raw_fd();
            std::mem::forget(listener);
            drop(TcpStream::connect(address).unwrap());
            assert!(accepts(number));

            if let Some((lent, address, number)) = old {
                descriptors.reclaim(&lent).unwrap();
                assert!(TcpStream::connect(address).is_err(), "the listener is closed");
                assert!(!accepts(number));
            }
            old = Some((lent, address, number));
            numbers.push(number);
        }
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(numbers[..2], numbers[2..4]);
        assert_eq!(numbers[..2], numbers[4..]);
    }

    #[test]
    fn a_number_that_was_closed_is_left_alone() {
        let mut descriptors = Descriptors::new().unwrap();
        let (listener, lent) = descriptors.lend(bind().0).unwrap();
        drop(listener);
        descriptors.reclaim(&lent).unwrap();
        assert_eq!(descriptors.lost, [None; 2]);
    }
}
