//! The one binary: hub, agent, syncer, proxier and command line.

mod assembly;
mod commands;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    commands::run()
}
