package policy

import "slices"

// Configurable is implemented by policies that operators can configure.
type Configurable interface {
	// Settings declares the configuration. It returns the same list on every call,
	// before Configure as well. The host parses the operator's configuration by it.
	Settings() []Setting
	// Configure applies the values. Every setting that has a default is among them.
	// The host calls it once, before Info and the hooks. If it returns an error, the
	// policy is rejected and the operator sees the error. Use it for rules that
	// Settings cannot express, such as two settings that exclude each other.
	Configure(c *Config) error
}

// Setting describes one key of a policy's configuration.
type Setting struct {
	Name string // lower camel case
	Kind Kind
	Doc  string // one sentence for operators, with the unit
	// Default is the value as an operator writes it: "10m", "0.5", "true". Texts are
	// separated by commas, Numbers are name=number pairs separated by commas. If it
	// is empty, the default is the zero value, unless Required is set.
	Default  string
	Required bool
	Limits   *Limits  // of Integer, Number, Duration (in seconds) and Numbers; nil: unlimited
	OneOf    []string // allowed values of Text and Texts; empty: any value
	// Range and Choices hold the values that `cede policy tune` tries; at most one of them
	// is set. If neither is, it retains the default.
	Range   *Limits  // of Integer, Number and Duration (in seconds)
	Choices []string // of any kind, as an operator writes them
}

// Kind is the type of a setting.
type Kind uint8

// The kinds, with an example of each and the type that Config returns.
const (
	Bool     Kind = iota + 1 // true
	Integer                  // 10: int64 within ±2^53
	Number                   // 0.5: finite float64
	Duration                 // "1h30m", or a number of seconds: int64 nanoseconds
	Text                     // "newest"
	Texts                    // ["a", "b"], or "a,b"
	Numbers                  // {"team-a": 3, "team-b": 1}: named numbers
)

// Kinds holds the names of the kinds, indexed by Kind.
var Kinds = [...]string{1: "bool", "integer", "number", "duration", "text", "texts", "numbers"}

func (k Kind) String() string {
	if int(k) < len(Kinds) && k > 0 {
		return Kinds[k]
	}
	return "unknown"
}

// Limits holds the lowest and the highest allowed value of a setting.
type Limits struct{ Min, Max float64 }

// Between returns limits at both ends.
func Between(low, high float64) *Limits { return &Limits{low, high} }

// AtLeast returns limits without an upper end.
func AtLeast(low float64) *Limits { return &Limits{low, maxFloat} }

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// Value is one value of a configuration. A setting of kind Texts or Numbers has
// several values under one name.
type Value struct {
	Name    string
	Kind    Kind
	Item    string  // the name of a named number
	Integer int64   // Bool (0 or 1), Integer, Duration
	Number  float64 // Number, Numbers
	Text    string  // Text, Texts
}

// Config holds the values of a policy's settings. Its methods panic if Settings does
// not declare the setting, or declares it with another kind: that is a defect of the
// policy.
type Config struct {
	settings []Setting
	values   []Value
}

// NewConfig returns a configuration with values that were parsed by settings. Hosts
// call it.
func NewConfig(settings []Setting, values []Value) *Config {
	return &Config{settings: settings, values: values}
}

// Values returns all values, in the order of the settings.
func (c *Config) Values() []Value { return c.values }

// Bool returns the value of a setting of kind Bool.
func (c *Config) Bool(name string) bool { return c.one(name, Bool).Integer != 0 }

// Integer returns the value of a setting of kind Integer.
func (c *Config) Integer(name string) int64 { return c.one(name, Integer).Integer }

// Number returns the value of a setting of kind Number.
func (c *Config) Number(name string) float64 { return c.one(name, Number).Number }

// Duration returns the value of a setting of kind Duration, in nanoseconds.
func (c *Config) Duration(name string) int64 { return c.one(name, Duration).Integer }

// Text returns the value of a setting of kind Text.
func (c *Config) Text(name string) string { return c.one(name, Text).Text }

// Texts returns the values of a setting of kind Texts, in the operator's order.
func (c *Config) Texts(name string) []string {
	var list []string
	for _, v := range c.all(name, Texts) {
		list = append(list, v.Text)
	}
	return list
}

// Numbers returns the values of a setting of kind Numbers, ascending by Item. Item
// and Number of each value are set.
func (c *Config) Numbers(name string) []Value { return c.all(name, Numbers) }

func (c *Config) one(name string, kind Kind) Value {
	if v := c.all(name, kind); len(v) > 0 {
		return v[0]
	}
	return Value{}
}

// all returns the values of a setting, which are adjacent in c.values.
func (c *Config) all(name string, kind Kind) []Value {
	if !slices.ContainsFunc(c.settings, func(s Setting) bool { return s.Name == name && s.Kind == kind }) {
		panic("the policy declares no setting " + name + " of kind " + kind.String())
	}
	from := slices.IndexFunc(c.values, func(v Value) bool { return v.Name == name })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(c.values) && c.values[to].Name == name {
		to++
	}
	return c.values[from:to]
}
