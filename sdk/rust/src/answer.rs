/// The score of a row that must not be evicted.
pub const NEVER: f64 = f64::INFINITY;

/// The time at which an answer may change by time alone.
#[derive(Default)]
pub struct Recheck {
    pub(crate) at: i64,
}

impl Recheck {
    /// Asks for another evaluation at a time, ns since 1970. The earliest wish
    /// counts.
    pub fn at(&mut self, time: i64) {
        if self.at == 0 || time < self.at {
            self.at = time;
        }
    }
}

/// The answer of PriorityDelta: the least difference of priorities for which
/// each row may be evicted. On entry all are the base gap.
pub struct Gaps<'a> {
    pub gap: &'a mut [i32],
    pub recheck: Recheck,
}

/// The answer of ScoreVictims, for each row: lower tiers go first, then lower
/// scores, then row order. [`NEVER`] keeps a row. On entry all are 0.
pub struct VictimScores<'a> {
    pub tier: &'a mut [i64],
    pub score: &'a mut [f64],
    pub recheck: Recheck,
}

/// The answer of ScoreOptions, for each option: lower tiers first, compared in
/// order, then the higher score, then option order. Scores are finite. On entry
/// all are 0.
pub struct OptionScores<'a> {
    pub tiers: [&'a mut [i64]; 4],
    pub score: &'a mut [f64],
    pub recheck: Recheck,
}

/// The answer of SelectVictims: pick the rows of the first option in the order
/// of eviction, then next, then those of the second, and so on.
pub struct Selection<'a> {
    pub(crate) picks: &'a mut [i32],
    pub(crate) ends: &'a mut [i32],
    pub(crate) used: usize,
    pub(crate) closed: usize,
    pub recheck: Recheck,
}

/// The answer of PreemptBindings: picks as of SelectVictims, and tiers that rank
/// the options by their rows: lower ones first, compared in order. The host asks
/// twice: who must go, and then, of who goes, which option is best. On entry all
/// tiers are 0.
pub struct BindingVictims<'a> {
    pub selection: Selection<'a>,
    pub tiers: [&'a mut [i64]; 4],
}

impl Selection<'_> {
    /// Adds a row to the current option.
    #[inline]
    pub fn pick(&mut self, row: usize) {
        // A list that is too long says so: the host names the fault.
        if let Some(to) = self.picks.get_mut(self.used) {
            *to = row as i32;
        }
        self.used += 1;
    }

    /// Forgets all picks: the next are for the first option again.
    pub fn restart(&mut self) {
        self.used = 0;
        self.closed = 0;
    }

    /// Closes the current option. Call it once for every option.
    #[inline]
    pub fn next(&mut self) {
        if let Some(end) = self.ends.get_mut(self.closed) {
            *end = self.used as i32;
        }
        self.closed += 1;
    }
}
