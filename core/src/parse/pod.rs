//! Names of pods.

use wellcake_crds::names::ClusterName;

use crate::facts::Ordinal;

/// The number of a data pod by its name; `None` for any other name, such as `<name>-01` or a pod of another workload.
pub fn ordinal(pod_name: &str, cluster: &ClusterName) -> Option<Ordinal> {
    let digits = pod_name.strip_prefix(cluster.as_str())?.strip_prefix('-')?;
    let number: u8 = digits.parse().ok()?;
    (digits == number.to_string()).then_some(Ordinal(number))
}

/// The number of a data pod by its name in DNS, `<pod>.<headless Service>` and what follows, by which other operators have
/// replicas follow it.
pub fn ordinal_of_host(host: &str, cluster: &ClusterName) -> Option<Ordinal> {
    let (pod, rest) = host.split_once('.')?;
    let service = rest.split('.').next()?;
    (service == cluster.headless_service())
        .then(|| ordinal(pod, cluster))
        .flatten()
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

    #[test]
    fn only_names_behind_the_headless_service_name_a_pod() {
        let name = ClusterName::parse("web").expect("valid");
        let table = [
            (
                "web-0.web-headless.shop.svc.cluster.local",
                Some(Ordinal(0)),
            ),
            ("web-2.web-headless", Some(Ordinal(2))),
            ("web-0.other-headless.shop", None),
            ("web-0", None),
            ("10.0.0.1", None),
        ];
        for (host, wanted) in table {
            assert_eq!(ordinal_of_host(host, &name), wanted, "{host}");
        }
    }
}
