package compare

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/manifest"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/importer"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// maxManifest is the maximum size of a --what-if file in bytes.
const maxManifest = 4 << 20

// whatIf is one `cede compare --what-if`: a scenario with an additional workload, of
// which only the first instant is simulated.
type whatIf struct {
	*comparison
	name  string // name of the manifest or job file
	file  *simrun.ScenarioFile
	with  *scenario.File
	jobs  []scenario.Job // jobs of the workload
	notes []importer.Note
	// cluster holds the pod groups and claims that manifests may refer to; nil: none.
	cluster *kube.Dump
	aside   int // pending jobs of the scenario that are not submitted
}

// resolveWhatIf checks the flags that --what-if excludes or requires.
func (c *comparison) resolveWhatIf(failIf []string) error {
	problems := []error{c.out.Resolve()}
	for _, x := range []struct {
		set        bool
		flag, hint string
	}{
		{c.drawsSet, "--draws", "remove --draws"},
		{c.resume, "--resume", "remove --resume"},
		{c.seeds != 1, "--seeds", "remove --seeds"},
		{c.bound, "--bound", "remove --bound"},
		{c.stepsSet, "--bound-steps", "remove --bound-steps"},
		{c.data.Enabled(), "--output-dir", "use -o json"},
		{len(failIf) > 0, "--fail-if", "use -o json"},
	} {
		if x.set {
			problems = append(problems, cmdutil.Usagef(x.hint, "%s cannot be combined with --what-if", x.flag))
		}
	}
	c.stepsSet, c.bound, c.drawsSet, c.draws = false, false, false, 0 // reported above
	problems = append(problems, c.check(1, "--what-if expects one or more policies"))
	return cmdutil.JoinProblems("the command line", problems...)
}

// runWhatIf reports the evictions that the workload of a manifest would cause under each
// policy.
func (c *comparison) runWhatIf(ctx context.Context, files []string, name string, failIf []string) error {
	problems := []error{c.resolveWhatIf(failIf)}
	if name == "" {
		problems = append(problems, cmdutil.Usagef("use a manifest or a job file, or remove --what-if", "--what-if must not be empty"))
	}
	if len(files) != 1 {
		problems = append(problems, cmdutil.Usagef("use one scenario file", "--what-if requires one scenario file: %d given", len(files)))
	}
	f, err := simrun.ReadScenario(c.env, files[0])
	problems = append(problems, err)
	var read []*simrun.ScenarioFile
	w := &whatIf{comparison: c, name: name, file: f}
	if err == nil {
		read = append(read, f)
		problems = append(problems, c.players.Check(f.File, c.policies))
		if name != "" {
			problems = append(problems, w.read())
		}
	}
	problems = append(problems, c.players.CheckOutputs(append([]string{name}, files...), read, c.policies, cmdutil.OutputFile{Flag: "--html", Name: c.html}))
	if err := c.players.JoinProblems(problems, read, c.policies); err != nil {
		return err
	}
	return c.players.WithCallLog(func() error {
		answer, err := w.answer(ctx)
		if err != nil {
			return err
		}
		return answer.show()
	})
}

// kubeKind matches the keys that Kubernetes manifests have and job files do not.
var kubeKind = regexp.MustCompile(`(?m)^[\s{,-]*"?(kind|apiVersion)"?\s*:`)

// read reads the workload and adds it to the scenario.
func (w *whatIf) read() error {
	src, err := w.env.ReadFile(w.name, maxManifest)
	if err != nil {
		return err
	}
	switch {
	case !kubeKind.Match(src):
		err = w.jobFile(src)
	case len(w.vars) > 0:
		err = cmdutil.Usagef("remove --var", "--var requires a job file: %s is a Kubernetes manifest", w.name)
	default:
		err = w.manifest(src)
	}
	if err != nil {
		return err
	}
	return w.alone()
}

func (w *whatIf) manifest(src []byte) error {
	var problems []string
	for _, p := range manifest.Check(src) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", w.name, p.Line, p))
	}
	dump, err := kube.Read(bytes.NewReader(src))
	if err == nil && w.cluster != nil {
		dump.PodGroups = append(dump.PodGroups, w.cluster.PodGroups...) // those of the manifest come first
		dump.Devices.Claims = append(w.cluster.Devices.Claims, dump.Devices.Claims...)
		dump.Devices.Templates = append(w.cluster.Devices.Templates, dump.Devices.Templates...)
	}
	switch {
	case err == nil:
		err = w.add(dump)
	case len(problems) > 0:
		err = nil // it reports the first of these problems, with the line of the object
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, w.name+": "+line)
		}
	}
	return invalidManifest(w.name, problems)
}

// invalidManifest returns the error of a manifest with the given problems, or nil if there
// are none.
func invalidManifest(name string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	err := &cmdutil.Error{
		Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: problems[0],
		Hint: "use a manifest of a Pod, Deployment, StatefulSet, DaemonSet or Job, or a job file; see cede help kubernetes",
	}
	if len(problems) > 1 {
		err.Message, err.Lines = fmt.Sprintf("%s has %d problems", name, len(problems)), problems
		err.Details = problems
	}
	return err
}

