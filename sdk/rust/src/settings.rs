use crate::Texts;

/// The type of a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Bool = 1,
    Integer,
    Number,
    /// ns
    Duration,
    Text,
    Texts,
    /// Named numbers.
    Numbers,
}

/// One key of the configuration. The host parses and validates the configuration by
/// it, and adds defaults.
#[derive(Clone, Copy)]
pub struct Setting {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) doc: &'static str,
    pub(crate) default: &'static str,
    pub(crate) required: bool,
    pub(crate) min: &'static str,
    pub(crate) max: &'static str,
    pub(crate) one_of: &'static [&'static str],
    pub(crate) range: (&'static str, &'static str),
    pub(crate) choices: &'static [&'static str],
}

impl Setting {
    /// A setting: its name in lower camel case, and one sentence for operators,
    /// with the unit.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Setting { name, kind, doc, default: "", required: false, min: "", max: "", one_of: &[], range: ("", ""), choices: &[] }
    }

    /// The default in the form of a configuration: "10m", "0.5", "a,b", "x=1,y=2".
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = text;
        self
    }

    /// Makes the setting required.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The inclusive limits, as numbers of JSON: texts, so that a guest need not format
    /// numbers. The limits of a duration are in seconds.
    pub const fn between(mut self, min: &'static str, max: &'static str) -> Self {
        self.min = min;
        self.max = max;
        self
    }

    /// The lower limit, in the form of between.
    pub const fn at_least(mut self, min: &'static str) -> Self {
        self.min = min;
        self
    }

    /// The allowed texts.
    pub const fn one_of(mut self, texts: &'static [&'static str]) -> Self {
        self.one_of = texts;
        self
    }

    /// The lowest and the highest value that `cede policy tune` tries, in the form of
    /// between.
    pub const fn range(mut self, low: &'static str, high: &'static str) -> Self {
        self.range = (low, high);
        self
    }

    /// The values that `cede policy tune` tries, in the form of a configuration. They
    /// replace a range.
    pub const fn choices(mut self, values: &'static [&'static str]) -> Self {
        self.choices = values;
        self
    }
}

/// The configuration, valid while configure runs. Reading a setting that is not
/// declared, or with the getter of another kind, is a defect of the policy and traps.
pub struct Config<'a> {
    pub(crate) name: &'a [i32],
    pub(crate) kind: &'a [u8],
    pub(crate) item: &'a [i32],
    pub(crate) integer: &'a [i64],
    pub(crate) number: &'a [f64],
    pub(crate) text: &'a [i32],
    pub(crate) texts: Texts<'a>,
}

impl<'a> Config<'a> {
    pub fn bool(&self, name: &str) -> bool {
        self.integer[self.one(name, Kind::Bool)] != 0
    }

    pub fn integer(&self, name: &str) -> i64 {
        self.integer[self.one(name, Kind::Integer)]
    }

    pub fn number(&self, name: &str) -> f64 {
        self.number[self.one(name, Kind::Number)]
    }

    /// ns
    pub fn duration(&self, name: &str) -> i64 {
        self.integer[self.one(name, Kind::Duration)]
    }

    pub fn text(&self, name: &str) -> &'a str {
        self.texts.get(self.text[self.one(name, Kind::Text)])
    }

    /// The texts of a setting, in their order in the configuration.
    pub fn texts<'s>(&'s self, name: &str) -> impl Iterator<Item = &'a str> + 's {
        self.all(name, Kind::Texts).map(move |i| self.texts.get(self.text[i]))
    }

    /// The named numbers of a setting, ascending by name.
    pub fn numbers<'s>(&'s self, name: &str) -> impl Iterator<Item = (&'a str, f64)> + 's {
        self.all(name, Kind::Numbers).map(move |i| (self.texts.get(self.item[i]), self.number[i]))
    }

    fn one(&self, name: &str, kind: Kind) -> usize {
        self.all(name, kind).next().expect("no such setting")
    }

    /// The values of a setting, which are adjacent.
    fn all(&self, name: &str, kind: Kind) -> core::ops::Range<usize> {
        let is = |id: &i32| self.texts.get(*id) == name;
        let from = self.name.iter().position(is).unwrap_or(self.name.len());
        let n = self.name[from..].iter().take_while(|id| is(id)).count();
        assert!(n == 0 || self.kind[from] == kind as u8);
        from..from + n
    }
}
