package node

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newNodeTaintCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "taint ID TAINT...",
		Short: "Keep work off a node that does not tolerate it, or end that",
		Long: `Keep work off a node that does not tolerate it, or end that.

TAINT is KEY=VALUE:EFFECT or KEY:EFFECT. With effect NoSchedule nothing new is
placed there that does not tolerate the taint, with PreferNoSchedule it is placed
elsewhere where there is room. With NoExecute what runs there and does not tolerate
the taint leaves as well, or leaves later where its toleration says for how long it
stays. KEY:EFFECT- takes the taint away, KEY- those of every effect. What a node
declares itself, client.taints of its configuration, stays. Groups of jobs tolerate taints: cede help jobs.`,
		Example: "  cede node taint n1 gpu=true:NoSchedule\n  cede node taint n1 gpu-",
		Args:    cmdutil.PositionalArgs(2, -1, "one node and its taints"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		untaint, taint, err := parseTaints(args[1:])
		if err != nil {
			return err
		}
		return changeNode(conn, cmd, out, args[0], func(api *client.Client, id string) (*client.NodeUpdateResponse, string, error) {
			answer, err := api.Nodes().Taint(cmd.Context(), id, untaint, taint)
			return answer, "has other taints; `cede node status " + id + "` shows them", err
		})
	}
	return cmd
}

// effects are what a taint may do.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// parseTaints reads what kubectl's users write.
func parseTaints(args []string) (untaint, taint []client.Taint, err error) {
	for _, arg := range args {
		text, away := strings.CutSuffix(arg, "-")
		rest, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(rest, "=")
		known := slices.Contains(effects, effect)
		if key == "" || !known && (!away || effect != "") {
			return nil, nil, cmdutil.Usagef("write KEY=VALUE:NoSchedule or KEY:PreferNoSchedule or KEY:NoExecute, and KEY- to take it away", "%q is no taint", arg)
		}
		t := client.Taint{Key: key, Value: value, Effect: effect}
		if away {
			untaint = append(untaint, t)
		} else {
			taint = append(taint, t)
		}
	}
	return untaint, taint, nil
}

// taintWords lists taints; those that operators set are marked.
func taintWords(list []client.Taint) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = t.String()
		if t.Set {
			words[i] += " (set by an operator)"
		}
	}
	return strings.Join(words, ", ")
}
