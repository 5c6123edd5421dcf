//! decay: lost work counts less the longer ago it started.
//!
//! Victims are ordered by the work that their eviction loses, which counts for half after
//! each halfLife since its start. Allocations that started less than grace ago are protected
//! from all but much higher priorities. Options are ordered by the highest priority among
//! their victims, and then by fit less the work that is lost there.
#![no_std]

use cede::*;

struct Decay {
    half_life: i64,
    grace: i64,
    grace_gap: i32,
    weight: f64,
    fewest: bool,
    fit_before: bool,
    factors: Buffer<(&'static str, f64)>, // NEVER for a protected namespace
}

impl Decay {
    fn find_factor(&self, namespace: &str) -> Option<f64> {
        self.factors.iter().find(|f| f.0 == namespace).map(|f| f.1)
    }

    /// The weight of a lost hour in a namespace.
    fn factor_of(&self, namespace: &str) -> f64 {
        self.find_factor(namespace).unwrap_or(1.0)
    }
}

impl Policy for Decay {
    fn new() -> Self {
        Decay {
            half_life: 0,
            grace: 0,
            grace_gap: 0,
            weight: 0.0,
            fewest: false,
            fit_before: false,
            factors: Buffer::new(),
        }
    }

    fn info(&self) -> Info {
        Info {
            name: "decay",
            version: "1",
            delta: 10,
            columns: Columns::START
                | Columns::LOST_WORK
                | Columns::JOB
                | Columns::EVICTION
                | Columns::FIT
                | Columns::TIME,
            ..Info::default()
        }
    }
}

impl Configurable for Decay {
    const SETTINGS: &'static [Setting] = &[
        Setting::new("halfLife", Kind::Duration, "age at which lost work counts for half")
            .default("1h")
            .between("1", "31536000")
            .range("60", "86400"),
        Setting::new("grace", Kind::Duration, "age below which an eviction requires graceGap")
            .default("0s")
            .at_least("0")
            .choices(&["0s", "1m", "10m"]),
        Setting::new("graceGap", Kind::Integer, "priority gap required within the grace")
            .default("50")
            .between("0", "100"),
        Setting::new("weight", Kind::Number, "weight of lost hours against the fit of an option")
            .default("0.1")
            .at_least("0")
            .range("0.001", "10"),
        Setting::new("fewest", Kind::Bool, "prefer options with fewer victims before weighing them").default("true"),
        Setting::new("fit", Kind::Text, "whether fit counts before or after the evictions")
            .default("after")
            .one_of(&["before", "after"])
            .choices(&["before", "after"]),
        Setting::new("spare", Kind::Texts, "namespaces from which nothing is evicted"),
        Setting::new("factors", Kind::Numbers, "factor of lost hours by namespace, 1 if absent").at_least("0"),
    ];

    fn configure(&mut self, config: &Config) -> Result<()> {
        self.half_life = config.duration("halfLife");
        self.grace = config.duration("grace");
        self.grace_gap = config.integer("graceGap") as i32;
        self.weight = config.number("weight");
        self.fewest = config.bool("fewest");
        self.fit_before = config.text("fit") == "before";
        for (namespace, factor) in config.numbers("factors") {
            self.factors.push((keep(namespace)?, factor))?;
        }
        for namespace in config.texts("spare") {
            if self.find_factor(namespace).is_some() {
                let what = "a namespace cannot both be spared and have a factor, or have two factors; remove one";
                return Err(Error::about(what, namespace));
            }
            self.factors.push((keep(namespace)?, NEVER))?;
        }
        Ok(())
    }
}

impl PriorityDelta for Decay {
    /// Within its grace, an allocation requires a larger gap. If that alone protects
    /// it, the host evaluates again after the grace.
    fn priority_delta(&mut self, question: &Candidates, answer: &mut Gaps) -> Result<()> {
        let rows = question.rows.start.iter().zip(question.rows.priority);
        for (gap, (start, priority)) in answer.gap.iter_mut().zip(rows) {
            let until = start + self.grace;
            if question.now >= until || *gap >= self.grace_gap {
                continue;
            }
            let has = question.preemptor.priority as i64 - *priority as i64;
            if has >= *gap as i64 && has < self.grace_gap as i64 {
                answer.recheck.at(until);
            }
            *gap = self.grace_gap;
        }
        Ok(())
    }
}

impl ScoreVictims for Decay {
    /// A group that has reached its limit of evictions is evicted last.
    fn score_victims(&mut self, question: &Candidates, answer: &mut VictimScores) -> Result<()> {
        const LN2: f64 = core::f64::consts::LN_2;
        let rows = &question.rows;
        let n = rows.len();
        // Slices of one length, so that the loop checks no bounds.
        let (tier, score) = (&mut answer.tier[..n], &mut answer.score[..n]);
        let (start, lost, namespace) = (&rows.start[..n], &rows.lost_work[..n], &rows.namespace[..n]);
        let (evictions, limit) = (&rows.evictions[..n], &rows.eviction_limit[..n]);
        let (mut last, mut factor) = (-1, 1.0);
        for row in 0..n {
            if namespace[row] != last {
                last = namespace[row];
                factor = self.factor_of(question.texts.get(last));
            }
            tier[row] = (limit[row] > 0 && evictions[row] >= limit[row]) as i64;
            if factor == NEVER {
                score[row] = NEVER;
                continue;
            }
            let age = question.now - start[row];
            let seconds = lost[row] as f64 / 1e9 * factor;
            let half_lives = age.max(0) as f64 / self.half_life as f64;
            score[row] = seconds * fmath::exp(-(half_lives * LN2));
        }
        Ok(())
    }
}

/// The mean of the parts of the ranking of option i.
fn mean(question: &Options, fit: &[f64], i: usize) -> f64 {
    let (mut sum, mut n) = (fit[i], 1.0);
    for k in 0..question.components.columns() {
        if question.present[i] >> k & 1 != 0 {
            sum += question.components.column(k)[i];
            n += 1.0;
        }
    }
    sum / n
}

impl ScoreOptions for Decay {
    fn score_options(&mut self, question: &Options, answer: &mut OptionScores) -> Result<()> {
        let fit = if self.fit_before { question.fit_before } else { question.fit_after };
        for i in 0..question.len() {
            let victims = question.victim_count[i] as i64;
            answer.tiers[0][i] = if victims == 0 { i64::MIN } else { question.highest_priority[i] as i64 };
            answer.tiers[1][i] = if self.fewest { victims } else { 0 };
            let hours = question.lost_work[i] as f64 / 3600e9;
            answer.score[i] = mean(question, fit, i) - self.weight * fmath::log(1.0 + hours);
        }
        Ok(())
    }
}

cede::export!(Decay: Configurable, PriorityDelta, ScoreVictims, ScoreOptions);
