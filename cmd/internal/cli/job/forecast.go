package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobForecastCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forecast ID",
		Short: "Predict when the waiting instances of a job start",
		Long: `Predict when the waiting instances of a job start, and show its position in the queue.

The server plays its current state forward, with the policies in force, nine times for
at most 24 h. The ends of running instances are drawn at random: from the runs of the
same group that have ended, if there are five or more, or else from the duration that
the job states, give or take 25 %. Instances without either never end in a play, and
nothing else arrives. In eight of ten plays the start is within the interval.

If the job does not start in any play, the reason is printed instead.`,
		Example: "  cede job forecast web\n  cede job forecast web -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one job"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		job, err := apiview.FindJob(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		f, _, err := c.Client.Jobs().Forecast(ctx, job.ID, &client.QueryOptions{Namespace: job.Namespace})
		if err != nil {
			return cmdutil.Document{}, cmdutil.InterruptError(ctx, err)
		}
		return cmdutil.Document{Data: f, Names: []string{f.JobID}, Page: func(p cmdutil.Page) { forecastPage(p, f) }}, nil
	})
}

func forecastPage(p cmdutil.Page, f *client.JobForecast) {
	facts := []string{"job", f.JobID, "namespace", f.Namespace}
	if f.Position > 0 {
		facts = append(facts, "position", fmt.Sprintf("%d of %s", f.Position, cmdutil.Count(f.QueueLength, "waiting job", "waiting jobs")), "waiting instances", fmt.Sprint(f.Waiting),
			"waits since", cmdutil.FormatTime(f.Since), "evaluation", p.ID(f.EvalID))
	}
	if f.Reason == "" {
		facts = append(facts, "first instance starts", formatStart(f, f.First))
		if f.Waiting > 1 {
			facts = append(facts, "last instance starts", formatStart(f, f.All))
		}
		facts = append(facts, "basis", fmt.Sprintf("%s; a predictable end of %d of %s", cmdutil.Count(f.Draws, "play", "plays"), f.Ending, cmdutil.Count(f.Running, "running instance", "running instances")))
	}
	p.Properties(facts...)
	if f.Reason != "" {
		p.Printf("\nNo forecast: %s\n", f.Reason)
	}
}

// formatStart returns the median and the interval of a start, as times from the forecast on.
func formatStart(f *client.JobForecast, s *client.StartTime) string {
	horizon := cmdutil.FormatAge(f.Horizon)
	if s == nil {
		return "not within " + horizon
	}
	in := func(at int64) string {
		if at == 0 {
			return "more than " + horizon
		}
		return cmdutil.FormatAge(time.Duration(at - f.Time))
	}
	text := "in " + in(s.Expected)
	if s.Expected != 0 {
		text += ", at " + cmdutil.FormatTime(s.Expected)
	}
	return fmt.Sprintf("%s (%s to %s)", text, in(s.Low), in(s.High))
}
