//! x
use castanet_lang::*;
fn main() {
    let p = std::env::args().nth(1).unwrap();
    let bytes = std::fs::read(&p).unwrap();
    let mut s = Sources::new();
    let classes =
        ["Idle", "Tee", "Discard", "Counter", "Strip", "Null", "Print", "Queue", "Unqueue", "InfiniteSource"];
    let o = Options { classes: &classes, defines: &[], library: &NoLibrary, unknown: Unknown::Error };
    let t = std::time::Instant::now();
    let (f, d) = load_bytes(&mut s, &p, &bytes, &o);
    eprintln!(
        "{:?} {} elements {} connections {} diags",
        t.elapsed(),
        f.elements.len(),
        f.connections.len(),
        d.len()
    );
    if std::env::args().nth(2).is_some() {
        return;
    }
    println!("{}", print::driver(&f));
    println!("{}", print::tool(&f, &[], &s));
    println!("{}", render::render_pretty(&s, &d, false));
    println!("{}", render::render_classic(&s, &d));
}
