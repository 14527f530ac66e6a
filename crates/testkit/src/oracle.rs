//! Questions to the original's own code: `tests/peers/oracle` in one process, for all questions of a test.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::peers;

/// What the original answers to each question, in their order, or why it does not. `None` with a visible note when
/// the oracle is not there.
pub fn ask_original(questions: &[Value]) -> Option<Vec<Result<Value, String>>> {
    let program = peers::find("oracle")?;
    let child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("the oracle can be run");
    let mut asking = BufWriter::new(child.stdin.take().expect("its input is ours"));
    let answers = BufReader::new(child.stdout.take().expect("its output is ours"));
    let answers: Vec<Result<Value, String>> = std::thread::scope(|scope| {
        // Beside reading, because neither side waits for the other.
        scope.spawn(move || questions.iter().try_for_each(|question| writeln!(asking, "{question}")));
        let lines = answers.lines().map(|line| line.expect("the oracle speaks text"));
        lines.map(|line| answer(&line)).collect()
    });
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success() && answers.len() == questions.len(), "{status}, {} answers", answers.len());
    Some(answers)
}

fn answer(line: &str) -> Result<Value, String> {
    let mut said: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    match said.get("error").and_then(Value::as_str) {
        Some(why) => Err(why.to_owned()),
        None => Ok(said["answer"].take()),
    }
}
