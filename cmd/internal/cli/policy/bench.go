package policy

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// Formats of --format.
const (
	benchTable = "table"
	benchGo    = "gobench"
)

// policyBench holds the flags of `cede policy bench`.
type policyBench struct {
	env     *cmdutil.Env
	options *policyflags.Flags
	out     *cmdutil.Output
	format  string
	each    time.Duration
	count   int
}

func newPolicyBenchCmd(env *cmdutil.Env) *cobra.Command {
	b := &policyBench{env: env}
	cmd := &cobra.Command{
		Use:   "bench [P...]",
		Short: "Measure the cost of policy calls",
		Long: `Measure the cost of each hook of policies P (default: the policy in the working folder),
for a full node with 10, 50 and 200 candidates, and for full clusters of 100 and 400
nodes with ten candidates each. Encoding the request and checking the result are
included. Bytes are those that the host allocates, not those of the guest.

--format gobench prints the input format of benchstat:

  cede policy bench thrifty default --count 6 --format gobench > new.txt
  benchstat -col /policy new.txt`,
		Example: `  cede policy bench thrifty default
  cede policy bench thrifty --count 6 --format gobench | benchstat -`,
	}
	b.out = cmdutil.OutputFlags(cmd, env)
	b.options = policyflags.AddFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&b.format, "format", benchTable, "output `FORMAT`: table, or gobench for benchstat")
	f.DurationVar(&b.each, "time", 200*time.Millisecond, "measure each call for about `DURATION`")
	f.IntVar(&b.count, "count", 1, "repeat all measurements `N` times")
	cmdutil.CompleteFlag(cmd, "format", []string{benchTable, benchGo})
	cmd.ValidArgsFunction = policyflags.CompleteNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := b.resolve(); err != nil {
			return err
		}
		if len(args) == 0 {
			args = []string{"."}
		}
		return b.run(cmd.Context(), args)
	}
	return cmd
}

func (b *policyBench) resolve() error {
	if err := b.out.Resolve(); err != nil {
		return err
	}
	switch {
	case b.format != benchTable && b.format != benchGo:
		return cmdutil.Usagef("use table or gobench", "invalid --format %q", b.format)
	case b.count < 1:
		return cmdutil.Usagef("use 1 or more", "--count must be at least 1, not %d", b.count)
	case b.each <= 0 || b.each > time.Hour:
		return cmdutil.Usagef("use a duration such as 1s", "--time must be positive, not %v", b.each)
	}
	return nil
}

// benchLine is a measurement.
type benchLine struct {
	Policy               string  `json:"policy"`
	Version              string  `json:"version"`
	Hook                 string  `json:"hook"`
	Construction         string  `json:"construction"`
	Options              int     `json:"options"`
	Candidates           int     `json:"candidates"`
	Calls                int     `json:"calls"`
	Nanoseconds          int64   `json:"nanoseconds"` // per call
	NanosecondsCandidate float64 `json:"nanosecondsPerCandidate"`
	Fuel                 uint64  `json:"fuel,omitempty"`
	Bytes                uint64  `json:"bytes"`
	Allocs               uint64  `json:"allocs"`
}

func (b *policyBench) run(ctx context.Context, names []string) error {
	opened, err := b.options.Open(ctx, names)
	if err != nil {
		return err
	}
	lines, shown := []benchLine{}, policyflags.DisplayNames(names)
	if b.format == benchGo {
		_, _ = fmt.Fprintf(b.env.Stdout, "goos: %s\ngoarch: %s\n", runtime.GOOS, runtime.GOARCH)
	}
	progress := b.env.Progress()
	defer progress.Done()
	for i, p := range opened {
		measured := func(m policies.Measurement) {
			l := benchLine{
				Policy: shown[names[i]], Version: p.ID, Hook: m.Hook, Construction: m.Construction, Options: m.Options, Candidates: m.Candidates,
				Calls: m.Calls, Nanoseconds: m.PerCall.Nanoseconds(), NanosecondsCandidate: m.PerCandidate(), Fuel: m.Fuel, Bytes: m.Bytes, Allocs: m.Allocs,
			}
			if b.format == benchGo {
				progress.Clear()
				_, _ = fmt.Fprintln(b.env.Stdout, l.gobench(b.env.Cores))
			}
			lines = append(lines, l)
		}
		err := policies.Bench(p, b.env.Clock, b.each, b.count, policies.BenchCallbacks{Measured: measured, Progress: func(share float64) {
			progress.Show(func(elapsed time.Duration) string {
				return progressOf(shown[names[i]], (float64(i)+share)/float64(len(opened)), len(lines), elapsed)
			})
		}})
		if err != nil {
			return policyflags.WrapError(names[i], err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	progress.Done()
	if b.format == benchGo {
		return nil
	}
	return b.out.Show(cmdutil.Document{Data: lines, Names: names, Page: func(p cmdutil.Page) { p.Table(benchTableOf(lines)) }})
}

// progressOf returns the progress of measurements as one line.
func progressOf(name string, share float64, measured int, elapsed time.Duration) string {
	return term.ProgressLine(share, elapsed, name, cmdutil.Count(measured, "measurement", "measurements"), elapsed.Round(time.Second).String())
}

// notInBenchmark replaces the separators in the name of a benchmark.
var notInBenchmark = strings.NewReplacer("/", "-", `\`, "-", " ", "-")

// gobench formats a measurement as go test -bench does.
func (l *benchLine) gobench(cores int) string {
	fields := []string{
		fmt.Sprintf("Benchmark%s/%s/policy=%s-%d", l.Hook, l.Construction, notInBenchmark.Replace(l.Policy), cores),
		strconv.Itoa(l.Calls), fmt.Sprintf("%d ns/op", l.Nanoseconds), fmt.Sprintf("%.2f ns/candidate", l.NanosecondsCandidate),
	}
	if l.Fuel > 0 {
		fields = append(fields, fmt.Sprintf("%d fuel/op", l.Fuel))
	}
	fields = append(fields, fmt.Sprintf("%d B/op", l.Bytes), fmt.Sprintf("%d allocs/op", l.Allocs))
	return strings.Join(fields, "\t")
}

// benchTableOf compares policies by call.
func benchTableOf(lines []benchLine) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Title: "HOOK"},
		{Title: "ABOUT"},
		{Title: "POLICY"},
		{Title: "CALL", Right: true},
		{Title: "CANDIDATE", Right: true},
		{Title: "FUEL", Right: true},
		{Title: "BYTES", Right: true},
	}}
	sorted := slices.Clone(lines)
	order := map[string]int{}
	for _, l := range lines {
		if _, known := order[l.Hook+l.Construction]; !known {
			order[l.Hook+l.Construction] = len(order)
		}
	}
	slices.SortStableFunc(sorted, func(a, b benchLine) int { return order[a.Hook+a.Construction] - order[b.Hook+b.Construction] })
	for _, l := range sorted {
		fuel := ""
		if l.Fuel > 0 {
			fuel = cmdutil.Thousands(int(l.Fuel))
		}
		t.Row(l.Hook, l.Construction, l.Policy, took(l.Nanoseconds), fmt.Sprintf("%.1f ns", l.NanosecondsCandidate), fuel, cmdutil.Thousands(int(l.Bytes)))
	}
	return t
}

// took formats a duration with three digits.
func took(nanoseconds int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if nanoseconds >= unit.size {
			return fmt.Sprintf("%.3g %s", float64(nanoseconds)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d ns", nanoseconds)
}
