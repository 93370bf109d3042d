use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio, id};

use rustix::fs::{MemfdFlags, Mode, memfd_create, mkfifoat};
use tempfile::TempDir;

use super::*;

/// A made-up `/proc` with one process per list of descriptors, numbered from 1.
fn made_up(programs: &[&[&str]]) -> (TempDir, Proc) {
    let root = tempfile::tempdir().unwrap();
    for (number, targets) in programs.iter().enumerate() {
        let folder = root.path().join(format!("{}/fd", number + 1));
        fs::create_dir_all(&folder).unwrap();
        for (fd, target) in targets.iter().enumerate() {
            symlink(target, folder.join(fd.to_string())).unwrap();
        }
    }
    let proc = Proc::new(root.path());
    (root, proc)
}

/// Nothing else runs under cosched.
fn no_pids() -> Vec<i32> {
    Vec::new()
}

fn dependencies(proc: &Proc, pid: i32) -> Dependencies {
    inspect(proc, &[pid], &no_pids, &HandedOut::default(), &mut Tables::default()).unwrap()
}

#[test]
fn devices_and_terminals_forbid_freezing() {
    let (_root, proc) = made_up(&[
        &["/dev/null", "/dev/nvidia0"],
        &["/dev/dri/renderD128"],
        &["/dev/kfd"],
        &["/dev/pts/3"],
        &["/dev/tty"],
        &["/dev/null", "/home/a/dev/pts/3", "anon_inode:[eventpoll]"],
    ]);
    let why: Vec<_> = (1..=6).map(|pid| dependencies(&proc, pid).forbid_freezing()).collect();
    let (gpu, terminal) = (Some(Refusal::HoldsGpu), Some(Refusal::HoldsTerminal));
    assert_eq!(why, [gpu, gpu, gpu, terminal, terminal, None]);
}

#[test]
fn a_terminal_made_by_the_program_itself_does_not_count() {
    let (root, proc) = made_up(&[&["/dev/ptmx"], &["/dev/pts/3"], &["/dev/pts/3", "/dev/pts/4"]]);
    fs::create_dir(root.path().join("1/fdinfo")).unwrap();
    fs::write(root.path().join("1/fdinfo/0"), "pos:\t0\ntty-index:\t3\n").unwrap();
    let holds = |pids: &[i32]| {
        inspect(&proc, pids, &no_pids, &HandedOut::default(), &mut Tables::default()).unwrap()
    };
    let programs = [&[1][..], &[1, 2], &[2, 1], &[2], &[1, 2, 3]];
    let holds = programs.map(|pids| holds(pids).holds_terminal);
    assert_eq!(holds, [false, false, false, true, true]);
}

#[test]
fn inherited_descriptors_do_not_count() {
    let (_root, proc) = made_up(&[&["/dev/pts/3", "pipe:[7]", "socket:[8]", "pipe:[9]"]]);
    let mut handed_out: HandedOut =
        ["/dev/pts/3", "pipe:[7]"].map(str::to_owned).into_iter().collect();
    handed_out.insert("socket:[8]".to_owned());
    let found = inspect(&proc, &[1], &no_pids, &handed_out, &mut Tables::default()).unwrap();
    assert_eq!(found.shared, [SharedKey::Pipe(9)].into());
    assert_eq!(found.forbid_freezing(), None);
}

#[test]
fn all_live_processes_of_a_program_count() {
    let (_root, proc) = made_up(&[&["pipe:[7]"], &["socket:[8]", "/dev/kfd"]]);
    let found =
        inspect(&proc, &[1, 99, 2], &no_pids, &HandedOut::default(), &mut Tables::default())
            .unwrap();
    assert_eq!(found.shared, [SharedKey::Pipe(7), SharedKey::Socket(8)].into());
    assert!(found.holds_gpu);
}

