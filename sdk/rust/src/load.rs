//! Views of frames: the column of the frame for each field.

use crate::frame::{Bad, Frame};
use crate::{Candidates, Config, Options, Pairs, Preemptor, Rows, Shared, Table, Texts};

#[inline(never)]
fn table<'a, T: crate::frame::Element>(f: &mut Frame, id: u32, columns: usize, length: usize) -> Table<'a, T> {
    let data = f.column(id, columns as u64 * length as u64);
    Table { data, columns: if f.has(id) { columns } else { 0 }, length }
}

fn texts<'a>(f: &mut Frame) -> Texts<'a> {
    Texts { end: f.any(0x0101), bytes: f.any(0x0102) }
}

/// Positions begin at 0, ascend, and end at n: policies index by them.
#[inline(never)]
fn check_ascending(f: &mut Frame, first: &[i32], n: usize) {
    let mut at = 0;
    let mut bad = first.first().map_or(false, |x| *x != 0);
    for x in first {
        bad |= *x < at;
        at = *x;
    }
    if bad || (!first.is_empty() && at as usize != n) {
        f.bad = true;
    }
}

fn preemptor<'a>(f: &mut Frame, t: &Texts<'a>) -> Preemptor<'a> {
    let (dims, requests) = (f.dims as u64, f.requests as u64);
    let (labels, notes) = (f.count(0x020D), f.count(0x020F));
    Preemptor {
        priority: f.one(0x0201),
        delta: f.one(0x0202),
        ask: f.must(0x0203, dims),
        ports: f.one(0x0204),
        namespace: t.get(f.one(0x0205)),
        job: t.get(f.one(0x0206)),
        group: t.get(f.one(0x0207)),
        job_type: t.get(f.one(0x0208)),
        waiting: f.one(0x0209),
        attempts: f.one(0x020A),
        devices: Pairs { name: f.must(0x020B, requests), value: f.must(0x020C, requests) },
        labels: Pairs { name: f.any(0x020D), value: f.must(0x020E, labels as u64) },
        annotations: Pairs { name: f.any(0x020F), value: f.must(0x0210, notes as u64) },
    }
}

fn rows<'a>(f: &mut Frame) -> Rows<'a> {
    let n = f.rows as u64;
    let (labels, names, budgets) = (f.count(0x040D), f.count(0x040F), f.count(0x0412));
    let r = Rows {
        priority: f.column(0x0401, n),
        use_: table(f, 0x0402, f.dims, f.rows),
        start: f.column(0x0403, n),
        lost_work: f.column(0x0404, n),
        namespace: f.column(0x0405, n),
        job: f.column(0x0406, n),
        group: f.column(0x0407, n),
        evictions: f.column(0x0408, n),
        eviction_limit: f.column(0x0409, n),
        must_leave: f.column(0x040A, n),
        devices: table(f, 0x040B, f.requests, f.rows),
        first_label: f.column(0x040C, n + 1),
        label_key: f.any(0x040D),
        label_value: f.must(0x040E, labels as u64),
        annotation_name: f.any(0x040F),
        annotations: table(f, 0x0410, names, f.rows),
        first_budget: f.column(0x0411, n + 1),
        budget: f.any(0x0412),
        relocation: f.column(0x0413, n),
        displaced_priority: f.column(0x0414, n),
        displaced_lost_work: f.column(0x0415, n),
    };
    if r.annotations.data.len() as u64 != names as u64 * n {
        f.bad = true;
    }
    check_ascending(f, r.first_label, labels);
    check_ascending(f, r.first_budget, budgets);
    let known = f.count(0x0506);
    if r.budget.iter().any(|b| *b as usize >= known) {
        f.bad = true;
    }
    r
}

