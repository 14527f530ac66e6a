//! A tiny shell for simulated containers.

use std::time::Duration;

/// What a command would do.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// When and how it ends.
    pub end: Option<(Duration, i32)>,
    /// What it says, and when.
    pub lines: Vec<(Duration, String)>,
    /// What it says again and again afterwards.
    pub round: Option<(Vec<(Duration, String)>, Duration)>,
}

/// Looks ahead at what a command line does; `None` if that cannot be known.
pub fn foresee(words: &[String], _variables: &[(String, String)]) -> Option<Run> {
    let first = words.first()?;
    let name = first.rsplit('/').next()?;
    let script = match name {
        "sh" | "bash" | "ash" if words.get(1).is_some_and(|w| w == "-c") => words.get(2)?.clone(),
        _ => words.join(" "),
    };
    let mut run = Run::default();
    let mut at = Duration::ZERO;
    let mut code = 0;
    for part in script.split([';', '\n']).map(str::trim).filter(|p| !p.is_empty()) {
        let mut it = part.split_whitespace();
        match it.next()?.rsplit('/').next()? {
            "sleep" => {
                let t = it.next()?;
                if t == "infinity" { return Some(run); }
                at += Duration::from_secs_f64(t.parse().ok()?);
                code = 0;
            }
            "true" => code = 0,
            "false" => code = 1,
            "exit" => { code = it.next().and_then(|c| c.parse().ok()).unwrap_or(code); break; }
            "echo" => { run.lines.push((at, it.collect::<Vec<_>>().join(" "))); code = 0 }
            _ => return None,
        }
    }
    run.end = Some((at, code));
    Some(run)
}
