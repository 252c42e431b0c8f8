use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = castanet_tests::fuzz::TARGETS.iter().find(|t| t.name == a[1]).unwrap();
    for f in &a[2..] {
        let d = std::fs::read(f).unwrap();
        let s = Instant::now();
        (t.body)(&d);
        println!("{f} {:?}", s.elapsed());
    }
}
