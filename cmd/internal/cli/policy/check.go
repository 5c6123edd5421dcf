package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// policyCheck holds the flags of `cede policy test`.
type policyCheck struct {
	env     *cmdutil.Env
	options *policyflags.Flags
	out     *cmdutil.Output
	cases   string
	runs    int
	seed    uint64
	skip    []string
	update  bool
	write   string
	read    []string // files of golden cases
}

func newPolicyTestCmd(env *cmdutil.Env) *cobra.Command {
	c := &policyCheck{env: env}
	cmd := &cobra.Command{
		Use:         "test [P]",
		Short:       "Test a policy: golden cases and properties",
		Annotations: cmdutil.ExitCodes("7 the policy failed or returned an invalid result", "8 a case or a property failed"),
		Long: `Test policy P (default: the policy in the working folder) in the host that servers use.

Golden cases are the files cases/*.txt of its folder: a cluster and, below a line ---,
the allocations that the policy evicts there; --update writes that part. Then each
property is tested on random cases. If a property fails, the smallest case found is
printed; with -w it is also written as a scenario for cede sim run. Finally the
resource usage of the calls is reported.

No server is contacted. The policy nomad fails the property enough: it evicts nothing
if a constraint other than a port excludes the preemptor.

Properties:
` + propertyList(),
		Example: `  cede policy test thrifty
  cede policy test thrifty --update
  cede policy test nomad --runs 5000 --grant nomad=keepRedundant --skip enough
  cede policy test thrifty --skip units -w counterexamples`,
		Args: cmdutil.PositionalArgs(0, 1, "one policy"),
	}
	c.out = cmdutil.OutputFlags(cmd, env)
	c.options = policyflags.AddFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&c.cases, "cases", "", "read golden cases from `DIR` (default: cases in the folder of the policy)")
	f.IntVar(&c.runs, "runs", 500, "test each property on `N` random cases")
	f.Uint64Var(&c.seed, "seed", 1, "`N` is the seed of random cases")
	f.StringSliceVar(&c.skip, "skip", nil, "skip a `PROPERTY`; may be repeated")
	f.BoolVar(&c.update, "update", false, "update golden cases with the current decisions")
	f.StringVarP(&c.write, "write", "w", "", "write counterexamples of properties to `DIR`")
	cmdutil.CompleteFlag(cmd, "skip", propertyNames())
	cmd.ValidArgsFunction = policyflags.CompleteNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.resolve(); err != nil {
			return err
		}
		p := "."
		if len(args) == 1 {
			p = args[0]
		}
		return c.run(cmd.Context(), p)
	}
	return cmd
}

func propertyNames() []string {
	var names []string
	for _, p := range policytest.Properties() {
		names = append(names, p.Name)
	}
	return names
}

func propertyList() string {
	var text strings.Builder
	for _, p := range policytest.Properties() {
		fmt.Fprintf(&text, "  %-14s %s\n", p.Name, p.Doc)
	}
	return text.String()
}

func (c *policyCheck) resolve() error {
	if err := c.out.Resolve(); err != nil {
		return err
	}
	if c.runs < 1 || c.runs > math.MaxInt32 {
		return cmdutil.Usagef("use 1 or more; --skip omits a property", "--runs must be at least 1, not %d", c.runs)
	}
	return checkSkip(c.skip)
}

func checkSkip(skip []string) error {
	for _, name := range skip {
		if !slices.Contains(propertyNames(), name) {
			return cmdutil.Usagef("use "+cmdutil.JoinOr(propertyNames()), "unknown property in --skip %q", name)
		}
	}
	return nil
}

// run tests a policy and prints the report. It returns an error if a check failed.
func (c *policyCheck) run(ctx context.Context, name string) error {
	opened, err := c.options.Open(ctx, []string{name})
	if err != nil {
		return err
	}
	p := opened[0]
	trial := policies.NewTrial(p)
	defer trial.Close()
	report := &checkReport{Policy: p.Name, Version: p.ID, Digest: p.Digest, Runs: c.runs, Seed: c.seed}
	if err := c.goldenCases(p, trial, report); err != nil {
		return err
	}
	if err := c.properties(p, name, trial, report); err != nil {
		return err
	}
	report.measure(trial.Usage, p.Limits)
	if err := c.out.Show(report.document()); err != nil {
		return err
	}
	return report.verdict(policyflags.DisplayNames([]string{name})[name])
}

