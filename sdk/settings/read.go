package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Read parses a JSON object by the settings. A setting that is missing gets its
// default. The error lists every problem, one per line.
func Read(list []policy.Setting, config []byte) (*policy.Config, error) {
	given, err := object(config)
	if err != nil {
		return nil, err
	}
	var values []policy.Value
	var errs []error
	for _, s := range list {
		raw, ok := given[s.Name]
		v, err := read(s, raw, ok)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
		values = append(values, v...)
	}
	if errs = append(errs, unknown(list, given)...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return policy.NewConfig(list, values), nil
}

// object parses the outermost object. An empty text is an empty object.
func object(config []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(config, &given); err != nil {
		return nil, fmt.Errorf("settings must be a JSON object: %w", err)
	}
	return given, nil
}

// Given parses a JSON object by the settings, and returns the values of the settings that
// the object contains, by name. Missing settings are not an error. The error lists every
// problem, one per line.
func Given(list []policy.Setting, config []byte) (map[string][]policy.Value, error) {
	given, err := object(config)
	if err != nil {
		return nil, err
	}
	values := map[string][]policy.Value{}
	var errs []error
	for _, s := range list {
		raw, ok := given[s.Name]
		if !ok {
			continue
		}
		if values[s.Name], err = read(s, raw, true); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return values, errors.Join(append(errs, unknown(list, given)...)...)
}

// unknown returns an error for each given name that is not a setting.
func unknown(list []policy.Setting, given map[string]json.RawMessage) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(list, func(s policy.Setting) bool { return s.Name == name }) {
			errs = append(errs, fmt.Errorf("%s: unknown setting; %s", name, offer(list)))
		}
	}
	return errs
}

func offer(list []policy.Setting) string {
	if len(list) == 0 {
		return "the policy has no settings"
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return "use one of " + strings.Join(names, ", ")
}

func read(s policy.Setting, raw json.RawMessage, given bool) ([]policy.Value, error) {
	if given {
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		return convert(s, v)
	}
	if s.Required {
		return nil, fmt.Errorf("is required; it must be %s", wanted(s))
	}
	if s.Default == "" {
		return zero(s), nil
	}
	return convert(s, s.Default)
}

// zero returns the value of a setting that has no default.
func zero(s policy.Setting) []policy.Value {
	if s.Kind == policy.Texts || s.Kind == policy.Numbers {
		return nil
	}
	return []policy.Value{{Name: s.Name, Kind: s.Kind}}
}

// convert returns the values for decoded JSON or a text. A text is accepted for any
// kind, because a command line and a default consist of text.
func convert(s policy.Setting, v any) ([]policy.Value, error) {
	switch s.Kind {
	case policy.Texts:
		return texts(s, v)
	case policy.Numbers:
		return numbers(s, v)
	}
	value := policy.Value{Name: s.Name, Kind: s.Kind}
	var ok bool
	switch s.Kind {
	case policy.Bool:
		value.Integer, ok = boolean(v)
	case policy.Integer:
		value.Integer, ok = integer(v)
		ok = ok && within(s, float64(value.Integer))
	case policy.Number:
		value.Number, ok = number(v)
		ok = ok && within(s, value.Number)
	case policy.Duration:
		value.Integer, ok = duration(v)
		ok = ok && within(s, float64(value.Integer)/1e9)
	case policy.Text:
		value.Text, ok = v.(string)
		ok = ok && allowed(s, value.Text)
	}
	if !ok {
		return nil, mismatch(s, v)
	}
	return []policy.Value{value}, nil
}

func mismatch(s policy.Setting, v any) error {
	written, err := json.Marshal(v)
	if err != nil || len(written) > 60 {
		written = []byte("this value")
	}
	return fmt.Errorf("invalid value %s: must be %s", written, wanted(s))
}

func within(s policy.Setting, x float64) bool {
	return s.Limits == nil || x >= s.Limits.Min && x <= s.Limits.Max
}

func allowed(s policy.Setting, text string) bool {
	return len(s.OneOf) == 0 || slices.Contains(s.OneOf, text)
}

func boolean(v any) (int64, bool) {
	switch v {
	case true, "true":
		return 1, true
	case false, "false":
		return 0, true
	}
	return 0, false
}

// maxInteger is the greatest whole number that JSON represents exactly.
const maxInteger = 1 << 53

func integer(v any) (int64, bool) {
	n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
	return n, err == nil && n >= -maxInteger && n <= maxInteger
}

func number(v any) (float64, bool) {
	switch v.(type) {
	case json.Number, string:
	default:
		return 0, false
	}
	x, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	return x + 0, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

func duration(v any) (int64, bool) {
	if seconds, ok := number(v); ok {
		ns := math.Round(seconds * 1e9)
		return int64(ns), math.Abs(ns) <= math.MaxInt64/2
	}
	text, _ := v.(string)
	d, err := time.ParseDuration(text)
	return int64(d), err == nil
}

func texts(s policy.Setting, v any) ([]policy.Value, error) {
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case string:
		for item := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(item))
		}
	default:
		return nil, mismatch(s, v)
	}
	var values []policy.Value
	for i, item := range list {
		text, ok := item.(string)
		if !ok || !allowed(s, text) {
			return nil, fmt.Errorf("item %d: %w", i+1, mismatch(s, item))
		}
		values = append(values, policy.Value{Name: s.Name, Kind: s.Kind, Text: text})
	}
	return values, nil
}

func numbers(s policy.Setting, v any) ([]policy.Value, error) {
	items := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		items = v
	case string:
		for pair := range strings.SplitSeq(v, ",") {
			name, x, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, mismatch(s, v)
			}
			items[strings.TrimSpace(name)] = strings.TrimSpace(x)
		}
	default:
		return nil, mismatch(s, v)
	}
	var values []policy.Value
	for _, name := range slices.Sorted(maps.Keys(items)) {
		x, ok := number(items[name])
		if !ok || !within(s, x) {
			return nil, fmt.Errorf("%s: %w", name, mismatch(s, items[name]))
		}
		values = append(values, policy.Value{Name: s.Name, Kind: s.Kind, Item: name, Number: x})
	}
	return values, nil
}

// wanted describes the allowed values.
func wanted(s policy.Setting) string {
	text := map[policy.Kind]string{
		policy.Bool: "true or false", policy.Integer: "an integer", policy.Number: "a number",
		policy.Duration: `a duration such as "1h30m"`, policy.Text: "a text",
		policy.Texts: "a list of texts", policy.Numbers: "numbers by name",
	}[s.Kind]
	if len(s.OneOf) > 0 {
		text = "one of " + strings.Join(s.OneOf, ", ")
		if s.Kind == policy.Texts {
			text = "a list of " + strings.Join(s.OneOf, ", ")
		}
	}
	if s.Limits != nil {
		text += limits(s)
	}
	return text
}

func limits(s policy.Setting) string {
	show := func(x float64) string {
		if s.Kind == policy.Duration {
			return time.Duration(x * 1e9).String()
		}
		if math.Abs(x) <= maxInteger { // 2147483647 in place of 2.147483647e+09
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	if s.Limits.Max >= math.MaxFloat64 {
		return ", at least " + show(s.Limits.Min)
	}
	return fmt.Sprintf(" from %s to %s", show(s.Limits.Min), show(s.Limits.Max))
}
