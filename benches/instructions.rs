//! Repeats one pure part so many times, for a program that counts instructions: see `benches/guard`.
//!
//! Without arguments it lists the parts.

#![expect(clippy::print_stdout, reason = "the list is data for the script that reads it")]

mod cases;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let wanted = arguments.next();
    let times = arguments.next().and_then(|times| times.parse::<u32>().ok()).unwrap_or(1);
    for case in cases::cases() {
        match &wanted {
            None => println!("{}", case.name),
            Some(wanted) if *wanted == case.name => (0..times).for_each(|_| (case.step)()),
            Some(_) => {}
        }
    }
}
