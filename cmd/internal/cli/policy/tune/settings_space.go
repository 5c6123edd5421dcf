package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/tune"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// gridSteps is the number of values of a range.
const gridSteps = 21

// A ratio of the ends of a range from which its values have equal ratios instead of equal
// distances.
const wideRange = 100

// settingsSpace returns the space of the settings of a policy. ranges replace the values
// that the policy declares, by setting. The error lists every problem.
func settingsSpace(spec builtin.Spec, list []sdk.Setting, ranges map[string]string) (*tune.Space, error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		if !slices.ContainsFunc(list, func(s sdk.Setting) bool { return s.Name == name }) {
			errs = append(errs, fmt.Errorf("--range %s: unknown setting; %s", name, offer(list)))
		}
	}
	var axes []settingAxis
	for _, s := range list {
		a, err := newSettingAxis(s, spec.Config, ranges[s.Name])
		if err != nil {
			errs = append(errs, err)
		} else if len(a.Values) > 1 {
			axes = append(axes, *a)
		}
	}
	if len(errs) == 0 && len(axes) == 0 {
		remedy := "add --range NAME=LOW..HIGH"
		if len(list) == 0 {
			remedy = "add --space rules, or name a policy with settings"
		}
		errs = append(errs, fmt.Errorf("%s declares no values to search: %s; %s", spec.Use, remedy, offer(list)))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	space := &tune.Space{}
	for i := range axes {
		space.Axes = append(space.Axes, axes[i].Axis)
		space.Start = append(space.Start, axes[i].start)
	}
	space.Render = func(p tune.Point) string {
		config := maps.Clone(spec.Config)
		if config == nil {
			config = map[string]any{}
		}
		for i, at := range p {
			if at != axes[i].start {
				config[axes[i].Name] = axes[i].Values[at]
			}
		}
		return reference(spec.Use, config)
	}
	return space, nil
}

func offer(list []sdk.Setting) string {
	if len(list) == 0 {
		return "the policy has no settings"
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return "its settings are " + strings.Join(names, ", ")
}

// reference returns P?key=value with ascending keys.
func reference(use string, config map[string]any) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		value := fmt.Sprint(config[key])
		value = strings.NewReplacer("%", "%25", "&", "%26").Replace(value)
		pairs = append(pairs, key+"="+value)
	}
	if len(pairs) == 0 {
		return use
	}
	return use + "?" + strings.Join(pairs, "&")
}

// A settingAxis holds the values of one setting, and the position of that before the search.
type settingAxis struct {
	tune.Axis
	start int
}

func newSettingAxis(s sdk.Setting, given map[string]any, override string) (*settingAxis, error) {
	a := &settingAxis{Axis: tune.Axis{Name: s.Name, Ordered: s.Kind == sdk.Integer || s.Kind == sdk.Number || s.Kind == sdk.Duration}}
	var err error
	switch {
	case override != "":
		if a.Values, err = overridden(s, override); err != nil {
			return nil, fmt.Errorf("--range %s: %w", s.Name, err)
		}
	case s.Range != nil:
		a.Values = grid(s, s.Range.Min, s.Range.Max)
	default:
		a.Values = slices.Clone(s.Choices)
	}
	if len(a.Values) == 0 {
		return a, nil
	}
	start := s.Default
	if x, ok := given[s.Name]; ok {
		start = fmt.Sprint(x)
	}
	for i, text := range a.Values {
		if a.Values[i], _, err = canonical(s, text); err != nil {
			return nil, err
		}
	}
	if start, _, err = canonical(s, start); err != nil {
		return nil, err
	}
	if a.start = slices.Index(a.Values, start); a.start < 0 {
		a.Values = append(a.Values, start)
		a.start = len(a.Values) - 1
	}
	if a.Ordered {
		slices.SortFunc(a.Values, func(x, y string) int { return compareNumbers(s, x, y) })
		a.start = slices.Index(a.Values, start)
	}
	return a, nil
}

func compareNumbers(s sdk.Setting, a, b string) int {
	_, x, _ := canonical(s, a)
	_, y, _ := canonical(s, b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// overridden returns the values of --range NAME=LOW..HIGH or NAME=VALUE,VALUE.
func overridden(s sdk.Setting, text string) ([]string, error) {
	low, high, isRange := strings.Cut(text, "..")
	if !isRange {
		var values []string
		for v := range strings.SplitSeq(text, ",") {
			value, _, err := canonical(s, strings.TrimSpace(v))
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		return values, nil
	}
	_, from, err1 := canonical(s, low)
	_, to, err2 := canonical(s, high)
	switch {
	case err1 != nil || err2 != nil:
		return nil, errors.Join(err1, err2)
	case s.Kind != sdk.Integer && s.Kind != sdk.Number && s.Kind != sdk.Duration:
		return nil, fmt.Errorf("a setting of kind %s has no range: list values, separated by commas", s.Kind)
	case from >= to:
		return nil, fmt.Errorf("%s is not lower than %s", low, high)
	}
	return grid(s, from, to), nil
}

// grid returns values from low to high: in equal ratios if the ends differ by a large factor,
// otherwise in equal distances. Durations are in seconds.
func grid(s sdk.Setting, low, high float64) []string {
	var values []string
	for i := range gridSteps {
		share := float64(i) / (gridSteps - 1)
		x := low + (high-low)*share
		if low > 0 && high >= wideRange*low {
			x = low * math.Pow(high/low, share)
		}
		text := ""
		switch s.Kind {
		case sdk.Integer:
			text = strconv.FormatFloat(math.Round(x), 'f', 0, 64)
		case sdk.Duration:
			unit := time.Second
			if high-low < 2*gridSteps {
				unit = time.Millisecond
			}
			text = time.Duration(x * 1e9).Round(unit).String()
		default:
			rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
			text = strconv.FormatFloat(min(max(rounded, low), high), 'f', -1, 64)
		}
		if !slices.Contains(values, text) {
			values = append(values, text)
		}
	}
	return values
}

// canonical returns a value of a setting in one form, and as a number if it has one.
// Durations are in seconds.
func canonical(s sdk.Setting, text string) (string, float64, error) {
	if text == "" && (s.Kind == sdk.Text || s.Kind == sdk.Texts || s.Kind == sdk.Numbers) {
		return "", 0, nil
	}
	if text == "" { // the zero value
		text = map[sdk.Kind]string{sdk.Bool: "false", sdk.Duration: "0s"}[s.Kind]
		if text == "" {
			text = "0"
		}
	}
	config, err := json.Marshal(map[string]string{s.Name: text})
	if err != nil {
		return "", 0, err
	}
	given, err := settings.Given([]sdk.Setting{s}, config)
	if err != nil {
		return "", 0, err
	}
	v := given[s.Name][0]
	switch s.Kind {
	case sdk.Bool:
		return strconv.FormatBool(v.Integer != 0), 0, nil
	case sdk.Integer:
		return strconv.FormatInt(v.Integer, 10), float64(v.Integer), nil
	case sdk.Number:
		return strconv.FormatFloat(v.Number, 'f', -1, 64), v.Number, nil
	case sdk.Duration:
		return time.Duration(v.Integer).String(), float64(v.Integer) / 1e9, nil
	}
	return text, 0, nil
}
