//! Arithmetic with the same bits everywhere: a port of sdk/fmath, which documents
//! its precision and the results for special values. Use it and never the methods
//! of `f64`, whose results depend on the standard library.

use crate::tables::*;

/// Adding and subtracting it rounds to a whole number.
const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52
const TWO54: f64 = 18014398509481984.0;
const TWO100: f64 = 1267650600228229401496703205376.0;
const TWO_MINUS_60: f64 = 8.673617379884035e-19;

#[inline(always)]
fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[inline(always)]
fn abs(x: f64) -> f64 {
    float(x.to_bits() & !(1 << 63))
}

/// 2^n for n from -1022 to 1023.
#[inline(always)]
fn power2(n: i64) -> f64 {
    float(((n + 1023) as u64) << 52)
}

/// e^z-1 for small z.
#[inline(always)]
fn exp_term(z: f64) -> f64 {
    let z2 = z * z;
    z + z2 * (1.0 / 2.0 + z * (1.0 / 6.0)) + z2 * z2 * (1.0 / 24.0 + z * (1.0 / 120.0))
}

/// 10^r-1 for small r.
#[inline(always)]
fn exp10_term(r: f64) -> f64 {
    let r2 = r * r;
    r * EXP10_C1 + r2 * (EXP10_C2 + r * EXP10_C3) + r2 * r2 * (EXP10_C4 + r * EXP10_C5)
}

/// 2^(k/128) * (1+p) for results that an f64 may not hold with full precision:
/// it computes in the normal range and scales last.
fn exp_scale(k: i64, p: f64) -> f64 {
    let [bits, tail] = EXP[(k & 127) as usize];
    let m = float(bits);
    let y = m + m * (float(tail) + p);
    let exponent = k >> 7;
    if exponent > 0 {
        return y * TWO100 * power2(exponent - 100);
    }
    y * power2(exponent + 100) * (1.0 / TWO100)
}

/// The same for results in the normal range.
#[inline(always)]
fn exp_fast(k: i64, p: f64) -> f64 {
    let [bits, tail] = EXP[(k & 127) as usize];
    let scale = float(bits.wrapping_add(((k >> 7) as u64) << 52));
    scale + scale * (float(tail) + p)
}

/// e^(x+lo), where lo is below the precision of x.
fn exp_of(x: f64, lo: f64) -> f64 {
    let n = x * EXP_PER_STEP + ROUND - ROUND;
    exp_scale(n as i64, exp_term(x - n * EXP_STEP_HI - n * EXP_STEP_LO + lo))
}

/// e^x.
#[inline]
pub fn exp(x: f64) -> f64 {
    if !(x > -700.0 && x < 709.0) {
        return exp_edge(x);
    }
    let shifted = x * EXP_PER_STEP + ROUND;
    let n = shifted - ROUND;
    let k = ((shifted.to_bits() << 13) as i64) >> 13;
    exp_fast(k, exp_term(x - n * EXP_STEP_HI - n * EXP_STEP_LO))
}

#[cold]
fn exp_edge(x: f64) -> f64 {
    if x != x {
        x
    } else if x > 720.0 {
        f64::INFINITY
    } else if x < -750.0 {
        0.0
    } else {
        exp_of(x, 0.0)
    }
}

/// 10^x.
pub fn exp10(x: f64) -> f64 {
    if x != x {
        return x;
    }
    if x > 310.0 {
        return f64::INFINITY;
    }
    if x < -325.0 {
        return 0.0;
    }
    let n = x * EXP10_PER_STEP + ROUND - ROUND;
    let p = exp10_term(x - n * EXP10_STEP_HI - n * EXP10_STEP_LO);
    if x > -304.0 && x < 308.0 {
        exp_fast(n as i64, p)
    } else {
        exp_scale(n as i64, p)
    }
}

/// w, r and rest such that the logarithm of the number with the given bits is
/// w + rest + ln(1+r), up to the square of rest.
#[inline(always)]
fn log_parts(bits: u64) -> (f64, f64, f64) {
    let i = (bits >> 45 & 127) as usize;
    let mut k = ((bits as i64) >> 52) - 1023;
    let mut one = 1023u64 << 52;
    if i >= 53 {
        k += 1;
        one = 1022u64 << 52;
    }
    let mantissa = bits & ((1 << 52) - 1);
    let z = float(mantissa | one);
    let high = float(mantissa >> 27 << 27 | one);
    let [inverse, hi, lo] = LOG[i];
    let inverse = float(inverse);
    let a = high * inverse - 1.0;
    let b = (z - high) * inverse;
    let r = a + b;
    let t = r - a;
    let lost = a - (r - t) + (b - t);
    let n = k as f64;
    let w = n * LN2_HI + float(hi);
    (w, r, n * LN2_LO + float(lo) + (lost - lost * r))
}

