use super::*;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn script(text: &str) -> (String, Ending) {
    let mut files = Files::of_container("p", "10.0.0.1");
    let variables = [("HOSTNAME".to_owned(), "p".to_owned())];
    let mut shell = Shell::new(&variables, &mut files, Timestamp::UNIX_EPOCH);
    let (pieces, ending) = shell.run(&words(&["sh", "-c", text]), b"first\nsecond\n".to_vec());
    let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
    (String::from_utf8(all).expect("text"), ending)
}

#[test]
fn scripts_do_what_they_say() {
    let table = [
        ("echo hello world", "hello world\n", 0),
        ("echo 'a  b' \"$HOSTNAME\" ${X:-none}", "a  b p none\n", 0),
        ("x=1; echo $((x + 2 * 3))", "7\n", 0),
        ("echo $(echo inner) `echo old`", "inner old\n", 0),
        ("false || echo rescued && echo on", "rescued\non\n", 0),
        ("if [ -d /tmp ]; then echo yes; else echo no; fi", "yes\n", 0),
        ("if test 1 -gt 2; then echo yes; elif true; then echo elif; fi", "elif\n", 0),
        ("for i in a b c; do echo $i; done", "a\nb\nc\n", 0),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i", "3\n", 0),
        ("echo one > /tmp/x; echo two >> /tmp/x; cat /tmp/x | grep tw", "two\n", 0),
        ("cat | wc -l", "2\n", 0),
        ("read line; echo got $line", "got first\n", 0),
        ("seq 3 | tail -n 1", "3\n", 0),
        ("n=`echo a >> /tmp/f; wc -l /tmp/f | awk {'print $1'}`; echo $n", "1\n", 0),
        ("echo one two three | awk '{ print $2 }'", "two\n", 0),
        ("printf '%s-%s\\n' a b", "a-b\n", 0),
        ("ls /nowhere 2>/dev/null || exit 4", "", 4),
        ("exit 3", "", 3),
        ("nosuch; echo $?", "sh: nosuch: not found\n127\n", 0),
        ("cat /etc/hostname; hostname", "p\np\n", 0),
        ("{ echo grouped; }; (echo sub)", "grouped\nsub\n", 0),
        ("# a comment\necho after", "after\n", 0),
        ("date +%Y", "1970\n", 0),
    ];
    for (text, expected, code) in table {
        let (output, ending) = script(text);
        assert_eq!((output.as_str(), &ending), (expected, &Ending::Exit(Duration::ZERO, code)), "{text}");
    }
    assert!(matches!(script("echo 'open").1, Ending::Exit(_, 2)));
}

#[test]
fn time_is_virtual() {
    let (_, ending) = script("sleep 5; sleep 1m; exit 2");
    assert_eq!(ending, Ending::Exit(Duration::from_secs(65), 2));
    assert_eq!(script("sleep infinity").1, Ending::Forever);
    assert_eq!(script("tail -f /dev/null").1, Ending::Forever);
    let (output, ending) = script("echo start; while true; do echo tick; sleep 10; done");
    assert!(output.starts_with("start\ntick\n"));
    let Ending::Round(round, length) = ending else { panic!("not a round: {ending:?}") };
    assert_eq!((round.len(), length), (1, Duration::from_secs(10)));
}

#[test]
fn what_a_container_does_is_known_beforehand() {
    let run = |list: &[&str]| foresee(&words(list), &[], Timestamp::UNIX_EPOCH, &mut Files::default());
    assert_eq!(run(&["sleep", "3"]).expect("known").end, Some((Duration::from_secs(3), 0)));
    assert_eq!(run(&["/bin/sh", "-c", "echo a; false"]).expect("known").end, Some((Duration::ZERO, 1)));
    assert!(run(&["nginx", "-g", "daemon off;"]).is_none());
    assert!(run(&["sh", "-c", "echo prepare; exec /app/server"]).is_none());
    assert_eq!(run(&["sh", "-c", "sleep 3600 & wait"]).expect("known").end, Some((Duration::ZERO, 0)));
}

#[test]
fn files_are_copied_in_and_out() {
    let mut files = Files::default();
    let archive = tar::write(&[("dir/a".into(), Some("hello".into()))]);
    let mut shell = Shell::new(&[], &mut files, Timestamp::UNIX_EPOCH);
    let (_, ending) = shell.run(&words(&["tar", "-xmf", "-", "-C", "/tmp"]), archive);
    assert_eq!(ending, Ending::Exit(Duration::ZERO, 0));
    let (pieces, _) = shell.run(&words(&["tar", "cf", "-", "/tmp/dir"]), Vec::new());
    let members = tar::read(&pieces[0].bytes);
    assert_eq!(members.last(), Some(&("tmp/dir/a".to_owned(), Some("hello".into()))));
    let (_, ending) = shell.run(&words(&["tar", "cf", "-", "/nowhere"]), Vec::new());
    assert_eq!(ending, Ending::Exit(Duration::ZERO, 2));
}

#[test]
fn a_session_keeps_what_was_set() {
    let mut files = Files::default();
    let mut shell = Shell::new(&[], &mut files, Timestamp::UNIX_EPOCH);
    shell.run_line("x=5; cd /tmp");
    let (pieces, _) = shell.run_line("echo $x; pwd");
    let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
    assert_eq!(all, b"5\n/tmp\n");
}

#[test]
fn a_protected_root_is_not_written() {
    let mut files = Files::default();
    files.make_directory("/data");
    files.protect();
    let mut shell = Shell::new(&[], &mut files, Timestamp::UNIX_EPOCH);
    let (pieces, _) =
        shell.run(&words(&["/bin/sh", "-c", "echo a > /file; echo b > /data/x; cat /data/x"]), Vec::new());
    let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
    assert_eq!(String::from_utf8_lossy(&all), "/bin/sh: can't create /file: Read-only file system\nb\n");
}
