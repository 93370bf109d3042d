//! Where the cgroup trees are mounted, and where in them the caller is.
//!
//! `/proc/self/mountinfo` lists the mounts: for each, which folder of the tree it shows (its
//! *root*) and where. `/proc/self/cgroup` lists the caller's cgroup in each tree. The caller's
//! folder is the mount point plus what remains of its cgroup after the mount's root. In a container
//! the mount often shows only a part of the tree: with `/docker/1` mounted at `/sys/fs/cgroup` and
//! the caller in `/docker/1/job`, its folder is `/sys/fs/cgroup/job`. In a cgroup namespace both
//! paths are relative to the namespace's root. A mount from outside has a root like `/..` and
//! cannot be used, since the names of the folders between are hidden.

use std::path::{Path, PathBuf};

use cosched_core::format::count;

use super::dir::{Dir, Version};
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::{Membership, Proc, memberships, words};

/// One cgroup tree, as far as the caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The caller's own cgroup.
    pub own: Dir,
    /// v1: the controllers bound to the tree. v2: those that the caller's own cgroup could enable.
    pub controllers: Vec<String>,
}

impl Hierarchy {
    /// The caller's own cgroup and its ancestors, up to the mount point.
    pub(crate) fn own_and_above(&self) -> impl Iterator<Item = Dir> + '_ {
        let own = self.own.path().ancestors();
        own.take_while(|path| path.starts_with(&self.mount))
            .map(|path| Dir::new(path, self.own.version()))
    }
}

/// Every cgroup tree in which the caller has a visible place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    trees: Vec<Hierarchy>,
    /// Why the tree of version 2 was left out, if it was.
    left_out: Option<String>,
}

impl Hierarchies {
    /// Finds the trees of the calling process.
    ///
    /// # Errors
    /// When `/proc/self` cannot be read. Kernels without cgroups are no error: there are no trees.
    pub fn find(proc: &Proc) -> Result<Hierarchies, FileError> {
        Hierarchies::in_folder(&proc.root().join("self"), proc)
    }

    /// Finds the trees of a process. Its cgroups then stand for the caller's own.
    pub(crate) fn of(pid: i32, proc: &Proc) -> Result<Hierarchies, FileError> {
        Hierarchies::in_folder(&proc.folder(pid), proc)
    }

    fn in_folder(process: &Path, proc: &Proc) -> Result<Hierarchies, FileError> {
        if !process.join("cgroup").exists() {
            return Ok(Hierarchies::default());
        }
        let places = memberships(&process.join("cgroup"))?;
        let mountinfo = files::read(&proc.root().join("self/mountinfo"))?;
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let mut trees = Vec::new();
        for place in &places {
            let visible = mounts.iter().filter_map(|mount| Some((mount, mount.folder(place)?)));
            if let Some((mount, folder)) = visible.into_iter().find(|(_, folder)| folder.is_dir()) {
                trees.push(Hierarchy {
                    mount: mount.point.clone(),
                    controllers: match mount.version {
                        Version::V1 => place.controllers.clone(),
                        Version::V2 => passed_on(&folder)?,
                    },
                    own: Dir::new(folder, mount.version),
                });
            }
        }
        Ok(Hierarchies { trees, left_out: None })
    }

    /// Leaves out the tree of version 2 where so many cgroups, in two levels, cannot be made in it.
    pub(crate) fn with_room_for(mut self, cgroups: usize) -> Hierarchies {
        self.left_out = self.v2().and_then(|tree| lack_of_room(tree, cgroups));
        if self.left_out.is_some() {
            self.trees.retain(|tree| tree.own.version() != Version::V2);
        }
        self
    }

    /// Why there is no tree of version 2.
    pub fn no_v2(&self) -> &str {
        self.left_out.as_deref().unwrap_or("no such cgroup tree is mounted")
    }

    /// All trees.
    pub fn all(&self) -> &[Hierarchy] {
        &self.trees
    }

    /// The version 2 tree.
    pub fn v2(&self) -> Option<&Hierarchy> {
        self.trees.iter().find(|tree| tree.own.version() == Version::V2)
    }

    /// The version 1 tree that a controller is bound to.
    pub fn v1(&self, controller: &str) -> Option<&Hierarchy> {
        let has = |tree: &&Hierarchy| tree.controllers.iter().any(|name| name == controller);
        self.trees.iter().filter(|tree| tree.own.version() == Version::V1).find(has)
    }
}

