//! default: the built-in rules of this name (sdk/rules), in Rust.
//!
//! The lowest priority is evicted first; within a priority the allocation nearest to the
//! remaining need, measured again after each pick; of equals the one that can best run
//! elsewhere, then the first row. Among options: the lowest highest victim priority, then
//! the fewest victims, the lowest sum of priorities, the victims that can best run
//! elsewhere, and the best fit without the victims.
//!
//! Of bindings on a member cluster the lowest priority is evicted first, then the one that
//! started last, then the last name. Among clusters: the fewest
//! victims, the lowest highest priority, the lowest sum of priorities.
#![no_std]

use cede::*;

mod any;
mod bindings;
mod few;

struct Default {
    scratch: any::Scratch,
    order: Buffer<i32>,
}

impl Policy for Default {
    fn new() -> Self {
        Default { scratch: any::Scratch::new(), order: Buffer::new() }
    }

    fn info(&self) -> Info {
        Info {
            name: "default",
            version: "2",
            ascending: true,
            monotone: true,
            columns: Columns::USE | Columns::MUST_LEAVE | Columns::DEVICE | Columns::FIT | Columns::RELOCATION,
            ..Info::default()
        }
    }
}

impl SelectVictims for Default {
    fn select_victims(&mut self, question: &Candidates, answer: &mut Selection) -> Result<()> {
        if few::select(question, answer) {
            return Ok(());
        }
        self.scratch.select(question, answer)
    }
}

/// The end of the rows from `from` on that have its priority.
fn group_end(priority: &[i32], from: usize, end: usize) -> usize {
    match priority[from..end].iter().position(|p| *p != priority[from]) {
        Some(n) => from + n,
        None => end,
    }
}

/// Reports whether the distance with square a is smaller than that with square b. Two
/// roots can round to the same only where the squares are within a few units in
/// the last place of one another, so most comparisons take no root.
#[inline(always)]
fn closer(a: f64, b: f64) -> bool {
    const NEARLY: f64 = 1.0 - 1.0 / (1u64 << 50) as f64;
    a < b * NEARLY || (a < b && fmath::sqrt(a) < fmath::sqrt(b))
}

/// The square of the relative distance of a use from the remaining need.
#[inline(always)]
fn square(left: f64, using: f64) -> f64 {
    let r = (left - using) / left;
    r * r
}

/// Reports whether a row can better run elsewhere than another one.
#[inline(always)]
fn relocates_better(rows: &Rows, a: usize, b: usize) -> bool {
    if rows.relocation.is_empty() {
        return false;
    }
    let cost = |row: usize| (rows.relocation[row], rows.displaced_priority[row], rows.displaced_lost_work[row]);
    cost(a) < cost(b)
}

/// The tier of option i's victims: how many fit nowhere else, then the highest priority
/// that the others would evict, then how many would evict.
fn relocation(question: &Options, i: usize) -> i64 {
    if question.stranded.is_empty() {
        return 0;
    }
    let most = (1 << 14) - 1;
    let stranded = question.stranded[i].min(most) as i64;
    let displacing = question.displacing[i].min(most) as i64;
    let priority = if displacing > 0 { question.displaced_priority[i] as i64 - i32::MIN as i64 + 1 } else { 0 };
    stranded << 48 | priority << 14 | displacing
}

/// The mean of the parts of the ranking of option i.
fn mean(question: &Options, i: usize) -> f64 {
    let (mut sum, mut n) = (question.fit_after[i], 1.0);
    for k in 0..question.components.columns() {
        if question.present[i] >> k & 1 != 0 {
            sum += question.components.column(k)[i];
            n += 1.0;
        }
    }
    sum / n
}

impl ScoreOptions for Default {
    fn score_options(&mut self, question: &Options, answer: &mut OptionScores) -> Result<()> {
        for i in 0..question.len() {
            let victims = question.victim_count[i] as i64;
            // No eviction beats any.
            answer.tiers[0][i] = if victims == 0 { i64::MIN } else { question.highest_priority[i] as i64 };
            answer.tiers[1][i] = victims;
            answer.tiers[2][i] = question.priority_sum[i];
            answer.tiers[3][i] = relocation(question, i);
            answer.score[i] = mean(question, i);
        }
        Ok(())
    }
}

cede::export!(Default: SelectVictims, ScoreOptions, PreemptBindings);
