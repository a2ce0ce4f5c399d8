//! Messages of a connection: MessagePack with names, each behind its length, so that what both sides
//! know is understood even if one of them is of another build.

use std::io;
use std::marker::PhantomData;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

/// The longest message.
const LENGTH_MAX: usize = 1 << 30;

/// Reads messages of one type and writes messages of another.
#[derive(Debug)]
pub(crate) struct Codec<In, Out> {
    frames: LengthDelimitedCodec,
    messages: PhantomData<fn(Out) -> In>,
}

impl<In, Out> Codec<In, Out> {
    pub(crate) fn new() -> Self {
        let frames = LengthDelimitedCodec::builder().max_frame_length(LENGTH_MAX).new_codec();
        Self { frames, messages: PhantomData }
    }
}

impl<In: DeserializeOwned, Out> Decoder for Codec<In, Out> {
    type Item = In;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<In>> {
        self.frames.decode(bytes)?.map(|frame| unpack(&frame)).transpose()
    }
}

impl<In, Out: Serialize> Encoder<Out> for Codec<In, Out> {
    type Error = io::Error;

    fn encode(&mut self, message: Out, bytes: &mut BytesMut) -> io::Result<()> {
        self.frames.encode(pack(&message)?, bytes)
    }
}

/// A message as bytes.
pub(crate) fn pack<T: Serialize>(message: &T) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new().writer();
    // A plan nests as deep as the statement that it was made of.
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    serializer.unstable_set_max_depth(usize::MAX);
    message.serialize(&mut serializer).map_err(io::Error::other)?;
    Ok(bytes.into_inner().freeze())
}

/// The message of these bytes.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(usize::MAX);
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    T::deserialize(&mut deserializer).map_err(malformed)
}
