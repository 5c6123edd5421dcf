// Command places plays workloads with racks, gangs and node-bound work without and with the
// features that concern places: the search for the cheapest domain, relocation as a tie-break,
// moves, and look-ahead. It prints a table in Markdown, each row as soon as its draws are played:
// the median without the features, and the paired difference that they make, with its 95 %
// interval. A difference whose interval excludes 0 is bold. Regret is the lost work of decisions
// above that of the cheapest evictions, in each state that the run reached.
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
	header, rule := "| workload | policy | features |", "|--|--|--|"
	for _, c := range columns {
		header, rule = header+" "+c.title+" |", rule+"--|"
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", header, rule); err != nil {
		return err
	}
	for _, workload := range workloads {
		p := &player{loader: loader, played: map[string][]compare.Run{}}
		if p.files, err = draw(workload, draws); err != nil {
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
			if _, err := fmt.Fprintf(out, "| `%s` | %s | %s |%s\n", workload, c.policy, c.features, row(compare.New(runs))); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw returns the draws of a workload: its seed and those that follow it.
func draw(workload string, draws int) (files []*scenario.File, err error) {
	spec, err := generate.Open(workload)
	if err != nil {
		return nil, err
	}
	for range draws {
		f, _, err := generate.Generate(spec)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		spec.Seed++
	}
	return files, nil
}

// A player plays the draws of one workload.
type player struct {
	loader *policies.Loader
	files  []*scenario.File
	played map[string][]compare.Run // without the features, by policy: rows share them
}

// compare returns the runs of a row, in pairs.
func (p *player) compare(ctx context.Context, c *comparison) (runs []compare.Run, err error) {
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
func (p *player) playAll(ctx context.Context, name string, moves bool, o sim.Options) ([]compare.Run, error) {
	runs, failed := make([]compare.Run, len(p.files)), make([]error, len(p.files))
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
func playOne(ctx context.Context, f *scenario.File, o sim.Options) (compare.Run, error) {
	recorder := bound.NewRecorder(bound.DefaultLimit)
	recorder.EvictionsOnly = true
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
