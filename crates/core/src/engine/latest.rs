//! The latest entries of a list that may grow for weeks.
//!
//! A run of a week makes millions of decisions and spans. The latest of them are kept, and all of
//! them are counted. When a list is full, its older half is removed at once, so that each removal
//! costs next to nothing.

use std::ops::{Deref, DerefMut};

/// The latest entries, in order, and how many came before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest<T> {
    kept: Vec<T>,
    dropped: u64,
    most: usize,
}

impl<T> Latest<T> {
    /// An empty list that keeps at most this many entries, and at least two.
    pub fn of(most: usize) -> Latest<T> {
        Latest { kept: Vec::new(), dropped: 0, most: most.max(2) }
    }

    /// Adds an entry. Entries that are removed for it are returned, oldest first.
    pub fn push(&mut self, entry: T) -> Vec<T> {
        let old = match self.kept.len() >= self.most {
            true => self.kept.drain(..self.most / 2).collect(),
            false => Vec::new(),
        };
        self.dropped += old.len() as u64;
        self.kept.push(entry);
        old
    }

    /// How many entries there were.
    pub fn count(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// How many entries, the oldest ones, are no longer kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The first entry that is kept, if there were others before it.
    pub fn first_after_a_gap(&self) -> Option<&T> {
        self.kept.first().filter(|_| self.dropped > 0)
    }

    /// Keeps only entries for which this holds; the others count as never added.
    pub fn retain(&mut self, holds: impl FnMut(&T) -> bool) {
        self.kept.retain(holds);
    }
}

impl<T> Default for Latest<T> {
    /// A list that keeps every entry.
    fn default() -> Latest<T> {
        Latest::of(usize::MAX)
    }
}

impl<T> From<Vec<T>> for Latest<T> {
    fn from(kept: Vec<T>) -> Latest<T> {
        Latest { kept, ..Latest::default() }
    }
}

impl<T> FromIterator<T> for Latest<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Latest<T> {
        Vec::from_iter(entries).into()
    }
}

impl<T> Deref for Latest<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.kept
    }
}

impl<T> DerefMut for Latest<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.kept
    }
}

impl<'a, T> IntoIterator for &'a Latest<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Latest<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_entries_are_kept_and_all_are_counted() {
        let mut list = Latest::of(4);
        let dropped: Vec<u32> = (0..10).flat_map(|number| list.push(number)).collect();
        assert_eq!((&list[..], list.count(), list.dropped()), (&[6, 7, 8, 9][..], 10, 6));
        assert_eq!(dropped, [0, 1, 2, 3, 4, 5]);
        assert_eq!(list.first_after_a_gap(), Some(&6));
        list.retain(|number| *number < 8);
        assert_eq!(list.count(), 8);
    }

    #[test]
    fn a_short_list_has_no_gap() {
        let list: Latest<u32> = vec![1, 2].into();
        assert_eq!((list.count(), list.dropped(), list.first_after_a_gap()), (2, 0, None));
    }
}
