//! The implementation of the exports, which export! calls. Policies do not call it.

use crate::error::{Reason, MESSAGE};
use crate::frame::{Bad, Frame};
use crate::{load, memory, Configurable, Error, Info, Policy, Recheck, Setting};
use crate::{BindingVictims, Gaps, OptionScores, Selection, VictimScores};
use crate::{PreemptBindings, PriorityDelta, ScoreOptions, ScoreVictims, SelectVictims};

pub use crate::memory::Global;

const OK: i32 = 0;
const FAILED: i32 = -1;
const BAD: i32 = -2;
const MEMORY: i32 = -4;

/// The reason why a call has no answer.
enum Fault {
    Bad,
    Hook(Error),
}

impl From<Bad> for Fault {
    fn from(_: Bad) -> Fault {
        Fault::Bad
    }
}

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault::Hook(e)
    }
}

type Done = Result<(), Fault>;

/// Answers a frame.
fn answer(at: *mut u8, length: usize, op: u32, hook: impl FnOnce(&mut Frame) -> Done) -> i32 {
    let mut f = match Frame::load(at, length, op) {
        Ok(f) => f,
        Err(Bad) => return BAD,
    };
    match hook(&mut f) {
        Ok(()) => OK,
        Err(Fault::Bad) => BAD,
        Err(Fault::Hook(Error(Reason::OutOfMemory))) => MEMORY,
        Err(Fault::Hook(Error(Reason::Message))) => {
            let message = MESSAGE.get();
            f.put_error(&message.text[..message.used]);
            FAILED
        }
    }
}

/// Refuses a frame that lacks an area of the answer.
fn check(f: &Frame) -> Done {
    if f.bad {
        return Err(Fault::Bad);
    }
    Ok(())
}

fn put_recheck(f: &mut Frame, r: &Recheck) -> Done {
    let at = f.answer::<i64>(0x1016, Some(1));
    check(f)?;
    at[0] = r.at;
    Ok(())
}

pub fn alloc(size: usize) -> usize {
    memory::room(size)
}

pub fn priority_delta<P: PriorityDelta>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 3, |f| {
        let mut out = Gaps { gap: f.answer(0x1011, Some(f.rows as u64)), recheck: Recheck::default() };
        p.priority_delta(&load::candidates(f)?, &mut out)?;
        put_recheck(f, &out.recheck)
    })
}

pub fn score_victims<P: ScoreVictims>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 4, |f| {
        let n = Some(f.rows as u64);
        let mut out =
            VictimScores { tier: f.answer(0x1012, n), score: f.answer(0x1013, n), recheck: Recheck::default() };
        p.score_victims(&load::candidates(f)?, &mut out)?;
        put_recheck(f, &out.recheck)
    })
}

pub fn select_victims<P: SelectVictims>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 5, |f| {
        let mut out = selection(f);
        p.select_victims(&load::candidates(f)?, &mut out)?;
        put_picks(f, &out)
    })
}

pub fn preempt_bindings<P: PreemptBindings>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 7, |f| {
        let mut out = BindingVictims { selection: selection(f), tiers: tiers(f)? };
        p.preempt_bindings(&load::candidates(f)?, &mut out)?;
        put_picks(f, &out.selection)
    })
}

/// The area for picks.
fn selection<'a>(f: &mut Frame) -> Selection<'a> {
    Selection {
        picks: f.answer(0x1014, None),
        ends: f.answer(0x1015, Some(f.options as u64)),
        used: 0,
        closed: 0,
        recheck: Recheck::default(),
    }
}

fn put_picks(f: &mut Frame, out: &Selection) -> Done {
    if out.closed != f.options {
        return Err(Error::new("a hook that picks must call next once for every option").into());
    }
    f.put_count(0x1014, out.used);
    put_recheck(f, &out.recheck)
}

pub fn score_options<P: ScoreOptions>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 6, |f| {
        let n = f.options;
        let score = f.answer(0x1013, Some(n as u64));
        let mut out = OptionScores { tiers: tiers(f)?, score, recheck: Recheck::default() };
        p.score_options(&load::options(f)?, &mut out)?;
        put_recheck(f, &out.recheck)
    })
}

/// The areas for four tiers of each option, after all others were taken.
fn tiers<'a>(f: &mut Frame) -> Result<[&'a mut [i64]; 4], Fault> {
    let n = f.options;
    let all = f.answer::<i64>(0x1012, Some(4 * n as u64));
    check(f)?;
    let (a, rest) = all.split_at_mut(n);
    let (b, rest) = rest.split_at_mut(n);
    let (c, d) = rest.split_at_mut(n);
    Ok([a, b, c, d])
}

