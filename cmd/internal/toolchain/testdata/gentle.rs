//! The rules of gentle in Rust: candidates that have run for more than ten minutes, by
//! priority and then by the lost time of the whole cluster.
#![no_std]

use cede::*;

struct Gentle;

const RUNTIME: i64 = 600_000_000_000;

impl Policy for Gentle {
    fn new() -> Self {
        Gentle
    }

    fn info(&self) -> Info {
        Info {
            name: "gentle",
            version: "1",
            delta: 10,
            columns: Columns::START | Columns::LOST_WORK | Columns::USE | Columns::TOTALS | Columns::TIME,
            ascending: true,
            ..Info::default()
        }
    }
}

impl PriorityDelta for Gentle {
    fn priority_delta(&mut self, question: &Candidates, answer: &mut Gaps) -> Result<()> {
        for (row, start) in question.rows.start.iter().enumerate() {
            let priority = question.rows.priority[row];
            let gap = i64::from(question.preemptor.priority) - i64::from(priority);
            let age = question.now - start;
            answer.gap[row] = if gap >= 10 && age > RUNTIME { 0 } else { i32::MAX };
            if answer.gap[row] != 0 && gap > 0 && age <= RUNTIME {
                answer.recheck.at(question.now + RUNTIME - age + 1);
            }
        }
        Ok(())
    }
}

impl ScoreVictims for Gentle {
    fn score_victims(&mut self, question: &Candidates, answer: &mut VictimScores) -> Result<()> {
        for (row, lost) in question.rows.lost_work.iter().enumerate() {
            let (mut share, mut resources) = (0.0, 0.0);
            if let Some(shared) = &question.shared {
                for (d, total) in shared.capacity.iter().enumerate() {
                    if *total > 0.0 {
                        share += question.rows.use_.column(d)[row] / total;
                        resources += 1.0;
                    }
                }
            }
            if resources > 1.0 {
                share /= resources;
            }
            answer.tier[row] = i64::from(question.rows.priority[row]);
            answer.score[row] = ((*lost as f64 * share) as i64) as f64;
        }
        Ok(())
    }
}

cede::export!(Gentle: PriorityDelta, ScoreVictims);
