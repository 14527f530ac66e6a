//! CRC-32 (the one of Ethernet and zip), for the small files that redb does not guard.

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

/// A checksum in the making.
#[derive(Clone, Debug)]
pub(crate) struct Checksum(u32);

impl Checksum {
    /// The checksum of nothing.
    pub fn new() -> Self {
        Self(u32::MAX)
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = TABLE[((self.0 ^ u32::from(*byte)) & 0xFF) as usize] ^ (self.0 >> 8);
        }
    }

    /// The checksum of all bytes added.
    pub fn value(&self) -> u32 {
        !self.0
    }

    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> u32 {
        let mut sum = Self::new();
        sum.add(bytes);
        sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(Checksum::of(b"123456789"), 0xCBF4_3926);
        assert_eq!(Checksum::of(b""), 0);
    }
}