pub fn configure<P: Configurable>(p: &mut P, at: *mut u8, length: usize) -> i32 {
    answer(at, length, 2, |f| {
        let c = load::config(f)?;
        Ok(p.configure(&c)?)
    })
}

/// Describes a policy; settings are those of one that takes configuration.
pub fn describe<P: Policy>(p: &P, hooks: i32, settings: Option<&[Setting]>, at: *mut u8, length: usize) -> i32 {
    let info = p.info();
    answer(at, length, 1, |f| put_description(f, &info, hooks, settings))
}

fn put_description(f: &mut Frame, info: &Info, hooks: i32, settings: Option<&[Setting]>) -> Done {
    let flags = info.adaptive as i32
        | (info.ascending as i32) << 1
        | (info.keep_redundant as i32) << 2
        | (settings.is_some() as i32) << 3
        | (info.elastic as i32) << 4
        | (info.multi_cluster as i32) << 5
        | (info.least_first as i32) << 6
        | (info.youngest_first as i32) << 7
        | (info.monotone as i32) << 8;
    let words = [(0x1003, hooks), (0x1004, flags), (0x1005, info.delta)];
    for (id, value) in words {
        let at = f.answer::<i32>(id, Some(1));
        check(f)?;
        at[0] = value;
    }
    let columns = f.answer::<i64>(0x1006, Some(1));
    check(f)?;
    columns[0] = info.columns.0 as i64;
    put_text(f, 0x1001, |w| w.add(info.name))?;
    put_text(f, 0x1002, |w| w.add(info.version))?;
    put_text(f, 0x1007, |w| w.add_settings(settings))
}

fn put_text(f: &mut Frame, id: u32, write: impl FnOnce(&mut Writer)) -> Done {
    let mut w = Writer { to: f.answer(id, None), used: 0 };
    check(f)?;
    write(&mut w);
    let n = w.used;
    f.put_count(id, n);
    Ok(())
}

/// Writes a text and truncates it to the available space.
struct Writer<'a> {
    to: &'a mut [u8],
    used: usize,
}

impl Writer<'_> {
    fn put(&mut self, byte: u8) {
        if let Some(to) = self.to.get_mut(self.used) {
            *to = byte;
        }
        self.used += 1;
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.put(byte);
        }
    }

    /// Writes a JSON string.
    fn quote(&mut self, before: &str, text: &str) {
        self.add(before);
        self.put(b'"');
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => {
                    self.put(b'\\');
                    self.put(byte);
                }
                0..=31 => {
                    self.add("\\u00");
                    self.put(b'0' + (byte >> 4));
                    self.put(if byte & 15 < 10 { b'0' } else { b'a' - 10 } + (byte & 15));
                }
                _ => self.put(byte),
            }
        }
        self.put(b'"');
    }

    fn add_settings(&mut self, settings: Option<&[Setting]>) {
        if let Some(list) = settings {
            self.put(b'[');
            for (i, s) in list.iter().enumerate() {
                if i > 0 {
                    self.put(b',');
                }
                self.add_setting(s);
            }
            self.put(b']');
        }
    }

    fn add_setting(&mut self, s: &Setting) {
        let kinds = ["", "bool", "integer", "number", "duration", "text", "texts", "numbers"];
        self.quote("{\"name\":", s.name);
        self.quote(",\"kind\":", kinds[s.kind as usize]);
        self.quote(",\"doc\":", s.doc);
        self.quote(",\"default\":", s.default);
        if s.required {
            self.add(",\"required\":true");
        }
        for (key, limit) in [(",\"min\":", s.min), (",\"max\":", s.max)] {
            if !limit.is_empty() {
                self.add(key);
                self.add(limit);
            }
        }
        self.add_texts(",\"oneOf\":[", s.one_of);
        if !s.range.0.is_empty() {
            for part in [",\"range\":[", s.range.0, ",", s.range.1, "]"] {
                self.add(part);
            }
        }
        self.add_texts(",\"choices\":[", s.choices);
        self.put(b'}');
    }

    /// Adds a list of texts after its beginning, or nothing if it is empty.
    fn add_texts(&mut self, begin: &str, texts: &[&str]) {
        for (i, text) in texts.iter().enumerate() {
            self.quote(if i == 0 { begin } else { "," }, text);
        }
        if !texts.is_empty() {
            self.put(b']');
        }
    }
}
