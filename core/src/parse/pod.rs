//! Names of pods.

use wellcake_crds::names::ClusterName;

use crate::facts::Ordinal;

/// The number of a data pod by its name; `None` for any other name, such as `<name>-01` or a pod of another workload.
pub fn ordinal(pod_name: &str, cluster: &ClusterName) -> Option<Ordinal> {
    let digits = pod_name.strip_prefix(cluster.as_str())?.strip_prefix('-')?;
    let number: u8 = digits.parse().ok()?;
    (digits == number.to_string()).then_some(Ordinal(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_data_pods_have_an_ordinal() {
        let name = ClusterName::parse("web").expect("valid");
        let table = [
            ("web-0", Some(Ordinal(0))),
            ("web-12", Some(Ordinal(12))),
            ("web-01", None),
            ("web-+1", None),
            ("web-256", None),
            ("web-", None),
            ("web", None),
            ("web-sentinel-0", None),
            ("web2-0", None),
            ("-0", None),
        ];
        for (pod, wanted) in table {
            assert_eq!(ordinal(pod, &name), wanted, "{pod}");
        }
    }
}
