//! The commands of the tiny shell.

use super::text::{date, format, seconds, unescape};
use super::{Flow, Shell, Stop, tar};

/// Names that can be found in the path.
const PROGRAMS: [&str; 42] = [
    "sh", "bash", "ash", "echo", "printf", "true", "false", "sleep", "date", "env", "printenv", "hostname", "pwd",
    "ls", "cat", "touch", "mkdir", "rm", "cp", "mv", "test", "id", "whoami", "uname", "head", "tail", "grep", "wc",
    "seq", "ps", "uptime", "which", "tee", "tar", "stat", "dd", "expr", "wget", "curl", "awk", "nc", "nslookup",
];

impl Shell<'_> {
    /// Runs one command.
    pub(super) fn command(&mut self, fields: &[String]) -> Flow {
        let Some(first) = fields.first() else { return Ok(0) };
        let name = first.rsplit('/').next().unwrap_or_default();
        let arguments = &fields[1..];
        match name {
            "sh" | "bash" | "ash" | "dash" => self.subshell(arguments),
            "exec" | "command" | "nohup" | "time" | "tini" | "--" => {
                self.command(arguments.strip_prefix(&["--".to_owned()]).unwrap_or(arguments))
            }
            ":" | "true" | "set" | "trap" | "wait" | "sync" | "kill" | "chmod" | "chown" | "ulimit" | "umask" => Ok(0),
            "false" => Ok(1),
            "exit" | "return" => {
                Err(Stop::Exit(arguments.first().and_then(|code| code.parse().ok()).unwrap_or(self.status)))
            }
            "break" => Err(Stop::Break),
            "continue" => Err(Stop::Continue),
            "sleep" => self.sleep(arguments),
            "pause" => Err(Stop::Forever),
            "echo" => self.echo(arguments),
            "printf" => {
                let text = format(arguments.first().map_or("", String::as_str), arguments.get(1..).unwrap_or_default());
                self.out(text.as_bytes());
                Ok(0)
            }
            "export" | "local" | "readonly" => self.export(arguments),
            "unset" => {
                arguments.iter().for_each(|name| drop(self.variables.remove(name)));
                Ok(0)
            }
            "env" | "printenv" => self.environment(arguments),
            "cd" => self.change_directory(arguments),
            "test" => Ok(i32::from(!self.test(arguments))),
            "[" => Ok(i32::from(!self.test(arguments.strip_suffix(&["]".to_owned()]).unwrap_or(arguments)))),
            "[[" => Ok(i32::from(!self.test(arguments.strip_suffix(&["]]".to_owned()]).unwrap_or(arguments)))),
            "expr" => self.calculate(arguments),
            "read" => self.read_variable(arguments),
            _ => self.program(name, first, arguments),
        }
    }

    fn program(&mut self, name: &str, first: &str, arguments: &[String]) -> Flow {
        let text = match name {
            "date" => date(self.now(), arguments.iter().find_map(|word| word.strip_prefix('+'))),
            "hostname" => self.variables.get("HOSTNAME").cloned().unwrap_or_default(),
            "pwd" => self.directory.clone(),
            "whoami" => "root".into(),
            "tty" => "/dev/pts/0".into(),
            "stty" if arguments.first().is_some_and(|word| word == "size") => {
                let number = |name: &str, usual: &str| self.variables.get(name).map_or(usual.to_owned(), Clone::clone);
                format!("{} {}", number("LINES", "24"), number("COLUMNS", "80"))
            }
            "id" => "uid=0(root) gid=0(root) groups=0(root)".into(),
            "uname" if arguments.iter().any(|word| word == "-a") => {
                format!(
                    "Linux {} 6.12.0 #1 SMP simulated x86_64 GNU/Linux",
                    self.variables.get("HOSTNAME").map_or("", String::as_str)
                )
            }
            "uname" => "Linux".into(),
            "uptime" => " up 1 day, load average: 0.01, 0.02, 0.00".into(),
            "ps" => "PID   USER     TIME  COMMAND\n    1 root      0:00 simulated".into(),
            "ls" => return self.list(arguments),
            "cat" => return self.cat(arguments),
            "head" | "tail" => return self.part(name, arguments),
            "grep" => return self.grep(arguments),
            "wc" => return self.count(arguments),
            "seq" => return self.sequence(arguments),
            "which" => return self.which(arguments),
            "touch" | "mkdir" | "rm" | "cp" | "mv" | "stat" => return self.file_command(name, arguments),
            "awk" => return self.columns(arguments),
            "agnhost" => return self.agnhost(arguments),
            "nc" => return self.netcat(arguments),
            "nslookup" => return self.look_up(arguments),
            "dd" => return self.copy_blocks(arguments),
            "tee" => return self.tee(arguments),
            "tar" => return self.tar(arguments),
            "wget" | "curl" => return self.fetch(name, arguments),
            _ => return self.unknown(first),
        };
        self.line(&text);
        Ok(0)
    }

    pub(super) fn unknown(&mut self, first: &str) -> Flow {
        if self.strict || self.captures.is_empty() && self.steps == 0 {
            return Err(Stop::Unknown(first.to_owned()));
        }
        self.error(&format!("sh: {first}: not found"));
        Ok(127)
    }

    fn subshell(&mut self, arguments: &[String]) -> Flow {
        let mut rest = arguments;
        while let Some(flag) = rest.first().filter(|word| word.starts_with('-')) {
            rest = &rest[1..];
            if flag.contains('c') {
                self.steps += 1;
                let script = rest.first().cloned().unwrap_or_default();
                return match self.script(&script) {
                    Err(Stop::Exit(code)) if !self.captures.is_empty() => Ok(code),
                    other => other,
                };
            }
        }
        match rest.first() {
            Some(file) => match self.files.read(&self.absolute(file)) {
                Some(bytes) => self.script(&String::from_utf8_lossy(&bytes)),
                None if self.strict => Err(Stop::Unknown(file.clone())),
                None => {
                    self.error(&format!("sh: can't open '{file}': No such file or directory"));
                    Ok(2)
                }
            },
            None => {
                self.steps += 1;
                let script = String::from_utf8_lossy(&std::mem::take(&mut self.input)).into_owned();
                self.script(&script)
            }
        }
    }

    fn sleep(&mut self, arguments: &[String]) -> Flow {
        for word in arguments {
            match seconds(word) {
                Ok(Some(time)) => {
                    self.elapsed += time;
                    self.waits.push(self.elapsed);
                    if self.limit.is_some_and(|limit| self.elapsed > limit) {
                        return Err(Stop::Forever);
                    }
                }
                Ok(None) => return Err(Stop::Forever),
                Err(()) => {
                    self.error(&format!("sleep: invalid number '{word}'"));
                    return Ok(1);
                }
            }
        }
        Ok(0)
    }

    fn echo(&mut self, arguments: &[String]) -> Flow {
        let (mut newline, mut escapes) = (true, false);
        let mut rest = arguments;
        while let Some(flag) = rest.first().filter(|word| matches!(word.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E")) {
            newline &= !flag.contains('n');
            escapes |= flag.contains('e');
            rest = &rest[1..];
        }
        let mut text = rest.join(" ");
        if escapes {
            text = unescape(&text);
        }
        if newline {
            text.push('\n');
        }
        self.out(text.as_bytes());
        Ok(0)
    }

    fn export(&mut self, arguments: &[String]) -> Flow {
        for word in arguments {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            if let Some(value) = value {
                self.variables.insert(name.to_owned(), value.to_owned());
            }
            self.exported.push(name.to_owned());
        }
        Ok(0)
    }

    fn environment(&mut self, arguments: &[String]) -> Flow {
        if let Some(name) = arguments.first() {
            if let Some((name, value)) = name.split_once('=') {
                self.variables.insert(name.to_owned(), value.to_owned());
                return self.command(&arguments[1..]);
            }
            return match self.variables.get(name).cloned() {
                Some(value) => {
                    self.line(&value);
                    Ok(0)
                }
                None => Ok(1),
            };
        }
        let known = self.variables.iter().filter(|(name, _)| self.exported.contains(name));
        let all: Vec<String> = known.map(|(name, value)| format!("{name}={value}")).collect();
        for line in all {
            self.line(&line);
        }
        Ok(0)
    }

    fn change_directory(&mut self, arguments: &[String]) -> Flow {
        let home = self.variables.get("HOME").cloned().unwrap_or_else(|| "/root".into());
        let path = self.absolute(arguments.first().unwrap_or(&home));
        if !self.files.is_directory(&path) {
            self.error(&format!("sh: cd: can't cd to {path}: No such file or directory"));
            return Ok(2);
        }
        self.directory = path;
        Ok(0)
    }

    fn read_variable(&mut self, arguments: &[String]) -> Flow {
        let text = String::from_utf8_lossy(&self.input).into_owned();
        let Some(line) = text.lines().next() else { return Ok(1) };
        self.input = text.as_bytes()[(line.len() + 1).min(text.len())..].to_vec();
        if let Some(name) = arguments.last() {
            self.variables.insert(name.clone(), line.to_owned());
        }
        Ok(0)
    }

    /// `expr LEFT OPERATOR RIGHT` with whole numbers; like the original it fails when the result is zero.
    fn calculate(&mut self, arguments: &[String]) -> Flow {
        let [left, operator, right] = arguments else {
            self.error("expr: syntax error");
            return Ok(2);
        };
        let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) else {
            self.error("expr: non-numeric argument");
            return Ok(2);
        };
        let result = match operator.as_str() {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" => left.checked_div(right),
            "%" => left.checked_rem(right),
            "=" => Some(i64::from(left == right)),
            "<" => Some(i64::from(left < right)),
            ">" => Some(i64::from(left > right)),
            _ => None,
        };
        match result {
            Some(number) => {
                self.line(&number.to_string());
                Ok(i32::from(number == 0))
            }
            None => {
                self.error("expr: syntax error");
                Ok(2)
            }
        }
    }

    fn test(&self, words: &[String]) -> bool {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let number = |text: &str| text.parse::<i64>().unwrap_or(0);
        match words.as_slice() {
            [] => false,
            ["!", rest @ ..] => !self.test(&rest.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
            ["-z", text] => text.is_empty(),
            ["-n", text] => !text.is_empty(),
            ["-d", path] => self.files.is_directory(&self.absolute(path)),
            ["-f" | "-s" | "-r", path] => self.files.read(&self.absolute(path)).is_some(),
            ["-e", path] => self.files.exists(&self.absolute(path)),
            ["-x", path] => PROGRAMS.contains(&path.rsplit('/').next().unwrap_or_default()),
            [one] => !one.is_empty(),
            [left, "=" | "==", right] => left == right,
            [left, "!=", right] => left != right,
            [left, "-eq", right] => number(left) == number(right),
            [left, "-ne", right] => number(left) != number(right),
            [left, "-lt", right] => number(left) < number(right),
            [left, "-le", right] => number(left) <= number(right),
            [left, "-gt", right] => number(left) > number(right),
            [left, "-ge", right] => number(left) >= number(right),
            _ => false,
        }
    }

    fn list(&mut self, arguments: &[String]) -> Flow {
        let long = arguments.iter().any(|word| word.starts_with('-') && word.contains('l'));
        let paths: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        let here = self.directory.clone();
        let path = self.absolute(paths.first().map_or(&here, |path| path));
        if !self.files.exists(&path) {
            self.error(&format!("ls: {path}: No such file or directory"));
            return Ok(1);
        }
        let names = if self.files.is_directory(&path) { self.files.names(&path) } else { vec![path.clone()] };
        for name in names {
            let full = self.absolute(&format!("{path}/{name}"));
            let line = match (long, self.files.read(&full)) {
                (false, _) => name,
                (true, Some(bytes)) => {
                    format!("-rw-r--r--    1 root     root     {:>9} Jan  1 00:00 {name}", bytes.len())
                }
                (true, None) => format!("drwxr-xr-x    1 root     root          4096 Jan  1 00:00 {name}"),
            };
            self.line(&line);
        }
        Ok(0)
    }

    /// The content of the files named, or of the input.
    fn contents(&mut self, command: &str, paths: &[&String]) -> (Vec<u8>, i32) {
        if paths.is_empty() || paths.iter().all(|path| *path == "-") {
            return (std::mem::take(&mut self.input), 0);
        }
        let (mut all, mut code) = (Vec::new(), 0);
        for path in paths {
            match self.files.read(&self.absolute(path)) {
                Some(bytes) => all.extend_from_slice(&bytes),
                None => {
                    self.error(&format!("{command}: can't open '{path}': No such file or directory"));
                    code = 1;
                }
            }
        }
        (all, code)
    }

    fn cat(&mut self, arguments: &[String]) -> Flow {
        let paths: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-') || *word == "-").collect();
        let (bytes, code) = self.contents("cat", &paths);
        self.out(&bytes);
        Ok(code)
    }

    fn part(&mut self, name: &str, arguments: &[String]) -> Flow {
        if name == "tail" && arguments.iter().any(|word| matches!(word.as_str(), "-f" | "-F")) {
            return Err(Stop::Forever);
        }
        let mut count = 10;
        let mut paths = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some("n") => count = words.next().and_then(|number| number.parse().ok()).unwrap_or(count),
                Some(number) => count = number.trim_start_matches('n').parse().unwrap_or(count),
                None => paths.push(word),
            }
        }
        let (bytes, code) = self.contents(name, &paths);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let skip = if name == "tail" { lines.len().saturating_sub(count) } else { 0 };
        for line in lines.into_iter().skip(skip).take(count) {
            self.line(line);
        }
        Ok(code)
    }

    fn grep(&mut self, arguments: &[String]) -> Flow {
        let flags: String = arguments.iter().filter_map(|word| word.strip_prefix('-')).collect();
        let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        let Some((pattern, paths)) = words.split_first() else { return Ok(2) };
        let pattern = if flags.contains('i') { pattern.to_lowercase() } else { (*pattern).clone() };
        let (bytes, _) = self.contents("grep", paths);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut found = 1;
        for line in text.lines() {
            let shown = if flags.contains('i') { line.to_lowercase() } else { line.to_owned() };
            if shown.contains(&pattern) != flags.contains('v') {
                found = 0;
                if !flags.contains('q') {
                    self.line(line);
                }
            }
        }
        Ok(found)
    }

    fn count(&mut self, arguments: &[String]) -> Flow {
        let paths: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        let flags: String = arguments.iter().filter_map(|word| word.strip_prefix('-')).collect();
        let (bytes, code) = self.contents("wc", &paths);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (lines, words) = (bytes.iter().filter(|byte| **byte == b'\n').count(), text.split_whitespace().count());
        let line = match flags.as_str() {
            "l" => lines.to_string(),
            "w" => words.to_string(),
            "c" => bytes.len().to_string(),
            _ => format!("{lines:>7} {words:>7} {:>7}", bytes.len()),
        };
        self.line(&line);
        Ok(code)
    }

    fn sequence(&mut self, arguments: &[String]) -> Flow {
        let numbers: Vec<i64> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
        let (first, last) = match numbers.as_slice() {
            [last] => (1, *last),
            [first, last] | [first, _, last] => (*first, *last),
            _ => return Ok(1),
        };
        for number in (first..=last).take(10_000) {
            self.line(&number.to_string());
        }
        Ok(0)
    }

    fn which(&mut self, arguments: &[String]) -> Flow {
        let mut code = 0;
        for name in arguments {
            if PROGRAMS.contains(&name.as_str()) { self.line(&format!("/bin/{name}")) } else { code = 1 }
        }
        Ok(code)
    }

    fn file_command(&mut self, name: &str, arguments: &[String]) -> Flow {
        let paths: Vec<String> =
            arguments.iter().filter(|word| !word.starts_with('-')).map(|path| self.absolute(path)).collect();
        let mut code = 0;
        match (name, paths.as_slice()) {
            ("cp" | "mv", [from, to]) => match self.files.read(from) {
                Some(bytes) => {
                    let file = from.rsplit('/').next().unwrap_or_default();
                    let target = if self.files.is_directory(to) {
                        format!("{}/{file}", to.trim_end_matches('/'))
                    } else {
                        to.clone()
                    };
                    self.files.write(&target, &bytes, false);
                    if name == "mv" {
                        self.files.remove(from);
                    }
                    if arguments.iter().any(|word| word == "-v") {
                        self.line(&format!("'{from}' -> '{target}'"));
                    }
                }
                None => code = 1,
            },
            ("touch", _) => paths.iter().for_each(|path| self.files.write(path, b"", true)),
            ("mkdir", _) => paths.iter().for_each(|path| self.files.make_directory(path)),
            ("rm", _) => {
                let force = arguments.iter().any(|word| word.starts_with('-') && word.contains('f'));
                for path in &paths {
                    if !self.files.remove(path) && !force {
                        self.error(&format!("rm: can't remove '{path}': No such file or directory"));
                        code = 1;
                    }
                }
            }
            _ => code = i32::from(!paths.iter().all(|path| self.files.exists(path))),
        }
        Ok(code)
    }

    /// `awk '{print $N}'`: one column of its input.
    fn columns(&mut self, arguments: &[String]) -> Flow {
        let Some((program, paths)) = arguments.split_first() else { return Ok(2) };
        let inner = program.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        let column = inner.trim().strip_prefix("print").and_then(|rest| rest.trim().strip_prefix('$'));
        let Some(number) = column.and_then(|text| text.parse::<usize>().ok()) else { return self.unknown("awk") };
        let (bytes, code) = self.contents("awk", &paths.iter().collect::<Vec<_>>());
        for line in String::from_utf8_lossy(&bytes).lines() {
            let found = if number == 0 { Some(line) } else { line.split_whitespace().nth(number - 1) };
            self.line(found.unwrap_or_default());
        }
        Ok(code)
    }

    /// `dd of=FILE`: the file is there afterwards; what is in it does not matter here.
    fn copy_blocks(&mut self, arguments: &[String]) -> Flow {
        for path in arguments.iter().filter_map(|word| word.strip_prefix("of=")) {
            let path = self.absolute(path);
            self.files.write(&path, b"\0", false);
        }
        Ok(0)
    }

    fn tee(&mut self, arguments: &[String]) -> Flow {
        let bytes = std::mem::take(&mut self.input);
        let append = arguments.iter().any(|word| word == "-a");
        for path in arguments.iter().filter(|word| !word.starts_with('-')) {
            let path = self.absolute(path);
            self.files.write(&path, &bytes, append);
        }
        self.out(&bytes);
        Ok(0)
    }

    /// `tar cf - PATH…` and `tar xf - -C DIRECTORY`, as copying uses them.
    fn tar(&mut self, arguments: &[String]) -> Flow {
        let mut paths = Vec::new();
        let mut directory = self.directory.clone();
        let mut words = arguments.iter();
        let flags = words.next().cloned().unwrap_or_default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-C" => directory = words.next().map(|path| self.absolute(path)).unwrap_or(directory),
                "-" | "-f" => {}
                word if word.starts_with('-') => {}
                word => paths.push(word.to_owned()),
            }
        }
        if flags.contains('x') {
            for (path, content) in tar::read(&std::mem::take(&mut self.input)) {
                let path = super::files::normalize(&format!("{directory}/{path}"));
                match content {
                    Some(bytes) => self.files.write(&path, &bytes, false),
                    None => self.files.make_directory(&path),
                }
            }
            return Ok(0);
        }
        let mut members = Vec::new();
        for path in &paths {
            let path = self.absolute(path);
            let found = self.files.below(&path);
            if found.is_empty() && !self.files.is_directory(&path) {
                self.error(&format!("tar: {path}: Cannot stat: No such file or directory"));
                return Ok(2);
            }
            members.extend(found);
        }
        self.out(&tar::write(&members));
        Ok(0)
    }
}
