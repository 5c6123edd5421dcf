use crate::{BindingVictims, Candidates, Config, Gaps, OptionScores, Options, Result, Selection, Setting, VictimScores};
use core::ops::BitOr;

/// The trait that every policy implements. A policy has any of the hooks
/// [`PriorityDelta`], [`ScoreVictims`], [`SelectVictims`], [`ScoreOptions`] and
/// [`PreemptBindings`], which [`export!`](crate::export) lists; the rules named default
/// replace the missing ones.
pub trait Policy {
    /// Returns a policy that is not configured yet.
    fn new() -> Self;

    /// Describes the policy and the columns that it needs. The host calls it before
    /// and after configure; the second result counts.
    fn info(&self) -> Info;
}

/// A policy that operators can configure.
pub trait Configurable: Policy {
    /// Declares the configuration.
    const SETTINGS: &'static [Setting];

    /// Receives the values, with defaults, once and before any hook. An error rejects
    /// the policy and is shown to the operator: it is for conditions that settings
    /// cannot express, such as two values that exclude one another. Texts are valid
    /// during the call only: copy them with [`keep`](crate::keep).
    fn configure(&mut self, config: &Config) -> Result<()>;
}

/// Decides which candidates may be evicted for the preemptor at all.
pub trait PriorityDelta: Policy {
    fn priority_delta(&mut self, question: &Candidates, answer: &mut Gaps) -> Result<()>;
}

/// Decides the order of eviction.
pub trait ScoreVictims: Policy {
    fn score_victims(&mut self, question: &Candidates, answer: &mut VictimScores) -> Result<()>;
}

/// Replaces ScoreVictims for policies that select exact sets of victims.
pub trait SelectVictims: Policy {
    fn select_victims(&mut self, question: &Candidates, answer: &mut Selection) -> Result<()>;
}

/// Chooses among options.
pub trait ScoreOptions: Policy {
    fn score_options(&mut self, question: &Options, answer: &mut OptionScores) -> Result<()>;
}

/// Decides which bindings are evicted from which member cluster. Its input has the
/// optional columns USE, START, JOB and PLACE and no others, independent of Info.
pub trait PreemptBindings: Policy {
    fn preempt_bindings(&mut self, question: &Candidates, answer: &mut BindingVictims) -> Result<()>;
}

/// The description of a policy.
#[derive(Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    /// The policy's own version, for operators.
    pub version: &'static str,
    /// Base priority gap if the configuration sets none.
    pub delta: i32,
    /// Optional columns that its hooks read.
    pub columns: Columns,
    /// Call score_victims again after each pick.
    pub adaptive: bool,
    /// Victims are in order of ascending priority, before any other criterion: the
    /// host then omits candidates that the policy would not reach.
    pub ascending: bool,
    /// Redundant victims of select_victims are evicted too, if the operator grants it.
    pub keep_redundant: bool,
    /// preempt_bindings gets an elastic binding as two rows: the replicas above its
    /// minimum, followed by the remaining ones, if any. If an answer lists the second,
    /// the first is evicted as well.
    pub elastic: bool,
    /// If no single cluster can hold all missing replicas of a divided binding,
    /// preempt_bindings is called for victims on several clusters.
    pub multi_cluster: bool,
    /// score_options, which reads the starts, selects the option with the fewest overrun
    /// budgets (if it reads them), then the lowest highest priority, then the lowest sum
    /// of priorities, each raised by 2^31, then the fewest victims, then the latest
    /// start. The host then evaluates only nodes that may be selected.
    pub least_first: bool,
    /// Within a priority, the allocation that started last is evicted first, of equals
    /// the first in order; budgets are charged in reverse order; and of options that are
    /// equal by least_first the first is selected. With ascending and least_first the
    /// host computes the cost of an option itself and evaluates still fewer nodes.
    pub youngest_first: bool,
    /// The tiers of score_options depend on victim_count, highest_priority, priority_sum
    /// (each priority raised by 2^31), budget_violations, lost_work, start and the columns
    /// of Columns::RELOCATION and Columns::LOOKAHEAD alone, and do not fall if one of these
    /// rises, or if start falls. The host then omits topology domains of a gang that cannot
    /// have lower tiers than the best one found.
    pub monotone: bool,
}

impl Default for Info {
    fn default() -> Self {
        Info {
            name: "",
            version: "1",
            delta: 10,
            columns: Columns::NONE,
            adaptive: false,
            ascending: false,
            keep_redundant: false,
            elastic: false,
            multi_cluster: false,
            least_first: false,
            youngest_first: false,
            monotone: false,
        }
    }
}

/// A set of optional columns. Request only the columns that the policy reads: the
/// host reuses answers while every requested column is unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Columns(pub u64);

impl Columns {
    pub const NONE: Columns = Columns(0);
    /// Rows::use_
    pub const USE: Columns = Columns(1);
    /// Rows::start
    pub const START: Columns = Columns(1 << 1);
    /// Rows::lost_work, and that of options
    pub const LOST_WORK: Columns = Columns(1 << 2);
    /// Rows::namespace, job, group
    pub const JOB: Columns = Columns(1 << 3);
    /// Rows::evictions, eviction_limit
    pub const EVICTION: Columns = Columns(1 << 4);
    /// Rows::must_leave, and that of options
    pub const MUST_LEAVE: Columns = Columns(1 << 5);
    /// Rows::devices, and device_need and device_group of options
    pub const DEVICE: Columns = Columns(1 << 6);
    /// Candidates::capacity, reserved, free, own
    pub const CAPACITY: Columns = Columns(1 << 7);
    /// place of options
    pub const PLACE: Columns = Columns(1 << 8);
    /// labels of the preemptor and of rows
    pub const LABEL: Columns = Columns(1 << 9);
    /// annotations of the preemptor and of rows
    pub const ANNOTATION: Columns = Columns(1 << 10);
    /// shared
    pub const SHARED: Columns = Columns(1 << 11);
    /// Options::need and victims, with the requested columns of rows
    pub const VICTIM: Columns = Columns(1 << 12);
    /// Options::fit_before, fit_after, components, present
    pub const FIT: Columns = Columns(1 << 13);
    /// answers depend on now
    pub const TIME: Columns = Columns(1 << 14);
    /// Shared::capacity alone
    pub const TOTALS: Columns = Columns(1 << 15);
    /// Rows::budget, budgets of Shared, and violations of options
    pub const BUDGET: Columns = Columns(1 << 16);
    /// Rows::relocation and displaced_*, and stranded, displacing and displaced_* of
    /// options: a weight, but no reason to exclude a candidate, which would be offered
    /// again if its own node changes, but not if others change
    pub const RELOCATION: Columns = Columns(1 << 17);
    /// expected_* and cascade_depth of options: score_options is called about all options,
    /// with zeros in them, and then about the few best, which the host has played
    pub const LOOKAHEAD: Columns = Columns(1 << 18);
}

impl BitOr for Columns {
    type Output = Columns;
    fn bitor(self, other: Columns) -> Columns {
        Columns(self.0 | other.0)
    }
}
