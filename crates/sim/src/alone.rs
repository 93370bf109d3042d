//! How long work takes alone, which only a simulator knows.
//!
//! Each mix of a program is priced as one thread on an idle machine. The optimal policy of the FPS
//! paper needs this: its speeds alone come from earlier runs. Estimates are also compared with it.
//! For a program with several threads it is the time with the work divided evenly, and without
//! interference between the threads.

use crate::prices::{Prices, ThreadKind};
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// Nanoseconds that these instructions of each mix take a program alone, with all its threads.
    pub(crate) fn nanos_alone(&self, run: usize, instructions: &[f64]) -> f64 {
        let threads = f64::from(self.programs[run].model.threads);
        let rates = self.rates_alone(run);
        instructions.iter().zip(rates).map(|(count, rate)| count / rate).sum::<f64>() / threads
    }

    /// Instructions per nanosecond of one thread, for each mix.
    fn rates_alone(&self, run: usize) -> Vec<f64> {
        let model = &self.programs[run].model;
        let mut prices = Prices::new(&self.hardware, &self.shape);
        let cpu = usize::from(prices.domains[0].cpus[0]);
        let mut rates = Vec::with_capacity(model.mixes.len());
        for mix in &model.mixes {
            if !mix.uses_memory() {
                rates.push(self.hardware.gigahertz / mix.base_cpi);
                continue;
            }
            let domain = &mut prices.domains[0];
            domain.begin();
            for position in 0..domain.cpus.len() {
                let one = ThreadKind::one(0, model.threads, *mix, 1.0, false);
                domain.place(position, (position == 0).then_some(one));
            }
            domain.finish(&self.hardware);
            rates.push(prices.kind(cpu).map_or(f64::INFINITY, |kind| kind.pace().rate));
        }
        rates
    }

    /// Instructions of each mix that a program has executed since it began.
    pub(crate) fn by_mix(&self, run: usize) -> Vec<f64> {
        let mut sum = vec![0.0; self.programs[run].model.mixes.len()];
        for tid in self.programs[run].tids() {
            for (all, one) in sum.iter_mut().zip(&self.threads[tid as usize].by_mix) {
                *all += one;
            }
        }
        sum
    }
}
