package cli

import (
	"fmt"
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

// classFile is one class as it is written, and where.
type classFile struct {
	line             int
	name             string
	value            *int64
	globalDefault    bool
	preemptionPolicy string
	description      string
}

// readClasses reads a file of classes, strictly, and checks them.
func readClasses(file string, text []byte) ([]*client.PriorityClass, error) {
	if file == stdin {
		file = "standard input"
	}
	var document yaml.Node
	var problems classProblems
	var written []classFile
	switch err := yaml.Unmarshal(text, &document); {
	case err != nil:
		problems.add(1, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case len(document.Content) == 0:
		problems.add(1, "it is empty: expected priority classes")
	default:
		written = problems.decode(document.Content[0])
	}
	list := problems.check(written)
	if len(problems) == 0 {
		return list, nil
	}
	slices.SortStableFunc(problems, func(a, b classProblem) int { return a.Line - b.Line })
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = fmt.Sprintf("%s:%d: %s", file, p.Line, p.Message)
	}
	return nil, &Error{
		Exit: ExitUsage, Code: codeInvalid, lines: lines, Details: problems,
		Message: fmt.Sprintf("%s has %s", file, count(len(problems), "problem", "problems")),
		Hint:    "`cede priority-class apply --help` describes the file",
	}
}

// classProblem is one thing that is wrong with a file of classes.
type classProblem struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

type classProblems []classProblem

func (ps *classProblems) add(line int, format string, args ...any) {
	*ps = append(*ps, classProblem{max(line, 1), fmt.Sprintf(format, args...)})
}

// decode takes one class, a list of them, or either below priorityClasses.
func (ps *classProblems) decode(n *yaml.Node) []classFile {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "priorityClasses" {
		n = n.Content[1]
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	var list []classFile
	for _, n := range nodes {
		if n.Kind != yaml.MappingNode {
			ps.add(n.Line, "expected a priority class; write {name: high, value: 90}")
			continue
		}
		list = append(list, ps.decodeOne(n))
	}
	return list
}

// decodeOne reads one class. Names may begin with capitals, as the API prints
// them.
func (ps *classProblems) decodeOne(n *yaml.Node) classFile {
	c := classFile{line: n.Line}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var err error
		switch uncapital(key.Value) {
		case "name":
			err = value.Decode(&c.name)
		case "value":
			err = value.Decode(&c.value)
		case "globalDefault":
			err = value.Decode(&c.globalDefault)
		case "preemptionPolicy":
			err = value.Decode(&c.preemptionPolicy)
		case "description":
			err = value.Decode(&c.description)
		default:
			ps.add(key.Line, "a priority class has no field %q; known are name, value, globalDefault, preemptionPolicy, description", key.Value)
		}
		if err != nil {
			ps.add(value.Line, "%s: %q is not what it takes; value is a whole number, globalDefault true or false, the others texts", key.Value, value.Value)
			if uncapital(key.Value) == "value" {
				c.value = new(int64) // it is not missing
			}
		}
	}
	return c
}

func uncapital(name string) string {
	first := []rune(name)
	if len(first) > 0 {
		first[0] = unicode.ToLower(first[0])
	}
	return string(first)
}

func (ps *classProblems) check(written []classFile) (list []*client.PriorityClass) {
	seen := map[string]bool{}
	for _, c := range written {
		if c.name == "" {
			ps.add(c.line, "name is missing; add one of letters, digits, ., _ and -")
		} else if seen[c.name] {
			ps.add(c.line, "%q is there already; name each class once", c.name)
		}
		seen[c.name] = true
		value := int64(0)
		if c.value == nil {
			ps.add(c.line, "value is missing; add a whole number: higher goes first")
		} else if value = *c.value; value < math.MinInt32 || value > math.MaxInt32 {
			ps.add(c.line, "value %d is no priority; write -2147483648 to 2147483647", value)
		}
		if c.preemptionPolicy != "" && c.preemptionPolicy != "Never" && c.preemptionPolicy != "PreemptLowerPriority" {
			ps.add(c.line, "preemptionPolicy %q is not known; write PreemptLowerPriority or Never", c.preemptionPolicy)
		}
		list = append(list, &client.PriorityClass{
			Name: c.name, Value: int(value), GlobalDefault: c.globalDefault, PreemptionPolicy: c.preemptionPolicy, Description: c.description,
		})
	}
	return list
}
