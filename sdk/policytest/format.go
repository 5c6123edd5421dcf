package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Format returns the text of a case, in the form that Parse reads.
func Format(c *Case) string {
	var b strings.Builder
	f := formatter{&b, c}
	if c.Totals != nil {
		f.line("cluster", f.amounts(c.Totals))
	}
	for _, n := range c.Namespaces {
		words := []string{"namespace", n.Name}
		if n.Weight != 0 && n.Weight != 1 {
			words = append(words, "weight="+plain(n.Weight))
		}
		f.line(append(words, f.amounts(n.Use))...)
	}
	for _, b := range c.Budgets {
		f.line("budget", b.Name, "slack="+strconv.Itoa(int(b.Slack)))
	}
	f.preemptor()
	for i := range c.Options {
		f.option(&c.Options[i])
	}
	return b.String()
}

type formatter struct {
	*strings.Builder
	c *Case
}

func (f formatter) line(words ...string) {
	f.WriteString(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	f.WriteByte('\n')
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// amounts formats every dimension of a vector, zeros included, to keep their order.
func (f formatter) amounts(v []float64) string {
	var words []string
	for d, x := range v {
		words = append(words, f.c.Dims[d]+"="+plain(x))
	}
	return strings.Join(words, " ")
}

func (f formatter) preemptor() {
	p := &f.c.Preemptor
	words := []string{"preemptor", strconv.Itoa(int(p.Priority)), f.amounts(p.Ask)}
	for _, d := range p.Devices {
		words = append(words, fmt.Sprintf("device:%s=%d", d.ID, d.Count))
	}
	say := func(key, value, usual string) {
		if value != usual {
			words = append(words, key+"="+value)
		}
	}
	say("delta", strconv.Itoa(int(p.Delta)), "10")
	say("type", p.JobType, "service")
	say("namespace", p.Namespace, "default")
	say("job", p.Job, "")
	say("group", p.Group, "")
	say("ports", strconv.Itoa(p.Ports), "0")
	say("attempts", strconv.Itoa(int(p.Attempts)), "0")
	say("waiting", time.Duration(p.Waiting).String(), "0s")
	f.line(append(words, formatLabels(p.Labels, p.Annotations)...)...)
}

// formatLabels formats labels and annotations.
func formatLabels(labels map[string]string, notes map[string]float64) []string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, "label:"+key+"="+labels[key])
	}
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		words = append(words, "note:"+name+"="+plain(notes[name]))
	}
	return words
}

func (f formatter) option(o *Option) {
	words := []string{"node", o.Name, f.amounts(o.Free)}
	for r, free := range o.DeviceFree {
		words = append(words, fmt.Sprintf("device:%s=%s@%d", f.c.Preemptor.Devices[r].ID, plain(free), o.DeviceGroup[r]))
	}
	if o.Follows != (Outlook{}) {
		words = append(words, fmt.Sprintf("follows=%s/%d/%s", time.Duration(o.Follows.LostWork), o.Follows.Depth, time.Duration(o.Follows.Delay)))
	}
	f.line(words...)
	for i := range o.Rows {
		f.row(&o.Rows[i])
	}
}

func (f formatter) row(r *Row) {
	words := []string{" ", r.Name, strconv.Itoa(int(r.Priority)), f.amounts(r.Use)}
	for k, n := range r.Devices {
		if n != 0 {
			words = append(words, fmt.Sprintf("device:%s=%s", f.c.Preemptor.Devices[k].ID, plain(n)))
		}
	}
	for bit, word := range map[uint8]string{policy.MustLeavePort: "port", policy.MustLeaveSeparation: "separation"} {
		if r.MustLeave&bit != 0 {
			words = append(words, word)
		}
	}
	if r.Evictions != 0 || r.EvictionLimit != 0 {
		words = append(words, fmt.Sprintf("evictions=%d/%d", r.Evictions, r.EvictionLimit))
	}
	for _, w := range [][2]string{{"namespace", r.Namespace}, {"job", r.Job}, {"group", r.Group}} {
		if w[1] != "" {
			words = append(words, w[0]+"="+w[1])
		}
	}
	if r.Age != 0 {
		words = append(words, "age="+time.Duration(r.Age).String())
	}
	if r.LostWork != r.Age {
		words = append(words, "lostwork="+time.Duration(r.LostWork).String())
	}
	for _, name := range r.Budgets {
		words = append(words, "budget="+name)
	}
	switch to := &r.Relocation; to.Where {
	case policy.RelocationEvicts:
		words = append(words, fmt.Sprintf("fits=%s/%d/%s", fitsEvicting, to.Priority, time.Duration(to.LostWork)))
	case policy.RelocationNone:
		words = append(words, "fits="+fitsNowhere)
	}
	f.line(append(words, formatLabels(r.Labels, r.Annotations)...)...)
}
