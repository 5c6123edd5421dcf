package cli

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/condition"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

//go:embed topics/*.txt
var topicFiles embed.FS // read-only

// topics returns the topics of cede help, in the order in which it lists them.
func topics() []string {
	return []string{"scenario", "jobs", "budgets", "bindings", "policies", "cases", "kubernetes", "metrics", "fail-if", "output", "exit-codes", "environment"}
}

func newHelpCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "help [TOPIC | COMMAND]",
		Short: "Print help for a command or a topic",
		Example: `  cede help job run
  cede help scenario`,
		Long: "Print help for a command or a topic. Topics:\n\n" + topicList(),
	}
	for _, t := range topics() {
		cmd.ValidArgs = append(cmd.ValidArgs, t+"\t"+summary(t))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if text, ok := topic(args[0], env); ok {
				if width := env.Columns(); width > 0 {
					text = term.Reflow(text, width)
				}
				_, err := fmt.Fprint(env.Stdout, text)
				return cmdutil.WriteError("standard output", err)
			}
		}
		described, rest, err := cmd.Root().Find(args)
		if err != nil || described == nil || len(rest) > 0 {
			return cmdutil.Usagef("topics are "+strings.Join(topics(), ", "), "no help topic or command %q", strings.Join(args, " "))
		}
		described.InitDefaultHelpFlag()
		return described.Help()
	}
	return cmd
}

// topic returns the text of a topic.
func topic(name string, env *cmdutil.Env) (string, bool) {
	text, err := fs.ReadFile(topicFiles, "topics/"+name+".txt")
	if err != nil {
		return "", false
	}
	page := string(text)
	switch name {
	case "policies":
		page += policyList()
	case "metrics":
		page += metricList(env)
	case "fail-if":
		page += condition.Help
	}
	return page, true
}

// summary returns the first line of a topic.
func summary(name string) string {
	text, _ := topicFiles.ReadFile("topics/" + name + ".txt")
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, ".")
}

func policyList() string {
	var b strings.Builder
	t := &term.Table{Indent: "  ", NoHeaders: true, Columns: make([]term.Column, 2)}
	for _, p := range builtin.List() {
		t.Row(p.Name, p.Summary)
	}
	_ = t.Write(&b, term.Style{}) // writes to memory do not fail
	return b.String()
}

// metricList describes every metric, with wrapped lines.
func metricList(env *cmdutil.Env) string {
	width := 80
	if w := env.Columns(); w > 0 {
		width = min(w, 120)
	}
	var b strings.Builder
	for _, d := range metrics.Definitions {
		head := d.Name
		if d.Unit != "" {
			head += ", " + d.Unit
		}
		if d.Context {
			head += ": explains the others"
		} else {
			head += ": " + string(d.Better) + " is better"
		}
		fmt.Fprintf(&b, "%s\n%s\n", head, cmdutil.Wrap(d.Text, width, "    "))
	}
	return b.String()
}

// topicList lists the topics with their first lines.
func topicList() string {
	var b strings.Builder
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-12s %s\n", t, summary(t))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
