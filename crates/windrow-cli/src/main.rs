//! The `windrow` binary.

fn main() {
    windrow_cli::main(std::env::args_os())
}