/// The natural logarithm of x.
pub fn log(x: f64) -> f64 {
    let mut bits = x.to_bits();
    if bits.wrapping_sub(0x0010_0000_0000_0000) >= 0x7fe0_0000_0000_0000 {
        if x != x || x > f64::MAX {
            return x;
        }
        if x < 0.0 {
            return f64::NAN;
        }
        if x == 0.0 {
            return f64::NEG_INFINITY;
        }
        bits = (x * TWO54).to_bits().wrapping_sub(54 << 52);
    }
    let (w, r, rest) = log_parts(bits);
    let r2 = r * r;
    let q = r2
        * (-1.0 / 2.0
            + r * (1.0 / 3.0)
            + r2 * (-1.0 / 4.0 + r * (1.0 / 5.0))
            + r2 * r2 * (-1.0 / 6.0 + r * (1.0 / 7.0) + r2 * (-1.0 / 8.0 + r * (1.0 / 9.0))));
    let hi = w + r;
    let lo = w - hi + r;
    hi + (lo + rest + q)
}

/// x*y-p exactly, where p is x*y rounded.
#[inline(always)]
fn product_error(x: f64, y: f64, p: f64) -> f64 {
    let x1 = float(x.to_bits() >> 27 << 27);
    let y1 = float(y.to_bits() >> 27 << 27);
    let (x2, y2) = (x - x1, y - y1);
    x1 * y1 - p + x1 * y2 + x2 * y1 + x2 * y2
}

/// ln(x) as a sum of two numbers.
fn log_pair(x: f64) -> (f64, f64) {
    let mut bits = x.to_bits();
    if bits < 1 << 52 {
        bits = (x * TWO54).to_bits().wrapping_sub(54 << 52);
    }
    let (w, r, rest) = log_parts(bits);
    let r2 = r * r;
    let square = product_error(r, r, r2);
    let r4 = r2 * r2;
    let cubic = 1.0 / 3.0 - r * (1.0 / 4.0)
        + r2 * (1.0 / 5.0 - r * (1.0 / 6.0))
        + r4 * (1.0 / 7.0 - r * (1.0 / 8.0) + r2 * (1.0 / 9.0 - r * (1.0 / 10.0)) + r4 * (1.0 / 11.0));
    let a = w + r;
    let lost_a = w - a + r;
    let b = a - 0.5 * r2;
    let lost_b = a - b - 0.5 * r2;
    let tail = lost_a + lost_b + rest - 0.5 * square + r * r2 * cubic;
    let hi = b + tail;
    (hi, b - hi + tail)
}

/// x^y for finite x above zero and finite y.
fn pow_positive(x: f64, y: f64) -> f64 {
    let (hi, lo) = log_pair(x);
    let e = y * hi;
    if e > 720.0 {
        return f64::INFINITY;
    }
    if e < -750.0 {
        return 0.0;
    }
    if abs(e) < TWO_MINUS_60 {
        return 1.0;
    }
    exp_of(e, product_error(y, hi, e) + y * lo)
}

/// Reports whether y is a whole number: every number from 2^52 on is.
fn is_whole(y: f64) -> bool {
    abs(y) >= 4503599627370496.0 || y as i64 as f64 == y
}

/// x^y.
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x != x || y != y {
        return f64::NAN;
    }
    if y == 1.0 {
        return x;
    }
    let (ax, ay) = (abs(x), abs(y));
    let odd = is_whole(y) && ay < 9007199254740992.0 && y as i64 & 1 != 0;
    let sign = if x.is_sign_negative() && odd { -1.0 } else { 1.0 };
    if ay == f64::INFINITY {
        return if ax == 1.0 {
            1.0
        } else if (ax > 1.0) == (y > 0.0) {
            f64::INFINITY
        } else {
            0.0
        };
    }
    if ax == 0.0 || ax == f64::INFINITY {
        return sign * if (ax == 0.0) == (y < 0.0) { f64::INFINITY } else { 0.0 };
    }
    if x < 0.0 && !is_whole(y) {
        return f64::NAN;
    }
    sign * pow_positive(ax, y)
}

/// The square root of x, correctly rounded.
#[inline]
pub fn sqrt(x: f64) -> f64 {
    // A crate without the standard library cannot use the instruction for one
    // number, but it can use the one for two.
    #[target_feature(enable = "simd128")]
    #[inline]
    unsafe fn both(x: f64) -> f64 {
        use core::arch::wasm32::*;
        f64x2_extract_lane::<0>(f64x2_sqrt(f64x2_splat(x)))
    }
    // Safety: the ABI requires this instruction of every host.
    unsafe { both(x) }
}
