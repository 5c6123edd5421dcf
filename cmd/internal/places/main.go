// Command places plays workloads with racks, gangs and node-bound work without and with the
// features that concern places: the search for the cheapest domain, relocation as a tie-break,
// moves, and look-ahead. It prints a table in Markdown, each row as soon as its draws are played:
// the median without the features, and the paired difference that they make, with its 95 %
// interval. A difference whose interval excludes 0 is bold. Fewer than five draws have ranges in
// place of intervals, and nothing is bold. Regret is the lost work of decisions above that of the
// cheapest evictions, in each state that the run reached.
//
//	go run ./cmd/internal/places -draws 30
//	go run ./cmd/internal/places -spec examples/moderate-load/racks-spec.yaml -seed 1001
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
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
	specs := flag.String("spec", "racks,gangs,pinned", "workloads: presets of cede sim generate, or files of specs, separated by commas")
	seed := flag.Uint64("seed", 0, "seed of the first draw; 0: that of the workload")
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
	debug.SetGCPercent(400) // plays allocate much and retain little
	if err := run(context.Background(), os.Stdout, strings.Split(*specs, ","), *seed, *draws, selected); err != nil {
		fmt.Fprintln(os.Stderr, "places:", err)
		os.Exit(1)
	}
}

// Rules without and with look-ahead.
const (
	withoutLookAhead = "rules: option: [option.highestPriority, option.lostWork]"
	withLookAhead    = "rules: option: [option.highestPriority, option.expectedLostWork, option.lostWork]"
)

// A comparison is a row of the table for each workload. Before, domains are not searched and
// nothing is moved.
type comparison struct {
	policy, features string
	before, after    string // policies
	moves            bool
}

var comparisons = [...]comparison{
	{"`default`", "domains, relocation", "default@1", "default", false},
	{"`default`", "domains, relocation, moves", "default@1", "default", true},
	{"`least-waste`", "domains, relocation", "least-waste@1", "least-waste", false},
	{"`least-waste`", "domains, relocation, moves", "least-waste@1", "least-waste", true},
	{"`least-waste?bands=0`", "domains, relocation", "least-waste@1?bands=0", "least-waste?bands=0", false},
	{"rules", "domains, look-ahead", withoutLookAhead, withLookAhead, false},
}

// columns are the metrics of the table.
var columns = []struct{ title, metric string }{
	{"lost work, core-hours", "wastedHours.cpu"},
	{"deepest cascade", "cascadeDepth.max"},
	{cascades, ""},
	{"ping-pong", "pingPong"},
	{"placed", "placed"},
	{"unplaced", "unplaced"},
	{"goodput", "goodput"},
	{"regret, cluster-hours", "decisionRegret"},
}

// cascades is the title of the column after the deepest cascade. Its values are not a metric.
const cascades = "cascades"

// The names of the two runs of a pair.
const before, after = "before", "after"

