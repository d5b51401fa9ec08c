//! Certificates of the local cluster: one authority, made once, and a leaf for every program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::paths::Layout;

/// A leaf: who it says it is, and under which names it serves.
pub struct Leaf<'a> {
    /// The name of the files: `NAME.crt` and `NAME.key`.
    pub file: &'a str,
    /// The user in Kubernetes (common name).
    pub user: &'a str,
    /// The group in Kubernetes (organisation), may be empty.
    pub group: &'a str,
    /// Host names and addresses, empty for pure clients.
    pub names: &'a [String],
}

/// Makes what is missing: the authority, the key of service accounts, and the leaves.
pub fn ensure(layout: &Layout, leaves: &[Leaf]) -> Result<()> {
    let authority = authority(layout)?;
    service_account_key(layout)?;
    for leaf in leaves {
        ensure_leaf(layout, &authority, leaf)
            .with_context(|| format!("certificate {}", leaf.file))?;
    }
    Ok(())
}

fn authority(layout: &Layout) -> Result<Issuer<'static, KeyPair>> {
    let (certificate, key) = (layout.pki("ca.crt"), layout.pki("ca.key"));
    let mut params = CertificateParams::default();
    params.distinguished_name = name("wellcake-local", "");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::CrlSign,
    ];
    live_long(&mut params);
    let pair = if certificate.exists() && key.exists() {
        KeyPair::from_pem(&std::fs::read_to_string(&key)?)?
    } else {
        // Leaves of another authority would be refused.
        let _ = std::fs::remove_dir_all(layout.local.join("pki"));
        std::fs::create_dir_all(layout.local.join("pki"))?;
        let pair = KeyPair::generate()?;
        store(&key, &pair.serialize_pem())?;
        store(&certificate, &params.clone().self_signed(&pair)?.pem())?;
        pair
    };
    Ok(Issuer::new(params, pair))
}

fn service_account_key(layout: &Layout) -> Result<()> {
    let (private, public) = (layout.pki("sa.key"), layout.pki("sa.pub"));
    if private.exists() && public.exists() {
        return Ok(());
    }
    let pair = KeyPair::generate()?;
    store(&private, &pair.serialize_pem())?;
    store(&public, &pair.public_key_pem())
}

fn ensure_leaf(layout: &Layout, authority: &Issuer<'static, KeyPair>, leaf: &Leaf) -> Result<()> {
    let certificate = layout.pki(&format!("{}.crt", leaf.file));
    let key = layout.pki(&format!("{}.key", leaf.file));
    // The names are part of what was asked for; a change of them makes a new certificate.
    let asked = layout.pki(&format!("{}.names", leaf.file));
    let wanted = format!("{}\n{}\n{}\n", leaf.user, leaf.group, leaf.names.join("\n"));
    let same = std::fs::read_to_string(&asked).is_ok_and(|old| old == wanted);
    if same && certificate.exists() && key.exists() {
        return Ok(());
    }
    let mut params = CertificateParams::new(leaf.names.to_vec())?;
    params.distinguished_name = name(leaf.user, leaf.group);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    live_long(&mut params);
    let pair = KeyPair::generate()?;
    store(&key, &pair.serialize_pem())?;
    store(&certificate, &params.signed_by(&pair, authority)?.pem())?;
    store(&asked, &wanted)
}

fn name(common: &str, organisation: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if !organisation.is_empty() {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}

/// Fixed dates: the cluster must also start on a machine whose clock is wrong.
fn live_long(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    params.not_after = rcgen::date_time_ymd(2099, 1, 1);
}

/// Keys and certificates are for their owner alone.
fn store(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let temporary: PathBuf = path.with_extension("new");
    let _ = std::fs::remove_file(&temporary);
    let mut file = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))
}
