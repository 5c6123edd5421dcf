package main

import (
	"context"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/mixes"
)

// A difference is bold if its interval excludes 0, and only then.
func TestRow_MarksDifferencesThatExcludeZero(t *testing.T) {
	var runs []play
	for draw := 1; draw <= 12; draw++ {
		first, second := &metrics.Metrics{}, &metrics.Metrics{}
		first.Placed, second.Placed = 100+draw, 110+2*draw
		first.PingPong, second.PingPong = 5, 5+draw%3-1
		runs = append(runs,
			play{compare.Run{Scenario: "s", Draw: draw, Policy: before, Metrics: first}, 3},
			play{compare.Run{Scenario: "s", Draw: draw, Policy: after, Metrics: second}, 1})
	}
	cells := strings.Split(row(runs), "|")
	if placed := cells[4]; !strings.Contains(placed, "**+") {
		t.Errorf("placed: %q is not marked", placed)
	}
	if chained := cells[2]; chained != " 3: **−2** " {
		t.Errorf("cascades: %q", chained)
	}
	if few := row(runs[:8]); strings.Contains(few, "**") {
		t.Errorf("4 draws: %q marks a range", few)
	}
	if pingPong := cells[3]; strings.Contains(pingPong, "**") || !strings.Contains(pingPong, "5: ") {
		t.Errorf("ping-pong: %q", pingPong)
	}
}

// An instance counts each time it evicts others after it was evicted itself.
func TestCountCascades_CountsEvictionsByEvictedInstances(t *testing.T) {
	evicted := []sim.Evicted{
		{Alloc: "mid.g[0]", By: "top.g[0]"},
		{Alloc: "low.g[0]", By: "mid.g[0]#1"}, // a cascade
		{Alloc: "low.g[1]", By: "mid.g[0]#1"}, // the same placement
		{Alloc: "low.g[2]", By: "mid.g[1]"},   // mid.g[1] was not evicted
		{Alloc: "mid.g[0]#1", By: "top.g[1]"},
		{Alloc: "low.g[0]#1", By: "mid.g[0]#2"}, // another one
	}
	if got := countCascades(evicted); got != 2 {
		t.Errorf("%d cascades, want 2", got)
	}
}

// Rows share the runs without the features, and the runs of a row are in the order of the draws.
func TestPlayer_SharesRunsBetweenRows(t *testing.T) {
	loader := policies.New(policies.Options{})
	defer loader.Close()
	p := &player{loader: loader, played: map[string][]play{}}
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
