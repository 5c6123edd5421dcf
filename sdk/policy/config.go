package policy

import "slices"

// Configurable is implemented by policies that operators can configure.
type Configurable interface {
	// Settings declares the configuration: the same list always, and before
	// Configure too. The host reads what the operator wrote by it.
	Settings() []Setting
	// Configure takes the values, every setting that has a default among them.
	// It is called once, before Info and the hooks. An error rejects the policy
	// and is shown to the operator: what Settings cannot say belongs here, such
	// as two values that exclude one another.
	Configure(c *Config) error
}

// Setting describes one key of a policy's configuration.
type Setting struct {
	Name string // lower camel case
	Kind Kind
	Doc  string // one sentence for operators, with the unit
	// Default is the value as an operator writes it: "10m", "0.5", "true". For
	// Texts it is a list with commas, for Numbers name=number with commas. Empty:
	// the zero value, unless Required.
	Default  string
	Required bool
	Limits   *Limits  // of Integer, Number, Duration (in seconds) and Numbers
	OneOf    []string // of Text and Texts; empty: anything
}

// Kind is the type of a setting.
type Kind uint8

// The kinds, with what an operator writes and what Config answers.
const (
	Bool     Kind = iota + 1 // true
	Integer                  // 10: int64 within ±2^53
	Number                   // 0.5: finite float64
	Duration                 // "1h30m", or a number of seconds: int64 nanoseconds
	Text                     // "newest"
	Texts                    // ["a", "b"], or "a,b"
	Numbers                  // {"team-a": 3, "team-b": 1}: named numbers
)

// Kinds are the names of the kinds, by Kind.
var Kinds = [...]string{1: "bool", "integer", "number", "duration", "text", "texts", "numbers"}

func (k Kind) String() string {
	if int(k) < len(Kinds) && k > 0 {
		return Kinds[k]
	}
	return "unknown"
}

// Limits are the least and the greatest value of a setting, both allowed.
type Limits struct{ Min, Max float64 }

// Between is a pair of limits.
func Between(low, high float64) *Limits { return &Limits{low, high} }

// AtLeast is a lower limit alone.
func AtLeast(low float64) *Limits { return &Limits{low, maxFloat} }

const maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

// Value is one value of a configuration. Texts and Numbers have several
// values under one name.
type Value struct {
	Name    string
	Kind    Kind
	Item    string  // the name of a named number
	Integer int64   // Bool (0 or 1), Integer, Duration
	Number  float64 // Number, Numbers
	Text    string  // Text, Texts
}

// Config holds the values of a policy's settings. Asking for a setting that
// Settings does not declare, or for it as another kind, is a mistake in the
// policy and panics.
type Config struct {
	settings []Setting
	values   []Value
}

// NewConfig makes a configuration of values that were read by settings. Hosts
// call it.
func NewConfig(settings []Setting, values []Value) *Config {
	return &Config{settings: settings, values: values}
}

// Values lists all values, in the order of the settings.
func (c *Config) Values() []Value { return c.values }

// Bool is the value of a setting of kind Bool.
func (c *Config) Bool(name string) bool { return c.one(name, Bool).Integer != 0 }

// Integer is the value of a setting of kind Integer.
func (c *Config) Integer(name string) int64 { return c.one(name, Integer).Integer }

// Number is the value of a setting of kind Number.
func (c *Config) Number(name string) float64 { return c.one(name, Number).Number }

// Duration is the value of a setting of kind Duration, in nanoseconds.
func (c *Config) Duration(name string) int64 { return c.one(name, Duration).Integer }

// Text is the value of a setting of kind Text.
func (c *Config) Text(name string) string { return c.one(name, Text).Text }

// Texts is the value of a setting of kind Texts, in the operator's order.
func (c *Config) Texts(name string) []string {
	var list []string
	for _, v := range c.all(name, Texts) {
		list = append(list, v.Text)
	}
	return list
}

// Numbers is the value of a setting of kind Numbers, ascending by name: Item
// and Number of each value.
func (c *Config) Numbers(name string) []Value { return c.all(name, Numbers) }

func (c *Config) one(name string, kind Kind) Value {
	if v := c.all(name, kind); len(v) > 0 {
		return v[0]
	}
	return Value{}
}

// all are the values of a setting, which are neighbours.
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
