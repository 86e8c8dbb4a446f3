//! The draws that a program makes from a stream of uniform random bytes. The order of the reads is part of the specification.

use std::io::Read;

use crate::error::{needs, refuse, Error, Result};
use crate::integer::Integer;

/// A stream of uniform random bytes.
pub trait Stream {
    /// Fill the buffer with the next bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()>;
}

/// The operating system's cryptographic generator, on systems that have `/dev/urandom`: Linux, Android, macOS, iOS. On
/// other systems pass a `Stream` of your own.
///
/// One stream is for one report: what it read ahead is never used for another one, also not after a fork.
#[derive(Default)]
pub struct SystemStream {
    file: Option<std::fs::File>,
    ahead: Vec<u8>,
}

const AHEAD: usize = 256;

impl Stream for SystemStream {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        if self.ahead.len() < buffer.len() {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(std::fs::File::open("/dev/urandom").map_err(|error| {
                    Error::new(format!("the random bytes of this system cannot be read: {error}. Pass a stream of your own"))
                })?),
            };
            self.ahead.resize(buffer.len().max(AHEAD), 0);
            file.read_exact(&mut self.ahead)?;
        }
        let rest = self.ahead.len() - buffer.len();
        buffer.copy_from_slice(&self.ahead[rest..]);
        self.ahead.truncate(rest);
        Ok(())
    }
}

/// Bytes that were recorded: those of a test vector.
pub struct Recorded {
    bytes: Vec<u8>,
    at: usize,
}

impl Recorded {
    pub fn new(bytes: Vec<u8>) -> Recorded {
        Recorded { bytes, at: 0 }
    }

    /// How many bytes were not read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}

impl Stream for Recorded {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        if self.left() < buffer.len() {
            return refuse("the recorded stream has no more bytes");
        }
        buffer.copy_from_slice(&self.bytes[self.at..self.at + buffer.len()]);
        self.at += buffer.len();
        Ok(())
    }
}

/// So many bits are drawn at a time, with the bytes of their ties.
const BLOCK: usize = 1 << 18;
const ONE: u128 = 1 << 64;
pub const HALF: u128 = 1 << 63;
const LOW: u64 = (1 << 56) - 1;
/// The longest vector.
pub const MOST: usize = 1 << 23;

pub struct Draws<'a> {
    stream: &'a mut dyn Stream,
}

/// A deviate on (0, 1): the words that are known of it, the highest first.
pub type Deviate = Vec<u64>;

impl<'a> Draws<'a> {
    pub fn new(stream: &'a mut dyn Stream) -> Draws<'a> {
        Draws { stream }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A bit of the chance t/2**64, for t up to 2**64.
    pub fn bit(&mut self, t: u128) -> Result<bool> {
        match t {
            0 => Ok(false),
            ONE => Ok(true),
            _ => self.compare(t as u64, t as u64 & LOW != 0),
        }
    }

    /// The same for a t that was worked out: a byte is read whatever t is, and more at each tie.
    pub fn bit_at(&mut self, t: u64) -> Result<bool> {
        self.compare(t, true)
    }

    fn compare(&mut self, t: u64, ties: bool) -> Result<bool> {
        let mut byte = [0];
        self.stream.fill(&mut byte)?;
        let top = (t >> 56) as u8;
        if byte[0] != top || !ties {
            return Ok(byte[0] < top);
        }
        Ok(self.low()? < t & LOW)
    }

    fn low(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.stream.fill(&mut bytes[..7])?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn bits(&mut self, t: u128, count: usize) -> Result<Vec<bool>> {
        if t == 0 || t == ONE {
            return Ok(vec![t > 0; count]);
        }
        let (t, top) = (t as u64, (t as u64 >> 56) as u8);
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let start = found.len();
            let bytes = self.bytes(BLOCK.min(count - start))?;
            found.extend(bytes.iter().map(|byte| *byte < top));
            if t & LOW != 0 {
                for (i, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == top) {
                    found[start + i] = self.low()? < t & LOW;
                }
            }
        }
        Ok(found)
    }

    /// Words that hold `widest`, each cut to the bits that its own largest number needs.
    fn words(&mut self, widest: u64, largest: impl ExactSizeIterator<Item = u64>) -> Result<Vec<u64>> {
        let width = [1, 2, 4].into_iter().find(|width| widest >> (8 * width) == 0).unwrap_or(8);
        let bytes = self.bytes(width * largest.len())?;
        Ok(bytes
            .chunks_exact(width)
            .zip(largest)
            .map(|(bytes, largest)| {
                let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                word & u64::MAX.checked_shr(largest.leading_zeros()).unwrap_or(0)
            })
            .collect())
    }

    /// A number below b, which is from 1 to 2**63.
    pub fn below(&mut self, b: u64) -> Result<u64> {
        loop {
            let word = self.words(b - 1, [b - 1].into_iter())?[0];
            if word < b {
                return Ok(word);
            }
        }
    }

    pub fn belows(&mut self, b: u64, count: usize) -> Result<Vec<u64>> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let words = self.words(b - 1, std::iter::repeat_n(b - 1, count - found.len()))?;
            found.extend(words.into_iter().filter(|word| *word < b));
        }
        Ok(found)
    }

