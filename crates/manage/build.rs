//! Compiles the descriptors that the whole API is served from.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join("atoll/v1alpha1"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "proto") {
            files.push(path);
        }
    }
    files.sort();
    let mut compiler = protox::Compiler::new([Path::new(&root)])?;
    // Comments become the descriptions of the OpenAPI document.
    compiler.include_imports(true).include_source_info(true).open_files(&files)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(out, compiler.encode_file_descriptor_set())?;
    Ok(())
}
