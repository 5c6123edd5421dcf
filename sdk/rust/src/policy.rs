use crate::{BindingVictims, Candidates, Config, Gaps, OptionScores, Options, Result, Selection, Setting, VictimScores};
use core::ops::BitOr;

/// What every policy implements. It has any of the hooks [`PriorityDelta`],
/// [`ScoreVictims`], [`SelectVictims`], [`ScoreOptions`] and [`PreemptBindings`];
/// what it lacks, the rules named default do. [`export!`](crate::export) names
/// those it has.
pub trait Policy {
    /// A policy that has not been configured yet.
    fn new() -> Self;

    /// What the policy is and needs. It is asked before configure and after it,
    /// and the latter counts.
    fn info(&self) -> Info;
}

/// Policies that operators can configure.
pub trait Configurable: Policy {
    /// Declares the configuration: the same always.
    const SETTINGS: &'static [Setting];

    /// Takes the values, every setting that has a default among them, once,
    /// before the hooks. An error rejects the policy and is shown to the
    /// operator: what settings cannot say belongs here, such as two values that
    /// exclude one another. Texts are gone afterwards: [`keep`](crate::keep) them.
    fn configure(&mut self, config: &Config) -> Result<()>;
}

/// Decides which candidates may be evicted for the preemptor at all.
pub trait PriorityDelta: Policy {
    fn priority_delta(&mut self, question: &Candidates, answer: &mut Gaps) -> Result<()>;
}

/// Decides whom to evict first.
pub trait ScoreVictims: Policy {
    fn score_victims(&mut self, question: &Candidates, answer: &mut VictimScores) -> Result<()>;
}

/// Replaces ScoreVictims for policies that pick exactly.
pub trait SelectVictims: Policy {
    fn select_victims(&mut self, question: &Candidates, answer: &mut Selection) -> Result<()>;
}

/// Chooses among options.
pub trait ScoreOptions: Policy {
    fn score_options(&mut self, question: &Options, answer: &mut OptionScores) -> Result<()>;
}

/// Decides which bindings leave which member cluster. Of the optional columns
/// those of USE, START, JOB and PLACE come, whatever Info asks for, and no others.
pub trait PreemptBindings: Policy {
    fn preempt_bindings(&mut self, question: &Candidates, answer: &mut BindingVictims) -> Result<()>;
}

/// What a policy says of itself.
#[derive(Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    /// The policy's own version, for people.
    pub version: &'static str,
    /// Base priority gap where the operator sets none.
    pub delta: i32,
    /// Optional columns that its hooks read.
    pub columns: Columns,
    /// Ask score_victims again after each pick.
    pub adaptive: bool,
    /// Victims go by ascending priority, whatever else counts: the host then
    /// shows no candidate that the policy would not reach.
    pub ascending: bool,
    /// The lists of select_victims stand whole, where the operator grants it.
    pub keep_redundant: bool,
    /// preempt_bindings is shown an elastic binding in two rows: the replicas above its
    /// minimum, and right behind it those that are left, where any are. Who lists the
    /// second has the first leave as well.
    pub elastic: bool,
    /// Where no single cluster can be made to hold all that a divided binding misses,
    /// preempt_bindings is asked who would leave several of them.
    pub multi_cluster: bool,
    /// score_options, which reads the starts, takes the option with the fewest budgets
    /// overrun (where it reads them); of equals the lowest highest priority, then the
    /// lowest sum of priorities, each raised by 2^31, then the fewest victims, then the
    /// latest start. The host then asks about nodes that may win, and no others.
    pub least_first: bool,
    /// Of one priority who started last goes first, of equals the first in order;
    /// budgets are charged the other way round; and of options that are equal by
    /// least_first the first is taken. With ascending and least_first the host knows
    /// what an option costs, and asks about still fewer nodes.
    pub youngest_first: bool,
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
        }
    }
}

/// A set of optional columns. Ask for what the policy reads and no more: answers
/// are reused while every column asked for is unchanged.
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
    /// Options::need and victims, with the row columns that are asked for
    pub const VICTIM: Columns = Columns(1 << 12);
    /// Options::fit_before, fit_after, components, present
    pub const FIT: Columns = Columns(1 << 13);
    /// answers depend on now
    pub const TIME: Columns = Columns(1 << 14);
    /// Shared::capacity alone
    pub const TOTALS: Columns = Columns(1 << 15);
    /// Rows::budget, budgets of Shared, and violations of options
    pub const BUDGET: Columns = Columns(1 << 16);
}

impl BitOr for Columns {
    type Output = Columns;
    fn bitor(self, other: Columns) -> Columns {
        Columns(self.0 | other.0)
    }
}
