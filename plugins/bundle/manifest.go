package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// Names of the files in a bundle.
const (
	ManifestFile  = "policy.yaml"
	SignatureFile = "policy.yaml.sig"
	// CompositionFile is the first file in the archive of a composition.
	CompositionFile = "composition.json"
)

// Kind is the form of a module.
type Kind string

// Kinds of modules.
const (
	Wasm        Kind = "wasm"
	Process     Kind = "process"
	Composition Kind = "composition" // an archive of other policies, see package composition
)

// Kinds lists the kinds of modules.
var Kinds = []Kind{Wasm, Process, Composition}

// A Manifest describes a module.
type Manifest struct {
	Version     int    `yaml:"version"` // of the format: 1
	Name        string `yaml:"name"`
	Description string `yaml:"description,omitempty"`
	Kind        Kind   `yaml:"kind"`
	Module      string `yaml:"module"` // file, relative to the bundle
	// Digest is sha256:HEX of the module. It may be missing until the module is built.
	Digest string `yaml:"digest,omitempty"`
	ABI    Range  `yaml:"abi"`
	// Hooks lists the names of the module's hooks.
	Hooks    []string       `yaml:"hooks,omitempty"`
	Settings []Setting      `yaml:"settings,omitempty"`
	Config   map[string]any `yaml:"config,omitempty"` // default configuration
	Limits   Limits         `yaml:"limits,omitempty"`
	// Rules are the source of a policy that is written as expressions, see package rules.
	Rules map[string]any `yaml:"rules,omitempty"`
	// Use names the policies of a composition.
	Use *Use `yaml:"use,omitempty"`
	// Build describes how to build the module from its sources.
	Build *Build `yaml:"build,omitempty"`
}

// A Range is an inclusive range of ABI versions, MAJOR.MINOR. Without Max it includes all
// of the same major version.
type Range struct {
	Min string `yaml:"min"`
	Max string `yaml:"max,omitempty"`
}

// A Setting is a configuration setting of the policy, with the fields of sdk/settings.
type Setting struct {
	Name     string   `yaml:"name" json:"name"`
	Kind     string   `yaml:"kind" json:"kind"`
	Doc      string   `yaml:"doc,omitempty" json:"doc,omitempty"`
	Default  string   `yaml:"default,omitempty" json:"default,omitempty"`
	Required bool     `yaml:"required,omitempty" json:"required,omitempty"`
	Min      *float64 `yaml:"min,omitempty" json:"min,omitempty"`
	Max      *float64 `yaml:"max,omitempty" json:"max,omitempty"`
	OneOf    []string `yaml:"oneOf,omitempty,flow" json:"oneOf,omitempty"`

	Range   []float64 `yaml:"range,omitempty,flow" json:"range,omitempty"`
	Choices []string  `yaml:"choices,omitempty,flow" json:"choices,omitempty"`
}

// Limits bound a call if the operator sets no limits.
type Limits struct {
	Fuel       uint64 `yaml:"fuel,omitempty"`
	FuelPerRow uint64 `yaml:"fuelPerRow,omitempty"`
	Memory     string `yaml:"memory,omitempty"` // such as 16MiB
	Time       string `yaml:"time,omitempty"`   // such as 2s
}

// Build names the language and the location of the sources.
type Build struct {
	Lang   string `yaml:"lang"`
	Source string `yaml:"source"` // directory or file, relative to the bundle
}

// Rules is the language of policies that are written as expressions in the manifest.
const Rules = "rules"

// Langs are the languages that `cede policy build` supports.
var Langs = []string{"go", "rust", "assemblyscript", "c", Rules}

// setDefaults sets the fields that follow from rules, or from the parts of a composition.
func (m *Manifest) setDefaults() {
	kind, lang, extension := Wasm, Rules, ".wasm"
	switch {
	case m.Use != nil:
		kind, lang, extension = Composition, Uses, ".tar"
	case m.Rules == nil:
		return
	}
	m.Version = cmp.Or(m.Version, 1)
	m.Kind = cmp.Or(m.Kind, kind)
	m.Module = cmp.Or(m.Module, "build/"+m.Name+extension)
	m.ABI.Min = cmp.Or(m.ABI.Min, "1.1")
	if m.Build == nil {
		m.Build = &Build{Lang: lang, Source: ManifestFile}
	}
}

