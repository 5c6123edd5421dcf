// Command places plays workloads with racks, gangs and node-bound work without and with the
// features that concern places: the search for the cheapest domain, relocation as a tie-break,
// moves, and look-ahead. It prints a table in Markdown: the median without the features, and
// the paired difference that they make, with its 95 % interval. A difference whose interval
// excludes 0 is bold.
//
//	go run ./cmd/internal/places -draws 30
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

func main() {
	draws := flag.Int("draws", 30, "number of draws of each workload")
	rows := flag.String("rows", ".", "play the rows whose policy and features match a regular expression; moves and look-ahead take several times as long as the others")
	flag.Parse()
	if *draws < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "places: -draws must be at least 1, and there are no arguments")
		os.Exit(2)
	}
	selected, err := regexp.Compile(*rows)
	if err != nil {
		fmt.Fprintln(os.Stderr, "places: -rows:", err)
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, *draws, selected); err != nil {
		fmt.Fprintln(os.Stderr, "places:", err)
		os.Exit(1)
	}
}

// workloads are presets of `cede sim generate`.
var workloads = [...]string{"racks", "gangs", "pinned"}

// Rules without and with look-ahead.
const (
	withoutLookAhead = "rules: option: [option.highestPriority, option.lostWork]"
	withLookAhead    = "rules: option: [option.highestPriority, option.expectedLostWork, option.lostWork]"
)

// comparisons are the rows of the table for each workload. Before, domains are not searched and
// nothing is moved.
var comparisons = [...]struct {
	policy, features string
	before, after    string // policies
	moves            bool
}{
	{"`default`", "domains, relocation", "default@1", "default", false},
	{"`default`", "domains, relocation, moves", "default@1", "default", true},
	{"`least-waste`", "domains, relocation", "least-waste@1", "least-waste", false},
	{"`least-waste`", "domains, relocation, moves", "least-waste@1", "least-waste", true},
	{"rules", "domains, look-ahead", withoutLookAhead, withLookAhead, false},
}

// columns are the metrics of the table.
var columns = []struct{ title, metric string }{
	{"lost work, core-hours", "wastedHours.cpu"},
	{"deepest cascade", "cascadeDepth.max"},
	{"ping-pong", "pingPong"},
	{"placed", "placed"},
	{"unplaced", "unplaced"},
	{"goodput", "goodput"},
	{"regret, cluster-hours", "decisionRegret"},
}

// The names of the two runs of a pair.
const before, after = "before", "after"

func run(ctx context.Context, out io.Writer, draws int, selected *regexp.Regexp) (err error) {
	loader := policies.New(policies.Options{})
	defer func() { err = errors.Join(err, loader.Close()) }()
	var rows [len(workloads)]string
	var failed [len(workloads)]error
	var wg sync.WaitGroup
	for i, workload := range workloads {
		wg.Go(func() { rows[i], failed[i] = play(ctx, loader, workload, draws, selected) })
	}
	wg.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	header, rule := "| workload | policy | features |", "|--|--|--|"
	for _, c := range columns {
		header, rule = header+" "+c.title+" |", rule+"--|"
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n%s", header, rule, strings.Join(rows[:], ""))
	return err
}

// play plays all draws of a workload and returns its selected rows.
func play(ctx context.Context, loader *policies.Loader, workload string, draws int, selected *regexp.Regexp) (string, error) {
	spec, err := generate.Open(workload)
	if err != nil {
		return "", err
	}
	var runs [len(comparisons)][]compare.Run
	for draw := 1; draw <= draws; draw++ {
		f, _, err := generate.Generate(spec)
		if err != nil {
			return "", err
		}
		moving := *f
		moving.Scheduler.Moves = &scenario.Moves{PerJob: 1, Window: scenario.Duration(time.Hour)}
		first := map[string]compare.Run{} // by policy
		for i, c := range comparisons {
			if !selected.MatchString(c.policy + " " + c.features) {
				continue
			}
			if _, played := first[c.before]; !played {
				if first[c.before], err = playOne(ctx, f, sim.Options{Policy: c.before, Resolve: loader.Resolve, NoDomainSearch: true}); err != nil {
					return "", fmt.Errorf("%s, draw %d: %w", workload, draw, err)
				}
			}
			second := f
			if c.moves {
				second = &moving
			}
			with, err := playOne(ctx, second, sim.Options{Policy: c.after, Resolve: loader.Resolve})
			if err != nil {
				return "", fmt.Errorf("%s, draw %d: %w", workload, draw, err)
			}
			without := first[c.before]
			without.Policy, with.Policy, without.Draw, with.Draw = before, after, draw, draw
			runs[i] = append(runs[i], without, with)
		}
		spec.Seed++
	}
	var rows strings.Builder
	for i, c := range comparisons {
		if len(runs[i]) > 0 {
			fmt.Fprintf(&rows, "| `%s` | %s | %s |%s\n", workload, c.policy, c.features, row(compare.New(runs[i])))
		}
	}
	return rows.String(), nil
}

// playOne plays a scenario and bounds its decisions.
func playOne(ctx context.Context, f *scenario.File, o sim.Options) (compare.Run, error) {
	recorder := bound.NewRecorder(bound.DefaultLimit)
	o.Evaluated = recorder.Evaluated
	run, err := sim.Play(ctx, f, o)
	if err != nil {
		return compare.Run{}, err
	}
	if len(run.Faults) > 0 {
		return compare.Run{}, run.Faults[0]
	}
	report, err := recorder.Finish(f, run)
	return compare.Run{Scenario: f.Name, Seed: f.Seed, Metrics: run.Metrics, Bound: report}, err
}

// row returns the cells of a comparison: the median before, and the paired difference, which
// is bold if its interval excludes 0.
func row(d *compare.Document) string {
	var b strings.Builder
	for _, c := range columns {
		cell := "–"
		for i := range d.Summary {
			r := &d.Summary[i]
			difference, ok := r.Against[after]
			if r.Metric != c.metric || !ok {
				continue
			}
			cell = fmt.Sprintf("%s: %s", compare.Number(r.Policies[before].Median), signed(difference))
		}
		fmt.Fprintf(&b, " %s |", cell)
	}
	return b.String()
}

func signed(d statistics.Difference) string {
	text := strings.ReplaceAll(compare.Signed(d.Interval), "-", "−")
	if d.None() {
		return text
	}
	return "**" + text + "**"
}
