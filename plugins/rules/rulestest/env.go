package rulestest

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// A Value is the value of an expression, in the field of its type: N of whole numbers and
// of bools (0 or 1), X of doubles, S of texts.
type Value struct {
	N int64
	X float64
	S string
}

func number(n int32) Value { return Value{N: int64(n)} }

// Env holds the values of all names for one candidate or one option.
type Env struct {
	now    int64
	values map[string]Value
	maps   map[string]map[string]Value
}

// Candidate returns the values for a row of option i.
func Candidate(in *policy.Candidates, i, row int) *Env {
	e := &Env{now: in.Now}
	e.preemptor(in.Preemptor, in.Dims)
	e.row(in, row)
	e.maps["option.need"] = amounts(in.Dims, in.Need, i)
	e.maps["option.freed"] = amounts(in.Dims, in.Freed, i)
	e.maps["node.capacity"] = amounts(in.Dims, in.Capacity, i)
	e.maps["node.reserved"] = amounts(in.Dims, in.Reserved, i)
	e.maps["node.free"] = amounts(in.Dims, in.Free, i)
	e.maps["node.own"] = amounts(in.Dims, in.Own, i)
	if in.Place != nil {
		e.values["node.name"] = name(in.Strings[in.Place[i]])
	}
	e.cluster(in.Dims, in.Shared)
	return e
}

// Option returns the values for option i.
func Option(in *policy.Options, i int) *Env {
	e := &Env{now: in.Now}
	e.preemptor(in.Preemptor, in.Dims)
	highest := in.HighestPriority[i]
	if in.VictimCount[i] == 0 {
		highest = math.MinInt32
	}
	e.values["option.highestPriority"] = number(highest)
	e.values["option.victims"] = number(in.VictimCount[i])
	e.values["option.prioritySum"] = Value{N: in.PrioritySum[i]}
	if in.LostWork != nil {
		e.values["option.lostWork"] = Value{N: in.LostWork[i]}
	}
	if in.Start != nil {
		e.values["option.start"] = Value{N: in.Start[i]}
	}
	if in.BudgetViolations != nil {
		e.values["option.budgetViolations"] = number(in.BudgetViolations[i])
	}
	if in.Stranded != nil {
		e.values["option.stranded"], e.values["option.displacing"] = number(in.Stranded[i]), number(in.Displacing[i])
		e.values["option.displacedPriority"], e.values["option.displacedLostWork"] = number(in.DisplacedPriority[i]), Value{N: in.DisplacedLostWork[i]}
	}
	if in.ExpectedLostWork != nil {
		e.values["option.expectedLostWork"], e.values["option.cascadeDepth"] = Value{N: in.ExpectedLostWork[i]}, number(in.CascadeDepth[i])
		e.values["option.expectedDelay"] = Value{N: in.ExpectedDelay[i]}
	}
	if in.Place != nil {
		e.values["node.name"] = name(in.Strings[in.Place[i]])
	}
	e.fit(in, i)
	e.cluster(in.Dims, in.Shared)
	return e
}

func (e *Env) fit(in *policy.Options, i int) {
	if in.FitAfter == nil {
		return
	}
	e.values["option.fitBefore"], e.values["option.fitAfter"] = Value{X: in.FitBefore[i]}, Value{X: in.FitAfter[i]}
	sum, parts := in.FitAfter[i], 1.0
	for k, name := range []string{"option.antiAffinity", "option.affinity", "option.spread"} {
		part := 0.0
		if in.Present[i]>>k&1 != 0 {
			part = in.Components[k][i]
			sum += part
			parts++
		}
		e.values[name] = Value{X: part}
	}
	e.values["option.rank"] = Value{X: sum / parts}
}

func (e *Env) preemptor(p *policy.Preemptor, dims []string) {
	e.values = map[string]Value{
		"preemptor.priority": number(p.Priority), "preemptor.delta": number(p.Delta), "preemptor.ports": number(int32(p.Ports)),
		"preemptor.attempts": number(p.Attempts), "preemptor.waiting": {N: p.Waiting},
		"preemptor.namespace": name(p.Namespace), "preemptor.job": name(p.Job), "preemptor.group": name(p.Group), "preemptor.jobType": name(p.JobType),
	}
	e.maps = map[string]map[string]Value{"preemptor.ask": {}, "preemptor.annotations": {}}
	for d, name := range dims {
		e.maps["preemptor.ask"][name] = Value{X: p.Ask[d]}
	}
	e.maps["preemptor.labels"] = labels(p.Labels)
	for name, value := range p.Annotations {
		if !math.IsNaN(value) {
			e.maps["preemptor.annotations"][name] = Value{X: value}
		}
	}
}

// amounts returns the resources of an element by name.
func amounts(dims []string, table [][]float64, i int) map[string]Value {
	m := map[string]Value{}
	for d := range table {
		m[dims[d]] = Value{X: table[d][i]}
	}
	return m
}

func (e *Env) cluster(dims []string, s *policy.Shared) {
	e.maps["cluster.capacity"] = map[string]Value{}
	if s == nil {
		return
	}
	for d := range s.Totals {
		e.maps["cluster.capacity"][dims[d]] = Value{X: s.Totals[d]}
	}
}

