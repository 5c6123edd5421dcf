package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// idDigits is how many characters of a generated id tables show.
const idDigits = 8

// id is an id as a table shows it: its first characters, where it is one of
// those that servers make up. Commands take them as they stand.
func (p page) id(id string) string {
	if p.wide || len(id) < 32 {
		return id
	}
	return id[:idDigits]
}

func (p page) ids(list []string) string {
	short := make([]string, len(list))
	for i, id := range list {
		short[i] = p.id(id)
	}
	return strings.Join(short, ", ")
}

// columns makes a table's columns of their titles; one that ends in > stands to
// the right.
func columns(titles ...string) *term.Table {
	t := &term.Table{}
	for _, title := range titles {
		text, right := strings.CutSuffix(title, ">")
		t.Columns = append(t.Columns, term.Column{Title: text, Right: right})
	}
	return t
}

// facts prints names and values below each other; a fact without a value is left
// out.
func (p page) facts(pairs ...string) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.Row(pairs[i], pairs[i+1])
		}
	}
	_ = t.Write(p.w, p.style) // p.w keeps the error
}

// ago is how long ago a moment was, in Unix nanoseconds; "" for none.
func (env *Env) ago(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return age(env.Clock.Now().Sub(time.Unix(0, unixNano)))
}

// age is a duration as tables show it: its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// moment is a time of the log as people read it; "" for none.
func moment(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return time.Unix(0, unixNano).UTC().Format(time.RFC3339)
}

// when is a moment and how long ago it was.
func (env *Env) when(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return moment(unixNano) + " (" + env.ago(unixNano) + " ago)"
}

// amounts lists resources: cpu=500 memory=256.
func amounts(m map[string]int64) string {
	order := map[string]int{"cpu": 1, "memory": 2, "disk": 3, "network": 4}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(cmp.Or(order[a], 9), cmp.Or(order[b], 9)), strings.Compare(a, b))
	})
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = fmt.Sprintf("%s=%d", k, m[k])
	}
	return strings.Join(list, " ")
}

// texts lists labels and their kind: app=web tier=front.
func texts(m map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k+"="+m[k])
	}
	return strings.Join(list, " ")
}

// yes is what a table shows of a thing that is so or not.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// look emphasises a state.
func look(status string) term.Emphasis {
	switch status {
	case "running", "ready", "alive", "complete", "eligible":
		return term.Green
	case "failed", "lost", "down", "dead", "evict":
		return term.Red
	}
	return term.Plain
}

func stated(status string) term.Cell { return term.Cell{Text: status, Look: look(status)} }

func plain(text string) term.Cell { return term.Cell{Text: text} }

// allocTable lists allocations. Those of one job need not name it.
func (p page) allocTable(env *Env, list []*client.AllocationStub, ofJob bool) {
	titles := []string{"ALLOC ID", "JOB", "GROUP", "NODE", "PRIORITY>", "DESIRED", "STATUS", "AGE>", "NOTE"}
	if p.wide {
		titles = append(titles, "NAME", "VERSION>", "EVAL", "PREEMPTED", "PREEMPTED BY")
	}
	if ofJob {
		titles = slices.Delete(titles, 1, 2)
	}
	t := columns(titles...)
	for _, a := range list {
		cells := []term.Cell{
			plain(p.id(a.ID)), plain(a.JobID), plain(a.TaskGroup), plain(p.node(a)), plain(fmt.Sprint(a.Priority)),
			stated(a.DesiredStatus), stated(a.ClientStatus), plain(env.ago(a.CreateTime)), plain(p.note(a)),
		}
		if p.wide {
			cells = append(cells, plain(a.Name), plain(fmt.Sprint(a.JobVersion)), plain(a.EvalID), plain(p.ids(a.PreemptedAllocations)), plain(a.PreemptedByAllocation))
		}
		if ofJob {
			cells = slices.Delete(cells, 1, 2)
		}
		t.Cells(cells...)
	}
	p.table(t)
}

// node is where an allocation is, by the name that people gave the machine.
func (p page) node(a *client.AllocationStub) string {
	if p.wide {
		return a.NodeID
	}
	return cmp.Or(a.NodeName, p.id(a.NodeID))
}

// note is what is worth saying of an allocation.
func (p page) note(a *client.AllocationStub) string {
	switch {
	case a.PreemptedByAllocation != "":
		return "evicted for " + p.id(a.PreemptedByAllocation)
	case len(a.PreemptedAllocations) > 0:
		return "evicted " + p.ids(a.PreemptedAllocations)
	case a.ClientDescription != "":
		return a.ClientDescription
	}
	return a.DesiredDescription
}

// count says how many of something there are.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
