//! The port on which a virtual node's kubelet API is served.

use std::collections::HashMap;

use parking_lot::Mutex;

const FIRST: u32 = 15_000;
const COUNT: u32 = 65_535 - FIRST + 1;

/// Which virtual node has which port.
#[derive(Default)]
pub(crate) struct Ports {
    by_port: Mutex<HashMap<u16, String>>,
}

impl Ports {
    /// The port of a node: that of its label, or a free one found from the hash of its name.
    pub(crate) fn assign(&self, node: &str, labelled: &str) -> u16 {
        let mut by_port = self.by_port.lock();
        if let Ok(port) = labelled.parse::<u16>()
            && by_port.get(&port).is_none_or(|owner| owner == node)
        {
            by_port.insert(port, node.to_owned());
            return port;
        }
        if let Some((port, _)) = by_port.iter().find(|(_, owner)| *owner == node) {
            return *port;
        }
        let start = hash(node) % COUNT;
        let ports = (0..COUNT).map(|step| (FIRST + (start + step) % COUNT) as u16);
        // With fifty thousand nodes there are other troubles than a shared port.
        let port = ports.clone().find(|port| !by_port.contains_key(port)).unwrap_or(FIRST as u16);
        by_port.insert(port, node.to_owned());
        port
    }

    /// Another port, because somebody else has taken the present one.
    pub(crate) fn reassign(&self, node: &str) -> u16 {
        let mut by_port = self.by_port.lock();
        let taken = by_port.iter_mut().filter(|(_, owner)| *owner == node);
        // Kept as taken, so that nobody else tries it.
        let last = taken
            .map(|(port, owner)| {
                owner.clear();
                *port
            })
            .max()
            .unwrap_or(FIRST as u16);
        let ports = (1..COUNT).map(|step| (FIRST + (u32::from(last) - FIRST + step) % COUNT) as u16);
        let port = ports.clone().find(|port| !by_port.contains_key(port)).unwrap_or(last);
        by_port.insert(port, node.to_owned());
        port
    }

    pub(crate) fn release(&self, node: &str) {
        self.by_port.lock().retain(|_, owner| owner != node);
    }
}

/// FNV-1a, 32 bits.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_follow_from_names_and_labels_win() {
        let ports = Ports::default();
        assert_eq!(ports.assign("vnode-c1-node-a", ""), 55361);
        assert_eq!(ports.assign("vnode-cls-worker1-kubeocean-worker1-worker", ""), 45149);
        assert_eq!(ports.assign("vnode-c1-node-a", ""), 55361, "the same again");
        assert_eq!(ports.assign("other", "20000"), 20000);
        assert_ne!(ports.assign("third", "20000"), 20000, "taken");
        assert_eq!(ports.reassign("other"), 20001);
        assert_eq!(ports.assign("other", "20001"), 20001);
        ports.release("other");
        assert_eq!(ports.assign("fourth", "20001"), 20001);
    }
}