// goldenCases checks the golden cases, or writes them.
func (c *policyCheck) goldenCases(p *policies.Policy, trial *policies.Trial, report *checkReport) error {
	files, err := c.caseFiles(p)
	if err != nil || len(files) == 0 {
		return err
	}
	subject, err := trial.Subject()
	if err != nil {
		return policyflags.WrapError(p.Name, err)
	}
	c.read = files
	for _, file := range files {
		one := caseReport{Name: nameOfCase(file), File: filepath.ToSlash(file)}
		if err := c.goldenCase(file, subject, &one); err != nil {
			return err
		}
		report.Cases = append(report.Cases, one)
	}
	return nil
}

// caseFiles returns the files of golden cases. It returns an error if a named
// directory has none.
func (c *policyCheck) caseFiles(p *policies.Policy) ([]string, error) {
	dir := c.cases
	switch {
	case dir != "":
	case p.Bundle != nil && p.Bundle.Dir != "":
		dir = filepath.Join(p.Bundle.Dir, "cases")
	default:
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err == nil && len(files) == 0 && c.cases != "" {
		err = cmdutil.Usagef("use a folder with files *.txt", "no golden cases in --cases %s", dir)
	}
	return files, err
}

func (c *policyCheck) goldenCase(file string, subject *policytest.Subject, to *caseReport) error {
	text, err := readPolicyUnderTest(c.env, file)
	if err != nil {
		return err
	}
	golden, err := policytest.ParseGolden(string(text))
	if err != nil {
		return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %v", file, err), Hint: "`cede help cases` describes the format"}
	}
	to.Differences, err = golden.Check(subject)
	if err != nil {
		to.fail(err)
		return nil
	}
	to.OK = len(to.Differences) == 0
	if to.OK || !c.update {
		return nil
	}
	fresh, err := golden.Update(subject)
	if err != nil {
		return err
	}
	to.OK, to.Updated = true, true
	return c.env.Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, fresh)
		return err
	})
}

// readPolicyUnderTest reads a file completely.
func readPolicyUnderTest(env *cmdutil.Env, name string) ([]byte, error) {
	r, err := env.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	return io.ReadAll(r)
}

// properties checks the invariants of every policy.
func (c *policyCheck) properties(p *policies.Policy, name string, trial *policies.Trial, report *checkReport) error {
	progress := c.env.Progress()
	defer progress.Done()
	findings, err := policytest.CheckProperties(trial.Subject, policytest.CheckOptions{
		Runs: c.runs, Seed: c.seed, Skip: c.skip, Progress: func(done, total int) {
			progress.Show(func(elapsed time.Duration) string { return checkLine(report.Policy, done, total, elapsed) })
		},
	})
	progress.Done()
	if err != nil {
		return policyflags.WrapError(report.Policy, err)
	}
	report.properties(findings, c.skip)
	if c.write == "" {
		return nil
	}
	use := c.usable(p, name)
	for i := range report.Properties {
		if err := c.writeCase(use, &report.Properties[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkLine returns the progress of the properties as one line.
func checkLine(name string, done, total int, elapsed time.Duration) string {
	cases := fmt.Sprintf("%s of %s cases", cmdutil.Thousands(done), cmdutil.Thousands(total))
	return term.ProgressLine(float64(done)/float64(total), elapsed, name, cases, elapsed.Round(time.Second).String())
}

// usable returns the reference to the policy for a scenario in the directory of
// cases.
func (c *policyCheck) usable(p *policies.Policy, name string) string {
	if p.Bundle == nil {
		return name
	}
	base := policyflags.BaseName(name)
	if !filepath.IsAbs(base) {
		from, err1 := filepath.Abs(c.write)
		to, err2 := filepath.Abs(base)
		if rel, err := filepath.Rel(from, to); errors.Join(err1, err2, err) == nil {
			return filepath.ToSlash(rel) + strings.TrimPrefix(name, base)
		}
	}
	return name
}

// writeCase writes a case that violates a property: as a playable scenario and as a
// golden case.
func (c *policyCheck) writeCase(use string, p *propertyReport) error {
	if p.found == nil {
		return nil
	}
	base := filepath.Join(c.write, p.Name)
	if err := c.env.Files.MakeDir(c.write); err != nil {
		return cmdutil.WriteError(c.write, err)
	}
	if err := c.env.CheckOutputs(c.read, cmdutil.OutputFile{Flag: "-w", Name: base + ".yaml"}, cmdutil.OutputFile{Flag: "-w", Name: base + ".txt"}); err != nil {
		return err
	}
	p.Scenario = filepath.ToSlash(base + ".yaml")
	for file, text := range map[string][]byte{
		base + ".yaml": policytest.Scenario(p.found, p.Name, use),
		base + ".txt":  []byte(p.Case),
	} {
		err := c.env.Write(file, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isFault reports whether the policy caused an error.
func isFault(err error) bool {
	_, answer := errors.AsType[*policytest.AnswerError](err)
	_, fault := errors.AsType[*policy.Error](err)
	return answer || fault
}