fn passed_on(folder: &Path) -> Result<Vec<String>, FileError> {
    let list = files::read_if_there(&folder.join("cgroup.controllers"))?;
    Ok(list.unwrap_or_default().split_whitespace().map(str::to_owned).collect())
}

/// What prevents so many cgroups in the caller's own, in two levels: the kernel would refuse them
/// late, when programs run.
fn lack_of_room(tree: &Hierarchy, cgroups: usize) -> Option<String> {
    let kind = tree.own.read("cgroup.type").unwrap_or_default();
    if ["threaded", "domain invalid"].contains(&kind.trim()) {
        return Some(
            "your cgroup is for threads of one program (cgroup.type: threaded)".to_owned(),
        );
    }
    tree.own_and_above().enumerate().find_map(|(above, dir)| {
        let most = |file: &str| dir.read(file).ok()?.trim().parse::<usize>().ok();
        let stat = dir.read("cgroup.stat").unwrap_or_default();
        let there = stat.lines().find_map(|line| line.strip_prefix("nr_descendants "));
        let there: usize = there.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        let left = most("cgroup.max.descendants").map(|most| most.saturating_sub(there));
        let path = dir.path().display();
        match (left, most("cgroup.max.depth")) {
            (Some(left), _) if left < cgroups => Some(format!(
                "{} may be made below {path} (cgroup.max.descendants), of {cgroups} needed",
                count(left, "further cgroup", "further cgroups")
            )),
            (_, Some(depth)) if depth < above + 2 => {
                Some(format!("cgroups may be {depth} deep below {path} (cgroup.max.depth)"))
            }
            _ => None,
        }
    })
}

/// A mounted cgroup tree, or a part of one.
struct Mount {
    version: Version,
    root: String,
    point: PathBuf,
    controllers: Vec<String>,
}

impl Mount {
    /// A line of mountinfo (see proc(5)), if it is about cgroups.
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = before.next().zip(before.next())?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
        Some(Mount {
            version: match kind {
                "cgroup" => Version::V1,
                "cgroup2" => Version::V2,
                _ => return None,
            },
            root: unescaped(root),
            point: PathBuf::from(unescaped(point)),
            controllers: words(options),
        })
    }

    /// The folder of `place` here, if this mount is of its tree and shows it.
    fn folder(&self, place: &Membership) -> Option<PathBuf> {
        let same_tree = match self.version {
            Version::V2 => place.controllers.is_empty(),
            // The options hold other words besides the controllers, such as `rw`.
            Version::V1 => {
                let bound = |name| self.controllers.contains(name);
                !place.controllers.is_empty() && place.controllers.iter().all(bound)
            }
        };
        let below = Path::new(&place.path).strip_prefix(&self.root).ok()?;
        let hidden = below.components().any(|part| part == std::path::Component::ParentDir);
        (same_tree && !hidden).then(|| match below.as_os_str().is_empty() {
            true => self.point.clone(),
            false => self.point.join(below),
        })
    }
}