#[test]
fn a_named_pipe_is_the_same_under_every_name() {
    let root = tempfile::tempdir().unwrap();
    let (path, alias) = (root.path().join("fifo"), root.path().join("alias"));
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    fs::hard_link(&path, &alias).unwrap();
    let ordinary = root.path().join("ordinary");
    fs::write(&ordinary, "").unwrap();
    let [path, alias, ordinary] = [&path, &alias, &ordinary].map(|path| path.to_str().unwrap());
    let (_proc_root, proc) = made_up(&[&[path, ordinary], &[alias], &[ordinary]]);
    let all: Vec<Dependencies> = (1..=3).map(|pid| dependencies(&proc, pid)).collect();
    assert_eq!(groups(&all).iter().filter(|group| group.is_some()).count(), 2);
    assert_eq!(all[2], Dependencies::default());
}

#[test]
fn shared_mappings_count_even_when_the_descriptor_is_closed() {
    let (root, proc) = made_up(&[&[]]);
    let maps = "\
        55aa-55ab r-xp 00000000 fe:00 12 /usr/bin/x\n\
        7f00-7f01 rw-s 00000000 00:1a 42                 /dev/shm/x y (deleted)\n\
        7f02-7f03 rw-p 00000000 00:1a 43                 /dev/shm/private\n\
        7f04-7f05 r--s 00000000 fe:00 44                 /usr/lib/cache\n\
        7f06-7f07 rw-s 00000000 00:01 98305              /SYSV00000000 (deleted)\n\
        7f08-7f09 rw-p 00000000 00:00 0 \n";
    fs::write(root.path().join("1/maps"), maps).unwrap();
    let memory = |minor, inode| SharedKey::Memory(FileId { device: makedev(0, minor), inode });
    assert_eq!(dependencies(&proc, 1).shared, [memory(0x1a, 42), memory(1, 98305)].into());
}

#[test]
fn listening_is_read_from_the_tables_of_the_namespace() {
    let (root, proc) = made_up(&[&["socket:[1603]"], &["socket:[1700]"], &["socket:[1801]"]]);
    let tcp = "  sl  local_address rem_address   st ...\n\
        0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1603 1 0 100\n\
        1: 0100007F:07E8 0100007F:1234 01 00000000:00000000 00:00000000 00000000 \
        0 0 1700 1 0 100\n";
    let unix = "Num RefCount Protocol Flags Type St Inode Path\n\
        0: 00000003 00000000 00000000 0001 03 1700\n\
        0: 00000002 00000000 00010000 0001 01 1801 /run/x\n";
    for pid in 1..=3 {
        let net = root.path().join(format!("{pid}/net"));
        fs::create_dir(&net).unwrap();
        fs::write(net.join("tcp"), tcp).unwrap();
        fs::write(net.join("unix"), unix).unwrap();
    }
    let listens: Vec<bool> = (1..=3).map(|pid| dependencies(&proc, pid).listens).collect();
    assert_eq!(listens, [true, false, true]);
}

#[test]
fn tables_of_tcp_are_not_read_for_sockets_of_unix() {
    let (root, proc) = made_up(&[&["socket:[1700]"], &["socket:[1700]", "socket:[1603]"]]);
    for pid in 1..=2 {
        let net = root.path().join(format!("{pid}/net"));
        // This is no file, so reading it fails.
        fs::create_dir_all(net.join("tcp")).unwrap();
        let unix = "0: 00000003 00000000 00000000 0001 03 1700\n";
        fs::write(net.join("unix"), unix).unwrap();
    }
    let inspected =
        |pid| inspect(&proc, &[pid], &no_pids, &HandedOut::default(), &mut Tables::default());
    assert!(!inspected(1).unwrap().listens);
    assert!(inspected(2).is_err(), "one that is none of them may be of TCP");
}

#[test]
fn this_process_is_seen_with_what_it_opens() {
    let (proc, me) = (Proc::default(), id() as i32);
    let handed_out = held_by(&proc, me).unwrap();
    let memory = memfd_create("x", MemfdFlags::CLOEXEC).unwrap();
    let (one_end, _other_end) = UnixStream::pair().unwrap();
    let found = inspect(&proc, &[me], &no_pids, &handed_out, &mut Tables::default()).unwrap();
    let socket = rustix::fs::fstat(&one_end).unwrap().st_ino;
    assert!(found.shared.contains(&SharedKey::Socket(socket)));
    let inode = rustix::fs::fstat(&memory).unwrap().st_ino;
    let is_it = |key: &SharedKey| matches!(key, SharedKey::Memory(id) if id.inode == inode);
    assert!(found.shared.iter().any(is_it), "{found:?}");
}

