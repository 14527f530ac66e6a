//! Frames: the units of a SPDY connection.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::block::{Headers, Packer, Unpacker};
use crate::StreamError;

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;

const FIN: u8 = 1;
const UNIDIRECTIONAL: u8 = 2;
const HEAD: usize = 8;
/// Control frames are small; a larger one is an attack or nonsense.
const MAX_CONTROL: usize = 64 * 1024;
const STREAM_MASK: u32 = 0x7fff_ffff;

/// Status of a reset: the stream was refused.
pub(crate) const REFUSED: u32 = 3;

/// A frame as read or to be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    SynStream {
        id: u32,
        fin: bool,
        unidirectional: bool,
        headers: Headers,
    },
    SynReply {
        id: u32,
        fin: bool,
        headers: Headers,
    },
    Reset {
        id: u32,
        status: u32,
    },
    /// Settings do not matter to anybody here.
    Settings,
    Ping(u32),
    GoAway {
        last: u32,
        status: u32,
    },
    Headers {
        id: u32,
        fin: bool,
        headers: Headers,
    },
    WindowUpdate {
        id: u32,
        delta: u32,
    },
    /// A part of a data frame: long ones are handed on as they come in.
    Data {
        id: u32,
        fin: bool,
        data: Bytes,
    },
}

/// Reads frames from bytes.
pub(crate) struct Decoder {
    unpacker: Unpacker,
    /// The data frame being read: stream, last flag, bytes to come.
    open: Option<(u32, bool, usize)>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { unpacker: Unpacker::new(), open: None }
    }

    /// Takes the next frame off `buf`; `None` if more bytes are needed.
    ///
    /// The buffer never needs to hold more than one control frame.
    pub(crate) fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, StreamError> {
        if let Some((id, fin, left)) = self.open {
            return Ok(self.data(buf, id, fin, left));
        }
        let Some(head) = buf.first_chunk::<HEAD>() else { return Ok(None) };
        let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let flags = head[4];
        let len = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        if first & !STREAM_MASK == 0 {
            if first == 0 {
                return Err(StreamError::protocol("data for stream 0"));
            }
            buf.advance(HEAD);
            return Ok(self.data(buf, first, flags & FIN != 0, len));
        }
        if (first >> 16) as u16 & 0x7fff != VERSION {
            return Err(StreamError::protocol("not SPDY version 3"));
        }
        if len > MAX_CONTROL {
            return Err(StreamError::protocol("control frame is too large"));
        }
        if buf.len() < HEAD + len {
            return Ok(None);
        }
        buf.advance(HEAD);
        let body = buf.split_to(len).freeze();
        self.control(first as u16, flags, body).map(Some)
    }

    fn data(&mut self, buf: &mut BytesMut, id: u32, fin: bool, left: usize) -> Option<Frame> {
        let take = buf.len().min(left);
        if take == 0 && left > 0 {
            self.open = Some((id, fin, left));
            return None;
        }
        let data = buf.split_to(take).freeze();
        self.open = (take < left).then_some((id, fin, left - take));
        Some(Frame::Data { id, fin: fin && take == left, data })
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, StreamError> {
        let fixed = match kind {
            SYN_STREAM => 10,
            SYN_REPLY | HEADERS | PING => 4,
            RST_STREAM | GOAWAY | WINDOW_UPDATE => 8,
            SETTINGS => 4,
            _ => return Err(StreamError::protocol(format!("unknown frame type {kind}"))),
        };
        if body.len() < fixed {
            return Err(StreamError::protocol("control frame is cut short"));
        }
        let fin = flags & FIN != 0;
        let id = body.get_u32() & STREAM_MASK;
        Ok(match kind {
            SYN_STREAM => {
                // Associated stream, priority and slot mean nothing here.
                body.advance(6);
                let headers = self.unpacker.unpack(&body)?;
                Frame::SynStream { id, fin, unidirectional: flags & UNIDIRECTIONAL != 0, headers }
            }
            SYN_REPLY => Frame::SynReply { id, fin, headers: self.unpacker.unpack(&body)? },
            HEADERS => Frame::Headers { id, fin, headers: self.unpacker.unpack(&body)? },
            RST_STREAM => Frame::Reset { id, status: body.get_u32() },
            GOAWAY => Frame::GoAway { last: id, status: body.get_u32() },
            WINDOW_UPDATE => Frame::WindowUpdate { id, delta: body.get_u32() & STREAM_MASK },
            PING => Frame::Ping(id),
            _ => Frame::Settings,
        })
    }
}

