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
		Short: "Add or remove taints of a node",
		Long: `Add or remove taints of a node. TAINT is KEY=VALUE:EFFECT or KEY:EFFECT.

With effect NoSchedule, only allocations that tolerate the taint are placed on the node.
With PreferNoSchedule, other nodes are preferred if they have capacity. With NoExecute,
allocations that do not tolerate the taint are also evicted, or evicted later if their
toleration states for how long they stay. KEY:EFFECT- removes a taint, and KEY- removes
those of every effect.

Taints of client.taints in the configuration of the node cannot be removed here. cede
help jobs describes tolerations.`,
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
			return answer, "was updated; `cede node status " + id + "` shows its taints", err
		})
	}
	return cmd
}

// effects lists the valid effects of a taint.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// parseTaints parses taints in kubectl's syntax.
func parseTaints(args []string) (untaint, taint []client.Taint, err error) {
	for _, arg := range args {
		text, remove := strings.CutSuffix(arg, "-")
		rest, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(rest, "=")
		known := slices.Contains(effects, effect)
		if key == "" || !known && (!remove || effect != "") {
			return nil, nil, cmdutil.Usagef("use KEY=VALUE:NoSchedule, KEY:PreferNoSchedule or KEY:NoExecute; KEY- removes a taint", "invalid taint %q", arg)
		}
		t := client.Taint{Key: key, Value: value, Effect: effect}
		if remove {
			untaint = append(untaint, t)
		} else {
			taint = append(taint, t)
		}
	}
	return untaint, taint, nil
}

// taintWords formats taints, and marks those that operators set.
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
