//! Links the tool at a fixed address. The loader then writes to none of the tool's pages, which
//! saves 2 MiB of memory under the limit of every job (`docs/memory.md`). Programs with the
//! library inside are linked as usual.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|own| own == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
