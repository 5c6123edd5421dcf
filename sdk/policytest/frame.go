package policytest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// CaseOf returns the input of a hook as a case. Columns that the input lacks have zero
// values; rows and options without a name are numbered. A policy that reads only columns of
// the input decides the case as it decided the input, except for the order of rows of one
// priority in SelectVictims and for columns that a case derives from others: free capacity,
// and the usage of namespaces.
func CaseOf(in *policy.Candidates) *Case {
	c := &Case{Now: in.Now, Dims: in.Dims, Preemptor: *in.Preemptor}
	if s := in.Shared; s != nil {
		c.Totals = s.Totals
		c.sharedOf(in)
	}
	names := map[string]int{}
	for i := range in.Len() {
		o := Option{Name: "n" + strconv.Itoa(i+1), Node: int32(i)}
		if len(in.Place) > 0 {
			o.Name = in.Strings[in.Place[i]]
			for k := range c.Options { // other device groups of the same node
				if c.Options[k].Name == o.Name {
					o.Node = c.Options[k].Node
				}
			}
		}
		for d := range in.Dims {
			o.Free = append(o.Free, in.Preemptor.Ask[d]-in.Need[d][i])
		}
		for r := range in.Preemptor.Devices {
			free := 0.0
			if len(in.DeviceNeed) > r {
				free = float64(in.Preemptor.Devices[r].Count) - in.DeviceNeed[r][i]
			}
			o.DeviceFree = append(o.DeviceFree, free)
			o.DeviceGroup = append(o.DeviceGroup, int32(i))
		}
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			o.Rows = append(o.Rows, rowOf(c, in, int(row), names))
		}
		c.Options = append(c.Options, o)
	}
	return c
}

// sharedOf reads the tables of namespaces and budgets.
func (c *Case) sharedOf(in *policy.Candidates) {
	t := &in.Shared.Namespaces
	for i, name := range t.Name {
		n := Namespace{Name: in.Strings[name], Weight: t.Weight[i]}
		for d := range t.Use {
			n.Use = append(n.Use, t.Use[d][i])
		}
		c.Namespaces = append(c.Namespaces, n)
	}
	b := &in.Shared.Budgets
	for i, name := range b.Name {
		c.Budgets = append(c.Budgets, Budget{Name: in.Strings[name], Slack: b.Slack[i]})
	}
}

// rowOf returns one row. Its name is that of its job, with a number if it is not unique.
func rowOf(c *Case, in *policy.Candidates, row int, names map[string]int) Row {
	t := &in.Rows
	r := Row{Name: "a" + strconv.Itoa(row+1), Priority: t.Priority[row], Use: make([]float64, len(in.Dims)), Devices: make([]float64, len(in.Preemptor.Devices))}
	for d := range t.Use {
		r.Use[d] = t.Use[d][row]
	}
	for k := range t.Devices {
		r.Devices[k] = t.Devices[k][row]
	}
	if len(t.Start) > 0 {
		r.Age = in.Now - t.Start[row]
	}
	if len(t.LostWork) > 0 {
		r.LostWork = t.LostWork[row]
	}
	if len(t.MustLeave) > 0 {
		r.MustLeave = t.MustLeave[row]
	}
	if len(t.Evictions) > 0 {
		r.Evictions, r.EvictionLimit = t.Evictions[row], t.EvictionLimit[row]
	}
	if len(t.Job) > 0 {
		r.Namespace = in.Strings[t.Namespace[row]]
		r.Job = lastPart(in.Strings[t.Job[row]])
		r.Group = lastPart(in.Strings[t.Group[row]])
		r.Name = strings.Map(plainRune, r.Job)
	}
	if names[r.Name]++; names[r.Name] > 1 {
		r.Name = fmt.Sprintf("%s.%d", r.Name, names[r.Name])
	}
	if l := t.Labels; l != nil && len(l.First) > row+1 {
		for at := l.First[row]; at < l.First[row+1]; at++ {
			setKey(&r.Labels, in.Strings[l.Key[at]], in.Strings[l.Value[at]])
		}
	}
	if a := t.Annotations; a != nil {
		for k, name := range a.Names {
			if x := a.Values[k][row]; !math.IsNaN(x) {
				setKey(&r.Annotations, name, x)
			}
		}
	}
	if b := t.Budgets; b != nil && len(b.First) > row+1 {
		for at := b.First[row]; at < b.First[row+1]; at++ {
			if int(b.At[at]) < len(c.Budgets) {
				r.Budgets = append(r.Budgets, c.Budgets[b.At[at]].Name)
			}
		}
	}
	if len(t.Relocation) > 0 {
		r.Relocation.Where = t.Relocation[row]
		if r.Relocation.Where == policy.RelocationEvicts {
			r.Relocation.Priority, r.Relocation.LostWork = t.DisplacedPriority[row], t.DisplacedLostWork[row]
		}
	}
	return r
}

// lastPart returns the last part of a name that the host has qualified.
func lastPart(name string) string { return name[strings.LastIndexAny(name, "\x00/")+1:] }

// plainRune replaces runes that a case cannot contain in a name.
func plainRune(r rune) rune {
	if r <= ' ' || r == '=' || r == '#' {
		return '-'
	}
	return r
}
