//! Links the tool at a fixed address: nothing of it is then written to when it is loaded, which is 2 MiB less of memory that
//! counts against the limit of every job (`docs/memory.md`). What is linked into other programs is as it was.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|own| own == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