/// Writes frames as bytes.
pub(crate) struct Encoder {
    packer: Packer,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { packer: Packer::new() }
    }

    /// Appends a frame to `out`.
    pub(crate) fn encode(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), StreamError> {
        let flag = |fin: bool| if fin { FIN } else { 0 };
        match frame {
            Frame::SynStream { id, fin, unidirectional, headers } => {
                let block = self.packer.pack(headers)?;
                let flags = flag(*fin) | if *unidirectional { UNIDIRECTIONAL } else { 0 };
                control(out, SYN_STREAM, flags, 10 + block.len());
                out.put_u32(*id);
                out.put_bytes(0, 6);
                out.put_slice(&block);
            }
            Frame::SynReply { id, fin, headers } | Frame::Headers { id, fin, headers } => {
                let kind = if matches!(frame, Frame::SynReply { .. }) { SYN_REPLY } else { HEADERS };
                let block = self.packer.pack(headers)?;
                control(out, kind, flag(*fin), 4 + block.len());
                out.put_u32(*id);
                out.put_slice(&block);
            }
            Frame::Reset { id, status } => pair(out, RST_STREAM, *id, *status),
            Frame::GoAway { last, status } => pair(out, GOAWAY, *last, *status),
            Frame::WindowUpdate { id, delta } => pair(out, WINDOW_UPDATE, *id, *delta),
            Frame::Ping(id) => {
                control(out, PING, 0, 4);
                out.put_u32(*id);
            }
            Frame::Settings => {
                control(out, SETTINGS, 0, 4);
                out.put_u32(0);
            }
            Frame::Data { id, fin, data } => {
                out.put_u32(*id & STREAM_MASK);
                out.put_u32(u32::from(flag(*fin)) << 24 | data.len() as u32 & 0x00ff_ffff);
                out.put_slice(data);
            }
        }
        Ok(())
    }
}

fn control(out: &mut BytesMut, kind: u16, flags: u8, len: usize) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    out.put_u32(u32::from(flags) << 24 | len as u32);
}