func (e *Env) row(in *policy.Candidates, row int) {
	r := &in.Rows
	e.values["victim.priority"] = number(r.Priority[row])
	if r.Start != nil {
		e.values["victim.start"] = Value{N: r.Start[row]}
	}
	if r.LostWork != nil {
		e.values["victim.lostWork"] = Value{N: r.LostWork[row]}
	}
	if r.Namespace != nil {
		e.values["victim.namespace"] = name(in.Strings[r.Namespace[row]])
		e.values["victim.job"] = name(lastPart(in.Strings[r.Job[row]]))
		e.values["victim.group"] = name(lastPart(in.Strings[r.Group[row]]))
	}
	if r.Evictions != nil {
		e.values["victim.evictions"], e.values["victim.evictionLimit"] = number(r.Evictions[row]), number(r.EvictionLimit[row])
	}
	if r.MustLeave != nil {
		e.values["victim.mustLeave"] = truth(r.MustLeave[row] != 0)
	}
	if r.Relocation != nil {
		e.values["victim.relocation"] = number(int32(r.Relocation[row]))
		e.values["victim.displacedPriority"], e.values["victim.displacedLostWork"] = number(r.DisplacedPriority[row]), Value{N: r.DisplacedLostWork[row]}
	}
	e.maps["victim.use"] = amounts(in.Dims, r.Use, row)
	e.setLabels(in, row)
	if in.Shared != nil {
		e.shares(in, row)
	}
}

// name returns a name as rules read it.
func name(s string) Value { return Value{S: s[max(0, len(s)-schema.MaxText):]} }

// labels returns the labels that rules read.
func labels(all map[string]string) map[string]Value {
	read := map[string]Value{}
	for i, key := range slices.Sorted(maps.Keys(all)) {
		if value := all[key]; i < schema.MaxLabels && len(value) <= schema.MaxText {
			read[key] = Value{S: value}
		}
	}
	return read
}

func lastPart(id string) string { return id[strings.LastIndexByte(id, 0)+1:] }

func (e *Env) setLabels(in *policy.Candidates, row int) {
	all, notes := map[string]string{}, map[string]Value{}
	if l := in.Rows.Labels; l != nil {
		for k := l.First[row]; k < l.First[row+1]; k++ {
			all[in.Strings[l.Key[k]]] = in.Strings[l.Value[k]]
		}
	}
	if a := in.Rows.Annotations; a != nil {
		for k, name := range a.Names {
			if x := a.Values[k][row]; !math.IsNaN(x) {
				notes[name] = Value{X: x}
			}
		}
	}
	e.maps["victim.labels"], e.maps["victim.annotations"] = labels(all), notes
}

// shares sets what depends on the shared tables.
func (e *Env) shares(in *policy.Candidates, row int) {
	sum, resources := 0.0, 0.0
	for d, total := range in.Shared.Totals {
		if total > 0 && in.Rows.Use != nil {
			sum += in.Rows.Use[d][row] / total
			resources++
		}
	}
	e.values["victim.share"] = Value{X: sum / max(resources, 1)}
	if n := &in.Shared.Namespaces; in.Rows.Namespace != nil && len(n.Use) == len(in.Shared.Totals) {
		share := 0.0
		if k := slices.Index(n.Name, in.Rows.Namespace[row]); k >= 0 {
			for d, total := range in.Shared.Totals {
				if total > 0 {
					share = max(share, n.Use[d][k]/total)
				}
			}
			if n.Weight[k] > 0 {
				share /= n.Weight[k]
			}
		}
		e.values["victim.namespaceShare"] = Value{X: share}
	}
	slack := int32(math.MaxInt32)
	if b := in.Rows.Budgets; b != nil {
		for k := b.First[row]; k < b.First[row+1]; k++ {
			slack = min(slack, in.Shared.Budgets.Slack[b.At[k]])
		}
	}
	e.values["victim.budgetSlack"] = number(slack)
}

// field returns the value of a field.
func (e *Env) field(i int) Value { return e.values[schema.Fields[i].Name] }

// Activation returns the values in the form that cel-go accepts, without the maps whose
// absent keys differ from CEL: those of resources.
func (e *Env) Activation() map[string]any {
	out := map[string]any{schema.Now: time.Unix(0, e.now)}
	for _, f := range schema.Fields {
		if v, ok := e.values[f.Name]; ok {
			out[f.Name] = native(f.Type, v)
		}
	}
	for _, s := range schema.Spans {
		if v, ok := e.values[s.Of]; ok {
			out[s.Name] = time.Duration(e.now - v.N)
		}
	}
	for _, m := range schema.Maps {
		values := map[string]any{}
		for key, v := range e.maps[m.Name] {
			values[key] = native(m.Type, v)
		}
		out[m.Name] = values
	}
	return out
}

func native(t schema.Type, v Value) any {
	switch t {
	case schema.Bool:
		return v.N != 0
	case schema.Double:
		return v.X
	case schema.String:
		return v.S
	case schema.Duration:
		return time.Duration(v.N)
	case schema.Timestamp:
		return time.Unix(0, v.N)
	}
	return v.N
}
