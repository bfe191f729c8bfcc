//! A program that prints credentials. Its time and the length of its output are limited. Of its messages,
//! only the last line is passed on, without text that looks like a secret.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::store::remote::credentials::credential_error::CredentialError;

/// A program must have ended after this time.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The longest output.
const MOST_BYTES: usize = 64 << 10;

/// The longest message that is passed on, in characters.
const MOST_MESSAGE: usize = 200;

/// The shortest run of letters and digits that counts as a secret.
const LEAST_SECRET: usize = 16;

/// The interval for checking whether a program that has closed its output has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// A program and its arguments, which are not passed through a shell.
#[derive(Clone)]
pub(crate) struct Program {
    name: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    deadline: Duration,
}

impl fmt::Debug for Program {
    /// Leaves arguments and variables out, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.name.split('=').next())
            .finish_non_exhaustive()
    }
}

impl Program {
    /// The program of `words`; `variables` are added to those of this process. `None` without a
    /// word.
    pub(crate) fn new(
        words: impl IntoIterator<Item = String>,
        variables: Vec<(String, String)>,
    ) -> Option<Program> {
        let mut words = words.into_iter();
        Some(Program {
            name: words.next().filter(|name| !name.is_empty())?,
            arguments: words.collect(),
            variables,
            deadline: DEADLINE,
        })
    }

    /// The error for this problem of the program.
    pub(crate) fn problem(&self, problem: impl Into<String>) -> CredentialError {
        // A shell would take `NAME=value` for a variable, whose value may be secret.
        let shown = self.name.split('=').next().unwrap_or_default();
        CredentialError::Program {
            program: shown.to_owned(),
            problem: problem.into(),
        }
    }

    /// Runs the program, and waits for its end.
    ///
    /// # Errors
    /// [`CredentialError::Program`] when it cannot be started, fails, prints too much, or does not
    /// end in time. It is killed then, with the programs that it has started.
    pub(crate) fn output(&self) -> Result<Vec<u8>, CredentialError> {
        let end = Instant::now() + self.deadline;
        let mut command = std::process::Command::new(&self.name);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let started = command.spawn();
        let child = started.map_err(|error| self.problem(format!("cannot be started: {error}")))?;
        let mut running = Running {
            child,
            is_reaped: false,
        };
        let output = read(running.child.stdout.take(), Kept::First);
        let messages = read(running.child.stderr.take(), Kept::Last);

        let late = || {
            let seconds = self.deadline.as_secs();
            self.problem(format!("did not end within {seconds} s, and was ended"))
        };
        let output = receive(&output, end).ok_or_else(late)?;
        if output.len() > MOST_BYTES {
            return Err(self.problem("printed more than 64 KiB, too much for credentials"));
        }
        let status = loop {
            let ended = running.child.try_wait();
            let ended = ended.map_err(|error| self.problem(error.to_string()))?;
            match ended {
                Some(status) => {
                    running.is_reaped = true;
                    break status;
                }
                None if Instant::now() >= end => return Err(late()),
                None => thread::sleep(PAUSE),
            }
        };
        if status.success() {
            return Ok(output);
        }
        // A program in the background may still hold the pipe open.
        let messages = receive(&messages, end.min(Instant::now() + Duration::from_secs(1)));
        let message = last_line(&messages.unwrap_or_default());
        Err(self.problem(match message {
            Some(message) => format!("failed ({status}): {message}"),
            None => format!("failed ({status})"),
        }))
    }
}

/// A program that is killed when this is dropped, with its group, unless its end was waited for. Until then the number
/// belongs to no other group.
struct Running {
    child: Child,
    is_reaped: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // The program may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // A program that was killed ends at once.
        let _ = self.child.wait();
    }
}

/// The part of a long output that is kept.
#[derive(Clone, Copy)]
enum Kept {
    /// The first bytes, one more than are allowed.
    First,
    /// The last bytes.
    Last,
}

/// Reads `pipe` on a thread of its own, because a program in the background may hold it open for
/// ever.
fn read(pipe: Option<impl Read + Send + 'static>, kept: Kept) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    let Some(mut pipe) = pipe else {
        return receive;
    };
    let work = move || {
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        while let Ok(len @ 1..) = pipe.read(&mut part) {
            bytes.extend(part.iter().take(len));
            match kept {
                Kept::First if bytes.len() > MOST_BYTES => break,
                Kept::Last if bytes.len() > 2 * part.len() => {
                    bytes.drain(..bytes.len() - part.len());
                }
                Kept::First | Kept::Last => {}
            }
        }
        // The receiver is gone after the deadline.
        let _ = send.send(bytes);
    };
    // Without a thread the sender is dropped, and nothing is received.
    let _ = thread::Builder::new()
        .name("credentials".to_owned())
        .spawn(work);
    receive
}

fn receive(bytes: &Receiver<Vec<u8>>, end: Instant) -> Option<Vec<u8>> {
    let left = end.saturating_duration_since(Instant::now());
    bytes.recv_timeout(left).ok()
}

