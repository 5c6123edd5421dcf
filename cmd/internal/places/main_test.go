package main

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// A difference is bold if its interval excludes 0, and only then.
func TestRow_MarksDifferencesThatExcludeZero(t *testing.T) {
	var runs []compare.Run
	for draw := 1; draw <= 12; draw++ {
		first, second := &metrics.Metrics{}, &metrics.Metrics{}
		first.Placed, second.Placed = 100+draw, 110+2*draw
		first.PingPong, second.PingPong = 5, 5+draw%3-1
		runs = append(runs,
			compare.Run{Scenario: "s", Draw: draw, Policy: before, Metrics: first},
			compare.Run{Scenario: "s", Draw: draw, Policy: after, Metrics: second})
	}
	cells := strings.Split(row(compare.New(runs)), "|")
	if placed := cells[3]; !strings.Contains(placed, "**+") {
		t.Errorf("placed: %q is not marked", placed)
	}
	if pingPong := cells[2]; strings.Contains(pingPong, "**") || !strings.Contains(pingPong, "5: ") {
		t.Errorf("ping-pong: %q", pingPong)
	}
}
