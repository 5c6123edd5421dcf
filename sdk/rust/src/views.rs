use crate::Texts;
use core::ops::Range;

/// A column per dimension or per device request, one after the other.
#[derive(Clone, Copy)]
pub struct Table<'a, T = f64> {
    pub(crate) data: &'a [T],
    pub(crate) columns: usize,
    pub(crate) length: usize,
}

impl<'a, T> Table<'a, T> {
    /// Column k.
    #[inline]
    pub fn column(&self, k: usize) -> &'a [T] {
        &self.data[k * self.length..(k + 1) * self.length]
    }

    /// The number of columns; 0 if the host sent no such table.
    #[inline]
    pub fn columns(&self) -> usize {
        self.columns
    }
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Table { data: &[], columns: 0, length: 0 }
    }
}

/// Labels or annotations: the numbers of their names' texts, and the values.
#[derive(Clone, Copy)]
pub struct Pairs<'a, T> {
    pub name: &'a [i32],
    pub value: &'a [T],
}

/// The group that needs capacity.
pub struct Preemptor<'a> {
    pub namespace: &'a str,
    pub job: &'a str,
    pub group: &'a str,
    /// service, batch, system, sysbatch
    pub job_type: &'a str,
    pub priority: i32,
    /// Base gap: that of the configuration, else Info::delta.
    pub delta: i32,
    /// By dimension.
    pub ask: &'a [f64],
    /// Host ports needed.
    pub ports: i32,
    /// Device requests: identifier (text) and number of instances.
    pub devices: Pairs<'a, i32>,
    /// The time that the group has waited, ns.
    pub waiting: i64,
    /// Evaluations of the job that did not place the whole group.
    pub attempts: i32,
    /// Columns::LABEL: values are texts.
    pub labels: Pairs<'a, i32>,
    /// Columns::ANNOTATION
    pub annotations: Pairs<'a, f64>,
}

/// A table of allocations: candidates, or the victims of options.
#[derive(Default)]
pub struct Rows<'a> {
    pub priority: &'a [i32],
    /// By dimension.
    pub use_: Table<'a>,
    /// ns since 1970
    pub start: &'a [i64],
    /// The work that an eviction now loses, ns.
    pub lost_work: &'a [i64],
    /// Texts; job and group are unique IDs, not names.
    pub namespace: &'a [i32],
    pub job: &'a [i32],
    pub group: &'a [i32],
    /// Victims of its group in this plan so far, and their limit; 0: none.
    pub evictions: &'a [i32],
    pub eviction_limit: &'a [i32],
    /// Bits: 1 port, 2 separation.
    pub must_leave: &'a [u8],
    /// Instances held of the device group chosen for the request, by request.
    pub devices: Table<'a>,
    /// Labels of row i are first_label[i]..first_label[i+1] of key and value, texts.
    pub first_label: &'a [i32],
    pub label_key: &'a [i32],
    pub label_value: &'a [i32],
    /// Texts, one per column of annotations, which are NaN if a row has none.
    pub annotation_name: &'a [i32],
    pub annotations: Table<'a>,
    /// Columns::BUDGET: evicting row i costs one of each of the budgets
    /// first_budget[i]..first_budget[i+1] of budget: rows of those of Shared.
    pub first_budget: &'a [i32],
    pub budget: &'a [i32],
    /// Columns::RELOCATION: where the row could run if it were evicted alone, one of the
    /// constants FITS_*; the highest priority, and the lost work in ns, that it would evict
    /// there in its turn: i32::MIN and 0 unless it is FITS_BY_EVICTING.
    pub relocation: &'a [u8],
    pub displaced_priority: &'a [i32],
    pub displaced_lost_work: &'a [i64],
}

/// A value of Rows::relocation: another node has enough free capacity. The values are in
/// the order of preference.
pub const FITS_ELSEWHERE: u8 = 0;
/// Another node has, once allocations that the row may evict have left.
pub const FITS_BY_EVICTING: u8 = 1;
/// No other node that the host has examined.
pub const FITS_NOWHERE: u8 = 2;

impl Rows<'_> {
    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.priority.len()
    }

    /// Reports whether there are none.
    pub fn is_empty(&self) -> bool {
        self.priority.is_empty()
    }
}

/// Input that is the same for every option.
pub struct Shared<'a> {
    /// Of all ready nodes, by dimension.
    pub capacity: &'a [f64],
    /// Namespaces: name (text), weight, use by dimension.
    pub namespace: &'a [i32],
    pub weight: &'a [f64],
    pub use_: Table<'a>,
    /// Disruption budgets: a unique ID (text), how many more rows may be evicted before
    /// it is overrun, and 1 if the host refuses evictions that overrun it.
    pub budget_name: &'a [i32],
    pub budget_slack: &'a [i32],
    pub budget_strict: &'a [u8],
}