    /// n different numbers below m, ascending.
    pub fn subset(&mut self, m: u64, n: usize) -> Result<Vec<u64>> {
        needs(n as u64 <= m, "a subset that is larger than its set")?;
        if 2 * n as u64 <= m {
            return self.distinct(m, n);
        }
        needs(m <= MOST as u64, "a subset of a set that is too large")?;
        let left_out = self.distinct(m, m as usize - n)?;
        let mut rest = left_out.into_iter().peekable();
        Ok((0..m).filter(|each| rest.next_if_eq(each).is_none()).collect())
    }

    fn distinct(&mut self, m: u64, n: usize) -> Result<Vec<u64>> {
        let mut row = self.belows(m, n)?;
        row.sort_unstable();
        loop {
            let repeated: Vec<usize> = (1..n).filter(|place| row[*place] == row[place - 1]).collect();
            if repeated.is_empty() {
                return Ok(row);
            }
            let drawn = self.belows(m, repeated.len())?;
            for (place, number) in repeated.into_iter().zip(drawn) {
                row[place] = number;
            }
            row.sort_unstable();
        }
    }

    pub fn shuffle<T>(&mut self, row: &mut [T]) -> Result<()> {
        for last in (1..row.len()).rev() {
            let chosen = self.below(last as u64 + 1)?;
            row.swap(chosen as usize, last);
        }
        Ok(())
    }

    pub fn geometric(&mut self, t: u64) -> Result<u64> {
        let mut count = 0;
        while self.bit(u128::from(t))? {
            count += 1;
        }
        Ok(count)
    }

    pub fn deviate(&mut self) -> Result<Deviate> {
        Ok(vec![self.word()?])
    }

    pub fn deviates(&mut self, count: usize) -> Result<Vec<Deviate>> {
        (0..count).map(|_| self.deviate()).collect()
    }

    fn word(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.stream.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Whether a deviate, which was drawn later, is less than another one.
    pub fn is_less(&mut self, later: &mut Deviate, other: &mut Deviate) -> Result<bool> {
        for place in 0.. {
            for each in [&mut *later, &mut *other] {
                if each.len() == place {
                    each.push(self.word()?);
                }
            }
            if later[place] != other[place] {
                return Ok(later[place] < other[place]);
            }
        }
        refuse("a deviate without an end")
    }

    /// The whole part of 2**places times a Laplace deviate.
    pub fn laplace(&mut self, places: u32) -> Result<Integer> {
        for whole in 0i128.. {
            let mut last = self.deviate()?;
            let first = last[0];
            let mut odd = true;
            loop {
                let mut next = self.deviate()?;
                if !self.is_less(&mut next, &mut last)? {
                    break;
                }
                last = next;
                odd = !odd;
            }
            if odd {
                let negative = self.bit(HALF)?;
                return Ok(signed(whole, first, places, negative));
            }
        }
        refuse("a Laplace deviate without an end")
    }

    /// Numbers up to each of these, by words as wide as the largest of the group needs; what is too large is drawn again.
    pub fn up_to_each(&mut self, largest: &[u64]) -> Result<Vec<u64>> {
        let mut found = vec![0; largest.len()];
        let mut open: Vec<usize> = (0..largest.len()).collect();
        while !open.is_empty() {
            let widest = open.iter().map(|slot| largest[*slot]).max().unwrap_or(0);
            let words = self.words(widest, open.iter().map(|slot| largest[*slot]))?;
            let mut again = Vec::new();
            for (slot, word) in open.into_iter().zip(words) {
                found[slot] = word;
                if word > largest[slot] {
                    again.push(slot);
                }
            }
            open = again;
        }
        Ok(found)
    }
}

/// The magnitude whole·2**places + the highest bits of a word, or -magnitude - 1.
pub fn signed(whole: i128, word: u64, places: u32, negative: bool) -> Integer {
    let magnitude = (whole << places) + (i128::from(word) >> (64 - places));
    Integer::from(if negative { -magnitude - 1 } else { magnitude })
}
