use cede::*;

/// A number that everything is folded into, one after the other.
#[derive(Clone, Copy)]
pub struct Fold {
    pub sum: u64,
}

impl Fold {
    pub fn new(seed: u64) -> Self {
        Fold { sum: 0xcbf29ce484222325 ^ seed }
    }

    pub fn add(&mut self, x: u64) {
        self.sum = (self.sum ^ x).wrapping_mul(0x100000001b3);
    }

    /// A number that follows from the sum, for a row or an option.
    pub fn part(&self, k: usize) -> u64 {
        let mut p = *self;
        p.add(k as u64);
        p.sum ^ p.sum >> 29
    }

    pub fn integer(&mut self, x: i64) {
        self.add(x as u64);
    }

    pub fn number(&mut self, x: f64) {
        self.add(x.to_bits());
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, c: &[u8]) {
        self.add(c.len() as u64);
        c.iter().for_each(|x| self.add(*x as u64));
    }

    fn ints(&mut self, c: &[i32]) {
        self.add(c.len() as u64);
        c.iter().for_each(|x| self.integer(*x as i64));
    }

    fn longs(&mut self, c: &[i64]) {
        self.add(c.len() as u64);
        c.iter().for_each(|x| self.integer(*x));
    }

    fn numbers(&mut self, c: &[f64]) {
        self.add(c.len() as u64);
        c.iter().for_each(|x| self.number(*x));
    }

    fn table(&mut self, t: &Table) {
        self.add(t.columns() as u64);
        (0..t.columns()).for_each(|k| self.numbers(t.column(k)));
    }

    fn texts(&mut self, t: &Texts, c: &[i32]) {
        self.add(c.len() as u64);
        c.iter().for_each(|id| self.text(t.get(*id)));
    }

    fn preemptor(&mut self, p: &Preemptor, t: &Texts) {
        [p.namespace, p.job, p.group, p.job_type].iter().for_each(|text| self.text(text));
        [p.priority, p.delta, p.ports, p.attempts].iter().for_each(|x| self.integer(*x as i64));
        self.integer(p.waiting);
        self.numbers(p.ask);
        self.add(p.devices.name.len() as u64);
        for (id, count) in p.devices.name.iter().zip(p.devices.value) {
            self.text(t.get(*id));
            self.integer(*count as i64);
        }
        self.add(p.labels.name.len() as u64);
        for (key, value) in p.labels.name.iter().zip(p.labels.value) {
            self.text(t.get(*key));
            self.text(t.get(*value));
        }
        self.add(p.annotations.name.len() as u64);
        for (name, value) in p.annotations.name.iter().zip(p.annotations.value) {
            self.text(t.get(*name));
            self.number(*value);
        }
    }

    fn rows(&mut self, r: &Rows, t: &Texts) {
        self.ints(r.priority);
        self.table(&r.use_);
        self.longs(r.start);
        self.longs(r.lost_work);
        self.texts(t, r.namespace);
        self.texts(t, r.job);
        self.texts(t, r.group);
        self.ints(r.evictions);
        self.ints(r.eviction_limit);
        self.bytes(r.must_leave);
        self.table(&r.devices);
        self.ints(r.first_label);
        self.texts(t, r.label_key);
        self.texts(t, r.label_value);
        self.texts(t, r.annotation_name);
        self.table(&r.annotations);
        self.later(r.first_budget);
        self.later(r.budget);
        if !r.relocation.is_empty() {
            self.bytes(r.relocation);
            self.ints(r.displaced_priority);
            self.longs(r.displaced_lost_work);
        }
    }

    /// Folds a column that the first version did not have, and leaves no trace
    /// where it is empty.
    fn later(&mut self, c: &[i32]) {
        if !c.is_empty() {
            self.ints(c);
        }
    }

    fn shared(&mut self, s: &Option<Shared>, t: &Texts) {
        match s {
            Some(s) => {
                self.numbers(s.capacity);
                self.texts(t, s.namespace);
                self.numbers(s.weight);
                self.table(&s.use_);
                if !s.budget_slack.is_empty() {
                    self.texts(t, s.budget_name);
                    self.ints(s.budget_slack);
                    self.bytes(s.budget_strict);
                }
            }
            None => (0..4).for_each(|_| self.add(0)),
        }
    }
}

pub fn candidates(seed: u64, q: &Candidates) -> Fold {
    let mut h = Fold::new(seed);
    let t = &q.texts;
    h.integer(q.now);
    h.preemptor(&q.preemptor, t);
    h.texts(t, q.dims);
    h.ints(q.first_row);
    h.table(&q.need);
    h.table(&q.freed);
    h.table(&q.device_need);
    h.ints(q.must_leave);
    h.texts(t, q.place);
    h.table(&q.capacity);
    h.table(&q.reserved);
    h.table(&q.free);
    h.table(&q.own);
    h.rows(&q.rows, t);
    h.shared(&q.shared, t);
    h
}

pub fn options(seed: u64, q: &Options) -> Fold {
    let mut h = Fold::new(seed);
    let t = &q.texts;
    h.integer(q.now);
    h.preemptor(&q.preemptor, t);
    h.texts(t, q.dims);
    h.ints(q.node);
    h.ints(q.highest_priority);
    h.ints(q.victim_count);
    h.longs(q.priority_sum);
    h.longs(q.lost_work);
    h.texts(t, q.place);
    if !q.start.is_empty() {
        h.longs(q.start);
    }
    h.later(q.violations);
    h.later(q.stranded);
    h.later(q.displacing);
    h.later(q.displaced_priority);
    if !q.displaced_lost_work.is_empty() {
        h.longs(q.displaced_lost_work);
    }
    if !q.expected_lost_work.is_empty() {
        h.longs(q.expected_lost_work);
        h.later(q.cascade_depth);
        h.longs(q.expected_delay);
    }
    h.table(&q.need);
    h.table(&q.device_need);
    h.add(q.device_group.columns() as u64);
    (0..q.device_group.columns()).for_each(|r| h.ints(q.device_group.column(r)));
    h.numbers(q.fit_before);
    h.numbers(q.fit_after);
    if q.is_empty() {
        h.add(0);
    } else {
        h.table(&q.components);
    }
    h.bytes(q.present);
    h.ints(q.first_victim);
    h.rows(&q.victims, t);
    h.shared(&q.shared, t);
    h
}
