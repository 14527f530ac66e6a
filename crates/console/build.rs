//! Builds the console with Node when it is present, and lists what is to be embedded.
//!
//! A build without Node, or one that fails, is no error: the crate then serves a page that says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// What the console is made from; anything else in its directory is left alone.
const SOURCES: &[&str] =
    &["src", "public", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
const STAMP: &str = ".stamp";

fn main() {
    let console = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../console");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-env-changed=ATOLL_CONSOLE");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", console.join(source).display());
    }
    let off = env::var("ATOLL_CONSOLE").is_ok_and(|value| value == "off");
    let missing = if off { Some("ATOLL_CONSOLE=off".to_owned()) } else { build(&console, "node").err() };
    if let Some(reason) = &missing {
        println!("cargo::warning=no web console in this build: {reason}");
    }
    let files = if missing.is_none() { compressed(&console.join("dist")) } else { BTreeMap::new() };
    fs::write(out.join("files.rs"), table(&console.join("dist"), &files, missing.as_deref()))
        .expect("the output directory is writable");
}

/// Makes `dist` true to the sources with a program called `node`, or says why it cannot.
pub(crate) fn build(console: &Path, node: &str) -> Result<(), String> {
    if !console.join("package.json").exists() {
        return Err("its sources are not here".into());
    }
    let wanted = fingerprint(console, SOURCES).map_err(|error| error.to_string())?;
    let stamp = console.join("dist").join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return Ok(());
    }
    if Command::new(node).arg("--version").output().is_err() {
        return Err("Node.js was not found when it was built".into());
    }
    install(console)?;
    run(console, "npm", &["run", "build"])?;
    fs::write(&stamp, wanted).map_err(|error| error.to_string())
}

fn install(console: &Path) -> Result<(), String> {
    let wanted = fingerprint(console, &["package-lock.json"]).map_err(|error| error.to_string())?;
    let stamp = console.join("node_modules").join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    run(console, "npm", &["ci", "--no-audit", "--no-fund"])?;
    fs::write(&stamp, wanted).map_err(|error| error.to_string())
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(format!("`{command}` failed: {}", lines.join(" ")))
}

/// FNV-1a over names and contents below `base`, in order; the same wherever `base` is.
fn fingerprint(base: &Path, parts: &[&str]) -> io::Result<String> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for part in parts {
        for file in files_under(&base.join(part))? {
            add(file.strip_prefix(base).unwrap_or(&file).to_string_lossy().as_bytes());
            add(&fs::read(&file)?);
        }
    }
    Ok(format!("{hash:016x}"))
}

fn files_under(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        entries.sort();
        for entry in entries {
            found.extend(files_under(&entry)?);
        }
    }
    Ok(found)
}

/// The files of `dist` that have a `.gz` beside them, by their path in it.
pub(crate) fn compressed(dist: &Path) -> BTreeMap<String, PathBuf> {
    let files = files_under(dist).unwrap_or_default();
    files
        .into_iter()
        .filter(|file| file.with_added_extension("gz").exists())
        .filter_map(|file| {
            let name = file.strip_prefix(dist).ok()?.to_str()?.to_owned();
            Some((name, file.canonicalize().ok()?))
        })
        .collect()
}

pub(crate) fn table(dist: &Path, files: &BTreeMap<String, PathBuf>, missing: Option<&str>) -> String {
    let mut text =
        format!("pub(crate) const MISSING: Option<&str> = {missing:?};\npub(crate) static FILES: &[File] = &[\n");
    for (name, path) in files {
        let gzip = path.with_added_extension("gz");
        let brotli = path.with_added_extension("br");
        let brotli = if brotli.exists() { format!("Some(include_bytes!({brotli:?}))") } else { "None".into() };
        let tag = fingerprint(dist, &[name]).unwrap_or_default();
        writeln!(
            text,
            "    File {{ name: {name:?}, tag: {tag:?}, gzip: include_bytes!({gzip:?}), brotli: {brotli} }},"
        )
        .expect("a string takes all");
    }
    text.push_str("];\n");
    text
}
