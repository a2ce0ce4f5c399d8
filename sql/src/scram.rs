//! SCRAM-SHA-256 (RFC 5802, RFC 7677): how a client shows that it knows a password of which the server
//! keeps only what proves it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Error, SqlState};

/// The name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// How often a password is hashed.
const ITERATIONS: u32 = 4096;

type Key = [u8; 32];

/// What is kept of a password: enough to see that somebody knows it, too little to be them.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl Verifier {
    /// The verifier of a password.
    pub fn of_password(password: &str) -> Self {
        Self::of_salted(password, Uuid::new_v4().into_bytes().to_vec())
    }

    fn of_salted(password: &str, salt: Vec<u8>) -> Self {
        // As in PostgreSQL, what can't be normalised is taken as it is.
        let normal = stringprep::saslprep(password).unwrap_or(password.into());
        let salted = salted(normal.as_bytes(), &salt, ITERATIONS);
        let stored_key = Sha256::digest(sign(&salted, &[b"Client Key"])).into();
        let server_key = sign(&salted, &[b"Server Key"]);
        Self { iterations: ITERATIONS, salt, stored_key, server_key }
    }

    /// Reads a verifier as it is shown; none if the text is another one: a password.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (salting, keys) = rest.split_once('$')?;
        let (iterations, salt) = salting.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(STANDARD.decode(text).ok()?).ok();
        Some(Self {
            iterations: iterations.parse().ok().filter(|iterations| *iterations > 0)?,
            salt: STANDARD.decode(salt).ok()?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// A verifier that nobody can satisfy, always the same for a name: who asks for a name that
    /// isn't there learns nothing by it.
    pub fn of_nobody(name: &str, secret: &[u8]) -> Self {
        let salt = sign(secret, &[name.as_bytes()])[..16].to_vec();
        let nothing = sign(secret, &[b"nobody", name.as_bytes()]);
        Self { iterations: ITERATIONS, salt, stored_key: nothing, server_key: nothing }
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iterations, salt, stored_key, server_key } = self;
        let [salt, stored, server] =
            [salt.as_slice(), stored_key, server_key].map(|bytes| STANDARD.encode(bytes));
        write!(f, "{MECHANISM}${iterations}:{salt}${stored}:{server}")
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of it is for logs.
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

/// An exchange of which the client has said its first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// What the client's last message must repeat.
    header: String,
    nonce: String,
    /// The messages so far, of which both sides sign all.
    said: String,
}

impl Exchange {
    /// Begins with the client's first message; returns what to answer.
    ///
    /// # Errors
    ///
    /// 08P01 if the message is no such one.
    pub fn begin(first: &[u8], verifier: Verifier) -> Result<(Self, String), Error> {
        let first = std::str::from_utf8(first).map_err(|_| malformed())?;
        let mut parts = first.splitn(3, ',');
        let (binding, identity) = (parts.next(), parts.next());
        let bare = parts.next().ok_or_else(malformed)?;
        // No channel is bound, since none was offered; nobody acts as somebody else.
        let header = match (binding, identity) {
            (Some(binding @ ("n" | "y")), Some("")) => format!("{binding},,"),
            _ => return Err(malformed()),
        };
        let theirs = bare.split(',').find_map(|field| field.strip_prefix("r="));
        let theirs = theirs
            .filter(|nonce| !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic()));
        let nonce = format!("{}{}", theirs.ok_or_else(malformed)?, Uuid::new_v4().simple());
        let salt = STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let said = format!("{bare},{answer}");
        Ok((Self { verifier, header, nonce, said }, answer))
    }

    /// Ends with the client's last message; returns what to answer, or none if it doesn't know the
    /// password.
    ///
    /// # Errors
    ///
    /// 08P01 if the message is no such one.
    pub fn end(self, last: &[u8]) -> Result<Option<String>, Error> {
        let last = std::str::from_utf8(last).map_err(|_| malformed())?;
        let (unproven, proof) = last.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut fields = unproven.split(',');
        let binding = fields.next().and_then(|field| field.strip_prefix("c="));
        let nonce = fields.next().and_then(|field| field.strip_prefix("r="));
        if binding != Some(STANDARD.encode(&self.header).as_str()) || nonce != Some(&self.nonce) {
            return Err(malformed());
        }
        let proof = STANDARD.decode(proof).ok().and_then(|proof| Key::try_from(proof).ok());
        let mut client_key = proof.ok_or_else(malformed)?;
        let said = format!("{},{unproven}", self.said);
        let signature = sign(&self.verifier.stored_key, &[said.as_bytes()]);
        client_key.iter_mut().zip(signature).for_each(|(byte, other)| *byte ^= other);
        let found: Key = Sha256::digest(client_key).into();
        if !are_equal(&found, &self.verifier.stored_key) {
            return Ok(None);
        }
        let signature = sign(&self.verifier.server_key, &[said.as_bytes()]);
        Ok(Some(format!("v={}", STANDARD.encode(signature))))
    }
}

