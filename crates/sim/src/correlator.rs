//! What becomes of an event: told anew, counted to one that was told before, or dropped.
//!
//! As programs with client-go's recorder do it: the same event again raises a count, many that differ
//! only in their message are combined, and who tells too much of one object is not listened to.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher as _};

use jiff::Timestamp;

/// Different messages of one reason that are told one by one.
const SIMILAR: usize = 10;
/// Messages further apart than this have nothing to do with each other, in seconds.
const APART: i64 = 600;
/// Events of one source about one object: so many at once, then one in five minutes.
const BURST: f64 = 25.0;
const REFILL: f64 = 1.0 / 300.0;
/// How much is remembered of each sort.
const MEMORY: usize = 4096;
/// What combined events begin with.
const COMBINED: &str = "(combined from similar events): ";

/// Who tells an event, and about what.
#[derive(Copy, Clone, Debug, Hash)]
pub struct Facts<'a> {
    /// The program that tells it.
    pub component: &'a str,
    /// The node it runs on, if it matters.
    pub host: &'a str,
    /// Kind, namespace, name and uid of the object.
    pub about: [&'a str; 4],
    /// `Normal` or `Warning`.
    pub kind: &'a str,
    /// One word.
    pub reason: &'a str,
    /// A sentence.
    pub message: &'a str,
}

/// What to do with an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Telling {
    /// Nothing: there were too many.
    Drop,
    /// Write it for the first time, under this name.
    New(String, String),
    /// It was told under this name before: it is now told so many times, with this message.
    Again(String, u32, String),
}

#[derive(Clone, Debug)]
struct Told {
    name: String,
    count: u32,
}

#[derive(Debug, Default)]
struct Group {
    messages: BTreeSet<u64>,
    last: Timestamp,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    last: Timestamp,
}

/// Remembers what was told lately.
#[derive(Debug, Default)]
pub struct Correlator {
    groups: Memory<Group>,
    told: Memory<Told>,
    buckets: Memory<Bucket>,
}

impl Correlator {
    /// Decides what becomes of an event.
    pub fn judge(&mut self, facts: &Facts<'_>, now: Timestamp) -> Telling {
        let (key, message) = self.combine(facts, now);
        let told = self.told.entry(key, || Told { name: name(facts.about[2], now), count: 0 });
        told.count += 1;
        let telling = match told.count {
            1 => Telling::New(told.name.clone(), message),
            count => Telling::Again(told.name.clone(), count, message),
        };
        if self.has_room(facts, now) { telling } else { Telling::Drop }
    }

    /// The key under which an event is counted, and its message.
    fn combine(&mut self, facts: &Facts<'_>, now: Timestamp) -> (u64, String) {
        let similar = Facts { message: "", ..*facts };
        let group = self.groups.entry(hash(&similar), || Group { messages: BTreeSet::new(), last: now });
        if now.duration_since(group.last).as_secs() > APART {
            group.messages.clear();
        }
        group.last = now;
        group.messages.insert(hash(&facts.message));
        if group.messages.len() < SIMILAR {
            return (hash(facts), facts.message.to_owned());
        }
        group.messages.pop_first();
        (hash(&similar), format!("{COMBINED}{}", facts.message))
    }

    fn has_room(&mut self, facts: &Facts<'_>, now: Timestamp) -> bool {
        let source = hash(&(facts.component, facts.host, facts.about));
        let bucket = self.buckets.entry(source, || Bucket { tokens: BURST, last: now });
        let passed = now.duration_since(bucket.last).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * REFILL).min(BURST);
        bucket.last = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

/// The name of an event: that of its object and the moment.
fn name(object: &str, now: Timestamp) -> String {
    format!("{object}.{:x}", now.as_nanosecond())
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A map that forgets what was not used for long.
#[derive(Debug)]
struct Memory<T> {
    entries: HashMap<u64, (u64, T)>,
    clock: u64,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), clock: 0 }
    }
}

impl<T> Memory<T> {
    fn entry(&mut self, key: u64, new: impl FnOnce() -> T) -> &mut T {
        self.clock += 1;
        if self.entries.len() >= MEMORY && !self.entries.contains_key(&key) {
            self.forget();
        }
        let clock = self.clock;
        let slot = self.entries.entry(key).or_insert_with(|| (clock, new()));
        slot.0 = clock;
        &mut slot.1
    }

    /// Forgets the half that was used longest ago; rarely, so that it costs little.
    fn forget(&mut self) {
        let mut ages: Vec<u64> = self.entries.values().map(|(used, _)| *used).collect();
        let middle = ages.len() / 2;
        let (_, limit, _) = ages.select_nth_unstable(middle);
        let limit = *limit;
        self.entries.retain(|_, (used, _)| *used >= limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(object: &'a str, message: &'a str) -> Facts<'a> {
        let about = ["ReplicaSet", "d", object, "uid"];
        Facts { component: "replicaset-controller", host: "", about, kind: "Warning", reason: "FailedCreate", message }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a moment")
    }

    #[test]
    fn the_same_event_again_is_counted() {
        let mut correlator = Correlator::default();
        let Telling::New(name, _) = correlator.judge(&facts("a", "no"), at(1)) else { panic!("not new") };
        for count in 2..10 {
            let told = correlator.judge(&facts("a", "no"), at(count));
            assert_eq!(told, Telling::Again(name.clone(), u32::try_from(count).expect("small"), "no".into()));
        }
        assert!(matches!(correlator.judge(&facts("b", "no"), at(9)), Telling::New(..)));
    }

    #[test]
    fn messages_that_differ_are_combined_after_nine() {
        let mut correlator = Correlator::default();
        let mut new = 0;
        let mut last = Telling::Drop;
        for number in 0..20 {
            last = correlator.judge(&facts("a", &format!("pod {number}")), at(number));
            new += usize::from(matches!(last, Telling::New(..)));
        }
        assert_eq!(new, 10, "nine by themselves and one for all others");
        assert!(matches!(last, Telling::Again(_, 11, message) if message == format!("{COMBINED}pod 19")));
        assert!(matches!(correlator.judge(&facts("a", "pod 99"), at(2000)), Telling::New(..)), "long after");
    }

    #[test]
    fn floods_are_cut_off_and_come_back_slowly() {
        let mut correlator = Correlator::default();
        let told = (0..100).filter(|_| correlator.judge(&facts("a", "no"), at(1)) != Telling::Drop).count();
        assert_eq!(told, 25);
        assert_eq!(correlator.judge(&facts("a", "no"), at(200)), Telling::Drop);
        assert!(matches!(correlator.judge(&facts("a", "no"), at(302)), Telling::Again(_, 102, _)));
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten() {
        let mut memory: Memory<usize> = Memory::default();
        for key in 0..10_000 {
            memory.entry(key, || 0);
            memory.entry(0, || 0);
        }
        assert!(memory.entries.len() <= MEMORY);
        assert!(memory.entries.contains_key(&0) && memory.entries.contains_key(&9_999));
    }
}
