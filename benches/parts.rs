//! How long the pure parts of a delivery's way take: `cargo bench --bench parts`.

mod cases;

use std::time::Duration;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for case in cases::cases() {
        criterion.bench_function(&case.name, |bencher| bencher.iter(|| (case.step)()));
    }
    criterion.final_summary();
}
