package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPriorityClassCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "priority-class",
		Short: "Name priorities: list them, make, change and delete them",
		Long: `Name priorities: list them, make, change and delete them.

A job names one in place of a number: priority_class = "high".`,
		Example: "  cede priority-class list\n  cede priority-class apply classes.yaml",
	}
	group(cmd)
	cmd.AddCommand(newPriorityClassListCmd(env), newPriorityClassApplyCmd(env), newPriorityClassStatusCmd(env), newPriorityClassDeleteCmd(env))
	return cmd
}

func newPriorityClassListCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List priority classes, the highest first", Args: arguments(0, 0, "no arguments")}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		list, err := all(cmd.Context(), conn.query(), api.PriorityClasses().List)
		if err != nil {
			return err
		}
		slices.SortStableFunc(list, func(a, b *client.PriorityClass) int { return b.Value - a.Value })
		return out.show(document{data: list, names: namesOf(list, className), page: func(p page) {
			p.list(classTable(list), "priority classes", "`cede priority-class apply FILE` makes them")
		}})
	}
	return cmd
}

func className(c *client.PriorityClass) string { return c.Name }

func newPriorityClassStatusCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "status NAME", Short: "Describe a priority class", Args: arguments(1, 1, "one class")}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		c, _, err := api.PriorityClasses().Get(cmd.Context(), args[0], conn.query())
		if err != nil {
			return notFound(interruptedBy(cmd.Context(), err), "priority class", args[0], "`cede priority-class list` lists them")
		}
		return out.show(document{data: c, names: []string{c.Name}, page: func(p page) {
			p.facts("name", c.Name, "value", fmt.Sprint(c.Value), "default", yes(c.GlobalDefault), "preemption", preemptionOf(c), "description", c.Description)
		}})
	}
	return cmd
}

func preemptionOf(c *client.PriorityClass) string {
	if c.PreemptionPolicy == "" {
		return "PreemptLowerPriority"
	}
	return c.PreemptionPolicy
}

func classTable(list []*client.PriorityClass) *term.Table {
	t := columns("NAME", "VALUE>", "DEFAULT", "PREEMPTION", "DESCRIPTION")
	for _, c := range list {
		t.Row(c.Name, fmt.Sprint(c.Value), yes(c.GlobalDefault), preemptionOf(c), c.Description)
	}
	return t
}

func newPriorityClassDeleteCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a priority class; jobs keep the priority that it gave them",
		Args: arguments(1, 1, "one class"),
	}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		answer, err := api.PriorityClasses().Delete(cmd.Context(), args[0])
		if err != nil {
			return notFound(interruptedBy(cmd.Context(), err), "priority class", args[0], "`cede priority-class list` lists them")
		}
		v := struct {
			Name  string
			Index uint64
		}{args[0], answer.Index}
		return out.show(document{data: v, names: []string{args[0]}, page: func(p page) { p.printf("Priority class %s is deleted\n", args[0]) }})
	}
	return cmd
}

func newPriorityClassApplyCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make or change priority classes",
		Long: `Make or change priority classes. FILE is YAML or JSON: one class, a list of them,
or a scenario's priorityClasses:

  - {name: high, value: 1000, globalDefault: false,
     preemptionPolicy: PreemptLowerPriority, description: ""}

preemptionPolicy is PreemptLowerPriority (when absent) or Never.`,
		Example: "  cede priority-class apply classes.yaml\n  echo '{name: high, value: 90}' | cede priority-class apply -",
		Args:    arguments(1, 1, "one file"),
	}
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		text, err := env.readAll(args[0], 1<<20)
		if err != nil {
			return err
		}
		list, err := readClasses(args[0], text)
		if err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		for _, c := range list {
			if _, err := api.PriorityClasses().Put(cmd.Context(), c); err != nil {
				return interruptedBy(cmd.Context(), err)
			}
		}
		return out.show(document{data: list, names: namesOf(list, className), page: func(p page) { p.table(classTable(list)) }})
	}
	return cmd
}

// classFile is one class as it is written.
type classFile struct {
	Name             string `yaml:"name"`
	Value            *int64 `yaml:"value"`
	GlobalDefault    bool   `yaml:"globalDefault"`
	PreemptionPolicy string `yaml:"preemptionPolicy"`
	Description      string `yaml:"description"`
}

// readClasses reads a file of classes, strictly, and checks them.
func readClasses(file string, text []byte) ([]*client.PriorityClass, error) {
	if file == stdin {
		file = "standard input"
	}
	var document yaml.Node
	err := yaml.Unmarshal(text, &document)
	if err == nil && len(document.Content) == 0 {
		err = io.EOF
	}
	var written []classFile
	if err == nil {
		written, err = decodeClasses(document.Content[0])
	}
	var problems []string
	switch types, ok := errors.AsType[*yaml.TypeError](err); {
	case ok:
		problems = types.Errors
	case errors.Is(err, io.EOF):
		problems = []string{"it is empty: expected priority classes"}
	case err != nil:
		problems = []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	list, more := checkClasses(written)
	if problems = append(problems, more...); len(problems) == 0 {
		return list, nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = file + ": " + p
	}
	return nil, &Error{
		Exit: ExitUsage, Code: codeInvalid, lines: lines, Details: problems,
		Message: fmt.Sprintf("%s has %s", file, count(len(problems), "problem", "problems")),
		Hint:    "`cede priority-class apply --help` describes the file",
	}
}

// decodeClasses takes one class, a list of them, or either below
// priorityClasses. Names may begin with capitals, as the API prints them.
func decodeClasses(n *yaml.Node) ([]classFile, error) {
	uncapital(n)
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "priorityClasses" {
		n = n.Content[1]
	}
	if n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{n}, Line: n.Line}
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var list []classFile
	return list, d.Decode(&list)
}

func uncapital(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value != "" {
			first := []rune(c.Value)
			first[0] = unicode.ToLower(first[0])
			c.Value = string(first)
			continue
		}
		uncapital(c)
	}
}

func checkClasses(written []classFile) (list []*client.PriorityClass, problems []string) {
	seen := map[string]bool{}
	for i, c := range written {
		at := fmt.Sprintf("priorityClasses[%d]", i)
		if c.Name == "" {
			problems = append(problems, at+": name is missing; add one of lower-case letters, digits, . and -")
		} else if seen[c.Name] {
			problems = append(problems, fmt.Sprintf("%s: %q is there already; name each class once", at, c.Name))
		}
		seen[c.Name] = true
		value := int64(0)
		if c.Value == nil {
			problems = append(problems, at+": value is missing; add a whole number: higher goes first")
		} else if value = *c.Value; value < math.MinInt32 || value > math.MaxInt32 {
			problems = append(problems, fmt.Sprintf("%s: value %d is no priority; write -2147483648 to 2147483647", at, value))
		}
		if c.PreemptionPolicy != "" && c.PreemptionPolicy != "Never" && c.PreemptionPolicy != "PreemptLowerPriority" {
			problems = append(problems, fmt.Sprintf("%s: preemptionPolicy %q is not known; write PreemptLowerPriority or Never", at, c.PreemptionPolicy))
		}
		list = append(list, &client.PriorityClass{
			Name: c.Name, Value: int(value), GlobalDefault: c.GlobalDefault, PreemptionPolicy: c.PreemptionPolicy, Description: c.Description,
		})
	}
	return list, problems
}
