package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newOperatorSchedulerCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "scheduler",
		Short:   "Show and change scheduler settings",
		Long:    `Show and change the settings of the scheduler, which apply to the whole cluster.`,
		Example: "  cede operator scheduler get\n  cede operator scheduler set --preempt-service=true --policy least-waste",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newSchedulerGetCmd(env), newSchedulerSetCmd(env))
	return cmd
}

func newSchedulerGetCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show scheduler settings", Args: cmdutil.PositionalArgs(0, 0, "no arguments"), Example: "  cede operator scheduler get -o yaml"}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		s, _, err := c.Client.Scheduler().Get(ctx, c.QueryOptions())
		if err != nil {
			return cmdutil.Document{}, err
		}
		return shownScheduler(s), nil
	})
}

func shownScheduler(s *client.SchedulerConfiguration) cmdutil.Document {
	return cmdutil.Document{Data: s, Names: []string{"scheduler"}, Page: func(p cmdutil.Page) {
		delta := "the policy's own"
		if s.PriorityDelta != nil {
			delta = strconv.Itoa(*s.PriorityDelta)
		}
		policy, fault := s.Policy, s.OnFault
		policy = cmp.Or(policy, "default")
		fault = cmp.Or(fault, "deny")
		c := s.PreemptionConfig
		facts := []string{
			"algorithm", s.SchedulerAlgorithm, "policy", policy, "priority delta", delta, "on fault", fault,
			"preempts for service", preemptionText(&c, "service"), "preempts for batch", preemptionText(&c, "batch"),
			"preempts for system", preemptionText(&c, "system"), "preempts for sysbatch", preemptionText(&c, "sysbatch"),
			"preempts for bindings", cmdutil.YesNo(c.BindingSchedulerEnabled),
			"broker paused", cmdutil.YesNo(s.PauseEvalBroker), "coalescing", cmdutil.YesNo(s.Coalescing == nil || *s.Coalescing), "shedding", cmdutil.YesNo(s.Shedding == nil || *s.Shedding),
		}
		moves := "off"
		if s.Moves != nil {
			moves = fmt.Sprintf("at most %d of a job in %s", s.Moves.PerJob, s.Moves.Window)
		}
		facts = append(facts, "moves", moves)
		for _, gate := range s.FeatureGates.All() {
			facts = append(facts, gate.Name, gateState(gate))
		}
		p.Properties(append(facts, "index", fmt.Sprint(s.ModifyIndex))...)
	}}
}

// enabledFor returns the setting of preemption for a type of jobs.
func enabledFor(c *client.PreemptionConfig, jobType string) *bool {
	return map[string]*bool{
		"service": &c.ServiceSchedulerEnabled, "batch": &c.BatchSchedulerEnabled, "system": &c.SystemSchedulerEnabled, "sysbatch": &c.SysBatchSchedulerEnabled,
	}[jobType]
}

// observe is the value of flags for preemption that is only observed.
const observe = "observe"

// preemptionText returns yes, no or observed.
func preemptionText(c *client.PreemptionConfig, jobType string) string {
	if slices.Contains(c.Observe, jobType) {
		return "only observed"
	}
	return cmdutil.YesNo(*enabledFor(c, jobType))
}

// setPreemption sets preemption for a type of jobs to true, false or observe.
func setPreemption(c *client.PreemptionConfig, jobType, value string) error {
	on, err := strconv.ParseBool(value)
	if err != nil && value != observe {
		return cmdutil.Usagef("use true, false or observe", "invalid --preempt-%s %q", jobType, value)
	}
	c.Observe = slices.DeleteFunc(c.Observe, func(t string) bool { return t == jobType })
	if value == observe {
		c.Observe = append(c.Observe, jobType)
	}
	*enabledFor(c, jobType) = on
	return nil
}

// schedulerSet holds the flags of `cede operator scheduler set`.
type schedulerSet struct {
	algorithm, policy, delta, onFault string
	moves                             string
	preemption                        map[string]*string // by type of job: true, false or observe
	binding                           bool
	coalescing, shedding              bool
	gates                             []string
	check                             uint64
}

