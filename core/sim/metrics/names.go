package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A form describes the dotted names of a metric with several values: NAME.KEY.PART, without
// the elements that it lacks.
type form struct {
	key   string // such as RESOURCE; any text stands for it
	parts []string
}

// forms holds the forms of all metrics with several values; see Flatten.
var forms = map[string]form{
	"victimsPerPreemption": {parts: []string{"mean", "p95", "max"}},
	"cascadeDepth":         {parts: []string{"p99", "max"}},
	"wastedWork":           {key: "RESOURCE"},
	"wastedHours":          {key: "RESOURCE"},
	"queueDelay":           {key: "BAND", parts: []string{"mean", "p50", "p90", "p99", "max"}},
	"utilisation":          {key: "RESOURCE"},
	"fragmentation":        {key: "RESOURCE"},
	"decisionLatency":      {parts: []string{"p50", "p99", "p999"}},
	"evaluations":          {parts: []string{"created", "processed", "cancelled"}},
}

// CheckName returns an error with the remedy if no run can have a value of this dotted name:
// the metric is unknown, or the name lacks a part, as in queueDelay.75.
func CheckName(name string) error {
	d, known := Define(name)
	if !known {
		return fmt.Errorf("unknown metric %s", name)
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(name, d.Name), ".")
	f, several := forms[d.Name]
	switch {
	case !several && rest == "":
		return nil
	case !several:
		return fmt.Errorf("metric %s has one value: write %s", d.Name, d.Name)
	case f.matches(rest):
		return nil
	}
	return errors.New("metric " + d.Name + " has several values: write " + f.describe(d.Name))
}

// matches reports whether rest consists of the elements of the form.
func (f form) matches(rest string) bool {
	if len(f.parts) == 0 {
		return rest != ""
	}
	part := rest
	if f.key != "" {
		at := strings.LastIndexByte(rest, '.')
		if at <= 0 {
			return false
		}
		part = rest[at+1:]
	}
	return slices.Contains(f.parts, part)
}

// describe returns the names of the form: queueDelay.BAND.PART, where PART is mean or max.
func (f form) describe(name string) string {
	if f.key != "" {
		name += "." + f.key
	}
	if len(f.parts) == 0 {
		return name + ", such as " + name[:len(name)-len(f.key)] + "cpu"
	}
	last := len(f.parts) - 1
	text := name + ".PART, where PART is " + strings.Join(f.parts[:last], ", ") + " or " + f.parts[last]
	if f.key == "BAND" {
		text += " and BAND a band of priorities, such as 75"
	}
	return text
}
