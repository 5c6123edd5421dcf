/// The score of a row that must not be evicted.
pub const NEVER: f64 = f64::INFINITY;

/// The time at which an answer may change by time alone.
#[derive(Default)]
pub struct Recheck {
    pub(crate) at: i64,
}

impl Recheck {
    /// Requests another evaluation at a time, ns since 1970. The earliest request
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

/// The answer of ScoreVictims, for each row: rows are evicted by lower tier, then by
/// lower score, then in order. [`NEVER`] excludes a row. On entry all are 0.
pub struct VictimScores<'a> {
    pub tier: &'a mut [i64],
    pub score: &'a mut [f64],
    pub recheck: Recheck,
}

/// The answer of ScoreOptions, for each option: the best one has the lowest tiers,
/// compared in order, then the highest score, then the lowest position. Scores are
/// finite. On entry all are 0.
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

/// The answer of PreemptBindings: picks as in SelectVictims, and tiers that rank the
/// options by their rows: lower ones first, compared in order. The host calls the hook
/// twice: for the victims of each option, and then, with these rows alone, for the
/// best option. On entry all tiers are 0.
pub struct BindingVictims<'a> {
    pub selection: Selection<'a>,
    pub tiers: [&'a mut [i64]; 4],
}

impl Selection<'_> {
    /// Adds a row to the current option.
    #[inline]
    pub fn pick(&mut self, row: usize) {
        // Picks beyond the capacity are counted, so that the host reports the fault.
        if let Some(to) = self.picks.get_mut(self.used) {
            *to = row as i32;
        }
        self.used += 1;
    }

    /// Discards all picks: the next ones are for the first option again.
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