func newSchedulerSetCmd(env *cmdutil.Env) *cobra.Command {
	s := &schedulerSet{preemption: map[string]*string{}}
	cmd := &cobra.Command{
		Use:         "set",
		Short:       "Change scheduler settings",
		Annotations: cmdutil.ExitCodes("5 another client has changed the settings in the meantime"),
		Long: `Change scheduler settings. Settings without a flag are not changed.

With --preempt-TYPE=observe, decisions to evict for jobs of the type are made and recorded
with their reasons (cede eval explain, events), and nothing is evicted: the jobs wait.

Feature gates control how the priorities of bindings are used:

` + gatesDescribed(),
		Example: "  cede operator scheduler set --preempt-service --preempt-batch\n  cede operator scheduler set --preempt-batch=observe\n  cede operator scheduler set --policy least-waste --priority-delta 20\n" +
			"  cede operator scheduler set --moves 1/1h\n" +
			"  cede operator scheduler set --feature-gate PriorityBasedPreemptiveScheduling=false",
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	f := cmd.Flags()
	f.StringVar(&s.algorithm, "algorithm", "", "`binpack or spread`: prefer full or empty nodes")
	f.StringVar(&s.policy, "policy", "", "`NAME` of the default policy")
	f.StringVar(&s.delta, "priority-delta", "", "priority `GAP` that preemption requires, 0 or more, or policy: that of the policy")
	f.StringVar(&s.onFault, "on-fault", "", "if a policy fails, `deny or default`: deny preemption, or use the policy default")
	for _, t := range []string{"service", "batch", "system", "sysbatch"} {
		name := "preempt-" + t
		s.preemption[t] = f.String(name, "", "preemption for "+t+" jobs: `true, false or observe`")
		f.Lookup(name).NoOptDefVal = "true"
		cmdutil.CompleteFlag(cmd, name, []string{"true", "false", observe})
	}
	f.BoolVar(&s.binding, "preempt-binding", false, "enable preemption for bindings")
	f.BoolVar(&s.coalescing, "coalescing", true, "create one evaluation per job and log entry")
	f.BoolVar(&s.shedding, "shedding", true, "cancel all but the newest pending evaluation of a job")
	f.StringVar(&s.moves, "moves", "", "`N/WINDOW or off`: move at most N instances of a job, up to 2147483647, in any window to make room")
	f.StringArrayVar(&s.gates, "feature-gate", nil, "set a feature gate by `NAME=true|false|default`; may be repeated")
	f.Uint64Var(&s.check, "check-index", 0, "fail if the index of the settings is not `N`")
	cmdutil.CompleteFlag(cmd, "algorithm", []string{"binpack", "spread"})
	cmdutil.CompleteFlag(cmd, "on-fault", []string{"deny", "default"})
	cmdutil.CompleteFlag(cmd, "feature-gate", gateSettings())
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, _ []string) (cmdutil.Document, error) {
		changed := s.named(cmd)
		if len(changed) == 0 {
			return cmdutil.Document{}, cmdutil.Usagef(cmdutil.HelpHint(cmd), "no settings to change")
		}
		conf, err := s.write(ctx, c, cmd)
		if err != nil {
			return cmdutil.Document{}, err
		}
		return shownScheduler(conf), nil
	})
}

// schedulerSettings are the flags that change a setting.
var schedulerSettings = []string{
	"algorithm", "policy", "priority-delta", "on-fault", "preempt-service", "preempt-batch", "preempt-system", "preempt-sysbatch", "preempt-binding", "coalescing", "shedding", "moves", "feature-gate",
}

func (s *schedulerSet) named(cmd *cobra.Command) []string {
	var list []string
	for _, name := range schedulerSettings {
		if cmd.Flags().Changed(name) {
			list = append(list, name)
		}
	}
	return list
}

// write reads the settings, changes them, and writes them with a check that they did
// not change meanwhile.
func (s *schedulerSet) write(ctx context.Context, conn *cmdutil.Connection, cmd *cobra.Command) (*client.SchedulerConfiguration, error) {
	api, err := conn.Dial()
	if err != nil {
		return nil, err
	}
	conf, _, err := api.Scheduler().Get(ctx, nil)
	if err != nil {
		return nil, cmdutil.InterruptError(ctx, err)
	}
	if err := s.apply(cmd, conf); err != nil {
		return nil, err
	}
	check := conf.ModifyIndex
	if cmd.Flags().Changed("check-index") {
		check = s.check
	}
	answer, err := api.Scheduler().Set(ctx, conf, &check)
	if err != nil {
		return nil, cmdutil.InterruptError(ctx, err)
	}
	if !answer.Updated {
		return nil, &cmdutil.Error{
			Exit: cmdutil.ExitConflict, Code: client.CodeConflict, Message: fmt.Sprintf("the scheduler settings have changed since index %d", check),
			Hint: "`cede operator scheduler get` shows the current settings",
		}
	}
	now, _, err := api.Scheduler().Get(ctx, nil)
	return now, cmdutil.InterruptError(ctx, err)
}

func (s *schedulerSet) apply(cmd *cobra.Command, conf *client.SchedulerConfiguration) error {
	for _, name := range s.named(cmd) {
		switch name {
		case "preempt-service", "preempt-batch", "preempt-system", "preempt-sysbatch":
			jobType := strings.TrimPrefix(name, "preempt-")
			if err := setPreemption(&conf.PreemptionConfig, jobType, *s.preemption[jobType]); err != nil {
				return err
			}
		case "preempt-binding":
			conf.PreemptionConfig.BindingSchedulerEnabled = s.binding
		case "algorithm":
			if s.algorithm != "binpack" && s.algorithm != "spread" {
				return cmdutil.Usagef("use binpack or spread", "invalid --algorithm %q", s.algorithm)
			}
			conf.SchedulerAlgorithm = s.algorithm
		case "on-fault":
			if s.onFault != "deny" && s.onFault != "default" {
				return cmdutil.Usagef("use deny or default", "invalid --on-fault %q", s.onFault)
			}
			conf.OnFault = s.onFault
		case "policy":
			if s.policy == "" { // the API treats an absent field as unchanged
				return cmdutil.Usagef("--policy default selects the built-in policy; `cede policy list` shows loaded policies", "--policy must not be empty")
			}
			conf.Policy = s.policy
		case "priority-delta":
			delta, err := parseDelta(s.delta)
			if err != nil {
				return err
			}
			conf.PriorityDelta = delta
		case "moves":
			if conf.Moves = nil; s.moves != "off" {
				moves, err := cmdutil.ParseMoves(s.moves, ", or off")
				if err != nil {
					return err
				}
				conf.Moves = moves
			}
		case "coalescing":
			conf.Coalescing = &s.coalescing
		case "shedding":
			conf.Shedding = &s.shedding
		case "feature-gate":
			if err := setGates(&conf.FeatureGates, s.gates); err != nil {
				return err
			}
		}
	}
	return nil
}

func parseDelta(text string) (*int, error) {
	if text == "policy" {
		return nil, nil //nolint:nilnil // nil is a value: the gap of the policy applies
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, cmdutil.Usagef("use an integer of 0 or more, or policy", "invalid --priority-delta %q", text)
	}
	delta := int(n)
	return &delta, nil
}
