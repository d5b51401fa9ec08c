//! The version of a server by its image's tag, for directives that older servers refuse to start with.

/// Major and minor number of an image reference; `None` when the tag does not start with two numbers (a digest alone, a
/// name such as `latest`).
pub fn version(image: &str) -> Option<(u32, u32)> {
    let name = image.split('@').next()?;
    let (_, tag) = name
        .rsplit_once(':')
        .filter(|(_, tag)| !tag.contains('/'))?;
    let (major, rest) = tag.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Major number of an image reference, likewise.
pub fn image_major(image: &str) -> Option<u8> {
    version(image).and_then(|(major, _)| u8::try_from(major).ok())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_tag_tells_the_version() {
        let table = [
            ("valkey/valkey:8.0", Some((8, 0))),
            ("valkey/valkey:9.1.2-alpine", Some((9, 1))),
            ("registry:5000/valkey:8.1@sha256:00", Some((8, 1))),
            ("registry:5000/valkey", None),
            ("valkey", None),
            ("valkey:latest", None),
            ("valkey:9", None),
            ("valkey@sha256:00", None),
        ];
        for (image, wanted) in table {
            assert_eq!(version(image), wanted, "{image}");
        }
    }
}
