//! The rules for bindings.

use crate::Default;
use cede::{BindingVictims, Candidates, PreemptBindings, Result};
use core::cmp::Ordering;

/// Compares two rows by the order of eviction.
fn leaving(q: &Candidates, x: usize, y: usize) -> Ordering {
    let r = &q.rows;
    let name = |row: usize| q.texts.get(r.job[row]);
    let by_age = || r.start[y].cmp(&r.start[x]);
    let by_name = || name(y).cmp(name(x));
    r.priority[x].cmp(&r.priority[y]).then_with(by_age).then_with(by_name).then(x.cmp(&y))
}

/// Ranks option i by its rows.
fn rank(q: &Candidates, i: usize, tiers: &mut [&mut [i64]; 4]) {
    let lowest = i32::MIN as i64;
    let rows = &q.rows.priority[q.rows_of(i)];
    tiers[0][i] = rows.len() as i64;
    tiers[1][i] = rows.iter().fold(lowest, |highest, p| highest.max(*p as i64));
    tiers[2][i] = rows.iter().map(|p| *p as i64 - lowest).sum(); // another victim never lowers the sum
}

impl PreemptBindings for Default {
    fn preempt_bindings(&mut self, q: &Candidates, out: &mut BindingVictims) -> Result<()> {
        for i in 0..q.len() {
            self.order.clear();
            for row in q.rows_of(i) {
                self.order.push(row as i32)?;
            }
            self.order.sort_unstable_by(|x, y| leaving(q, *x as usize, *y as usize));
            self.scratch.reset(q, i)?;
            for row in self.order.iter() {
                if self.scratch.covered() {
                    break;
                }
                self.scratch.pick(q, &mut out.selection, *row as usize);
            }
            out.selection.next();
            rank(q, i, &mut out.tiers);
        }
        Ok(())
    }
}
