package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// replayReport holds the differences between a recording and its replay.
type replayReport struct {
	Scenario   string              `json:"scenario"`
	Policy     string              `json:"policy"`
	Recorded   int                 `json:"recorded"` // placements
	Same       int                 `json:"same"`
	Otherwise  []differentDecision `json:"otherwise"`
	Victims    victimCounts        `json:"victims"`
	Additional int                 `json:"additional"` // placements that were not recorded
}

type victimCounts struct {
	Recorded int `json:"recorded"`
	Replayed int `json:"replayed"`
}

// differentDecision is a placement for which the policy decides differently.
type differentDecision struct {
	Alloc    string    `json:"alloc"`
	Recorded *decision `json:"recorded,omitempty"` // nil if nothing was placed
	Replayed *decision `json:"replayed,omitempty"` // nil if it is not placed
}

type decision struct {
	Node    string   `json:"node"`
	Victims []string `json:"victims"` // ascending
}

func (d *decision) String() string {
	switch {
	case d == nil:
		return "unplaced"
	case len(d.Victims) == 0:
		return d.Node + ", without evictions"
	}
	return d.Node + ", evicts " + strings.Join(d.Victims, ", ")
}

func newSimReplayCmd(env *cmdutil.Env) *cobra.Command {
	r := &simRun{env: env}
	cmd := &cobra.Command{
		Use:         "replay FILE",
		Short:       "Replay a recording under another policy",
		Annotations: cmdutil.ExitCodes("7 a policy failed"),
		Long: `Play a file of cede sim record, and report where a policy decides differently from the
server: on another node, or with other victims. Without --policy it is played under the
policy of the server, which shows how exact the recording is.

No server is contacted.`,
		Example: "  cede sim replay monday.yaml --policy least-waste\n  cede sim replay monday.yaml -p ./mine.wasm -o json",
		Args:    cmdutil.PositionalArgs(1, 1, "one recorded file"),
	}
	r.out = cmdutil.OutputFlags(cmd, env)
	cmd.Flags().StringVarP(&r.policy, "policy", "p", "", "play under policy `P` or P?key=value&key=value")
	r.players = simrun.AddPolicyFlags(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		problems := []error{r.resolve()}
		inputs := r.readAll(args)
		problems = append(problems, inputs[0].err, r.checkOutputs(inputs))
		f := inputs[0].file
		if f != nil && !isRecorded(f.File) {
			problems = append(problems, cmdutil.Usagef("`cede sim record` writes recordings; `cede compare` plays other files", "%s is not a recording: it expects no decisions", args[0]))
		}
		if err := r.players.JoinProblems(problems, scenarios(inputs), r.played()); err != nil {
			return err
		}
		return r.players.WithCallLog(func() error { return r.replay(cmd.Context(), f, args[0]) })
	}
	return cmd
}

func (r *simRun) replay(ctx context.Context, f *simrun.ScenarioFile, name string) error {
	run, err := r.play(ctx, 0, f)
	if err != nil {
		return r.unreplayable(f, err)
	}
	if r.policy != "" {
		run.Result.Policy = r.players.DisplayNames[r.policy]
	}
	v := replayDifferences(f.File, run.Result)
	if err := r.out.Show(cmdutil.Document{Data: v, Names: []string{v.Scenario}, Page: v.page}); err != nil {
		return err
	}
	return simrun.FaultsError(name, run.Faults, r.players.OnFault)
}

// unreplayable returns the error for a recording that cannot be played. If only the
// server has its policy, the user must provide it.
func (r *simRun) unreplayable(f *simrun.ScenarioFile, err error) error {
	bad := simrun.RunError(f, err, r.policy != "")
	if _, unknown := errors.AsType[*policies.UnknownError](err); !unknown || r.policy != "" {
		return bad
	}
	e := cmdutil.AsError(bad)
	e.Hint = "the server had this policy loaded; select its folder or module: cede sim replay " + f.Path + " --policy DIR"
	return e
}

// isRecorded reports whether a file states the node and victims of every placement.
func isRecorded(f *scenario.File) bool {
	return f.Expect != nil && f.Expect.Placements != nil && !slices.ContainsFunc(*f.Expect.Placements, func(p scenario.ExpectPlacement) bool {
		return p.Alloc == nil || p.Node == nil || p.Preempted == nil
	})
}

// replayDifferences compares the simulated decisions with the recorded ones.
func replayDifferences(f *scenario.File, result *sim.Result) *replayReport {
	v := &replayReport{Scenario: f.Name, Policy: result.Policy, Recorded: len(*f.Expect.Placements), Otherwise: []differentDecision{}}
	played := map[string]*decision{}
	var order []string
	for i := range result.Placements {
		p := &result.Placements[i]
		d := decisionOf(p.Node, p.Preempted, p.PreemptedElsewhere)
		v.Victims.Replayed += len(d.Victims)
		played[p.Alloc] = d
		order = append(order, p.Alloc)
	}
	for _, p := range *f.Expect.Placements {
		recorded := decisionOf(*p.Node, *p.Preempted, p.PreemptedElsewhere)
		v.Victims.Recorded += len(recorded.Victims)
		now := played[*p.Alloc]
		delete(played, *p.Alloc)
		if now != nil && now.Node == recorded.Node && slices.Equal(now.Victims, recorded.Victims) {
			v.Same++
			continue
		}
		v.Otherwise = append(v.Otherwise, differentDecision{*p.Alloc, recorded, now})
	}
	for _, alloc := range order {
		if d := played[alloc]; d != nil {
			v.Additional++
			v.Otherwise = append(v.Otherwise, differentDecision{alloc, nil, d})
		}
	}
	return v
}

func decisionOf(node string, here []string, remote map[string][]string) *decision {
	d := &decision{Node: node, Victims: append([]string{}, here...)}
	for _, ids := range remote {
		d.Victims = append(d.Victims, ids...)
	}
	slices.Sort(d.Victims)
	return d
}

// mostOtherwise limits the printed differences, because later ones follow from
// earlier ones.
const mostOtherwise = 20

func (v *replayReport) page(p cmdutil.Page) {
	p.Properties("scenario", v.Scenario, "policy", v.Policy, "recorded", cmdutil.Count(v.Recorded, "placement", "placements"),
		"the same", cmdutil.Thousands(v.Same), "otherwise", cmdutil.Thousands(len(v.Otherwise)),
		"victims", fmt.Sprintf("%d recorded, %d now", v.Victims.Recorded, v.Victims.Replayed))
	list := v.Otherwise
	if !p.Wide && len(list) > mostOtherwise {
		list = list[:mostOtherwise]
	}
	if len(list) == 0 {
		return
	}
	p.Title("Differences")
	t := cmdutil.NewTable("INSTANCE", "RECORDED", "NOW")
	for _, o := range list {
		t.Row(o.Alloc, o.Recorded.String(), o.Replayed.String())
	}
	p.Table(t)
	if more := len(v.Otherwise) - len(list); more > 0 {
		p.Printf("and %s more; -o wide shows all\n", cmdutil.Thousands(more))
	}
}
