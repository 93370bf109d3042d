//! What each program would get of a machine that shares its CPUs by weight.
//!
//! Equation 1 of the paper on the time donating barrier (section 2.3) compares the CPU time of a
//! thread with its share, t P w. It assumes that there are at least as many threads as CPUs, that
//! all of them always want to run, and that all have one weight. Here a share is that of a program,
//! and what one program cannot use is shared by the others: a program of two threads uses at most
//! two CPUs. Where all programs have as many threads as CPUs or more, the two agree.

/// What a program may request of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuClaim {
    /// Its weight relative to the others.
    pub weight: f64,
    /// How many CPUs it can use at most.
    pub most: f64,
}

/// How many CPUs each claim gets, in their order.
pub fn fair_shares(cpus: f64, claims: &[CpuClaim]) -> Vec<f64> {
    let mut shares = vec![0.0; claims.len()];
    let mut order: Vec<usize> = (0..claims.len()).collect();
    // A program that is satisfied with less per weight is served first, and leaves the rest.
    let per_weight = |i: &usize| claims[*i].most / claims[*i].weight;
    order.sort_by(|a, b| per_weight(a).total_cmp(&per_weight(b)));
    let (mut left, mut weights) = (cpus, claims.iter().map(|claim| claim.weight).sum::<f64>());
    for i in order {
        let CpuClaim { weight, most } = claims[i];
        shares[i] = (left * weight / weights).min(most);
        left -= shares[i];
        weights -= weight;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits;

    fn shares(cpus: f64, claims: &[(f64, f64)]) -> Vec<f64> {
        let claim = |&(weight, most): &(f64, f64)| CpuClaim { weight, most };
        fair_shares(cpus, &claims.iter().map(claim).collect::<Vec<_>>())
    }

    #[test]
    fn programs_with_enough_threads_share_by_weight() {
        assert_eq!(shares(4.0, &[(1.0, 4.0), (1.0, 8.0)]), [2.0, 2.0]);
        assert_eq!(shares(4.0, &[(3.0, 4.0), (1.0, 4.0)]), [3.0, 1.0]);
        assert!(shares(4.0, &[]).is_empty());
    }

    /// Of 8 CPUs, one thread uses one. The other seven are shared 2 : 1, but two threads use only
    /// two, so that the third program gets five.
    #[test]
    fn what_a_program_cannot_use_is_shared_by_the_others() {
        assert_eq!(shares(8.0, &[(2.0, 2.0), (4.0, 1.0), (1.0, 8.0)]), [2.0, 1.0, 5.0]);
        assert_eq!(shares(8.0, &[(1.0, 2.0), (1.0, 3.0)]), [2.0, 3.0], "three CPUs are idle");
    }

    /// The simulator's shares of single threads are the special case of one weight.
    #[test]
    fn equal_threads_get_the_share_of_the_paper() {
        for (threads, cpus) in [(6, 4.0), (4, 4.0), (3, 4.0)] {
            let each = waits::share(1.0, cpus, 1.0 / f64::from(threads));
            let all = shares(cpus, &vec![(1.0, 1.0); threads as usize]);
            assert!(all.iter().all(|share| (share - each).abs() < 1e-12), "{all:?} {each}");
        }
    }
}
