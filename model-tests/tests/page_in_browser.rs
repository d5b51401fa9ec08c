//! The page of a trace in a real browser: Chromium's headless shell (Debian package `chromium-headless-shell`), or the program that
//! `BROWSER` names.

use std::path::{Path, PathBuf};
use std::process::Command;

use wellcake_core::step;
use wellcake_model_tests::explain::page::page;
use wellcake_model_tests::explain::view::{Gather, Story};
use wellcake_model_tests::museum::read;
use wellcake_model_tests::recorded::Moments;

/// Where the Debian package puts it.
const SHELL: &str = "/usr/bin/chromium-headless-shell";

fn browser() -> PathBuf {
    std::env::var_os("BROWSER").map_or_else(|| PathBuf::from(SHELL), PathBuf::from)
}

/// The story of two operators at once.
fn story() -> Story {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    let pieces = read(&folder).unwrap_or_else(|why| panic!("{why}"));
    let piece = pieces.iter().find(|piece| piece.name == "two-operators");
    let (lines, _) = piece.expect("a piece").traces(step);
    let mut gather = Gather::new(None, 400);
    for moment in Moments::new(lines[0].text.as_bytes()) {
        gather.take(moment.expect("readable"));
    }
    gather.end(false)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("page-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the browser makes of a page, with `more` at its end.
fn opened(name: &str, text: &str, more: &str, place: &str) -> String {
    sized("1200,900", name, text, more, place)
}

/// The same in a window of so many pixels.
fn sized(window: &str, name: &str, text: &str, more: &str, place: &str) -> String {
    let folder = Folder::new(name);
    let path = folder.0.join("page.html");
    let text = text.replace("</body>", &format!("{more}</body>"));
    std::fs::write(&path, text).expect("the page can be written");
    let browser = browser();
    let output = Command::new(&browser)
        .args(["--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
        .arg(format!("--window-size={window}"))
        .arg(format!("file://{}{place}", path.display()))
        .output()
        .unwrap_or_else(|why| {
            panic!(
                "cannot start {}: {why}; install the Debian package chromium-headless-shell, or name a Chromium in BROWSER",
                browser.display()
            )
        });
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes into the page what only a browser knows: whether it is wider than the window, and how many passes are open.
const MEASURE: &str = "<script>{const it = document.documentElement; it.dataset.wide = String(it.scrollWidth > innerWidth); \
    it.dataset.open = String(document.querySelectorAll('details[open]').length);}</script>";

#[test]
fn the_page_shows_every_pass_and_leads_to_the_one_in_its_address() {
    let story = story();
    let text = page(&story);
    let line = story.passes[story.passes.len() / 2].line;
    let dom = opened("links", &text, MEASURE, &format!("#line-{line}"));
    assert!(dom.contains(&format!("data-ready=\"{}\"", story.passes.len())));
    assert!(
        dom.contains(&format!("id=\"line-{line}\" open=\"\"")),
        "the pass is open"
    );
    assert!(dom.contains("data-open=\"1\""), "no other is");
    assert_eq!(
        dom.matches("<details class=\"pass\"").count(),
        story.passes.len()
    );
}

#[test]
fn keys_go_from_pass_to_pass() {
    let press = "<script>for (const key of ['j', 'j', 'k', 'j']) dispatchEvent(new KeyboardEvent('keydown', {key}));</script>";
    let dom = opened("keys", &page(&story()), &format!("{press}{MEASURE}"), "");
    assert!(dom.contains("data-open=\"2\""));
}

#[test]
fn everything_is_there_without_scripts() {
    let story = story();
    let text = page(&story);
    let without = text.replace(
        "script-src &#39;unsafe-inline&#39;",
        "script-src &#39;none&#39;",
    );
    assert_ne!(without, text);
    let dom = opened("plain", &without, MEASURE, "");
    assert!(!dom.contains("data-ready=") && !dom.contains("data-open="));
    let passes = dom.matches("<details class=\"pass\"").count();
    assert_eq!(passes, story.passes.len());
    assert!(dom.contains("Rests on:"));
}

#[test]
fn it_fits_a_narrow_window() {
    let dom = sized("360,740", "narrow", &page(&story()), MEASURE, "");
    assert!(dom.contains("data-wide=\"false\""));
}
