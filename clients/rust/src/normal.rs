//! Karney's Algorithm N (2016), ten proposals side by side.

use crate::draws::{signed, Deviate, Draws, HALF};
use crate::error::Result;
use crate::integer::Integer;

const PROPOSALS: usize = 10;

struct Proposals {
    k: [u64; PROPOSALS],
    x: Vec<Deviate>,
}

/// The whole part of 2**places times a normal deviate.
pub fn normal(draws: &mut Draws<'_>, places: u32) -> Result<Integer> {
    loop {
        let mut proposals = Proposals { k: [0; PROPOSALS], x: vec![Vec::new(); PROPOSALS] };
        let mut growing: Vec<usize> = (0..PROPOSALS).collect();
        while !growing.is_empty() {
            growing = chosen(&growing, &halves(draws, growing.len())?);
            for slot in &growing {
                proposals.k[*slot] += 1;
            }
        }
        let needed = proposals.k.map(|k| k * k.saturating_sub(1));
        let slots = all_succeed((0..PROPOSALS).collect(), needed, |slots| halves(draws, slots.len()))?;
        for slot in &slots {
            proposals.x[*slot] = draws.deviate()?;
        }
        let needed = proposals.k.map(|k| k + 1);
        let accepted = all_succeed(slots, needed, |slots| proposals.try_b(draws, slots))?;
        let negative = draws.bits(HALF, accepted.len())?;
        if let Some(slot) = accepted.first() {
            return Ok(signed(i128::from(proposals.k[*slot]), proposals.x[*slot][0], places, negative[0]));
        }
    }
}

fn chosen(slots: &[usize], bits: &[bool]) -> Vec<usize> {
    slots.iter().zip(bits).filter(|(_, bit)| **bit).map(|(slot, _)| *slot).collect()
}

/// H: bits that are true with probability exp(-1/2).
fn halves(draws: &mut Draws<'_>, count: usize) -> Result<Vec<bool>> {
    let mut found = vec![true; count];
    let mut last = draws.deviates(count)?;
    let mut falling: Vec<usize> = (0..count).filter(|slot| u128::from(last[*slot][0]) < HALF).collect();
    while !falling.is_empty() {
        let next = draws.deviates(falling.len())?;
        let mut still = Vec::new();
        for (slot, mut next) in falling.into_iter().zip(next) {
            found[slot] = !found[slot];
            if draws.is_less(&mut next, &mut last[slot])? {
                last[slot] = next;
                still.push(slot);
            }
        }
        falling = still;
    }
    Ok(found)
}

/// The slots that succeed as often as they need.
fn all_succeed(
    mut slots: Vec<usize>,
    mut needed: [u64; PROPOSALS],
    mut attempt: impl FnMut(&[usize]) -> Result<Vec<bool>>,
) -> Result<Vec<usize>> {
    loop {
        let open: Vec<usize> = slots.iter().copied().filter(|slot| needed[*slot] > 0).collect();
        if open.is_empty() {
            return Ok(slots);
        }
        let succeeded = attempt(&open)?;
        for (slot, succeeded) in open.into_iter().zip(succeeded) {
            needed[slot] -= 1;
            if !succeeded {
                slots.retain(|each| *each != slot);
            }
        }
    }
}

impl Proposals {
    fn try_b(&mut self, draws: &mut Draws<'_>, slots: &[usize]) -> Result<Vec<bool>> {
        let mut found = vec![true; slots.len()];
        // No deviate has fallen yet: that of a slot is its x, also where more of its words are read.
        let mut last: Vec<Option<Deviate>> = vec![None; slots.len()];
        let mut falling: Vec<usize> = (0..slots.len()).collect();
        while !falling.is_empty() {
            let next = draws.deviates(falling.len())?;
            let mut less = Vec::new();
            for (i, mut next) in falling.into_iter().zip(next) {
                let before = last[i].as_mut().unwrap_or(&mut self.x[slots[i]]);
                if draws.is_less(&mut next, before)? {
                    less.push((i, next));
                }
            }
            let tried: Vec<usize> = less.iter().map(|(i, _)| slots[*i]).collect();
            let on = self.try_c(draws, &tried)?;
            falling = Vec::new();
            for ((i, next), on) in less.into_iter().zip(on) {
                if on {
                    found[i] = !found[i];
                    last[i] = Some(next);
                    falling.push(i);
                }
            }
        }
        Ok(found)
    }

    fn try_c(&mut self, draws: &mut Draws<'_>, slots: &[usize]) -> Result<Vec<bool>> {
        let largest: Vec<u64> = slots.iter().map(|slot| 2 * self.k[*slot] + 1).collect();
        let drawn = draws.up_to_each(&largest)?;
        let even: Vec<u64> = largest.iter().map(|largest| largest - 1).collect();
        let tied = drawn.iter().zip(&even).filter(|(drawn, even)| drawn == even).count();
        let mut deviates = draws.deviates(tied)?.into_iter();
        let mut found = Vec::with_capacity(slots.len());
        for ((slot, drawn), even) in slots.iter().zip(&drawn).zip(&even) {
            found.push(match deviates.next_if(drawn == even) {
                Some(mut deviate) => draws.is_less(&mut deviate, &mut self.x[*slot])?,
                None => drawn < even,
            });
        }
        Ok(found)
    }
}

trait NextIf: Iterator {
    fn next_if(&mut self, holds: bool) -> Option<Self::Item>;
}

impl<T: Iterator> NextIf for T {
    fn next_if(&mut self, holds: bool) -> Option<Self::Item> {
        if holds {
            self.next()
        } else {
            None
        }
    }
}
