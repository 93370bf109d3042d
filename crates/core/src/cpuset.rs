//! A set of CPUs, as the kernel numbers them.
//!
//! Fixed size and `Copy`, so that worlds and plans hold sets without
//! allocating. [`MAX_CPUS`] covers the largest machines that Linux
//! distributions configure for on x86-64 today and the largest machine that we simulate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// CPU numbers run from 0 to `MAX_CPUS - 1`.
pub const MAX_CPUS: usize = 1024;
const WORDS: usize = MAX_CPUS / 64;

/// A set of CPU numbers below [`MAX_CPUS`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuSet([u64; WORDS]);

/// Why a CPU list could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A part is neither a number nor a range.
    #[error("'{0}' is not a CPU list such as 0-3,8")]
    Malformed(String),
    /// A number is beyond what a [`CpuSet`] can hold.
    #[error("CPU {0} is beyond the {MAX_CPUS} CPUs that cosched supports")]
    TooLarge(usize),
}

impl CpuSet {
    /// The empty set.
    pub const EMPTY: CpuSet = CpuSet([0; WORDS]);

    /// CPUs `0..n`.
    ///
    /// # Panics
    /// If `n` exceeds [`MAX_CPUS`].
    pub fn first(n: usize) -> CpuSet {
        (0..n).collect()
    }

    /// Adds a CPU, and returns whether it was new.
    ///
    /// # Panics
    /// If `cpu` is not below [`MAX_CPUS`].
    pub fn insert(&mut self, cpu: usize) -> bool {
        assert!(cpu < MAX_CPUS, "CPU {cpu} is beyond {MAX_CPUS}");
        let (word, bit) = (cpu / 64, 1u64 << (cpu % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Removes a CPU, and returns whether it was in the set.
    pub fn remove(&mut self, cpu: usize) -> bool {
        let there = self.contains(cpu);
        if there {
            self.0[cpu / 64] &= !(1u64 << (cpu % 64));
        }
        there
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        cpu < MAX_CPUS && self.0[cpu / 64] & (1u64 << (cpu % 64)) != 0
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, word)| {
            std::iter::successors((*word != 0).then_some(*word), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| i * 64 + w.trailing_zeros() as usize)
        })
    }

    /// The CPUs in either set.
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        self.zip(other, |a, b| a | b)
    }

    /// The CPUs in both sets.
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        self.zip(other, |a, b| a & b)
    }

    /// The CPUs in this set and not in the other.
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        self.zip(other, |a, b| a & !b)
    }

    /// Whether the sets share a CPU.
    pub fn intersects(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// The set as little-endian bytes, the layout of the kernel's `cpu_set_t`.
    pub fn to_bytes(&self) -> [u8; MAX_CPUS / 8] {
        let mut bytes = [0; MAX_CPUS / 8];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The inverse of [`CpuSet::to_bytes`]; missing bytes count as zero, further ones are ignored.
    pub fn from_bytes(bytes: &[u8]) -> CpuSet {
        let bits = bytes.iter().take(MAX_CPUS / 8).enumerate();
        bits.flat_map(|(i, byte)| {
            (0..8).filter(move |b| byte & (1 << b) != 0).map(move |b| i * 8 + b)
        })
        .collect()
    }

    fn zip(&self, other: &CpuSet, op: impl Fn(u64, u64) -> u64) -> CpuSet {
        let mut out = CpuSet::EMPTY;
        for ((o, a), b) in out.0.iter_mut().zip(&self.0).zip(&other.0) {
            *o = op(*a, *b);
        }
        out
    }
}

impl Default for CpuSet {
    fn default() -> CpuSet {
        CpuSet::EMPTY
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

/// Writes the kernel's list format: `0-3,8`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(from) = cpus.next() {
            let mut to = from;
            while cpus.next_if_eq(&(to + 1)).is_some() {
                to += 1;
            }
            match to - from {
                0 => write!(f, "{separator}{from}")?,
                _ => write!(f, "{separator}{from}-{to}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

/// Reads the kernel's list format; surrounding blanks are ignored, an empty list is the empty set.
impl FromStr for CpuSet {
    type Err = CpuListError;

    fn from_str(list: &str) -> Result<CpuSet, CpuListError> {
        let mut set = CpuSet::EMPTY;
        for part in list.trim().split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let number = |s: &str| {
                s.trim().parse::<usize>().map_err(|_| CpuListError::Malformed(part.to_owned()))
            };
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err(CpuListError::Malformed(part.to_owned()));
            }
            if to >= MAX_CPUS {
                return Err(CpuListError::TooLarge(to));
            }
            (from..=to).for_each(|cpu| {
                set.insert(cpu);
            });
        }
        Ok(set)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuSet, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        let set: CpuSet = " 0-3,8, 10-11\n".parse().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(set.to_string(), "0-3,8,10-11");
        assert_eq!("".parse::<CpuSet>().unwrap(), CpuSet::EMPTY);
    }

    #[test]
    fn bad_lists_are_refused_with_the_part_that_is_wrong() {
        assert_eq!("0,x".parse::<CpuSet>(), Err(CpuListError::Malformed("x".into())));
        assert_eq!("3-1".parse::<CpuSet>(), Err(CpuListError::Malformed("3-1".into())));
        assert_eq!("1024".parse::<CpuSet>(), Err(CpuListError::TooLarge(1024)));
    }

    #[test]
    fn bytes_have_the_layout_of_cpu_set_t() {
        let set: CpuSet = [0, 9, 64].into_iter().collect();
        let bytes = set.to_bytes();
        assert_eq!((bytes[0], bytes[1], bytes[8]), (1, 2, 1));
        assert_eq!(CpuSet::from_bytes(&bytes), set);
    }

    #[test]
    fn set_algebra() {
        let (a, b) = (CpuSet::first(4), [3, 4].into_iter().collect::<CpuSet>());
        assert_eq!(a.union(&b).to_string(), "0-4");
        assert_eq!(a.intersection(&b).to_string(), "3");
        assert_eq!(a.difference(&b).to_string(), "0-2");
        assert!(a.intersects(&b) && !a.is_subset(&b));
    }
}
