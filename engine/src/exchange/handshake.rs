//! The first words on a connection between two hosts.

use std::io;

use stillframe_protocol::{Epoch, Fingerprint, Generation, HostId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Duplex;

/// Changes with the form of [`Hello`] and [`Answer`].
const MAGIC: [u8; 8] = *b"stillfr2";
const HELLO_BYTES: usize = 8 + 8 + 8 + 16 + 4 + 4;

/// What the connecting side says: which circuit it wants, and who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) epoch: Epoch,
    pub(super) generation: Generation,
    pub(super) circuit: Fingerprint,
    pub(super) from: HostId,
    pub(super) to: HostId,
}

/// What the accepting side answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// What follows is dbsp's.
    Welcome,
    /// Another circuit, another host or another program.
    Refused,
}

impl Hello {
    fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.0.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.circuit.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[44..].copy_from_slice(&self.to.0.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (circuit, rest) = rest.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, _) = rest.split_first_chunk()?;
        (*magic == MAGIC).then(|| Self {
            epoch: Epoch(u64::from_le_bytes(*epoch)),
            generation: Generation(u64::from_le_bytes(*generation)),
            circuit: Fingerprint(u128::from_le_bytes(*circuit)),
            from: HostId(u32::from_le_bytes(*from)),
            to: HostId(u32::from_le_bytes(*to)),
        })
    }

    /// Says hello and waits for the answer.
    pub(super) async fn introduce(self, stream: &mut impl Duplex) -> io::Result<Answer> {
        stream.write_all(&self.encode()).await?;
        stream.flush().await?;
        Ok(match stream.read_u8().await? {
            1 => Answer::Welcome,
            _ => Answer::Refused,
        })
    }

    /// Hears a hello and answers it; `None` if it wasn't a proper one, or isn't welcome.
    pub(super) async fn receive(
        stream: &mut impl Duplex,
        welcome: impl Fn(&Hello) -> bool,
    ) -> io::Result<Option<Hello>> {
        let mut bytes = [0; HELLO_BYTES];
        stream.read_exact(&mut bytes).await?;
        let hello = Self::decode(&bytes).filter(welcome);
        stream.write_u8(u8::from(hello.is_some())).await?;
        stream.flush().await?;
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello {
        epoch: Epoch(3),
        generation: Generation(7),
        circuit: Fingerprint(u128::MAX - 1),
        from: HostId(1),
        to: HostId(2),
    };

    #[test]
    fn a_hello_survives_the_wire() {
        assert_eq!(Hello::decode(&HELLO.encode()), Some(HELLO));
    }

    #[test]
    fn another_program_is_not_understood() {
        let mut bytes = HELLO.encode();
        bytes[7] = b'0';
        assert_eq!(Hello::decode(&bytes), None);
    }
}
