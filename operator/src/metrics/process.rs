//! Memory, processor time and age of the process, under the names that every Prometheus client library uses.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::families::Entry;

/// `USER_HZ`, the unit of times in `/proc`: 100 on every architecture that Linux runs containers on (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;
const MEMORY: &str = "Memory of the process that is resident.";
const CPU: &str = "Processor time that the process used, user and system.";

/// Reads `/proc/self` at each scrape.
#[derive(Debug)]
pub struct Process;

impl Process {
    /// The entries of the reference.
    pub fn entries() -> [Entry; 2] {
        let entry = |name: &str, kind, help| Entry {
            name: name.to_owned(),
            kind,
            labels: &[],
            help,
        };
        [
            entry("process_resident_memory_bytes", "gauge", MEMORY),
            entry("process_cpu_seconds_total", "counter", CPU),
        ]
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            let gauge = ConstGauge::new(bytes);
            let help = MEMORY;
            let out = encoder.encode_descriptor(
                "process_resident_memory",
                help,
                Some(&Unit::Bytes),
                gauge.metric_type(),
            )?;
            gauge.encode(out)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let help = CPU;
            let out = encoder.encode_descriptor(
                "process_cpu",
                help,
                Some(&Unit::Seconds),
                counter.metric_type(),
            )?;
            counter.encode(out)?;
        }
        Ok(())
    }
}

/// `VmRSS` of `/proc/self/status`; none where there is no such file.
pub fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// `utime` and `stime`, fields 14 and 15 of `/proc/self/stat`; the name in field 2 may hold spaces.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let bytes = resident_bytes().expect("Linux tells");
        assert!((1 << 20..1 << 34).contains(&bytes), "{bytes}");
        assert!(cpu_seconds().is_some());
    }
}
