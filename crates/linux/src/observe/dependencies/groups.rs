//! Programs that share something, directly or through others, form a group.
//!
//! Union-find over the shared things: each is remembered with the first program
//! that has it, and every later one is joined with that.

use std::collections::BTreeMap;

use cosched_core::GroupId;

use super::{Dependencies, SharedKey};

/// The group of each program, numbered from 0 in the order of their first programs; `None` for a
/// program that shares with no other.
pub(crate) fn groups(programs: &[Dependencies]) -> Vec<Option<GroupId>> {
    let mut parents: Vec<usize> = (0..programs.len()).collect();
    let mut holders = BTreeMap::<SharedKey, usize>::new();
    for (program, dependencies) in programs.iter().enumerate() {
        for key in &dependencies.shared {
            let first = *holders.entry(*key).or_insert(program);
            let (a, b) = (root(&mut parents, first), root(&mut parents, program));
            // The earlier program stays the root, so that groups are numbered by their first.
            parents[a.max(b)] = a.min(b);
        }
    }
    let roots: Vec<usize> = (0..programs.len()).map(|i| root(&mut parents, i)).collect();
    let mut ids = BTreeMap::new();
    let group = |root: &usize| {
        let members = roots.iter().filter(|other| *other == root).count();
        (members > 1).then(|| {
            let next = GroupId(ids.len() as u16);
            *ids.entry(*root).or_insert(next)
        })
    };
    roots.iter().map(group).collect()
}

fn root(parents: &mut [usize], mut program: usize) -> usize {
    while parents[program] != program {
        parents[program] = parents[parents[program]];
        program = parents[program];
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(pipes: &[u64]) -> Dependencies {
        let shared = pipes.iter().map(|inode| SharedKey::Pipe(*inode)).collect();
        Dependencies { shared, ..Dependencies::default() }
    }

    fn numbers(programs: &[&[u64]]) -> Vec<Option<u16>> {
        let dependencies: Vec<Dependencies> = programs.iter().map(|pipes| sharing(pipes)).collect();
        groups(&dependencies).into_iter().map(|group| group.map(|id| id.0)).collect()
    }

    #[test]
    fn programs_without_anything_in_common_have_no_group() {
        assert_eq!(numbers(&[&[1], &[2, 3], &[]]), [None, None, None]);
        assert_eq!(numbers(&[]), []);
    }

    #[test]
    fn a_chain_of_pipes_is_one_group() {
        assert_eq!(
            numbers(&[&[1], &[9], &[1, 2], &[2, 3], &[3]]),
            [Some(0), None, Some(0), Some(0), Some(0)]
        );
    }

    #[test]
    fn groups_joined_by_a_later_program_become_one() {
        assert_eq!(numbers(&[&[1], &[2], &[1, 2]]), [Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn separate_groups_are_numbered_by_their_first_programs() {
        assert_eq!(numbers(&[&[7], &[1], &[1], &[7]]), [Some(0), Some(1), Some(1), Some(0)]);
    }
}