/// A process that holds a connection to this port.
struct Client(Child);

impl Client {
    fn of(port: u16) -> Client {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo; exec sleep 100");
        let mut bash = Command::new("bash");
        let mut child = bash.args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        Client(child)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn connections_show_whether_a_listener_serves_other_programs() {
    let (proc, me) = (Proc::default(), id() as i32);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let found =
        || inspect(&proc, &[me], &no_pids, &HandedOut::default(), &mut Tables::default()).unwrap();
    let listens = || (found().listens, found().listens_within);
    assert_eq!(listens(), (false, true), "no other process knows the port yet");
    let own = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(listens(), (false, true), "this process is connected with itself, not yet accepted");
    let accepted = listener.accept().unwrap();
    assert_eq!(listens(), (false, true));

    let client = Client::of(port);
    assert_eq!(listens(), (true, false), "a client waits to be accepted");
    let served = listener.accept().unwrap();
    assert_eq!(listens(), (true, false));

    let its = [client.0.id() as i32];
    let under_cosched = || its.to_vec();
    let server =
        inspect(&proc, &[me], &under_cosched, &HandedOut::default(), &mut Tables::default())
            .unwrap();
    assert!(!server.listens && server.listens_within);
    let client =
        inspect(&proc, &its, &|| vec![me], &HandedOut::default(), &mut Tables::default()).unwrap();
    assert!(groups(&[server, client]).iter().all(Option::is_some), "they share the connection");
    drop((own, accepted, served));
}

/// Its descriptors are listed before it connects, and the table is read afterwards.
#[test]
fn a_connection_made_meanwhile_is_known_as_its_own() {
    let (root, proc) = made_up(&[&["socket:[1]"]]);
    let folder = root.path().join("1");
    fs::create_dir(folder.join("net")).unwrap();
    let (table, pipe) = (folder.join("table"), folder.join("net/tcp"));
    // It waits at port 1024, and has not accepted its own connection yet.
    let lines = "0: 00000000:0400 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1\n\
        1: 0100007F:B0B0 0100007F:0400 01 00000000:00000000 00:00000000 00000000 0 0 2 1\n\
        2: 0100007F:0400 0100007F:B0B0 01 00000000:00000000 00:00000000 00000000 0 0 0 1\n";
    fs::write(&table, lines).unwrap();
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let found = std::thread::scope(|scope| {
        let inspection = scope.spawn(|| dependencies(&proc, 1));
        // This waits until the table is opened.
        let mut shown = fs::File::options().write(true).open(&pipe).unwrap();
        symlink("socket:[2]", folder.join("fd/1")).unwrap();
        fs::rename(&table, &pipe).unwrap();
        shown.write_all(lines.as_bytes()).unwrap();
        inspection.join().unwrap()
    });
    assert!(!found.listens && found.listens_within);
}

#[test]
fn a_named_socket_serves_others_that_can_know_its_name() {
    let (proc, me) = (Proc::default(), id() as i32);
    let serves_until = |address: &SocketAddr, then: &dyn Fn()| {
        let listener = UnixListener::bind_addr(address).unwrap();
        then();
        let inode = rustix::fs::fstat(&listener).unwrap().st_ino;
        let found =
            inspect(&proc, &[me], &no_pids, &HandedOut::default(), &mut Tables::default()).unwrap();
        assert!(found.shared.contains(&SharedKey::Socket(inode)));
        assert!(found.listens != found.listens_within);
        found.listens
    };
    let serves = |address: &SocketAddr| serves_until(address, &|| ());
    let path = |path: &Path| SocketAddr::from_pathname(path).unwrap();
    let closed = fs::Permissions::from_mode(0o700);
    let own = tempfile::Builder::new().permissions(closed).tempdir_in("/tmp").unwrap();
    let deeper = own.path().join("deeper");
    fs::create_dir(&deeper).unwrap();
    assert!(!serves(&path(&own.path().join("socket"))));
    let in_deeper = path(&deeper.join("socket"));
    assert!(serves(&in_deeper), "the folder is not one of its own");
    fs::remove_file(deeper.join("socket")).unwrap();
    let renamed = || fs::rename(deeper.join("socket"), deeper.join("final")).unwrap();
    assert!(serves_until(&in_deeper, &renamed), "it has another name");
    // A pool that shuts down removes its folder before it closes its sockets.
    assert!(!serves_until(&in_deeper, &|| fs::remove_dir_all(own.path()).unwrap()));
    let name = |name: String| SocketAddr::from_abstract_name(name).unwrap();
    assert!(!serves(&name(format!("listener-{me}-0"))));
    assert!(serves(&name(format!("listener-{me}0"))));
}

#[test]
fn a_parallel_program_may_use_known_ports() {
    let (root, proc) = made_up(&[&["socket:[1]", "socket:[2]", "socket:[3]"], &["socket:[4]"]]);
    let listener = |line: u32, port: &str, inode| {
        format!(
            "{line}: 00000000:{port} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 \
             {inode} 1\n"
        )
    };
    let connected = |a: &str, b: &str, inode| {
        format!(
            "9: 0100007F:{a} 0100007F:{b} 01 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n"
        )
    };
    // Its first process waits at port 57005, which the kernel has chosen, and at 1024.
    let tables = [listener(0, "DEAD", 1), listener(1, "0400", 2)].concat();
    let both_ends = [connected("DEAD", "B0B0", 3), connected("B0B0", "DEAD", 4)].concat();
    for pid in 1..=2 {
        let folder = root.path().join(pid.to_string());
        fs::create_dir(folder.join("net")).unwrap();
        fs::create_dir(folder.join("ns")).unwrap();
        symlink("net:[1]", folder.join("ns/net")).unwrap();
    }
    let listens = |text: &str| {
        for pid in 1..=2 {
            fs::write(root.path().join(format!("{pid}/net/tcp")), text).unwrap();
        }
        // One program with two processes; then only its first process.
        [&[1, 2][..], &[1]].map(|pids| {
            inspect(&proc, pids, &no_pids, &HandedOut::default(), &mut Tables::default())
                .unwrap()
                .listens
        })
    };
    assert_eq!(listens(&tables), [true, true]);
    assert_eq!(listens(&(tables + &both_ends)), [false, true]);
}

#[test]
fn shared_files_tie_processes_and_semaphores_do_not() {
    let root = tempfile::tempdir().unwrap();
    let proc = Proc::new(root.path());
    std::fs::create_dir_all(proc.folder(7).join("fd")).unwrap();
    std::fs::write(
        proc.folder(7).join("maps"),
        "7f00-7f01 rw-s 00000000 00:01 11    /dev/zero (deleted)\n\
         7f01-7f02 rw-s 00000000 fe:00 12    /tmp/a file\n\
         7f02-7f03 r--s 00000000 fe:00 13    /usr/lib/cache\n\
         7f03-7f04 rw-p 00000000 fe:00 14    /usr/lib/libc.so.6\n\
         7f04-7f05 rw-s 00000000 00:1a 15    /dev/shm/sem.queue\n\
         7f05-7f06 rw-s 00000000 00:1a 16    /dev/shm/pool\n",
    )
    .unwrap();
    let ties = ties(&proc, 7, &HandedOut::new(), &mut Tables::default()).unwrap();
    let inode = |key: &SharedKey| match key {
        SharedKey::Memory(id) => id.inode,
        other => panic!("{other:?}"),
    };
    let mut inodes: Vec<u64> = ties.iter().map(inode).collect();
    inodes.sort_unstable();
    assert_eq!(inodes, [11, 12, 16]);
}

#[test]
fn devices_and_nameless_files_tie_no_processes() {
    let ties = |rights: &str, path: &str| {
        writable_file(&format!("7f0000000000-7f0000001000 {rights} 00000000 00:0f 42 {path}"))
            .is_some()
    };
    for path in ["/tmp/shared", "/dev/shm/ring", "/memfd:pool (deleted)", ANONYMOUS] {
        assert!(ties("rw-s", path), "{path}");
    }
    for path in ["anon_inode:[io_uring]", "/dev/nvidiactl", "/dev/shm/sem.one"] {
        assert!(!ties("rw-s", path), "{path}");
    }
    assert!(!ties("r--s", "/tmp/shared") && !ties("rw-p", "/tmp/shared"));
}
