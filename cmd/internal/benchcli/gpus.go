package benchcli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/bench/gpushare"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

// gpusBench is one `cede-bench gpus`.
type gpusBench struct {
	env        *cmdutil.Env
	out        *cmdutil.Output
	list       string
	schedulers []string
	seeds      int
	until      float64
	to         string
}

func newGPUsCmd(env *cmdutil.Env) *cobra.Command {
	b := &gpusBench{env: env}
	cmd := &cobra.Command{
		Use:   "gpus TRACE",
		Short: "Measure how much of shared GPUs schedulers allocate",
		Long: `Measure which share of the GPUs of a cluster schedulers allocate before only fragments are
left, as in the evaluation of fragmentation gradient descent (USENIX ATC 2023). TRACE is
the folder of the openb trace. Its tasks arrive in random order, some of them repeatedly,
and never end; nothing is evicted. No server is started, and the result does not depend on
this machine.

A GPU is a device group of 1,000 units: a task requests units of one GPU, or several whole
GPUs. --schedulers are

  best-fit   the node with the fewest processors and GPU units left
  fgd        the node and GPU whose fragments increase least, rounded as in the
             published experiment
  fgd-exact  the same without rounding
  cede       the scheduler and the applier of a server, with the algorithm binpack

A row of the table is a share of the GPUs that tasks have requested so far, a cell the
share that is allocated: the mean of the seeds, and their range. With -w the whole
curves are written, one row for each scheduler, seed and percent.`,
		Example: "  cede-bench gpus traces/openb-2023\n  cede-bench gpus traces/openb-2023 --schedulers fgd,cede --seeds 3\n  cede-bench gpus traces/openb-2023 -w curve.csv -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "the folder of the openb trace"),
	}
	b.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&b.list, "list", "", "use pod list `NAME` of the folder, such as gpuspec33")
	f.StringSliceVar(&b.schedulers, "schedulers", []string{"best-fit", "fgd"}, "measure `NAME,NAME`: "+strings.Join(gpushare.Schedulers(), ", "))
	f.IntVar(&b.seeds, "seeds", 10, "measure `N` orders of arrival")
	f.Float64Var(&b.until, "until", 1.3, "end when tasks have requested `N` times the GPUs of the cluster")
	f.StringVarP(&b.to, "write", "w", "", "write the curves to `FILE` as CSV; - is standard output")
	cmdutil.CompleteFlag(cmd, "schedulers", gpushare.Schedulers())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := b.check(); err != nil {
			return err
		}
		curves, err := b.measure(cmd.Context(), args[0])
		if err != nil {
			return cmdutil.InterruptError(cmd.Context(), err)
		}
		if b.to != "" {
			if err := b.env.Write(b.to, func(w io.Writer) error { return writeCurves(w, curves) }); err != nil || b.to == cmdutil.Stdin {
				return err
			}
		}
		return b.out.Show(cmdutil.Document{Data: curves, Names: []string{"gpus"}, Page: func(p cmdutil.Page) { gpusPage(p, b.schedulers, curves) }})
	}
	return cmd
}

// mostUntil limits the arrivals, which grow with --until.
const mostUntil = 100

func (b *gpusBench) check() error {
	if err := b.out.Resolve(); err != nil {
		return err
	}
	if b.seeds < 1 || b.seeds > 1000 {
		return cmdutil.Usagef("use a number such as 10", "--seeds must be between 1 and 1000, not %d", b.seeds)
	}
	if math.IsNaN(b.until) || b.until <= 0 || b.until > mostUntil {
		return cmdutil.Usagef("use a number such as 1.3", "--until must be greater than 0 and at most %d, not %v", mostUntil, b.until)
	}
	for i, name := range b.schedulers {
		if !slices.Contains(gpushare.Schedulers(), name) {
			return cmdutil.Usagef("use "+strings.Join(gpushare.Schedulers(), ", "), "unknown scheduler %q", name)
		}
		if slices.Contains(b.schedulers[:i], name) {
			return cmdutil.Usagef("remove one", "--schedulers lists %s twice", name)
		}
	}
	if len(b.schedulers) == 0 {
		return cmdutil.Usagef("use "+strings.Join(gpushare.Schedulers(), ", "), "--schedulers requires a value")
	}
	if b.to != "" {
		return b.env.CheckWritable(b.to)
	}
	return nil
}

// gpusCurve is the result of one order of arrival.
type gpusCurve struct {
	Scheduler string `json:"scheduler"`
	Seed      uint64 `json:"seed"`
	*gpushare.Result
}

func (b *gpusBench) measure(ctx context.Context, folder string) ([]gpusCurve, error) {
	trace, err := gpushare.Load(folder, b.list)
	if err != nil {
		return nil, cmdutil.Usagef("`cede sim import --help` describes the format openb", "%s: %v", folder, err)
	}
	b.env.HandlesInterrupt.Store(true)
	progress := b.env.Progress()
	defer progress.Done()
	show := showing(progress)
	var curves []gpusCurve
	for _, scheduler := range b.schedulers {
		for seed := range uint64(b.seeds) {
			show("orders of arrival are measured", len(curves), len(b.schedulers)*b.seeds)
			r, err := gpushare.Measure(ctx, trace, gpushare.Config{Scheduler: scheduler, Seed: seed + 1, Until: b.until})
			if err != nil {
				return nil, err
			}
			curves = append(curves, gpusCurve{Scheduler: scheduler, Seed: seed + 1, Result: r})
		}
	}
	return curves, nil
}

// writeCurves writes a row for each scheduler, seed and percent of the GPUs requested.
func writeCurves(w io.Writer, curves []gpusCurve) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"scheduler", "seed", "requested_percent", "allocated"}}
	for _, c := range curves {
		for percent, allocated := range c.Allocated {
			rows = append(rows, []string{c.Scheduler, strconv.FormatUint(c.Seed, 10), strconv.Itoa(percent), strconv.FormatFloat(allocated, 'f', 5, 64)})
		}
	}
	return out.WriteAll(rows)
}

// gpusPage prints the points at which the published curves bend, and each tenth.
func gpusPage(p cmdutil.Page, schedulers []string, curves []gpusCurve) {
	titles := []string{"REQUESTED>"}
	shortest := math.MaxInt
	for _, c := range curves {
		shortest = min(shortest, len(c.Allocated))
	}
	for _, s := range schedulers {
		titles = append(titles, strings.ToUpper(s)+">", "RANGE>")
	}
	t := cmdutil.NewTable(titles...)
	for percent := range shortest {
		bend := percent > 90 && percent < 100 && percent%2 == 0
		if percent%10 != 0 && !bend && percent != shortest-1 || percent == 0 {
			continue
		}
		row := []string{fmt.Sprintf("%d %%", percent)}
		for _, s := range schedulers {
			var values []float64
			sum := 0.0
			for _, c := range curves {
				if c.Scheduler == s {
					values = append(values, c.Allocated[percent])
					sum += c.Allocated[percent]
				}
			}
			row = append(row, fmt.Sprintf("%.2f %%", 100*sum/float64(len(values))), fmt.Sprintf("%.2f–%.2f", 100*slices.Min(values), 100*slices.Max(values)))
		}
		t.Row(row...)
	}
	p.Table(t)
}
