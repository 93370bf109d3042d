//! Spin loops that earlier runs have found, so that later ones recognise them in fewer samples.
//!
//! A spin loop is the same as long as the build ID of its file is. The loops are kept by the name
//! of the file: those of old builds make room for new ones.

use cosched_core::SpinLoop;

use super::{SPIN_LOOPS, Store, StoreError, json};

/// So many loops of files with one name are kept, the newest ones.
const MOST: usize = 16;

impl Store {
    /// All that are known. A value that cannot be understood, as one of a later cosched may be, is
    /// as good as none.
    pub fn spin_loops(&self) -> Vec<SpinLoop> {
        self.spin_loops.values().flat_map(|text| read(text)).collect()
    }

    /// Keeps those that are not known yet. A file without a build ID cannot be recognised.
    pub(crate) fn learn_spin_loops(&mut self, found: &[SpinLoop]) -> Result<(), StoreError> {
        for one in found.iter().filter(|one| one.build_id.is_some()) {
            let mut kept = self.spin_loops.get(&one.object).map_or(Vec::new(), |text| read(text));
            if kept.contains(one) {
                continue;
            }
            kept.push(one.clone());
            kept.drain(..kept.len().saturating_sub(MOST));
            let text = json(&kept);
            self.write(SPIN_LOOPS, &one.object, &text)?;
            self.spin_loops.insert(one.object.clone(), text);
        }
        Ok(())
    }
}

fn read(text: &str) -> Vec<SpinLoop> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_loops_of_a_file_are_kept_for_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cosched/profiles.redb");
        let found = |object: &str, offset| SpinLoop {
            object: object.to_owned(),
            build_id: Some("01ab".to_owned()),
            offset,
        };
        let nameless = SpinLoop { build_id: None, ..found("b", 1) };
        let mut store = Store::open_at(&file).unwrap();
        assert_eq!(store.spin_loops(), []);
        store.learn_spin_loops(&[found("b", 7), nameless, found("b", 7)]).unwrap();
        assert_eq!(Store::open_at(&file).unwrap().spin_loops(), [found("b", 7)]);
        let many: Vec<SpinLoop> = (0..20).map(|offset| found("a", offset)).collect();
        store.learn_spin_loops(&many).unwrap();
        let kept = [&many[20 - MOST..], &[found("b", 7)]].concat();
        assert_eq!(
            (store.spin_loops(), Store::open_at(&file).unwrap().spin_loops()),
            (kept.clone(), kept)
        );
    }

    #[test]
    fn values_of_a_later_cosched_are_as_good_as_none() {
        assert_eq!(read("{\"loops\": 3}"), []);
    }
}
