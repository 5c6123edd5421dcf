package raftshim

import "testing"

// UPSTREAM.md, section 6.
func TestLeadershipQueue_DeliversEveryLossOfADeliveredLeadership(t *testing.T) {
	for _, c := range []struct{ delivered, pushed, want string }{
		{"", "t", "t"},
		{"", "tf", ""},
		{"", "tft", "t"},
		{"t", "f", "f"},
		{"t", "ft", "ft"},
		{"t", "ftf", "f"},
		{"t", "ftft", "ft"},
		{"t", "t", ""},
		{"", "f", ""},
	} {
		q := &leadershipQueue{delivered: c.delivered == "t"}
		for _, b := range c.pushed {
			q.push(b == 't')
		}
		got := ""
		for len(q.pending) > 0 {
			q.pop()
			got += map[bool]string{true: "t", false: "f"}[q.delivered]
		}
		if got != c.want {
			t.Errorf("delivered %q, pushed %q: delivers %q, want %q", c.delivered, c.pushed, got, c.want)
		}
	}
}
