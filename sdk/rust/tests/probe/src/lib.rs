//! probe: folds its whole input into one number and derives its answers from
//! it, as sdk/policytest/probe does, so that golden frames show
//! whether this library reads all of them. It also exports the arithmetic.
#![no_std]

use cede::*;

mod fold;

struct Probe {
    seed: u64, // what the configuration folds to
}

impl Policy for Probe {
    fn new() -> Self {
        Probe { seed: 0 }
    }

    fn info(&self) -> Info {
        Info {
            name: "probe",
            version: "1.0-größe",
            delta: -7,
            columns: Columns(0x7ffff),
            adaptive: true,
            ascending: true,
            keep_redundant: true,
            elastic: true,
            multi_cluster: true,
            least_first: true,
            youngest_first: true,
            monotone: true,
        }
    }
}

impl Configurable for Probe {
    const SETTINGS: &'static [Setting] = &[
        Setting::new("on", Kind::Bool, "says \"yes\" or \\no").default("true"),
        Setting::new("count", Kind::Integer, "größe,\n\tin 日本 🦀").default("3").between("-1", "9"),
        Setting::new("weight", Kind::Number, "").default("0.5").at_least("0.5"),
        Setting::new("span", Kind::Duration, "").default("10m"),
        Setting::new("order", Kind::Text, "").required().one_of(&["newest", "größte", "reject"]),
        Setting::new("spare", Kind::Texts, ""),
        Setting::new("shares", Kind::Numbers, ""),
    ];

    fn configure(&mut self, c: &Config) -> Result<()> {
        let mut h = fold::Fold::new(0);
        if c.bool("on") {
            h.add(1);
        }
        h.integer(c.integer("count"));
        h.number(c.number("weight"));
        h.integer(c.duration("span"));
        h.text(c.text("order"));
        h.integer(c.texts("spare").count() as i64);
        c.texts("spare").for_each(|text| h.text(text));
        h.integer(c.numbers("shares").count() as i64);
        for (name, share) in c.numbers("shares") {
            h.text(name);
            h.number(share);
        }
        if c.text("order") == "reject" {
            let first = c.texts("spare").next().unwrap_or_default();
            return Err(Error::format(format_args!("rejected: {}", first)));
        }
        self.seed = h.sum;
        Ok(())
    }
}

/// Fails if the preemptor's job requests it.
fn check(p: &Preemptor) -> Result<()> {
    if p.job == "fail" {
        return Err(Error::about("no", p.namespace));
    }
    Ok(())
}

impl PriorityDelta for Probe {
    fn priority_delta(&mut self, q: &Candidates, out: &mut Gaps) -> Result<()> {
        let h = fold::candidates(self.seed, q);
        for (row, gap) in out.gap.iter_mut().enumerate() {
            *gap += (h.part(row) >> 58) as i32;
        }
        out.recheck.at((h.sum >> 2) as i64);
        out.recheck.at((h.sum >> 2) as i64 + 1);
        check(&q.preemptor)
    }
}

impl ScoreVictims for Probe {
    fn score_victims(&mut self, q: &Candidates, out: &mut VictimScores) -> Result<()> {
        let h = fold::candidates(self.seed, q);
        for row in 0..q.rows.len() {
            out.tier[row] = h.part(row) as i64;
            out.score[row] = (h.part(row) >> 11) as f64;
        }
        check(&q.preemptor)
    }
}

impl Probe {
    fn pick(&self, q: &Candidates, out: &mut Selection) -> fold::Fold {
        let h = fold::candidates(self.seed, q);
        for i in 0..q.len() {
            for row in q.rows_of(i).rev() {
                if q.preemptor.job == "twice" {
                    out.pick(row);
                    out.pick(row);
                } else if h.part(row) >> 63 != 0 {
                    out.pick(row);
                }
            }
            out.next();
        }
        out.recheck.at((h.sum >> 1) as i64);
        h
    }
}

fn rank(h: &fold::Fold, tiers: &mut [&mut [i64]; 4]) {
    for (k, tier) in tiers.iter_mut().enumerate() {
        for (i, to) in tier.iter_mut().enumerate() {
            *to = h.part(4 * i + k) as i64;
        }
    }
}

impl SelectVictims for Probe {
    fn select_victims(&mut self, q: &Candidates, out: &mut Selection) -> Result<()> {
        self.pick(q, out);
        check(&q.preemptor)
    }
}

impl PreemptBindings for Probe {
    fn preempt_bindings(&mut self, q: &Candidates, out: &mut BindingVictims) -> Result<()> {
        let h = self.pick(q, &mut out.selection);
        rank(&h, &mut out.tiers);
        check(&q.preemptor)
    }
}

impl ScoreOptions for Probe {
    fn score_options(&mut self, q: &Options, out: &mut OptionScores) -> Result<()> {
        let h = fold::options(self.seed, q);
        rank(&h, &mut out.tiers);
        for i in 0..q.len() {
            out.score[i] = -((h.part(i) >> 11) as f64);
        }
        check(&q.preemptor)
    }
}

cede::export!(Probe: Configurable, PriorityDelta, ScoreVictims, SelectVictims, ScoreOptions, PreemptBindings);

#[no_mangle]
pub extern "C" fn test_exp(x: f64) -> f64 {
    fmath::exp(x)
}

#[no_mangle]
pub extern "C" fn test_exp10(x: f64) -> f64 {
    fmath::exp10(x)
}

#[no_mangle]
pub extern "C" fn test_log(x: f64) -> f64 {
    fmath::log(x)
}

#[no_mangle]
pub extern "C" fn test_pow(x: f64, y: f64) -> f64 {
    fmath::pow(x, y)
}

#[no_mangle]
pub extern "C" fn test_sqrt(x: f64) -> f64 {
    fmath::sqrt(x)
}
