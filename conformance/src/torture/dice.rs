//! Numbers that look random and are the same for the same seed, on every machine and in every version.

/// SplitMix64: one multiplication chain a number, and every seed is as good as another.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for one of many things that share a seed.
    pub(super) fn of(seed: u64, parts: &[u64]) -> Self {
        let mix = |so_far, part: &u64| Self(so_far ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93)).roll();
        Self(parts.iter().fold(Self(seed).roll(), mix))
    }

    pub(super) const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to one less than `limit`; 0 if that is 0.
    pub(super) const fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.roll() % limit as u64) as usize }
    }

    /// A number from `low` to `high`, both included.
    pub(super) const fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Whether one of so many sides came up.
    pub(super) const fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One of them; `None` if there is none.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }

    /// Places inside of something so long at which it is cut, ascending and each once.
    pub(super) fn cuts(&mut self, length: usize, most: usize) -> Vec<usize> {
        let count = self.between(1, most);
        let inner = |dice: &mut Self| 1 + dice.below(length.saturating_sub(1));
        let mut cuts: Vec<_> = (0..count).map(|_| inner(self)).filter(|cut| *cut < length).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that someone wrote down has to mean the same for ever.
    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut dice = Dice::new(1);
        assert_eq!(dice.roll(), 0x910A_2DEC_8902_5CC1);
        let numbers = |mut dice: Dice| [dice.roll(), dice.roll()];
        assert_eq!(numbers(Dice::of(7, &[1, 2])), numbers(Dice::of(7, &[1, 2])));
        assert_ne!(numbers(Dice::of(7, &[1, 2])), numbers(Dice::of(7, &[2, 1])));
        assert_ne!(numbers(Dice::of(7, &[1])), numbers(Dice::of(8, &[1])));
    }

    #[test]
    fn what_is_drawn_keeps_to_its_bounds() {
        let mut dice = Dice::new(5);
        assert_eq!(dice.below(0), 0);
        assert!(dice.pick::<u8>(&[]).is_none());
        for length in 0..40 {
            let cuts = dice.cuts(length, 6);
            assert!(cuts.is_sorted_by(|a, b| a < b) && cuts.iter().all(|cut| (1..length).contains(cut)));
        }
        let drawn: Vec<_> = (0..200).map(|_| dice.between(3, 5)).collect();
        assert!(
            [3, 4, 5].iter().all(|number| drawn.contains(number))
                && drawn.iter().all(|n| (3..=5).contains(n))
        );
    }
}
