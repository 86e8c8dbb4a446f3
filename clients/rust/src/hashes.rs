//! BLAKE2b (RFC 7693), SHA-256 (FIPS 180-4) and SHAKE (FIPS 202).

const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

const BLAKE_START: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The first `size` bytes of BLAKE2b, with a key and a personalization of at most 16 bytes.
pub fn blake2b<const SIZE: usize>(data: &[u8], key: &[u8], person: &[u8]) -> [u8; SIZE] {
    let mut parameters = [0; 64];
    parameters[0] = SIZE as u8;
    parameters[1] = key.len() as u8;
    parameters[2] = 1;
    parameters[3] = 1;
    parameters[48..48 + person.len()].copy_from_slice(person);
    let mut state = BLAKE_START;
    for (word, bytes) in state.iter_mut().zip(parameters.chunks_exact(8)) {
        *word ^= word_of(bytes);
    }
    let mut padded = Vec::new();
    let data = if key.is_empty() {
        data
    } else {
        padded.reserve(128 + data.len());
        padded.extend_from_slice(key);
        padded.resize(128, 0);
        padded.extend_from_slice(data);
        &padded
    };
    let blocks = data.len().div_ceil(128).max(1);
    for i in 0..blocks {
        let bytes = &data[128 * i..data.len().min(128 * (i + 1))];
        let mut block = [0; 128];
        block[..bytes.len()].copy_from_slice(bytes);
        let last = i + 1 == blocks;
        compress(&mut state, &block, (128 * i + bytes.len()) as u64, last);
    }
    let mut found = [0; SIZE];
    for (bytes, word) in found.chunks_mut(8).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
    found
}

fn compress(state: &mut [u64; 8], block: &[u8; 128], counter: u64, last: bool) {
    let mut message = [0; 16];
    for (word, bytes) in message.iter_mut().zip(block.chunks_exact(8)) {
        *word = word_of(bytes);
    }
    let mut v = [0; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&BLAKE_START);
    v[12] ^= counter;
    if last {
        v[14] = !v[14];
    }
    for round in 0..12 {
        let s = &SIGMA[round % 10];
        mix(&mut v, [0, 4, 8, 12], message[s[0]], message[s[1]]);
        mix(&mut v, [1, 5, 9, 13], message[s[2]], message[s[3]]);
        mix(&mut v, [2, 6, 10, 14], message[s[4]], message[s[5]]);
        mix(&mut v, [3, 7, 11, 15], message[s[6]], message[s[7]]);
        mix(&mut v, [0, 5, 10, 15], message[s[8]], message[s[9]]);
        mix(&mut v, [1, 6, 11, 12], message[s[10]], message[s[11]]);
        mix(&mut v, [2, 7, 8, 13], message[s[12]], message[s[13]]);
        mix(&mut v, [3, 4, 9, 14], message[s[14]], message[s[15]]);
    }
    for (i, word) in state.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i + 8];
    }
}

fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The first words, little-endian, of SHAKE with a rate of 168 (SHAKE-128) or 136 bytes (SHAKE-256).
pub fn shake(rate: usize, data: &[u8], count: usize) -> Vec<u64> {
    let mut state = [0; 25];
    let mut padded = data.to_vec();
    padded.push(0x1f);
    padded.resize(padded.len().div_ceil(rate) * rate, 0);
    *padded.last_mut().unwrap_or(&mut 0) |= 0x80;
    for block in padded.chunks_exact(rate) {
        for (lane, bytes) in state.iter_mut().zip(block.chunks_exact(8)) {
            *lane ^= word_of(bytes);
        }
        keccak(&mut state);
    }
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        found.extend(&state[..(rate / 8).min(count - found.len())]);
        if found.len() < count {
            keccak(&mut state);
        }
    }
    found
}

fn keccak(a: &mut [u64; 25]) {
    let mut register = 1u8;
    for _ in 0..24 {
        let mut parity = [0; 5];
        for (i, lane) in a.iter().enumerate() {
            parity[i % 5] ^= lane;
        }
        for (i, lane) in a.iter_mut().enumerate() {
            *lane ^= parity[(i + 4) % 5] ^ parity[(i + 1) % 5].rotate_left(1);
        }
        let (mut x, mut y, mut moved) = (1, 0, a[1]);
        for turn in 1..=24 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            let place = &mut a[x + 5 * y];
            let next = *place;
            *place = moved.rotate_left(turn * (turn + 1) / 2 % 64);
            moved = next;
        }
        for row in a.chunks_exact_mut(5) {
            let old = [row[0], row[1], row[2], row[3], row[4]];
            for (i, lane) in row.iter_mut().enumerate() {
                *lane = old[i] ^ (!old[(i + 1) % 5] & old[(i + 2) % 5]);
            }
        }
        for j in 0..7 {
            if register & 1 == 1 {
                a[0] ^= 1 << ((1 << j) - 1);
            }
            let carried = register >> 7 == 1;
            register = register << 1 ^ if carried { 0x71 } else { 0 };
        }
    }
}

const SHA_ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

pub fn sha256(data: &[u8]) -> [u8; 32] {
    let mut state: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut padded = data.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).div_ceil(64) * 64 - 8, 0);
    padded.extend((8 * data.len() as u64).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut w = [0u32; 64];
        for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for i in 16..64 {
            let (a, b) = (w[i - 15], w[i - 2]);
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w[i] = w[i - 16].wrapping_add(low).wrapping_add(w[i - 7]).wrapping_add(high);
        }
        let mut v = state;
        for i in 0..64 {
            let [a, b, c, d, e, f, g, h] = v;
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let one = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(SHA_ROUNDS[i]).wrapping_add(w[i]);
            let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            v = [one.wrapping_add(two), a, b, c, d.wrapping_add(one), e, f, g];
        }
        for (word, more) in state.iter_mut().zip(v) {
            *word = word.wrapping_add(more);
        }
    }
    let mut found = [0; 32];
    for (bytes, word) in found.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    found
}

/// Bytes as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of pairs of hexadecimal digits; `None` for any other text.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_abc_is_that_of_the_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(to_hex(&sha256(b"abc")), expected);
        let expected = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(to_hex(&sha256(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")), expected);
    }

    #[test]
    fn blake2b_of_abc_is_that_of_the_standard() {
        let expected = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
                        7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        assert_eq!(to_hex(&blake2b::<64>(b"abc", b"", b"")), expected);
    }

    #[test]
    fn shake_of_nothing_is_that_of_the_standard() {
        assert_eq!(to_hex(&shake(168, b"", 2).concat_bytes()), "7f9c2ba4e88f827d616045507605853e");
        assert_eq!(to_hex(&shake(136, b"", 2).concat_bytes()), "46b9dd2b0ba88d13233b3feb743eeb24");
    }

    trait Bytes {
        fn concat_bytes(&self) -> Vec<u8>;
    }

    impl Bytes for Vec<u64> {
        fn concat_bytes(&self) -> Vec<u8> {
            self.iter().flat_map(|word| word.to_le_bytes()).collect()
        }
    }
}