// add adds the workload of manifests to the scenario.
func (w *whatIf) add(manifests *kube.Dump) (err error) {
	w.with, w.jobs, w.notes, err = importer.AddManifests(w.file.File, manifests)
	return err
}

func (w *whatIf) jobFile(src []byte) error {
	vars, err := cmdutil.ParseAssignments(w.vars)
	if err != nil {
		return err
	}
	file, err := jobspec.Load(w.name, src, jobspec.Options{SchedulingOnly: true, Vars: vars})
	if err != nil {
		return err
	}
	m, err := file.Model()
	if err != nil {
		return err
	}
	importer.AssignNodePool(w.file.File, m, file.NodePool())
	w.notes = asideNotes(file.Ignored())
	if operators := jobspec.JobWideCounts(file.Job); len(operators) > 0 {
		w.notes = append(w.notes, importer.Note{Count: 1, Subject: strings.Join(operators, " and ") + " of a job with several groups", Handling: "applied to each group separately"})
	}
	job := importer.JobOf(m)
	if job.PriorityClass = file.Job.PriorityClass; file.Job.Priority == nil {
		job.Priority = nil // that of the class, or the scenario's default
	}
	w.notes = append(w.notes, importer.EscapeJob(&job)...)
	w.with, w.jobs = importer.AddJobs(w.file.File, []scenario.Job{job})
	return nil
}

// asideNotes converts the ignored parts of a job file into notes. Each has a count of
// one.
func asideNotes(list []jobspec.IgnoredField) (notes []importer.Note) {
	for _, a := range list {
		done := "ignored: it does not affect scheduling"
		if a.AffectsPlacement {
			done = "ignored, although Nomad uses it to exclude nodes"
		}
		notes = append(notes, importer.Note{Count: 1, Subject: fmt.Sprintf("%d %s", a.Count, a.Name), Handling: done})
	}
	return notes
}

// alone removes every submission except the workload, and validates the scenario.
// Allocations that are already stopping at the start still stop.
func (w *whatIf) alone() error {
	var events []scenario.Event
	for _, e := range w.with.Events {
		switch {
		case e.At == 0 && e.Submit == "":
			events = append(events, e)
		case e.Submit != "":
			w.aside++
		}
	}
	for _, j := range w.jobs {
		events = append(events, scenario.Event{Submit: j.ID})
	}
	w.with.Events, w.with.Expect, w.with.Until = events, nil, new(scenario.Duration(0))
	if err := w.with.Validate(); err != nil {
		return fmt.Errorf("%s with %s: %w", w.file.Path, w.name, err)
	}
	return nil
}

// ofHowMany returns a count with a plural noun. If the count is one, it returns the
// noun alone, which then stands for the only one of its kind.
func ofHowMany(n int, what string) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%d %s", n, what)
}

// answer simulates the workload under every policy.
func (w *whatIf) answer(ctx context.Context) (*Answer, error) {
	answer := newAnswer(w)
	progress := w.env.Progress()
	defer progress.Done()
	for i, p := range w.policies {
		run, err := sim.Play(ctx, w.with, sim.Options{
			Policy: p, Resolve: w.players.Resolver(w.with, w.file.Path, p), Workers: w.env.Cores,
			Progress: func(sim.Progress) {
				progress.Show(func(elapsed time.Duration) string {
					return term.ProgressLine(float64(i)/float64(len(w.policies)), elapsed, w.file.Name+" under "+p, elapsed.Round(time.Second).String())
				})
			},
		})
		if err != nil {
			return nil, simrun.RunError(w.file, err, true)
		}
		answer.add(w.players.DisplayNames[p], run.Result)
		name := fmt.Sprintf("%s under %s", w.file.Path, w.players.DisplayNames[p])
		if err := simrun.FaultsError(name, run.Faults, w.players.OnFault); err != nil {
			answer.faults = append(answer.faults, err)
		}
	}
	answer.compare()
	return answer, nil
}

// show prints the answer, and reports faults of policies and instances that cannot be
// placed.
func (a *Answer) show() error {
	if err := a.w.out.Show(a.document()); err != nil {
		return err
	}
	a.warn()
	ends := append(slices.Clip(a.faults), a.unplaced())
	if a.w.html != "" {
		ends = append(ends, a.report())
	}
	return a.w.reportErrors(ends)
}

// warn prints facts of the workload that a scenario cannot express.
func (a *Answer) warn() {
	for _, n := range a.w.notes {
		a.w.env.Warn(fmt.Sprintf("%s: %s: %s", a.w.name, ofHowMany(n.Count, n.Subject), n.Handling))
	}
}

// reportErrors reports errors, of which some may be nil, and returns the most severe exit
// code.
func (w *whatIf) reportErrors(ends []error) error {
	worst := cmdutil.ExitOK
	for _, err := range ends {
		if err != nil {
			w.env.Report(err)
			worst = cmdutil.MoreSevere(worst, cmdutil.ExitOf(err))
		}
	}
	return cmdutil.ExitWith(worst)
}