/// The input of PriorityDelta, ScoreVictims, SelectVictims and PreemptBindings:
/// options that do not fit yet, with the rows that may be evicted for them. For
/// PreemptBindings an option is a member cluster, and a row is the replicas of another
/// binding there.
pub struct Candidates<'a> {
    pub now: i64,
    pub preemptor: Preemptor<'a>,
    /// Names of the dimensions, texts.
    pub dims: &'a [i32],
    /// An element more than there are options: see rows_of.
    pub first_row: &'a [i32],
    /// The missing amount, by dimension; zero or less: none.
    pub need: Table<'a>,
    /// The amount that earlier picks free, by dimension.
    pub freed: Table<'a>,
    /// Missing instances, by request.
    pub device_need: Table<'a>,
    /// Rows of the option that must leave.
    pub must_leave: &'a [i32],
    /// The node, text.
    pub place: &'a [i32],
    /// Of the node, by dimension.
    pub capacity: Table<'a>,
    pub reserved: Table<'a>,
    pub free: Table<'a>,
    pub own: Table<'a>,
    pub rows: Rows<'a>,
    pub shared: Option<Shared<'a>>,
    pub texts: Texts<'a>,
}

impl Candidates<'_> {
    /// The number of options.
    #[inline]
    pub fn len(&self) -> usize {
        self.first_row.len() - 1
    }

    /// Reports whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of option i.
    #[inline]
    pub fn rows_of(&self, i: usize) -> Range<usize> {
        self.first_row[i] as usize..self.first_row[i + 1] as usize
    }
}

/// The input of ScoreOptions: options that fit once their victims are evicted.
pub struct Options<'a> {
    pub now: i64,
    pub preemptor: Preemptor<'a>,
    /// Names of the dimensions, texts.
    pub dims: &'a [i32],
    /// Equal values: the same node.
    pub node: &'a [i32],
    /// Of the victims.
    pub highest_priority: &'a [i32],
    pub victim_count: &'a [i32],
    pub priority_sum: &'a [i64],
    /// ns, all victims together.
    pub lost_work: &'a [i64],
    /// Columns::START: the earliest start among the victims with the highest priority,
    /// ns since 1970; empty with an older host.
    pub start: &'a [i64],
    /// Columns::BUDGET: victims whose eviction overruns a budget.
    pub violations: &'a [i32],
    /// Columns::RELOCATION: victims with FITS_NOWHERE, and with FITS_BY_EVICTING; the highest
    /// priority that the latter would evict, i32::MIN if there are none, and the lost work
    /// of all that they would evict, ns.
    pub stranded: &'a [i32],
    pub displacing: &'a [i32],
    pub displaced_priority: &'a [i32],
    pub displaced_lost_work: &'a [i64],
    /// Columns::LOOKAHEAD: what follows from the option if no other work arrives: lost work
    /// of all evictions, ns; length of the longest chain of evictions; time for which evicted
    /// instances do not run, ns. Zero where the host has not played it.
    pub expected_lost_work: &'a [i64],
    pub cascade_depth: &'a [i32],
    pub expected_delay: &'a [i64],
    /// The node, text.
    pub place: &'a [i32],
    /// Instances missing before any eviction, and the device group, by request.
    pub device_need: Table<'a>,
    pub device_group: Table<'a, i32>,
    /// In [0, 1], with the victims counted and without them.
    pub fit_before: &'a [f64],
    pub fit_after: &'a [f64],
    /// Anti-affinity, affinity, spread: each in [-1, 1].
    pub components: Table<'a>,
    /// The components that count, bits 0 to 2.
    pub present: &'a [u8],
    /// Missing before any eviction, by dimension.
    pub need: Table<'a>,
    /// An element more than there are options: see victims_of.
    pub first_victim: &'a [i32],
    pub victims: Rows<'a>,
    pub shared: Option<Shared<'a>>,
    pub texts: Texts<'a>,
}

impl Options<'_> {
    /// The number of options.
    #[inline]
    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// Reports whether there are none.
    pub fn is_empty(&self) -> bool {
        self.node.is_empty()
    }

    /// The rows of victims that option i evicts.
    #[inline]
    pub fn victims_of(&self, i: usize) -> Range<usize> {
        self.first_victim[i] as usize..self.first_victim[i + 1] as usize
    }
}
