//! The rules for any number of dimensions and device requests.

use crate::{closer, group_end, relocates_better, square};
use cede::{Buffer, Candidates, Result, Selection};

/// The remaining need of a dimension, or of a device request, and its number.
type Left = (usize, f64);

/// Memory that is reused between calls.
pub struct Scratch {
    /// The reference of distances: the ask less the amounts that picked rows free,
    /// over the dimensions in which it is above zero.
    need: Buffer<Left>,
    /// The shortage of the option, of dimensions and then of device requests.
    lack: Buffer<Left>,
    must: i32,
    gone: Buffer<bool>,
}

/// The amount that row frees in column k: of a dimension or a device request.
fn frees(q: &Candidates, k: usize, row: usize) -> f64 {
    let dims = q.dims.len();
    if k < dims {
        q.rows.use_.column(k)[row]
    } else {
        q.rows.devices.column(k - dims)[row]
    }
}

/// Subtracts the amounts that row frees from a vector, and drops covered columns.
fn subtract(q: &Candidates, left: &mut Buffer<Left>, row: usize) {
    let n = left.len();
    let mut kept = 0;
    for at in 0..n {
        let (k, was) = left[at];
        let rest = was - frees(q, k, row);
        if rest > 0.0 {
            left[kept] = (k, rest);
            kept += 1;
        }
    }
    left.truncate(kept);
}

impl Scratch {
    pub const fn new() -> Self {
        Scratch { need: Buffer::new(), lack: Buffer::new(), must: 0, gone: Buffer::new() }
    }

    pub fn select(&mut self, q: &Candidates, out: &mut Selection) -> Result<()> {
        for i in 0..q.len() {
            self.reset(q, i)?;
            let rows = q.rows_of(i);
            let mut from = rows.start;
            while from < rows.end && !self.covered() {
                let to = group_end(q.rows.priority, from, rows.end);
                self.pick_group(q, out, from, to)?;
                from = to;
            }
            out.next();
        }
        Ok(())
    }

    /// Starts option i with no row picked.
    pub fn reset(&mut self, q: &Candidates, i: usize) -> Result<()> {
        self.need.clear();
        self.lack.clear();
        for (d, ask) in q.preemptor.ask.iter().enumerate() {
            if *ask > 0.0 {
                self.need.push((d, *ask))?;
            }
        }
        for k in 0..q.dims.len() + q.device_need.columns() {
            let lacks = if k < q.dims.len() { q.need.column(k)[i] } else { q.device_need.column(k - q.dims.len())[i] };
            if lacks > 0.0 {
                self.lack.push((k, lacks))?;
            }
        }
        self.must = if q.rows.must_leave.is_empty() { 0 } else { q.must_leave[i] };
        Ok(())
    }

    pub fn covered(&self) -> bool {
        self.lack.is_empty() && self.must == 0
    }

    /// Picks rows of one priority until the option fits or all are picked.
    fn pick_group(&mut self, q: &Candidates, out: &mut Selection, from: usize, to: usize) -> Result<()> {
        self.gone.fill(to - from, false)?;
        for _ in from..to {
            let j = self.nearest(q, from);
            self.gone[j] = true;
            self.pick(q, out, from + j);
            if self.covered() {
                break;
            }
        }
        Ok(())
    }

    pub fn pick(&mut self, q: &Candidates, out: &mut Selection, row: usize) {
        out.pick(row);
        subtract(q, &mut self.lack, row);
        if self.must > 0 && q.rows.must_leave[row] != 0 {
            self.must -= 1;
        }
        subtract(q, &mut self.need, row);
    }

    /// The row first+j that is nearest to the need among those not picked; of equals the
    /// one that can best run elsewhere, then the first.
    fn nearest(&self, q: &Candidates, first: usize) -> usize {
        let mut best = self.gone.iter().position(|gone| !gone).unwrap_or(0);
        let mut least = f64::INFINITY;
        for (j, gone) in self.gone.iter().enumerate() {
            if *gone {
                continue;
            }
            let sum = self.need.iter().fold(0.0, |sum, (d, left)| sum + square(*left, frees(q, *d, first + j)));
            if closer(sum, least) {
                best = j;
                least = sum;
            } else if !closer(least, sum) && relocates_better(&q.rows, first + j, first + best) {
                best = j;
            }
        }
        best
    }
}