/// In a time that doesn't tell where they differ.
fn are_equal(one: &Key, other: &Key) -> bool {
    one.iter().zip(other).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn malformed() -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, "malformed SCRAM message")
}

fn sign(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// `Hi` of RFC 5802.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let keyed = Hmac::<Sha256>::new_from_slice(password).expect("a key of any length will do");
    let next = |parts: &[&[u8]]| -> Key {
        let mut mac = keyed.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    };
    let mut last = next(&[salt, &1_u32.to_be_bytes()]);
    let mut all = last;
    for _ in 1..iterations {
        last = next(&[&last]);
        all.iter_mut().zip(last).for_each(|(byte, other)| *byte ^= other);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client does who knows a password.
    fn proof(password: &str, bare: &str, answer: &str, unproven: &str) -> String {
        let field = |name: &str| {
            answer.split(',').find_map(|field| field.strip_prefix(name)).unwrap().to_owned()
        };
        let salted = salted(
            password.as_bytes(),
            &STANDARD.decode(field("s=")).unwrap(),
            field("i=").parse().unwrap(),
        );
        let client_key = sign(&salted, &[b"Client Key"]);
        let stored_key: Key = Sha256::digest(client_key).into();
        let said = format!("{bare},{answer},{unproven}");
        let signature = sign(&stored_key, &[said.as_bytes()]);
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        format!("{unproven},p={}", STANDARD.encode(proof))
    }

    fn exchange(verifier: Verifier, password: &str) -> Option<String> {
        let bare = "n=,r=abc";
        let (exchange, answer) =
            Exchange::begin(format!("n,,{bare}").as_bytes(), verifier).unwrap();
        let nonce = answer.split(',').next().unwrap();
        let last = proof(password, bare, &answer, &format!("c=biws,{nonce}"));
        exchange.end(last.as_bytes()).unwrap()
    }

    #[test]
    fn only_the_password_opens() {
        let verifier = Verifier::of_password("pencil");
        assert!(exchange(verifier.clone(), "pencil").unwrap().starts_with("v="));
        assert_eq!(exchange(verifier, "Pencil"), None);
        assert_eq!(exchange(Verifier::of_nobody("x", b"secret"), "pencil"), None);
    }

    /// The example of RFC 7677.
    #[test]
    fn keys_are_those_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::of_salted("pencil", salt);
        let exchange = Exchange {
            verifier,
            header: "n,,".to_owned(),
            nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned(),
            said: "n=user,r=rOprNGfwEbeRWgbNEkqO,\
                   r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                   s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
                .to_owned(),
        };
        let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = exchange.end(last).unwrap().unwrap();
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_verifier_is_shown_and_read() {
        let verifier = Verifier::of_password("añ🎉");
        let shown = verifier.to_string();
        assert!(shown.starts_with("SCRAM-SHA-256$4096:"));
        assert!(Verifier::parse(&shown) == Some(verifier));
        for other in ["", "pencil", "SCRAM-SHA-256$4096:x", "SCRAM-SHA-256$0:AAAA$AAAA:AAAA"] {
            assert!(Verifier::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        let verifier = Verifier::of_password("x");
        for first in
            ["", "n,,", "n,,n=", "n,,r=", "p=tls-unique,,r=a", "n,a=x,r=a", "x,,r=a", "n,,r=a b"]
        {
            let begun = Exchange::begin(first.as_bytes(), verifier.clone());
            assert_eq!(begun.unwrap_err().state, SqlState::PROTOCOL_VIOLATION, "{first}");
        }
        let good = |nonce: &str| format!("c=biws,{nonce},p=AAAA");
        for last in ["", "c=biws", "c=biws,r=other,p=AAAA", "c=eSws,r=,p=AAAA"] {
            let (exchange, _) = Exchange::begin(b"n,,r=a", verifier.clone()).unwrap();
            assert!(exchange.end(last.as_bytes()).is_err(), "{last}");
        }
        let (exchange, answer) = Exchange::begin(b"n,,r=a", verifier).unwrap();
        let nonce = answer.split(',').next().unwrap().to_owned();
        assert!(exchange.end(good(&nonce).as_bytes()).is_err());
    }
}