// ParseManifest parses a manifest. Errors refer to it as name and list every problem, one
// per line. With an error it returns the manifest of the valid values, or nil if the text is
// not YAML with one set of fields. Of a field that is given twice, the first value counts.
func ParseManifest(name string, text []byte) (*Manifest, error) {
	var document yaml.Node
	if err := parseDocument(text, &document); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty; run `cede policy init` to create a manifest", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %v", name, withRemedy(plainyaml.Syntax(err, text), text))
	}
	var m Manifest
	var errs []error
	for _, p := range plainyaml.RemoveDuplicates(&document) {
		errs = append(errs, errors.New(p.String()))
	}
	err := document.Decode(&m)
	problems := slices.Concat(plainyaml.Fractions(&document, reflect.TypeOf(m)), plainyaml.UnknownFields(&document, reflect.TypeOf(m)))
	if err != nil {
		problems = append(problems, plainyaml.Problems(err, &m)...)
	}
	slices.SortStableFunc(problems, func(a, b plainyaml.Problem) int { return a.Line - b.Line })
	invalid := map[string]bool{} // fields whose values were not decoded
	for _, p := range problems {
		text := p.String()
		if near := suggest.Nearest(p.Field, p.Fields); near != "" {
			text += "; " + suggest.Question(near)
		}
		errs = append(errs, errors.New(text))
		for _, field := range affectedFields(&document, p) {
			invalid[field] = true
		}
	}
	if document.Content[0].Kind != yaml.MappingNode {
		return nil, PrefixLines(name, errors.Join(errs...)) // no field was decoded
	}
	m.setEmpty(&document)
	m.setDefaults()
	if err := errors.Join(append(errs, m.check(invalid))...); err != nil {
		return &m, PrefixLines(name, err)
	}
	return &m, nil
}

// withRemedy adds how to correct a text that is not YAML. Brackets that end too early are often
// those of a list that contain an expression.
func withRemedy(p plainyaml.Problem, text []byte) plainyaml.Problem {
	switch value := quotedInPart(text, p.Line); {
	case value != "":
		p.Message = "not valid YAML: " + p.Message + "; YAML ends a value at its closing quote: " + wholeQuoted(value)
	case unclosed.MatchString(p.Message):
		p.Message = "not valid YAML: " + p.Message + "; in brackets, quote texts that contain commas, brackets or quotes"
	case !explained.MatchString(p.Message):
		p.Message = "not valid YAML: " + p.Message + "; check indentation, quotes and brackets around this line"
	}
	return p
}

