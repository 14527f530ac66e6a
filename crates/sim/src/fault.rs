//! What is broken on purpose.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use atoll_meta::Head;
use atoll_meta::selector::LabelSelector;
use jiff::SignedDuration;
use parking_lot::RwLock;
use tokio::sync::Notify;

/// Something that goes wrong in a simulated cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The API server cannot be reached.
    Unreachable,
    /// The API server answers late.
    Slow(Duration),
    /// The API server answers every request with an error.
    Refusing,
    /// The certificate of the API server has expired.
    CertificateExpired,
    /// A node stops answering.
    NodeDown(String),
    /// All nodes of a zone stop answering.
    ZoneDown(String),
    /// Containers of pods with these labels crash.
    CrashPods(String),
    /// The cluster's clock is wrong by so much.
    ClockSkew(SignedDuration),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => out.write_str("unreachable"),
            Self::Slow(delay) => {
                write!(out, "slow={}", told(SignedDuration::try_from(*delay).unwrap_or(SignedDuration::MAX)))
            }
            Self::Refusing => out.write_str("refusing"),
            Self::CertificateExpired => out.write_str("expired"),
            Self::NodeDown(node) => write!(out, "node={node}"),
            Self::ZoneDown(zone) => write!(out, "zone={zone}"),
            Self::CrashPods(selector) => write!(out, "crash={selector}"),
            Self::ClockSkew(skew) => write!(out, "clock-skew={}", told(*skew)),
        }
    }
}

/// As people write it: `-1h`, not `-1h0m0s`.
fn told(duration: SignedDuration) -> String {
    let text = atoll_meta::time::format_duration(duration);
    let short = text.strip_suffix("m0s").map(|rest| format!("{rest}m")).unwrap_or(text);
    short.strip_suffix("h0m").map(|rest| format!("{rest}h")).unwrap_or(short)
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        let time = || atoll_meta::time::parse_duration(value).map_err(|_| format!("{value:?} is no duration"));
        let named = || if value.is_empty() { Err(format!("{word} needs a name")) } else { Ok(value.to_owned()) };
        Ok(match word {
            "unreachable" => Self::Unreachable,
            "slow" if value.is_empty() => Self::Slow(Duration::from_secs(2)),
            "slow" => Self::Slow(Duration::try_from(time()?).map_err(|_| format!("{value:?} is negative"))?),
            "refusing" => Self::Refusing,
            "expired" => Self::CertificateExpired,
            "node" => Self::NodeDown(named()?),
            "zone" => Self::ZoneDown(named()?),
            "crash" => {
                LabelSelector::parse(value).map_err(|_| format!("{value:?} is no label selector"))?;
                Self::CrashPods(named()?)
            }
            "clock-skew" => Self::ClockSkew(time()?),
            _ => return Err(format!("there is no fault {word:?}")),
        })
    }
}

/// How the API server behaves towards the outside.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Door {
    /// As usual.
    Open,
    /// Late.
    Slow(Duration),
    /// Not at all.
    Closed,
    /// With an error.
    Refusing,
    /// With a certificate nobody trusts.
    Expired,
}

/// The faults of one cluster.
#[derive(Debug, Default)]
pub struct Faults {
    list: RwLock<Vec<Fault>>,
    changed: Notify,
}

impl Faults {
    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        let mut list = self.list.write();
        if !list.contains(&fault) {
            list.push(fault);
        }
        drop(list);
        self.changed.notify_waiters();
    }

    /// Removes faults; returns those that were removed.
    pub fn remove(&self, which: impl Fn(&Fault) -> bool) -> Vec<Fault> {
        let mut list = self.list.write();
        let (gone, kept) = std::mem::take(&mut *list).into_iter().partition(|fault| which(fault));
        *list = kept;
        gone
    }

    /// Waits until the API server stops answering.
    pub async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if !matches!(self.door(), Door::Open | Door::Slow(_)) {
                return;
            }
            changed.await;
        }
    }

    /// The present faults.
    pub fn list(&self) -> Vec<Fault> {
        self.list.read().clone()
    }

    /// How the API server behaves towards the outside.
    pub fn door(&self) -> Door {
        let list = self.list.read();
        let doors = list.iter().filter_map(|fault| match fault {
            Fault::Unreachable => Some(Door::Closed),
            Fault::Refusing => Some(Door::Refusing),
            Fault::CertificateExpired => Some(Door::Expired),
            Fault::Slow(delay) => Some(Door::Slow(*delay)),
            _ => None,
        });
        // The worst of several wins.
        doors.min_by_key(|door| matches!(door, Door::Slow(_))).unwrap_or(Door::Open)
    }

    /// Whether a node does not answer.
    pub fn is_down(&self, node: &str, zone: Option<&str>) -> bool {
        self.list.read().iter().any(|fault| match fault {
            Fault::NodeDown(name) => name == node,
            Fault::ZoneDown(name) => zone == Some(name),
            _ => false,
        })
    }

    /// Whether the containers of a pod crash.
    pub fn crashes(&self, pod: &Head) -> bool {
        self.list.read().iter().any(|fault| match fault {
            Fault::CrashPods(selector) => {
                LabelSelector::parse(selector).is_ok_and(|selector| selector.matches_head(pod))
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_fault_of_the_door_wins() {
        let faults = Faults::default();
        assert_eq!(faults.door(), Door::Open);
        faults.add(Fault::Slow(Duration::from_secs(1)));
        assert_eq!(faults.door(), Door::Slow(Duration::from_secs(1)));
        faults.add(Fault::Unreachable);
        assert_eq!(faults.door(), Door::Closed);
        faults.remove(|fault| *fault == Fault::Unreachable);
        assert_eq!(faults.door(), Door::Slow(Duration::from_secs(1)));
    }

    #[test]
    fn faults_are_written_and_read() {
        let all = ["unreachable", "slow=1.5s", "refusing", "expired", "node=n1", "zone=za", "crash=app in (a,b)"];
        for text in all.into_iter().chain(["clock-skew=-1m", "clock-skew=-1h", "clock-skew=10h30m", "clock-skew=90ms"])
        {
            assert_eq!(text.parse::<Fault>().map(|fault| fault.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("clock-skew=-1h".parse(), Ok(Fault::ClockSkew(SignedDuration::from_hours(-1))));
        for text in ["", "flood", "slow=soon", "slow=-1s", "node=", "crash=a b c"] {
            assert!(text.parse::<Fault>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn nodes_go_down_by_name_and_by_zone() {
        let faults = Faults::default();
        faults.add(Fault::NodeDown("a".into()));
        faults.add(Fault::ZoneDown("z".into()));
        assert!(faults.is_down("a", None));
        assert!(faults.is_down("b", Some("z")));
        assert!(!faults.is_down("b", Some("y")));
    }
}
