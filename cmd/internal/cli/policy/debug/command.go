package debug

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
)

// command holds the flags of cede policy debug.
type command struct {
	env *cmdutil.Env
	out *cmdutil.Output

	policy    string
	grants    *[]string
	number    int
	alloc     string
	list      bool
	all       bool
	node      string
	candidate string
	step      bool

	loader *policies.Loader
	output guestOutput
}

// NewCommand returns cede policy debug.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	c := &command{env: env}
	cmd := &cobra.Command{
		Use:         "debug FILE",
		Short:       "Show one decision of a policy, call by call",
		Annotations: cmdutil.ExitCodes("7 the policy failed"),
		Long: `Show one decision of a policy: the input of each hook as tables with the answers beside
it, the nodes in the order of the policy with the runner-up, and the output of the policy.
If the policy traps, the function, file and line are shown.

FILE is a golden case of a policy folder, cases/*.txt, or the folder if it has one case; a
recording of cede sim record or another scenario; or a certificate of cede decision
export. A golden case is decided by the policy of its folder, a recording by that of the
file, both unless --policy names another. The calls of a certificate are made again.

In a recording, --list lists the evaluations that evict, --decision selects one by its
number, and --alloc the one that placed or evicted an allocation. With --all these are all
evaluations that call the policy, also those that evict nothing. --node and --candidate
restrict the tables. --step shows one candidate after the other and reads a key from each
line of the standard input: Enter next, p previous, n next node, c next call, q end.

No server is contacted.`,
		Example: `  cede policy debug thrifty/cases/least-work.txt
  cede policy debug monday.yaml --list
  cede policy debug monday.yaml --decision 3 --policy least-waste
  cede policy debug monday.yaml --all --alloc web.app[0]
  cede policy debug r1.cert --node n1
  cede policy debug thrifty/cases/least-work.txt --step`,
		Args: cmdutil.PositionalArgs(1, 1, "one golden case, recording or certificate"),
	}
	c.out = cmdutil.OutputFlags(cmd, env)
	f := cmd.Flags()
	f.StringVarP(&c.policy, "policy", "p", "", "decide by policy `P` or P?key=value&key=value")
	c.grants = policyflags.GrantFlag(cmd)
	f.IntVar(&c.number, "decision", 0, "show evaluation `N` of those that evict (default: the first)")
	f.StringVar(&c.alloc, "alloc", "", "show the evaluation that placed or evicted allocation `ID`")
	f.BoolVar(&c.list, "list", false, "list the evaluations that evict")
	f.BoolVar(&c.all, "all", false, "also number and list evaluations that call the policy and evict nothing")
	f.StringVar(&c.node, "node", "", "show only node `N`")
	f.StringVar(&c.candidate, "candidate", "", "show only candidate `NAME`")
	f.BoolVar(&c.step, "step", false, "show one candidate after the other")
	policyflags.CompletePolicyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := c.resolve(cmd); err != nil {
			return err
		}
		c.loader = env.Policies.WithLog(slog.New(&c.output))
		defer func() { err = errors.Join(err, c.loader.Close()) }()
		return c.run(cmd.Context(), args[0])
	}
	return cmd
}

func (c *command) resolve(cmd *cobra.Command) error {
	if err := c.out.Resolve(); err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("decision") && c.number < 1:
		return cmdutil.Usagef("use 1 or more", "--decision must be at least 1, not %d", c.number)
	case c.number > 0 && c.alloc != "":
		return cmdutil.Usagef("remove one", "--decision and --alloc exclude each other")
	case c.list && (c.number > 0 || c.alloc != "" || c.step):
		return cmdutil.Usagef("remove the others", "--list cannot be combined with --decision, --alloc or --step")
	case cmd.Flags().Changed("policy") && c.policy == "":
		return cmdutil.Usagef("use a policy such as -p default, or remove -p", "-p must not be empty")
	}
	return nil
}

// run shows the decision of a file.
func (c *command) run(ctx context.Context, name string) error {
	d, err := c.read(ctx, name)
	if err != nil {
		return err
	}
	if d == nil { // a list was shown
		return nil
	}
	d.Output = c.output.lines()
	if err := d.restrict(c.node, c.candidate); err != nil {
		return err
	}
	if c.step {
		return d.walk(c.env)
	}
	if err := c.out.Show(cmdutil.Document{Data: d, Names: []string{d.Source}, Page: d.page}); err != nil {
		return err
	}
	if d.fault != nil {
		return policyFault(d.fault)
	}
	return nil
}

// policyFault returns the error of a policy that failed.
func policyFault(err error) error {
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		return policyflags.FaultError(err, fault)
	}
	return &cmdutil.Error{Exit: cmdutil.ExitPolicy, Code: cmdutil.CodePolicy, Message: err.Error(), Hint: "hosts reject such results and evict nothing", Err: err}
}

// guestOutput collects the lines that policies write.
type guestOutput struct {
	mu   sync.Mutex
	text []string
}

var _ slog.Handler = (*guestOutput)(nil)

// Enabled implements slog.Handler.
func (*guestOutput) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (o *guestOutput) Handle(_ context.Context, r slog.Record) error {
	var words []string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "text" {
			words = append(words, a.Value.String())
		} else {
			words = append(words, a.String())
		}
		return true
	})
	if r.Message != "policy output" {
		words = append([]string{r.Message}, words...)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, fmt.Sprintf("%s: %s", strings.ToLower(r.Level.String()), strings.Join(words, " ")))
	return nil
}

// WithAttrs implements slog.Handler. Attributes of the logger name the policy, of which there
// is one.
func (o *guestOutput) WithAttrs([]slog.Attr) slog.Handler { return o }

// WithGroup implements slog.Handler.
func (o *guestOutput) WithGroup(string) slog.Handler { return o }

func (o *guestOutput) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}
