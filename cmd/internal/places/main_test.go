package main

import (
	"context"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/mixes"
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

// Rows share the runs without the features, and the runs of a row are in the order of the draws.
func TestPlayer_SharesRunsBetweenRows(t *testing.T) {
	loader := policies.New(policies.Options{})
	defer loader.Close()
	p := &player{loader: loader, played: map[string][]compare.Run{}}
	for seed := range uint64(3) {
		f := mixes.Generate(seed)
		f.Scheduler.Policy = ""
		p.files = append(p.files, f)
	}
	still, err := p.compare(context.Background(), &comparison{before: "default@1", after: "default"})
	if err != nil {
		t.Fatal(err)
	}
	moving, err := p.compare(context.Background(), &comparison{before: "default@1", after: "default", moves: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range still {
		if still[i].Draw != i/2+1 || still[i].Seed != p.files[i/2].Seed {
			t.Errorf("run %d is of draw %d with seed %d", i, still[i].Draw, still[i].Seed)
		}
		if shared := still[i].Metrics == moving[i].Metrics; shared != (i%2 == 0) {
			t.Errorf("run %d: shared between rows: %t", i, shared)
		}
	}
	if p.files[0].Scheduler.Moves != nil {
		t.Error("moves remain enabled in the scenario")
	}
}
