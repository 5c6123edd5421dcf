package lookahead_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// chain returns a scenario in which one placement starts a chain of evictions: each job can
// run on its own node and on the next one, where a job of the next lower priority runs.
func chain(length int) string {
	var b strings.Builder
	b.WriteString("scheduler: {priorityDelta: 1}\nnodes:\n")
	for n := range length + 1 {
		fmt.Fprintf(&b, "  - {id: n%03d, capacity: {cpu: 10}, attributes: {at: %03d, before: %03d}}\n", n, n, n-1)
	}
	b.WriteString("  - {id: other, capacity: {cpu: 10}, attributes: {at: top, before: none}}\njobs:\n")
	job := "  - {id: %s, type: service, priority: %d, groups: [{name: g, resources: {cpu: 10}, constraints: [{attribute: %s, operator: %s, value: %q}]}]}\n"
	for n := range length {
		fmt.Fprintf(&b, job, fmt.Sprintf("j%03d", n), 95-n, "at", "regexp", fmt.Sprintf("^(%03d|%03d)$", n, n+1))
	}
	fmt.Fprintf(&b, job, "spare", 1, "at", "=", "top")
	fmt.Fprintf(&b, job, "top", 99, "at", "regexp", "^(000|top)$")
	b.WriteString("running:\n")
	for n := range length {
		fmt.Fprintf(&b, "  - {id: r%03d, job: j%03d, group: g, node: n%03d, startedAt: -1m}\n", n, n, n)
	}
	b.WriteString("  - {id: s, job: spare, group: g, node: other, startedAt: -1m}\nevents:\n  - {at: 0s, submit: top}\nuntil: 20m\n")
	return b.String()
}

// A play follows a chain to its end, as far as its fuel lasts, and counts the instances that
// did not run by then until the horizon.
func TestOutlook_EndsWithFuel(t *testing.T) {
	t.Parallel()
	const evaluations = 40 // that a play can pay for on a cluster of less than 1,000 nodes
	for _, c := range []struct {
		length, depth int
		delay         time.Duration
	}{{1, 1, 0}, {7, 7, 0}, {30, 30, 0}, {60, evaluations, 10 * time.Minute}} {
		_, calls, _ := playReader(t, chain(c.length), 1)
		if len(calls) == 0 || len(calls[0]) != 2 {
			t.Fatalf("length %d: played %v, want two options", c.length, calls)
		}
		for _, p := range calls[0] {
			depth, lost, delay := c.depth, time.Duration(c.depth)*time.Minute, c.delay
			if p.node == "other" {
				depth, lost, delay = 1, time.Minute, 10*time.Minute // spare has no other node
			}
			if int(p.depth) != depth || time.Duration(p.lostWork) != lost || time.Duration(p.delay) != delay {
				t.Errorf("length %d: %+v, want depth %d, lost work %v, delay %v", c.length, p, depth, lost, delay)
			}
		}
	}
}
