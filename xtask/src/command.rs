//! Running other programs, with errors that say what was run and what it answered.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// Runs to the end and returns what was written to standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !done.status.success() {
        bail!(
            "`{}` failed ({}): {}",
            shown(command),
            done.status,
            last_lines(&String::from_utf8_lossy(&done.stderr), 8)
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs to the end with text as its standard input.
pub fn output_with_input(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        bail!(
            "`{}` failed ({}): {}",
            shown(command),
            done.status,
            last_lines(&String::from_utf8_lossy(&done.stderr), 8)
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs to the end; only whether it succeeded matters.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs to the end with everything it says appended to a log file, whose end is shown when it fails.
pub fn logged(command: &mut Command, log: &Path) -> Result<()> {
    let mut file = append(log)?;
    writeln!(file, "$ {}", shown(command))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!(
            "`{}` failed ({status}); the end of {}:\n{}",
            shown(command),
            log.display(),
            tail(log, 20)
        );
    }
    Ok(())
}

/// Runs to the end with the terminal as its output.
pub fn shown_to_user(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Opens a file for appending and makes its folder.
pub fn append(path: &Path) -> Result<std::fs::File> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Asks again every 50 ms until the answer is `Some`, an error, or the time is over.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if start.elapsed() > limit {
            return Err(anyhow!(
                "{what} did not happen within {} s",
                limit.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The last lines of a file, or a remark that there is none.
pub fn tail(path: &Path, lines: usize) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(16_384)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(last_lines(&String::from_utf8_lossy(&bytes), lines))
    };
    read().unwrap_or_else(|why| format!("({}: {why})", path.display()))
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The command as one would type it, shortened when it is long.
fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_command_and_its_last_words() {
        let error = output(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"]))
            .expect_err("the command fails");
        let text = error.to_string();
        assert!(
            text.contains("no such luck") && text.contains("sh -c"),
            "{text}"
        );
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }

    #[test]
    fn waiting_ends_with_the_time() {
        let error = wait_for("dawn", Duration::from_millis(60), || Ok(None::<()>))
            .expect_err("it never happens");
        assert!(error.to_string().contains("dawn"));
    }
}
