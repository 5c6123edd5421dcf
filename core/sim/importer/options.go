package importer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NeverRan says what becomes of work that the real cluster never started.
type NeverRan int

// What becomes of it. By default openb leaves it out, for it has no duration,
// and google keeps it, for it is a good part of the pressure on that cluster.
const (
	NeverRanDefault NeverRan = iota
	NeverRanKeep
	NeverRanDrop
)

// Options choose a part of a trace and how it is told. The zero value imports
// everything at the trace's own pace.
type Options struct {
	Name string // of the scenario; "": made from the trace and the options

	Keep     float64       // fraction of the nodes, in the order of NodeOrder; 0: all
	Nodes    int           // the first so many nodes of that order; 0: all; excludes Keep
	Compress float64       // submit times are divided by this, durations stay; 0: 1
	Sample   float64       // a scale model: this fraction of nodes and work, by MD5 (see Sampled); 0: all
	Limit    int           // the first so many scenario jobs, in order of submission; 0: all
	From     time.Duration // work submitted earlier is left out; the scenario starts here
	Until    time.Duration // work submitted then or later is left out; 0: to the end

	Bands map[string]int32 // priorities by the trace's own word: QoS class, queue, band or integer

	NeverRan    NeverRan
	List        string // openb: which pod list of the folder, such as gpuspec33; "": default
	WholeGPUs   bool   // openb: GPUs as devices, a share of one as a whole one
	RawPriority bool   // google: the trace's integer × 10 in place of the three bands
	Strict      bool   // kube: refuse a dump of which an object cannot be read, in place of leaving that out
}

// Validate reports every problem at once.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	// The comparisons are written so that NaN fails them.
	if o.Keep != 0 && !(o.Keep > 0 && o.Keep <= 1) {
		bad("keep %v: want a fraction of the nodes, above 0 and at most 1", o.Keep)
	}
	if o.Nodes < 0 {
		bad("nodes %d: want a number of nodes", o.Nodes)
	}
	if o.Keep != 0 && o.Nodes != 0 {
		bad("keep and nodes exclude each other: both say how many nodes stay")
	}
	if o.Compress != 0 && !(o.Compress >= 1e-6 && o.Compress <= 1e9) {
		bad("compress %v: want a divisor of submit times, 0.000001 to 1000000000", o.Compress)
	}
	if o.Sample != 0 && !(o.Sample >= 0.001 && o.Sample <= 1) {
		bad("sample %v: want a fraction, 0.001 to 1", o.Sample)
	}
	if o.Limit < 0 {
		bad("limit %d: want a number of jobs", o.Limit)
	}
	if o.From < 0 || o.Until < 0 {
		bad("from %v, until %v: want times since the trace's start", o.From, o.Until)
	}
	if o.Until != 0 && o.Until <= o.From {
		bad("until %v: want a time after from (%v)", o.Until, o.From)
	}
	if o.Name != "" && cleanName(o.Name) != o.Name {
		bad("name %q: want lower-case letters, digits, dots and dashes", o.Name)
	}
	return errors.Join(errs...)
}

// rejectForeign refuses the options that belong to another trace, lest one be ignored
// in silence.
func (o *Options) rejectForeign(format string) error {
	var errs []error
	for _, f := range []struct {
		set          bool
		name, format string
	}{
		{o.List != "", "list", "openb"},
		{o.WholeGPUs, "whole-gpus", "openb"},
		{o.RawPriority, "raw-priority", "google"},
		{o.Strict, "strict", "kube"},
	} {
		if f.set && f.format != format {
			errs = append(errs, fmt.Errorf("%s is an option of %s alone", f.name, f.format))
		}
	}
	return errors.Join(errs...)
}

// selection lists what was chosen, for people (" ") and for names ("").
func (o *Options) selection(join string) []string {
	var w []string
	add := func(set bool, name, value string) {
		if set {
			w = append(w, name+join+value)
		}
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if o.List != "" && o.List != defaultList {
		w = append(w, o.List)
	}
	add(o.Sample != 0, "sample", number(o.Sample))
	add(o.Keep != 0, "keep", number(o.Keep))
	add(o.Nodes != 0, "nodes", strconv.Itoa(o.Nodes))
	add(o.Compress != 0 && o.Compress != 1, "compress", number(o.Compress))
	add(o.Limit != 0, "limit", strconv.Itoa(o.Limit))
	add(o.From != 0, "from", o.From.String())
	add(o.Until != 0, "until", o.Until.String())
	return w
}

// describe is the sentence of the scenario's description that says what was
// chosen.
func (o *Options) describe() string {
	all := *o
	all.List = "" // named elsewhere
	w := all.selection(" ")
	if o.WholeGPUs {
		w = append(w, "whole GPUs")
	}
	if o.RawPriority {
		w = append(w, "raw priorities")
	}
	switch o.NeverRan {
	case NeverRanKeep:
		w = append(w, "with what never ran")
	case NeverRanDrop:
		w = append(w, "without what never ran")
	}
	for _, k := range slices.Sorted(maps.Keys(o.Bands)) {
		w = append(w, fmt.Sprintf("%s=%d", k, o.Bands[k]))
	}
	if len(w) == 0 {
		return "imported whole"
	}
	return "imported with " + strings.Join(w, ", ")
}