func run(ctx context.Context, out io.Writer, workloads []string, seed uint64, draws int, selected *regexp.Regexp) (err error) {
	loader := policies.New(policies.Options{})
	defer func() { err = errors.Join(err, loader.Close()) }()
	header, rule := "| workload | policy | features |", "|--|--|--|"
	for _, c := range columns {
		header, rule = header+" "+c.title+" |", rule+"--|"
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", header, rule); err != nil {
		return err
	}
	for _, workload := range workloads {
		p := &player{loader: loader, played: map[string][]play{}}
		var name string
		if name, p.files, err = draw(workload, seed, draws); err != nil {
			return err
		}
		for _, c := range comparisons {
			if !selected.MatchString(c.policy + " " + c.features) {
				continue
			}
			runs, err := p.compare(ctx, &c)
			if err != nil {
				return fmt.Errorf("%s: %w", workload, err)
			}
			if _, err := fmt.Fprintf(out, "| `%s` | %s | %s |%s\n", name, c.policy, c.features, row(runs)); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw returns the name and the draws of a workload: a seed and those that follow it. 0 is the
// seed of the workload.
func draw(workload string, seed uint64, draws int) (name string, files []*scenario.File, err error) {
	spec, err := generate.Open(workload)
	if err != nil {
		return "", nil, err
	}
	if seed > 0 {
		spec.Seed = seed
	}
	for range draws {
		f, _, err := generate.Generate(spec)
		if err != nil {
			return "", nil, err
		}
		files = append(files, f)
		spec.Seed++
	}
	return spec.Name, files, nil
}

// A play is a run with the number of its cascades.
type play struct {
	compare.Run
	cascades int
}

// A player plays the draws of one workload.
type player struct {
	loader *policies.Loader
	files  []*scenario.File
	played map[string][]play // without the features, by policy: rows share them
}

// compare returns the runs of a row, in pairs.
func (p *player) compare(ctx context.Context, c *comparison) (runs []play, err error) {
	without, ok := p.played[c.before]
	if !ok {
		if without, err = p.playAll(ctx, before, false, sim.Options{Policy: c.before, NoDomainSearch: true}); err != nil {
			return nil, err
		}
		p.played[c.before] = without
	}
	with, err := p.playAll(ctx, after, c.moves, sim.Options{Policy: c.after})
	if err != nil {
		return nil, err
	}
	for i := range without {
		runs = append(runs, without[i], with[i])
	}
	return runs, nil
}

// playAll plays every draw, several at a time. name is that of the policy in the runs.
func (p *player) playAll(ctx context.Context, name string, moves bool, o sim.Options) ([]play, error) {
	runs, failed := make([]play, len(p.files)), make([]error, len(p.files))
	o.Resolve = p.loader.Resolve
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(p.files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(p.files); i = int(next.Add(1)) - 1 {
				f := *p.files[i]
				if moves {
					f.Scheduler.Moves = &scenario.Moves{PerJob: 1, Window: scenario.Duration(time.Hour)}
				}
				if runs[i], failed[i] = playOne(ctx, &f, o); failed[i] != nil {
					failed[i] = fmt.Errorf("draw %d: %w", i+1, failed[i])
				}
				runs[i].Policy, runs[i].Draw = name, i+1
			}
		})
	}
	wg.Wait()
	return runs, errors.Join(failed...)
}

// playOne plays a scenario and compares its decisions with the cheapest evictions.
func playOne(ctx context.Context, f *scenario.File, o sim.Options) (play, error) {
	recorder := bound.NewRecorder(bound.DefaultLimit)
	recorder.EvictionsOnly = true
	o.Evaluated = recorder.Evaluated
	run, err := sim.Play(ctx, f, o)
	if err != nil {
		return play{}, err
	}
	if len(run.Faults) > 0 {
		return play{}, run.Faults[0]
	}
	report, err := recorder.Finish(f, run)
	return play{
		Run:      compare.Run{Scenario: f.Name, Seed: f.Seed, Metrics: run.Metrics, Bound: report},
		cascades: countCascades(run.Result.Evicted),
	}, err
}

// countCascades returns the number of instances that were evicted and then evicted others when
// they were placed again.
func countCascades(evicted []sim.Evicted) (n int) {
	instance := func(alloc string) string { name, _, _ := strings.Cut(alloc, "#"); return name }
	wait := map[string]bool{} // by instance: it was evicted, and has evicted nothing since
	for i := range evicted {
		by := instance(evicted[i].By)
		if wait[by] {
			n++
			delete(wait, by)
		}
		wait[instance(evicted[i].Alloc)] = true
	}
	return n
}

// row returns the cells of a comparison of runs in pairs: the median before, and the paired
// difference, which is bold if its interval excludes 0 and the pairs suffice for an interval.
func row(runs []play) string {
	var b strings.Builder
	list, chained := make([]compare.Run, len(runs)), [2][]float64{} // before, after
	for i := range runs {
		list[i] = runs[i].Run
		chained[i%2] = append(chained[i%2], float64(runs[i].cascades))
	}
	d := compare.New(list)
	for _, c := range columns {
		if c.title == cascades {
			// As in compare: each draw is a group with one value.
			groups := [2]statistics.Groups{}
			for k := range groups {
				for _, n := range chained[k] {
					groups[k] = append(groups[k], []float64{n})
				}
			}
			fmt.Fprintf(&b, " %s: %s |", compare.Number(statistics.Median(chained[0])), signed(statistics.Paired(groups[1], groups[0], 1)))
			continue
		}
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
	if d.Pairs < statistics.FewSamples || d.None() {
		return text
	}
	return "**" + text + "**"
}