// quotedInPart returns the value of a line that starts with a text in quotes and continues after
// it, as in order: "x" + victim.job, or "".
func quotedInPart(text []byte, line int) string {
	lines := strings.Split(string(text), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	if m := quotedPart.FindStringSubmatch(lines[line-1]); m != nil {
		return m[1]
	}
	return ""
}

// wholeQuoted returns the remedy for a value of which YAML takes only a part.
func wholeQuoted(value string) string {
	switch {
	case len(value) > 200:
	case !strings.Contains(value, "'"):
		return "write '" + value + "'"
	case !strings.ContainsAny(value, `"\`):
		return `write "` + value + `"`
	}
	return "quote the whole value"
}

// parseDocument parses the only YAML document of a text. It returns io.EOF if the text
// contains none, or only null.
func parseDocument(text []byte, document *yaml.Node) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(document); err != nil {
		return err
	}
	var next yaml.Node
	switch err := d.Decode(&next); {
	case err == nil:
		return fmt.Errorf("line %d: unexpected second document: a manifest is one document", next.Line)
	case !errors.Is(err, io.EOF):
		return err
	}
	if document.Content[0].ShortTag() == "!!null" {
		return io.EOF
	}
	return nil
}

// affectedFields returns the fields of a manifest that have a part on the line of a problem. If
// a field is unknown, those that are missing are added: it may be one of them, misspelt.
func affectedFields(document *yaml.Node, p plainyaml.Problem) (fields []string) {
	present := map[string]bool{}
	pairs := document.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		present[pairs[i].Value] = true
		if first := pairs[i].Line; p.Line == first || p.Line > first && (i+2 >= len(pairs) || p.Line < pairs[i+2].Line) {
			fields = append(fields, pairs[i].Value)
		}
	}
	return append(fields, slices.DeleteFunc(slices.Clone(p.Fields), func(f string) bool { return present[f] })...)
}

// setEmpty sets rules or use if the manifest has the field and no value was decoded: all its
// entries are comments, or it has another type. The field selects the defaults of others,
// and check reports it if it is empty.
func (m *Manifest) setEmpty(document *yaml.Node) {
	pairs := document.Content[0].Content
	for i := 0; i < len(pairs); i += 2 {
		switch field := pairs[i].Value; {
		case field == Rules && m.Rules == nil:
			m.Rules = map[string]any{}
		case field == Uses && m.Use == nil:
			m.Use = &Use{}
		}
	}
}

// PrefixLines adds a prefix to each line of an error.
func PrefixLines(prefix string, err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	var errs []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		errs = append(errs, fmt.Errorf("%s: %s", prefix, line))
	}
	return errors.Join(errs...)
}

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)
	unclosed      = regexp.MustCompile(`^did not find expected ',' or '[]}]'$`)
	quotedPart    = regexp.MustCompile(`^\s*(?:- +)?(?:[A-Za-z]+: +)?((?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*[^\s#,\]}].*?)\s*$`)
	explained     = regexp.MustCompile(`; |^unexpected second document`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	hookNames     = namesOfHooks()
)

// check returns an error that lists every invalid field, except those that have an error
// already.
func (m *Manifest) check(invalid map[string]bool) error {
	var errs []error
	// report adds a problem unless one of the fields that it is about is invalid.
	report := func(fields []string, format string, args ...any) {
		if !slices.ContainsFunc(fields, func(f string) bool { return invalid[f] }) {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	of := func(fields ...string) []string { return fields }
	if m.Version != 1 {
		report(of("version"), "version: unsupported value %d: must be 1", m.Version)
	}
	if err := CheckName(m.Name); err != nil {
		report(of("name"), "%w", err)
	}
	if !slices.Contains(Kinds, m.Kind) {
		report(of("kind"), "kind: invalid value %q: must be wasm, process or composition", m.Kind)
	}
	if !filepath.IsLocal(filepath.FromSlash(m.Module)) {
		report(of("module"), "module: invalid value %q: must be a file in the directory of the manifest", m.Module)
	}
	if m.Digest != "" && !digestPattern.MatchString(m.Digest) {
		report(of("digest"), "digest: invalid value %q: must be sha256: and 64 hexadecimal digits", m.Digest)
	}
	for _, h := range m.Hooks {
		if !slices.Contains(hookNames, h) {
			report(of("hooks"), "hooks: unknown hook %q: must be one of %s", h, strings.Join(hookNames, ", "))
		}
	}
	if b := m.Build; b != nil {
		if b.Lang != Uses && !slices.Contains(Langs, b.Lang) {
			report(of("build"), "build.lang: unknown language %q: must be one of %s", b.Lang, strings.Join(Langs, ", "))
		}
		if !filepath.IsLocal(filepath.FromSlash(b.Source)) {
			report(of("build"), "build.source: invalid value %q: must be a path in the directory of the manifest", b.Source)
		}
	}
	if m.Use == nil && (m.Rules != nil) != (m.Build != nil && m.Build.Lang == Rules) {
		report(of("build"), "build.lang: must be rules if and only if the manifest has rules")
	}
	if m.Rules != nil && len(m.Rules) == 0 {
		report(of("rules"), "rules: write at least one beneath it, such as order: victim.age")
	}
	m.checkUse(report)
	for _, err := range m.ABI.check() {
		report(of("abi"), "%w", err)
	}
	if _, err := m.Limits.Parse(); err != nil {
		report(of("limits"), "%w", err)
	}
	if _, err := settings.Decode(m.settingsJSON()); err != nil {
		report(of("settings"), "%w", err)
	}
	return errors.Join(errs...)
}

// checkUse reports every field that contradicts a composition.
func (m *Manifest) checkUse(report func(fields []string, format string, args ...any)) {
	if (m.Use != nil) != (m.Kind == Composition) || (m.Use != nil) != (m.Build != nil && m.Build.Lang == Uses) {
		report([]string{"kind", "build"}, "kind: must be %s, with build.lang: %s, if and only if the manifest has use", Composition, Uses)
	}
	switch {
	case m.Use == nil:
	case m.Rules != nil:
		report(nil, "use: the manifest also has rules: name them in use, such as order: 'rules: order: victim.age'")
	case len(m.Use.Refs()) == 0:
		report([]string{Uses}, "use: name at least one policy, such as order: least-waste")
	}
	if m.Use != nil && m.Limits != (Limits{}) {
		report(nil, "limits: a composition has none of its own: set them in the manifests of its parts")
	}
}

// check returns errors if the range does not include the ABI version of this host.
func (r Range) check() []error {
	var errs []error
	low, err := parseVersion(r.Min)
	if err != nil {
		errs = append(errs, fmt.Errorf("abi.min: %w", err))
	}
	high := [2]int{low[0], 1 << 16}
	if r.Max != "" {
		if high, err = parseVersion(r.Max); err != nil {
			errs = append(errs, fmt.Errorf("abi.max: %w", err))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	ours := [2]int{abi.Major, abi.Minor}
	switch {
	case slices.Compare(low[:], ours[:]) > 0:
		return []error{fmt.Errorf("abi: requires %s, but this version of cede supports %d.%d; use a newer version of cede", r.Min, ours[0], ours[1])}
	case slices.Compare(high[:], []int{abi.Major, 0}) < 0:
		return []error{fmt.Errorf("abi: supports versions up to %s, but this version of cede requires %d.%d; build the policy with a newer SDK", r.Max, ours[0], ours[1])}
	}
	return nil
}

func parseVersion(text string) (v [2]int, err error) {
	major, minor, ok := strings.Cut(text, ".")
	var err1, err2 error
	v[0], err1 = strconv.Atoi(major)
	v[1], err2 = strconv.Atoi(minor)
	if !ok || err1 != nil || err2 != nil || v[0] < 0 || v[1] < 0 {
		return v, fmt.Errorf(`invalid value %q: must be MAJOR.MINOR in quotes, such as "1.0"`, text)
	}
	return v, nil
}

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// Parse converts the limits to their internal form.
func (l Limits) Parse() (policy.Limits, error) {
	limits := policy.Limits{Fuel: l.Fuel, FuelPerRow: l.FuelPerRow}
	var errs []error
	if l.Memory != "" {
		for _, u := range memoryUnits {
			if n, ok := strings.CutSuffix(l.Memory, u.suffix); ok {
				if v, err := strconv.ParseInt(n, 10, 32); err == nil && v > 0 {
					limits.Memory = v * u.bytes
				}
			}
		}
		if limits.Memory == 0 {
			errs = append(errs, fmt.Errorf("limits.memory: invalid value %q: must be a number of KiB, MiB or GiB, such as 16MiB", l.Memory))
		}
	}
	if l.Time != "" {
		d, err := time.ParseDuration(l.Time)
		if err != nil || d <= 0 {
			errs = append(errs, fmt.Errorf("limits.time: invalid value %q: must be a duration such as 2s", l.Time))
		}
		limits.Time = d
	}
	if err := limits.Check(); err != nil {
		errs = append(errs, err)
	}
	return limits, errors.Join(errs...)
}

// Encode returns the manifest as YAML.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}
