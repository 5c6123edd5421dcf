//! The rules for up to four dimensions, no devices and up to 64 rows of one
//! priority, which covers most calls: all but the columns stays in
//! registers, since the loops over dimensions are unrolled. A dimension counts
//! while its need, or its lack, is above zero.

use crate::{closer, group_end, relocates_better, square};
use cede::{Candidates, Rows, Selection};

const FEW: usize = 4;

struct Few<'a> {
    using: [&'a [f64]; FEW],
    rows: &'a Rows<'a>,
    must_leave: &'a [u8],
    need: [f64; FEW],
    lack: [f64; FEW],
    must: i32,
}

/// Returns false if the input exceeds these limits.
pub fn select(q: &Candidates, out: &mut Selection) -> bool {
    if q.dims.len() > FEW || !q.preemptor.devices.name.is_empty() {
        return false;
    }
    let (mut ask, mut lack) = ([0.0; FEW], [&[][..]; FEW]);
    let mut f = Few { using: [&[]; FEW], rows: &q.rows, must_leave: q.rows.must_leave, need: ask, lack: ask, must: 0 };
    for d in 0..q.dims.len().min(FEW) {
        f.using[d] = q.rows.use_.column(d);
        lack[d] = q.need.column(d);
        ask[d] = q.preemptor.ask[d];
    }
    for i in 0..q.len() {
        f.need = ask;
        for d in 0..FEW {
            f.lack[d] = lack[d].get(i).copied().unwrap_or(0.0);
        }
        f.must = if f.must_leave.is_empty() { 0 } else { q.must_leave[i] };
        let rows = q.rows_of(i);
        let mut from = rows.start;
        while from < rows.end && !f.covered() {
            let to = group_end(q.rows.priority, from, rows.end);
            if to - from > 64 {
                out.restart();
                return false;
            }
            f.take_group(out, from, to - from);
            from = to;
        }
        out.next();
    }
    true
}

impl Few<'_> {
    #[inline(always)]
    fn covered(&self) -> bool {
        self.must == 0 && !self.lack.iter().any(|lacks| *lacks > 0.0)
    }

    /// Picks rows of one priority until the option fits or all are picked.
    #[inline(always)]
    fn take_group(&mut self, out: &mut Selection, from: usize, n: usize) {
        let mut gone = 0u64;
        for left in (1..=n).rev() {
            let j = if left == 1 { (!gone).trailing_zeros() as usize } else { self.nearest(gone, from, n) };
            self.take(out, from + j);
            if self.covered() {
                return;
            }
            gone |= 1 << j;
        }
    }

    #[inline(always)]
    fn take(&mut self, out: &mut Selection, row: usize) {
        out.pick(row);
        for d in 0..FEW {
            if self.need[d] > 0.0 || self.lack[d] > 0.0 {
                let using = self.using[d][row];
                self.need[d] -= using;
                self.lack[d] -= using;
            }
        }
        if self.must > 0 && self.must_leave[row] != 0 {
            self.must -= 1;
        }
    }

    /// The row first+j, of n, that is nearest to the need among those that have
    /// no bit in gone; of equals the one that can best run elsewhere, then the first.
    #[inline(always)]
    fn nearest(&self, gone: u64, first: usize, n: usize) -> usize {
        let mut best = (!gone).trailing_zeros() as usize;
        let mut least = f64::INFINITY;
        for j in best..n {
            if gone >> j & 1 != 0 {
                continue;
            }
            let mut sum = 0.0;
            for d in 0..FEW {
                if self.need[d] > 0.0 {
                    sum += square(self.need[d], self.using[d][first + j]);
                }
            }
            if closer(sum, least) {
                best = j;
                least = sum;
            } else if !closer(least, sum) && relocates_better(self.rows, first + j, first + best) {
                best = j;
            }
        }
        best
    }
}
