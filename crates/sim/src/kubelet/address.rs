//! Addresses of pods, from the network of their node.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Who has which address.
#[derive(Debug, Default)]
pub struct Addresses {
    by_address: HashMap<u32, Box<str>>,
    by_pod: HashMap<Box<str>, u32>,
    next: HashMap<Box<str>, u32>,
}

impl Addresses {
    /// The address of a pod: the one it has, or a free one of the network.
    pub fn take(&mut self, network: &str, uid: &str, has: &str) -> String {
        if let Some(address) = self.by_pod.get(uid) {
            return Ipv4Addr::from(*address).to_string();
        }
        if let Ok(address) = has.parse::<Ipv4Addr>() {
            self.give(address.into(), uid);
            return has.to_owned();
        }
        let Some((base, size)) = parse(network) else { return String::new() };
        let start = *self.next.entry(network.into()).or_insert(1);
        for step in 0..size {
            // The first address is the network's own, the last one for all.
            let offset = 1 + (start - 1 + step) % (size - 2);
            let address = base + offset;
            if !self.by_address.contains_key(&address) {
                self.next.insert(network.into(), offset + 1);
                self.give(address, uid);
                return Ipv4Addr::from(address).to_string();
            }
        }
        String::new()
    }

    fn give(&mut self, address: u32, uid: &str) {
        self.by_address.insert(address, uid.into());
        self.by_pod.insert(uid.into(), address);
    }

    /// Gives the address of a pod back.
    pub fn release(&mut self, uid: &str) {
        if let Some(address) = self.by_pod.remove(uid) {
            self.by_address.remove(&address);
        }
    }
}

fn parse(network: &str) -> Option<(u32, u32)> {
    let (address, bits) = network.split_once('/')?;
    let bits: u32 = bits.parse().ok().filter(|bits| (8..=30).contains(bits))?;
    let size = 1u32 << (32 - bits);
    Some((u32::from(address.parse::<Ipv4Addr>().ok()?) & !(size - 1), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_come_back_late() {
        let mut addresses = Addresses::default();
        assert_eq!(addresses.take("10.1.0.0/29", "a", ""), "10.1.0.1");
        assert_eq!(addresses.take("10.1.0.0/29", "a", ""), "10.1.0.1");
        assert_eq!(addresses.take("10.1.0.0/29", "b", ""), "10.1.0.2");
        assert_eq!(addresses.take("10.1.0.0/29", "c", "10.1.0.5"), "10.1.0.5");
        addresses.release("a");
        let rest: Vec<String> = ["d", "e", "f", "g"].iter().map(|uid| addresses.take("10.1.0.0/29", uid, "")).collect();
        assert_eq!(rest, ["10.1.0.3", "10.1.0.4", "10.1.0.6", "10.1.0.1"]);
        assert_eq!(addresses.take("10.1.0.0/29", "h", ""), "");
    }
}
