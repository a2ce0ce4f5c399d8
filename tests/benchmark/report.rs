//! The table.

use std::time::Duration;

use crate::Options;

/// Prints a line as soon as it is known.
pub(crate) struct Report;

impl Report {
    pub(crate) fn begin(options: &Options) -> Self {
        let Options { hosts, workers, .. } = options;
        println!("| {hosts}x{workers} | Stillframe | peer | ratio |");
        println!("|---|--:|--:|--:|");
        Self
    }

    /// Something of which more is better.
    pub(crate) fn rate(&mut self, what: &str, ours: f64, peer: Option<f64>) {
        let (peer, ratio) = match peer {
            Some(peer) => (number(peer), format!("{:.2}", ours / peer)),
            None => Default::default(),
        };
        println!("| {what} | {} | {peer} | {ratio} |", number(ours));
    }

    /// Something that takes time: the ratio is that of the speeds.
    pub(crate) fn time(&mut self, what: &str, ours: Duration, peer: Option<Duration>) {
        let (shown, ratio) = match peer {
            Some(peer) => {
                let ratio = peer.as_secs_f64() / ours.as_secs_f64();
                (milliseconds(peer), format!("{ratio:.2}"))
            }
            None => Default::default(),
        };
        println!("| {what} | {} | {shown} | {ratio} |", milliseconds(ours));
    }

    /// The median and the 99th percentile.
    pub(crate) fn latency(&mut self, what: &str, times: &mut [Duration]) {
        times.sort_unstable();
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let place = (times.len() as f64 * share) as usize;
            if let Some(time) = times.get(place) {
                self.time(&format!("{what}, {name}"), *time, None);
            }
        }
    }

    /// The most memory that a process has used.
    pub(crate) fn memory(&mut self, process: u32, when: &str) {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let peak = status.ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        if let Some(kilobytes) = peak {
            println!("| peak memory {when} | {} MB | | |", kilobytes / 1024);
        }
    }
}

fn number(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