/// The last line that is not empty, without text that looks like a secret.
fn last_line(messages: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(messages);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let lower = line.to_ascii_lowercase();
    let names = ["password", "passwd", "secret", "token", "key"];
    let has_value = ['=', ':'].iter().any(|sign| lower.contains(*sign));
    if has_value && names.iter().any(|name| lower.contains(name)) {
        return Some("its message is not shown here, because it may have a secret".to_owned());
    }
    let mut shown = String::new();
    let mut run = String::new();
    for c in line.chars().filter(|c| !c.is_control()).chain([' ']) {
        if c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_') {
            run.push(c);
            continue;
        }
        let is_secret = run.len() >= LEAST_SECRET && run.bytes().any(|b| b.is_ascii_digit());
        shown.push_str(if is_secret { "***" } else { &run });
        run.clear();
        shown.push(c);
    }
    Some(shown.trim_end().chars().take(MOST_MESSAGE).collect())
}

#[cfg(test)]
pub(crate) mod testing {
    use std::time::Duration;

    use super::Program;

    /// A script of a shell, with a deadline that only a program that hangs reaches.
    pub(crate) fn script(text: &str) -> Program {
        let words = ["/bin/sh", "-c", text].map(str::to_owned);
        Program::new(words, Vec::new()).unwrap()
    }

    impl Program {
        /// This program with another deadline.
        pub(crate) fn within(mut self, deadline: Duration) -> Program {
            self.deadline = deadline;
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::script;
    use super::*;

    fn problem(script: &Program) -> String {
        script.output().unwrap_err().to_string()
    }

    #[test]
    fn output_is_returned_and_variables_are_passed() {
        let words = ["/bin/sh", "-c", "echo \"$A $1\"", "x", "a b;c"].map(str::to_owned);
        let program = Program::new(words, vec![("A".to_owned(), "hunter2".to_owned())]).unwrap();
        assert_eq!(program.output().unwrap(), b"hunter2 a b;c\n");
        assert!(!format!("{program:?}").contains("hunter2"));
        assert!(Program::new([], Vec::new()).is_none());
        assert!(Program::new([String::new()], Vec::new()).is_none());
    }

    #[test]
    fn failures_show_the_last_line_of_messages_without_secrets() {
        let failing = script("echo out; echo first >&2; echo 'no session for you' >&2; exit 3");
        let expected = "/bin/sh: failed (exit status: 3): no session for you";
        assert_eq!(problem(&failing), expected);
        assert_eq!(
            problem(&script("exit 4")),
            "/bin/sh: failed (exit status: 4)"
        );
        let long = script("yes 'no 2' | head -c 1000000 >&2; echo last >&2; exit 1");
        assert_eq!(problem(&long), "/bin/sh: failed (exit status: 1): last");
        let absent = Program::new(["/no/such".to_owned()], Vec::new()).unwrap();
        assert!(problem(&absent).contains("cannot be started"));
        let variable = Program::new(["A=hunter2".to_owned()], Vec::new()).unwrap();
        let shown = format!("{} {variable:?}", problem(&variable));
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_looks_like_a_secret_is_left_out() {
        for (line, expected) in [
            ("plain words, 12 of them", "plain words, 12 of them"),
            ("for AKIAIOSFODNN7EXAMPLE: no", "for ***: no"),
            ("x wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "x ***"),
            (
                "request 0a1b2c3d-0123-4567-89ab-0123456789ab failed",
                "request 0a1b2c3d-0123-4567-89ab-0123456789ab failed",
            ),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
        ] {
            assert_eq!(last_line(line.as_bytes()).unwrap(), expected);
        }
        for line in [
            "password=hunter2",
            "{\"SecretAccessKey\": \"hunter2\"}",
            "Token: hunter2",
        ] {
            assert!(!last_line(line.as_bytes()).unwrap().contains("hunter2"));
        }
        assert_eq!(last_line(&[b'x'; 4096]).unwrap().len(), MOST_MESSAGE);
        assert_eq!(last_line(b"\n \n"), None);
    }

    #[test]
    fn long_output_is_refused_and_a_program_that_hangs_is_ended() {
        assert!(problem(&script("head -c 65537 /dev/zero")).contains("64 KiB"));
        assert!(problem(&script("cat /dev/zero")).contains("64 KiB"));
        assert_eq!(
            script("head -c 65536 /dev/zero").output().unwrap().len(),
            65536
        );
        // The first program keeps its output open, the second has closed it, and a child of the
        // third holds it.
        for text in [
            "sleep 1000",
            "exec >&- 2>&-; sleep 1000",
            "sleep 1000 & exit 0",
        ] {
            let hanging = script(text).within(Duration::from_millis(200));
            assert!(problem(&hanging).contains("did not end within"), "{text}");
        }
    }

    #[test]
    fn a_late_program_is_ended_with_the_programs_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        let path = fifo.display().to_string();
        let (send, receive) = mpsc::channel();
        // The end of the FIFO is reached when no process holds it open for writing any more.
        thread::spawn(move || send.send(std::fs::read(fifo).unwrap()));
        let text = format!("exec 3>'{path}'; echo open >&3; sleep 1000 & exit 0");
        let hanging = script(&text).within(Duration::from_millis(500));
        assert!(problem(&hanging).contains("did not end within"));
        let ended = receive.recv_timeout(Duration::from_secs(20));
        assert_eq!(ended.unwrap(), b"open\n");
    }
}
