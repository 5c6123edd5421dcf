package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NeverRan states if tasks that the real cluster never started are imported.
type NeverRan int

// Values of NeverRan. By default openb leaves such tasks out, because they have no
// duration, and google keeps them, because they are a large part of the cluster's load.
const (
	NeverRanDefault NeverRan = iota
	NeverRanKeep
	NeverRanDrop
)

// Options select a part of a trace and its representation. The zero value imports
// everything at the pace of the trace.
type Options struct {
	Name string // of the scenario; derived from the trace and the options if empty

	Keep     float64       // fraction of the nodes, in NodeOrder; 0: all
	Nodes    int           // number of nodes, in NodeOrder; 0: all; excludes Keep
	Compress float64       // divisor of submit times, not of durations; 0: 1
	Sample   float64       // fraction of nodes and tasks, by MD5 (see Sampled); 0: all
	Limit    int           // maximum number of scenario jobs, in order of submission; 0: all
	From     time.Duration // start of the scenario; earlier submissions are left out
	Until    time.Duration // submissions at or after this time are left out; 0: no limit

	Bands map[string]int32 // priorities by the name in the trace: QoS class, queue, band or integer

	NeverRan    NeverRan
	List        string // openb: name of the pod list in the folder, such as gpuspec33; "": default
	WholeGPUs   bool   // openb: GPUs are devices, and a share is a whole GPU
	GPUShares   bool   // openb: each GPU is a device group of 1,000 thousandths; excludes WholeGPUs
	RawPriority bool   // google: use the trace's integer × 10 instead of three bands
	Strict      bool   // kube: return an error if an object cannot be read, instead of leaving it out
}

// DefaultList is the pod list of openb that is read if the options name none.
const DefaultList = "default"

// Validate returns an error that lists every problem, or nil.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	// NaN fails these comparisons.
	if o.Keep != 0 && !(o.Keep > 0 && o.Keep <= 1) {
		bad("keep %v: expected a fraction of the nodes, above 0 and at most 1", o.Keep)
	}
	if o.Nodes < 0 {
		bad("nodes %d: expected a number of nodes", o.Nodes)
	}
	if o.Keep != 0 && o.Nodes != 0 {
		bad("keep and nodes are mutually exclusive: both set the number of nodes")
	}
	if o.Compress != 0 && !(o.Compress >= 1e-6 && o.Compress <= 1e9) {
		bad("compress %v: expected a divisor of submit times, 0.000001 to 1000000000", o.Compress)
	}
	if o.Sample != 0 && !(o.Sample >= 0.001 && o.Sample <= 1) {
		bad("sample %v: expected a fraction, 0.001 to 1", o.Sample)
	}
	if o.WholeGPUs && o.GPUShares {
		bad("whole-gpus and gpu-shares are mutually exclusive: both set how shares of a GPU are imported")
	}
	if o.Limit < 0 {
		bad("limit %d: expected a number of jobs", o.Limit)
	}
	if o.From < 0 || o.Until < 0 {
		bad("from %v, until %v: expected times since the start of the trace", o.From, o.Until)
	}
	if o.Until != 0 && o.Until <= o.From {
		bad("until %v: expected a time after from (%v)", o.Until, o.From)
	}
	if o.Name != "" && CleanName(o.Name) != o.Name {
		bad("name %q: expected lower-case letters, digits, dots and dashes", o.Name)
	}
	return errors.Join(errs...)
}

// RejectForeign returns an error if an option of another format is set, which would
// otherwise be ignored silently.
func (o *Options) RejectForeign(format string) error {
	var errs []error
	for _, f := range []struct {
		set          bool
		name, format string
	}{
		{o.List != "", "list", "openb"},
		{o.WholeGPUs, "whole-gpus", "openb"},
		{o.GPUShares, "gpu-shares", "openb"},
		{o.RawPriority, "raw-priority", "google"},
		{o.Strict, "strict", "kube"},
	} {
		if f.set && f.format != format {
			errs = append(errs, fmt.Errorf("option %s applies only to %s", f.name, f.format))
		}
	}
	return errors.Join(errs...)
}

// Selection lists the selected part, for descriptions (" ") and for names ("").
func (o *Options) Selection(join string) []string {
	var w []string
	add := func(set bool, name, value string) {
		if set {
			w = append(w, name+join+value)
		}
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if o.List != "" && o.List != DefaultList {
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

// describe returns the sentence of the scenario's description about the options.
func (o *Options) describe() string {
	all := *o
	all.List = "" // the description names the list already
	w := all.Selection(" ")
	if o.WholeGPUs {
		w = append(w, "whole GPUs")
	}
	if o.GPUShares {
		w = append(w, "shares of single GPUs")
	}
	if o.RawPriority {
		w = append(w, "raw priorities")
	}
	switch o.NeverRan {
	case NeverRanKeep:
		w = append(w, "with tasks that never ran")
	case NeverRanDrop:
		w = append(w, "without tasks that never ran")
	}
	for _, k := range slices.Sorted(maps.Keys(o.Bands)) {
		w = append(w, fmt.Sprintf("%s=%d", k, o.Bands[k]))
	}
	if len(w) == 0 {
		return "imported completely"
	}
	return "imported with " + strings.Join(w, ", ")
}

// RejectTraceOptions returns an error if an option selects a part of a trace.
func (o *Options) RejectTraceOptions() error {
	all := *o
	all.Name, all.Strict = "", false
	if len(all.Selection("")) == 0 && len(o.Bands) == 0 && o.NeverRan == NeverRanDefault && !o.WholeGPUs && !o.GPUShares && !o.RawPriority {
		return nil
	}
	return errors.New("a dump of a cluster is imported completely: only the options name and strict apply")
}