fn pair(out: &mut BytesMut, kind: u16, first: u32, second: u32) {
    control(out, kind, 0, 8);
    out.put_u32(first);
    out.put_u32(second);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let headers = || prop::collection::vec(("[a-z]{1,10}", "[a-z0-9]{0,20}"), 0..4);
        let id = || 1u32..1000;
        prop_oneof![
            (id(), any::<bool>(), any::<bool>(), headers()).prop_map(|(id, fin, unidirectional, headers)| {
                Frame::SynStream { id, fin, unidirectional, headers }
            }),
            (id(), any::<bool>(), headers()).prop_map(|(id, fin, headers)| Frame::SynReply { id, fin, headers }),
            (id(), any::<bool>(), headers()).prop_map(|(id, fin, headers)| Frame::Headers { id, fin, headers }),
            (id(), 1u32..12).prop_map(|(id, status)| Frame::Reset { id, status }),
            (id(), 0u32..3).prop_map(|(last, status)| Frame::GoAway { last, status }),
            (id(), id()).prop_map(|(id, delta)| Frame::WindowUpdate { id, delta }),
            id().prop_map(Frame::Ping),
            Just(Frame::Settings),
            (id(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(id, fin, data)| Frame::Data {
                id,
                fin,
                data: data.into()
            }),
        ]
    }

    /// Joins the parts of data frames again.
    fn joined(parts: Vec<Frame>) -> Vec<Frame> {
        let mut out: Vec<Frame> = Vec::new();
        let mut open = false;
        for part in parts {
            match (out.last_mut(), part) {
                (Some(Frame::Data { id, fin, data }), Frame::Data { id: next, fin: end, data: more })
                    if open && *id == next =>
                {
                    *data = [data.as_ref(), more.as_ref()].concat().into();
                    *fin = end;
                }
                (_, part) => out.push(part),
            }
            open = true;
        }
        out
    }

    #[test]
    fn malformed_frames_are_refused() {
        for (name, bytes) in [
            ("another version", vec![0x80, 2, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1]),
            ("unknown type", vec![0x80, 3, 0, 99, 0, 0, 0, 4, 0, 0, 0, 1]),
            ("short reset", vec![0x80, 3, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1]),
            ("huge control frame", vec![0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff]),
            ("stream zero", vec![0, 0, 0, 0, 0, 0, 0, 0]),
            ("block without compression", [vec![0x80, 3, 0, 1, 0, 0, 0, 14], vec![0; 14]].concat()),
        ] {
            let mut buf = BytesMut::from(bytes.as_slice());
            assert!(Decoder::new().decode(&mut buf).is_err(), "{name}");
        }
    }

    #[test]
    fn a_long_data_frame_is_handed_on_in_parts() {
        let mut decoder = Decoder::new();
        let mut buf = BytesMut::from(&[0, 0, 0, 5, 1, 0, 0, 4, b'a', b'b'][..]);
        let part = |fin, data: &'static [u8]| Frame::Data { id: 5, fin, data: Bytes::from_static(data) };
        assert_eq!(decoder.decode(&mut buf).unwrap(), Some(part(false, b"ab")));
        assert_eq!(decoder.decode(&mut buf).unwrap(), None);
        buf.put_slice(b"cd");
        assert_eq!(decoder.decode(&mut buf).unwrap(), Some(part(true, b"cd")));
    }

    proptest! {
        #[test]
        fn frames_read_back_however_the_bytes_arrive(frames in prop::collection::vec(frames(), 1..12), step in 1usize..50) {
            let (mut encoder, mut wire) = (Encoder::new(), BytesMut::new());
            // Two data frames in a row could not be told from the parts of one.
            let mut sent: Vec<Frame> = Vec::new();
            for frame in frames {
                if matches!((&frame, sent.last()), (Frame::Data { .. }, Some(Frame::Data { .. }))) {
                    continue;
                }
                encoder.encode(&frame, &mut wire).unwrap();
                sent.push(frame);
            }
            let (mut decoder, mut buf, mut parts) = (Decoder::new(), BytesMut::new(), Vec::new());
            for piece in wire.chunks(step) {
                buf.put_slice(piece);
                while let Some(frame) = decoder.decode(&mut buf).unwrap() {
                    parts.push(frame);
                }
            }
            prop_assert!(buf.is_empty());
            prop_assert_eq!(joined(parts), sent);
        }

        #[test]
        fn no_bytes_make_the_decoder_fail_hard_or_hoard(bytes in prop::collection::vec(any::<u8>(), 0..2000), control in any::<bool>(), kind in 0u8..12, len in 0u8..60) {
            let mut wire = if control { vec![0x80, 3, 0, kind, 0, 0, 0, len] } else { Vec::new() };
            wire.extend(bytes);
            let (mut decoder, mut buf) = (Decoder::new(), BytesMut::new());
            for piece in wire.chunks(7) {
                buf.put_slice(piece);
                loop {
                    match decoder.decode(&mut buf) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
                prop_assert!(buf.len() <= HEAD + MAX_CONTROL);
            }
        }
    }
}