fn shared<'a>(f: &mut Frame) -> Option<Shared<'a>> {
    let (n, budgets) = (f.count(0x0502), f.count(0x0506) as u64);
    let s = Shared {
        capacity: f.column(0x0501, f.dims as u64),
        namespace: f.any(0x0502),
        weight: f.must(0x0503, n as u64),
        use_: table(f, 0x0504, f.dims, n),
        budget_name: f.must(0x0505, budgets),
        budget_slack: f.any(0x0506),
        budget_strict: f.must(0x0507, budgets),
    };
    if f.has(0x0501) || f.has(0x0506) {
        Some(s)
    } else {
        None
    }
}

#[inline(never)]
pub fn candidates<'a>(f: &mut Frame) -> Result<Candidates<'a>, Bad> {
    let (n, d) = (f.options, f.dims);
    let texts = texts(f);
    let c = Candidates {
        now: f.now,
        preemptor: preemptor(f, &texts),
        dims: f.must(0x0301, d as u64),
        first_row: f.must(0x0302, n as u64 + 1),
        need: table(f, 0x0303, d, n),
        freed: table(f, 0x0304, d, n),
        device_need: table(f, 0x0305, f.requests, n),
        must_leave: f.column(0x0306, n as u64),
        place: f.column(0x0307, n as u64),
        capacity: table(f, 0x0308, d, n),
        reserved: table(f, 0x0309, d, n),
        free: table(f, 0x030A, d, n),
        own: table(f, 0x030B, d, n),
        rows: rows(f),
        shared: shared(f),
        texts,
    };
    check_ascending(f, c.first_row, f.rows);
    if f.bad || c.rows.len() != f.rows || c.need.data.len() != d * n {
        return Err(Bad);
    }
    Ok(c)
}

#[inline(never)]
pub fn options<'a>(f: &mut Frame) -> Result<Options<'a>, Bad> {
    let (n, d) = (f.options, f.dims);
    let texts = texts(f);
    let o = Options {
        now: f.now,
        preemptor: preemptor(f, &texts),
        dims: f.must(0x0301, d as u64),
        node: f.must(0x0601, n as u64),
        highest_priority: f.must(0x0602, n as u64),
        victim_count: f.must(0x0603, n as u64),
        priority_sum: f.must(0x0604, n as u64),
        lost_work: f.column(0x0605, n as u64),
        start: f.column(0x060B, n as u64),
        violations: f.column(0x060A, n as u64),
        stranded: f.column(0x060C, n as u64),
        displacing: f.column(0x060D, n as u64),
        displaced_priority: f.column(0x060E, n as u64),
        displaced_lost_work: f.column(0x060F, n as u64),
        expected_lost_work: f.column(0x0610, n as u64),
        cascade_depth: f.column(0x0611, n as u64),
        expected_delay: f.column(0x0612, n as u64),
        place: f.column(0x0307, n as u64),
        device_need: table(f, 0x0305, f.requests, n),
        device_group: table(f, 0x030C, f.requests, n),
        fit_before: f.column(0x0606, n as u64),
        fit_after: f.column(0x0607, n as u64),
        components: table(f, 0x0608, 3, n),
        present: f.column(0x0609, n as u64),
        need: table(f, 0x0303, d, n),
        first_victim: f.column(0x0302, n as u64 + 1),
        victims: rows(f),
        shared: shared(f),
        texts,
    };
    check_ascending(f, o.first_victim, f.rows);
    if f.bad || (!o.first_victim.is_empty() && o.victims.len() != f.rows) {
        return Err(Bad);
    }
    Ok(o)
}

pub fn config<'a>(f: &mut Frame) -> Result<Config<'a>, Bad> {
    let n = f.count(0x0701) as u64;
    let c = Config {
        name: f.any(0x0701),
        kind: f.must(0x0702, n),
        item: f.must(0x0703, n),
        integer: f.must(0x0704, n),
        number: f.must(0x0705, n),
        text: f.must(0x0706, n),
        texts: texts(f),
    };
    if f.bad {
        return Err(Bad);
    }
    Ok(c)
}
