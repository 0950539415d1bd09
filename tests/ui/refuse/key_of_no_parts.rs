fn main() {
    let _ = idem_runtime::Key::of();
}