/// mountinfo writes blanks, tabs, line ends and backslashes as `\` and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A made-up `/proc` and `/sys/fs/cgroup`; `@` in mount lines stands for the latter.
    fn find(folders: &[&str], mounts: &[&str], places: &str) -> (TempDir, Hierarchies) {
        let root = tempfile::tempdir().unwrap();
        let cgroups = root.path().join("cgroup");
        for folder in folders {
            fs::create_dir_all(cgroups.join(folder)).unwrap();
        }
        let own = root.path().join("self");
        fs::create_dir(&own).unwrap();
        let lines = mounts.join("\n").replace('@', cgroups.to_str().unwrap());
        fs::write(own.join("mountinfo"), lines).unwrap();
        fs::write(own.join("cgroup"), places).unwrap();
        let found = Hierarchies::find(&Proc::new(root.path())).unwrap();
        (root, found)
    }

    fn own(root: &TempDir, tree: Option<&Hierarchy>) -> String {
        let path = tree.unwrap().own.path();
        path.strip_prefix(root.path().join("cgroup")).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_tree_without_room_is_left_out_with_the_reason() {
        let make = |files: &[(&str, &str)]| {
            let mounts = ["20 1 0:1 / @ rw - cgroup2 none rw"];
            let (root, found) = find(&["a/b"], &mounts, "0::/a/b\n");
            for (file, text) in files {
                fs::write(root.path().join("cgroup").join(file), text).unwrap();
            }
            let found = found.with_room_for(3);
            (found.v2().is_some(), found.no_v2().to_owned())
        };
        let limits =
            |most| [("a/cgroup.max.descendants", most), ("a/cgroup.stat", "nr_descendants 4\n")];
        assert!(make(&limits("7\n")).0 && make(&limits("max\n")).0);
        let (is_there, why) = make(&limits("6\n"));
        assert!(!is_there && why.starts_with("2 further cgroups may be made below"), "{why}");
        assert!(make(&[("a/cgroup.max.depth", "3\n")]).0);
        assert!(!make(&[("a/cgroup.max.depth", "2\n")]).0);
        assert!(!make(&[("a/b/cgroup.type", "threaded\n")]).0);
    }

    #[test]
    fn a_pure_v2_host_has_one_tree() {
        let (root, found) = find(
            &["user.slice/a.scope"],
            &["30 23 0:26 / @ rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"],
            "0::/user.slice/a.scope\n",
        );
        assert_eq!(own(&root, found.v2()), "user.slice/a.scope");
        assert_eq!(found.v1("freezer"), None);
        let above: Vec<_> = found.v2().unwrap().own_and_above().collect();
        assert_eq!(above.len(), 3);
    }

    #[test]
    fn the_controllers_of_the_own_v2_group_are_listed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu\n").unwrap();
        assert_eq!(passed_on(root.path()).unwrap(), ["cpuset", "cpu"]);
    }

    #[test]
    fn a_hybrid_host_has_v1_trees_beside_v2() {
        let (root, found) = find(
            &["unified/x", "freezer", "cpu,cpuacct/job", "systemd"],
            &[
                "31 23 0:28 / @ rw - tmpfs tmpfs rw,mode=755",
                "32 31 0:29 / @/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
                "37 31 0:34 / @/freezer rw - cgroup cgroup rw,freezer",
                "40 31 0:37 / @/systemd rw - cgroup cgroup rw,name=systemd",
                "41 31 0:38 / @/unified rw - cgroup2 cgroup2 rw",
            ],
            "9:name=systemd:/\n6:freezer:/\n1:cpu,cpuacct:/job\n0::/x\n",
        );
        assert_eq!(own(&root, found.v2()), "unified/x");
        assert_eq!(own(&root, found.v1("freezer")), "freezer");
        assert_eq!(own(&root, found.v1("cpu")), "cpu,cpuacct/job");
        assert_eq!(found.v1("cpu"), found.v1("cpuacct"));
        assert_eq!(found.v1("cpuset"), None);
    }

    #[test]
    fn a_container_may_see_only_its_part_of_the_tree() {
        let (root, found) = find(
            &["job"],
            &["30 23 0:26 /docker/1 @ rw - cgroup2 cgroup2 rw"],
            "0::/docker/1/job\n",
        );
        assert_eq!(own(&root, found.v2()), "job");
        assert_eq!(found.v2().unwrap().own_and_above().count(), 2);
    }

    #[test]
    fn a_mount_from_inside_the_namespace_is_preferred() {
        let outside = "30 23 0:26 /../.. @/outside rw - cgroup2 cgroup2 rw";
        let inside = "31 23 0:26 / @/inside rw - cgroup2 cgroup2 rw";
        let (root, found) = find(&["outside", "inside"], &[outside, inside], "0::/\n");
        assert_eq!(own(&root, found.v2()), "inside");
        let (_root, found) = find(&["outside"], &[outside], "0::/\n");
        assert_eq!(found.v2(), None);
    }

    #[test]
    fn a_caller_outside_all_mounts_has_no_group() {
        let mount = "30 23 0:26 / @ rw - cgroup2 cgroup2 rw";
        let (_root, found) = find(&["x"], &[mount], "0::/../x\n");
        assert_eq!(found.v2(), None);
        let (_root, found) = find(&["x"], &[mount], "0::/gone (deleted)\n");
        assert_eq!(found.v2(), None);
    }

    #[test]
    fn mount_points_may_hold_blanks() {
        assert_eq!(unescaped(r"/mnt/a\040b\134c"), r"/mnt/a b\c");
        assert_eq!(unescaped(r"/mnt/a\9"), r"/mnt/a\9");
    }

    #[test]
    fn a_kernel_without_cgroups_has_no_trees() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Hierarchies::find(&Proc::new(root.path())).unwrap(), Hierarchies::default());
    }
}
