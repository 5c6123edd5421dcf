package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Canonical returns the canonical form of a configuration: a JSON object with every
// value, defaults included, with ascending keys and durations as Go prints them.
func Canonical(c *policy.Config) []byte {
	object := map[string]any{}
	for _, v := range c.Values() {
		switch v.Kind {
		case policy.Bool:
			object[v.Name] = v.Integer != 0
		case policy.Integer:
			object[v.Name] = v.Integer
		case policy.Number:
			object[v.Name] = v.Number
		case policy.Duration:
			object[v.Name] = time.Duration(v.Integer).String()
		case policy.Text:
			object[v.Name] = v.Text
		case policy.Texts:
			list, _ := object[v.Name].([]string)
			object[v.Name] = append(list, v.Text)
		case policy.Numbers:
			if object[v.Name] == nil {
				object[v.Name] = map[string]float64{}
			}
			object[v.Name].(map[string]float64)[v.Item] = v.Number
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // every value of a Config can be encoded
	}
	return text
}

// declaration is a setting in JSON, as a guest declares it.
type declaration struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Doc      string   `json:"doc,omitempty"`
	Default  string   `json:"default,omitempty"`
	Required bool     `json:"required,omitempty"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	OneOf    []string `json:"oneOf,omitempty"`

	Range   []float64 `json:"range,omitempty"` // the lowest and the highest value
	Choices []string  `json:"choices,omitempty"`
}

// Encode returns a declaration of settings: a JSON array.
func Encode(list []policy.Setting) []byte {
	decls := []declaration{}
	for _, s := range list {
		d := declaration{Name: s.Name, Kind: s.Kind.String(), Doc: s.Doc, Default: s.Default, Required: s.Required, OneOf: s.OneOf, Choices: s.Choices}
		if s.Range != nil {
			d.Range = []float64{s.Range.Min, s.Range.Max}
		}
		if s.Limits != nil {
			d.Min = &s.Limits.Min
			if *s.Limits != *policy.AtLeast(s.Limits.Min) {
				d.Max = &s.Limits.Max
			}
		}
		decls = append(decls, d)
	}
	text, err := json.Marshal(decls)
	if err != nil {
		panic(err)
	}
	return text
}

// Decode parses a declaration and checks it. If the text is empty, it returns an
// empty list. Unknown fields are skipped, because a newer guest may send them.
func Decode(text []byte) ([]policy.Setting, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var decls []declaration
	if err := json.Unmarshal(text, &decls); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	var list []policy.Setting
	var errs []error
	for _, d := range decls {
		s, err := d.setting()
		if err != nil {
			errs = append(errs, fmt.Errorf("setting %q: %w", d.Name, err))
		}
		list = append(list, s)
	}
	if err := errors.Join(append(errs, Check(list))...); err != nil {
		return nil, err
	}
	return list, nil
}

func (d *declaration) setting() (policy.Setting, error) {
	s := policy.Setting{Name: d.Name, Doc: d.Doc, Default: d.Default, Required: d.Required, OneOf: d.OneOf, Choices: d.Choices}
	kind := slices.Index(policy.Kinds[:], d.Kind)
	if kind <= 0 {
		return s, fmt.Errorf("unknown kind %q: use one of %s", d.Kind, strings.Join(policy.Kinds[1:], ", "))
	}
	s.Kind = policy.Kind(kind)
	switch {
	case d.Min != nil && d.Max != nil:
		s.Limits = policy.Between(*d.Min, *d.Max)
	case d.Min != nil:
		s.Limits = policy.AtLeast(*d.Min)
	case d.Max != nil:
		return s, errors.New("max requires min")
	}
	switch len(d.Range) {
	case 0:
	case 2:
		s.Range = policy.Between(d.Range[0], d.Range[1])
	default:
		return s, errors.New("range must be two numbers, such as [1, 60]")
	}
	return s, nil
}

var name = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// Check returns every mistake in a policy's own list of settings.
func Check(list []policy.Setting) error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range list {
		if !name.MatchString(s.Name) {
			errs = append(errs, fmt.Errorf("invalid setting name %q: use lower camel case", s.Name))
		}
		if seen[s.Name] {
			errs = append(errs, fmt.Errorf("setting %q is declared twice", s.Name))
		}
		seen[s.Name] = true
		if s.Kind < policy.Bool || s.Kind > policy.Numbers {
			errs = append(errs, fmt.Errorf("setting %q: kind is required", s.Name))
			continue
		}
		errs = append(errs, checkSearch(s)...)
		if s.Required || s.Default == "" {
			continue
		}
		if _, err := convert(s, s.Default); err != nil {
			errs = append(errs, fmt.Errorf("setting %q: default: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkSearch returns every mistake in the values of a setting that tuning tries.
func checkSearch(s policy.Setting) (errs []error) {
	report := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("setting %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Range != nil && len(s.Choices) > 0 {
		report("range and choices exclude each other: declare one")
	}
	for i, text := range s.Choices {
		if _, err := convert(s, text); err != nil {
			report("choices: %w", err)
		}
		if slices.Contains(s.Choices[:i], text) {
			report("choices: %q is declared twice", text)
		}
	}
	r := s.Range
	switch {
	case r == nil:
	case s.Kind != policy.Integer && s.Kind != policy.Number && s.Kind != policy.Duration:
		report("range: a setting of kind %s has none: declare choices", s.Kind)
	case !(r.Min < r.Max) || math.IsInf(r.Min, 0) || math.IsInf(r.Max, 0):
		report("range: the second number must be finite and higher than the first")
	case !within(s, r.Min) || !within(s, r.Max):
		report("range: exceeds the limits of the setting")
	}
	return errs
}
