package simrun

import (
	"errors"
	"io"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/dataset"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// OutputDir writes the data of runs as tables into the folder of --output-dir. Without
// the flag, and if it is nil, its methods do nothing else than to play. Close must be called.
type OutputDir struct {
	env   *cmdutil.Env
	flag  *pflag.Flag
	dir   string
	parts []*dataset.Part // by the position of the run; nil: the run has no rows
	undo  func()          // removes folders that Start created; nil after Write

	mu     sync.Mutex
	played map[dataset.Run]bool
}

// AddOutputDirFlag adds the flag --output-dir.
func AddOutputDirFlag(cmd *cobra.Command, env *cmdutil.Env) *OutputDir {
	o := &OutputDir{env: env}
	cmd.Flags().StringVar(&o.dir, "output-dir", "", "write placements, evictions, timeline, queue, utilisation and metrics to `DIR` as CSV and Parquet")
	o.flag = cmd.Flags().Lookup("output-dir")
	return o
}

// Enabled reports whether the flag is set. A nil OutputDir is disabled.
func (o *OutputDir) Enabled() bool { return o != nil && o.dir != "" }

// Check returns an error if a file exists already: the tables of other runs are not replaced.
func (o *OutputDir) Check() error {
	if o != nil && o.flag.Changed && o.dir == "" { // such as an unset variable of a shell
		return cmdutil.Usagef("name a folder, or remove --output-dir", "--output-dir must not be empty")
	}
	if !o.Enabled() {
		return nil
	}
	return o.each(func(_ *dataset.Table, file string, _ writeTable) error {
		if f, err := o.env.Files.Open(file); err == nil {
			_ = f.Close() // nothing was read
			return cmdutil.Usagef("use a new folder, or remove the files; nothing was changed", "%s exists: --output-dir %s contains the tables of other runs", file, o.dir)
		}
		return nil
	})
}

// Start creates the folder and prepares for a number of runs, after Check. It returns an error
// if a file cannot be written.
func (o *OutputDir) Start(runs int) error {
	if !o.Enabled() {
		return nil
	}
	o.parts = make([]*dataset.Part, runs)
	var err error
	if o.undo, err = o.env.MakeDir(o.dir); err == nil {
		err = o.each(func(_ *dataset.Table, file string, _ writeTable) error { return o.env.CheckWritable(file) })
	}
	if err != nil {
		o.undo()
	}
	return err
}

// Play plays a run and records its rows. i is its position in the tables. It is safe for
// concurrent use.
func (o *OutputDir) Play(i int, id dataset.Run, options sim.Options, play func(sim.Options) (*sim.Run, error)) (*sim.Run, error) {
	if !o.Enabled() {
		return play(options)
	}
	if o.isRepeated(id) {
		return nil, cmdutil.Usagef("rename one of the scenarios, or write each to its own folder",
			"--output-dir: scenario %s under %s with seed %d is played twice: its rows could not be distinguished", id.Scenario, id.Policy, id.Seed)
	}
	part, err := dataset.NewPart("")
	if err != nil {
		return nil, cmdutil.WriteError("temporary file", err)
	}
	recorder := dataset.NewRecorder(part, id)
	recorder.Observe(&options)
	run, err := play(options)
	if err == nil {
		err = cmdutil.WriteError("temporary file", recorder.Finish(run))
	}
	if err != nil {
		return nil, errors.Join(err, part.Close())
	}
	o.parts[i] = part
	return run, nil
}

// isRepeated reports whether a run with the same columns was played before.
func (o *OutputDir) isRepeated(id dataset.Run) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	repeated := o.played[id]
	if o.played == nil {
		o.played = map[dataset.Run]bool{}
	}
	o.played[id] = true
	return repeated
}

// RunID returns the columns that identify a run.
func RunID(f *scenario.File, draw int, policy string) dataset.Run {
	return dataset.Run{Scenario: f.Name, Draw: int64(draw), Policy: policy, Seed: f.Seed}
}

// Write writes the tables of all runs that were played, and no tables if there are none.
func (o *OutputDir) Write() error {
	if !o.Enabled() {
		return nil
	}
	var parts []*dataset.Part
	for _, p := range o.parts {
		if p != nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	o.undo = nil
	return o.each(func(t *dataset.Table, file string, write writeTable) error {
		return o.env.Write(file, func(w io.Writer) error { return write(t, w, parts) })
	})
}

type writeTable func(t *dataset.Table, w io.Writer, parts []*dataset.Part) error

// each calls do with every table and file.
func (o *OutputDir) each(do func(t *dataset.Table, file string, write writeTable) error) error {
	tables := dataset.Tables()
	for i := range tables {
		name := filepath.Join(o.dir, tables[i].Name())
		if err := do(&tables[i], name+".csv", (*dataset.Table).WriteCSV); err != nil {
			return err
		}
		if err := do(&tables[i], name+".parquet", (*dataset.Table).WriteParquet); err != nil {
			return err
		}
	}
	return nil
}

// Close removes temporary files, and folders that Start created for tables that were not
// written.
func (o *OutputDir) Close() error {
	if !o.Enabled() {
		return nil
	}
	if o.undo != nil {
		o.undo()
	}
	var errs []error
	for i, p := range o.parts {
		if p != nil {
			errs = append(errs, p.Close())
			o.parts[i] = nil
		}
	}
	return cmdutil.WriteError("temporary file", errors.Join(errs...))
}
