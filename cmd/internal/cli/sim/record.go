package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/sim/importer"
	"github.com/cede-scheduler/cede/core/sim/record"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// recordView is the result of a recording.
type recordView struct {
	File      string         `json:"file"`
	Nodes     int            `json:"nodes"`
	Jobs      int            `json:"jobs"`
	Running   int            `json:"running"` // at the start
	Events    int            `json:"events"`
	Decisions int            `json:"decisions"`
	Evicted   int            `json:"evicted"`
	Module    string         `json:"module,omitempty"` // file of the active policy's module; absent if none was written
	Notes     map[string]int `json:"notes,omitempty"`  // state that a scenario cannot express
}

func newSimRecordCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the decisions of a running server",
		Long: `Record the decisions of a running server as a scenario: the state at the start, the events
until the recording ends, and, as expectations, all placements and evictions. The
recording ends after --for, or when it is interrupted by SIGINT or SIGTERM.

cede sim run and cede compare play the file, and cede sim replay shows where another
policy decides differently. The module of the active policy is written to the same
folder. The complete state is read twice, which requires the role management.

Facts that a scenario cannot express are reported and left out.`,
		Example: "  cede sim record -w monday.yaml --for 1h\n  cede sim replay monday.yaml --policy least-waste",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	out, conn := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	file := cmd.Flags().StringP("write", "w", "", "write the scenario to `FILE`")
	span := cmd.Flags().Duration("for", 0, "record for `DURATION`; 0: until interrupted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if *file == "" {
			return cmdutil.Usagef("add -w recorded.yaml", "-w is required")
		}
		if *span < 0 {
			return cmdutil.Usagef("remove --for to record until interrupted", "--for must be positive, not %v", *span)
		}
		if err := env.CheckWritable(*file); err != nil {
			return err
		}
		api, err := conn.Dial()
		if err != nil {
			return err
		}
		env.HandlesInterrupt.Store(true) // an interrupt ends the recording and writes it
		name := importer.CleanName(strings.TrimSuffix(filepath.Base(*file), filepath.Ext(*file)))
		if *file == cmdutil.Stdin {
			name = "recorded"
		}
		r := &recording{env: env, api: api, alone: *file == cmdutil.Stdin}
		r.Name = name
		if err := r.record(cmd.Context(), *span); err != nil {
			return err
		}
		f, notes := r.Scenario()
		if err := r.writeModule(*file); err != nil {
			return err
		}
		if err := simrun.WriteScenario(env, *file, f); err != nil || *file == cmdutil.Stdin {
			return err
		}
		v := recorded(*file, f, notes)
		v.Module = r.moduleBeside(*file)
		return out.Show(cmdutil.Document{Data: v, Names: []string{*file}, Page: v.page})
	}
	return cmd
}

// recording holds the state of `cede sim record`.
type recording struct {
	env *cmdutil.Env
	api *client.Client
	record.Recording

	alone  bool                 // no module file can be written next to the scenario
	module *client.PolicyModule // module of the active policy; nil if it has none or the download failed
}

// lull is the time without events after which the activity of a server is considered
// complete.
const lull = 500 * time.Millisecond

// record reads the state, collects events, and reads the state again.
func (r *recording) record(ctx context.Context, span time.Duration) error {
	begin, err := r.state(ctx)
	if err != nil {
		return cmdutil.InterruptError(ctx, err)
	}
	r.Begin, r.Began = begin, r.env.Clock.Now().UnixNano()
	if err := r.fetch(ctx); err != nil {
		return cmdutil.InterruptError(ctx, err)
	}
	_, _ = fmt.Fprintf(r.env.Stderr, "recording since index %d; interrupt to end\n", begin.Index())
	batches := make(chan *client.Events)
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.follow(following, batches) }()
	var over <-chan struct{}
	progress := r.env.Progress()
	defer progress.Done()
	if span > 0 {
		over = afterFunc(r.env, span)
		progress.Repeat(func(elapsed time.Duration) string {
			return term.ProgressLine(float64(elapsed)/float64(span), elapsed, "recording", elapsed.Round(time.Second).String()+" of "+span.String())
		})
	}
	for recording := true; recording; {
		select {
		case batch := <-batches:
			r.take(batch)
		case err := <-ended:
			return err
		case <-over:
			recording = false
		case <-ctx.Done():
			recording = false
		}
	}
	progress.Done()
	if r.End, err = r.state(following); err != nil {
		return err
	}
	r.Ended = r.env.Clock.Now().UnixNano()
	for quiet := false; !quiet; {
		select {
		case batch := <-batches:
			quiet = batch.Index > r.End.Index() // later events are not part of the recording
			if !quiet {
				r.take(batch)
			}
		case err := <-ended:
			return err
		case <-afterFunc(r.env, lull):
			quiet = true
		}
	}
	return nil
}

// fetch downloads the bundle of the active version. If it fails, the recording
// continues without the module, and the notes mention it.
func (r *recording) fetch(ctx context.Context) error {
	v := r.PolicyVersion()
	switch {
	case v == nil:
		return nil
	case v.Kind == model.PolicyBuiltin:
		r.Use = builtin.OfDigest(v.Digest)
		return nil
	case !v.HasModule() || r.alone:
		return nil
	}
	m, err := r.api.Policies().Module(ctx, v.Name, v.ID)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		r.env.Warn(fmt.Sprintf("cannot fetch the module of policy %s: %v", policyflags.VersionName(v.Name, v.ID), err))
	case m.Digest != v.Digest:
		r.env.Warn(fmt.Sprintf("the module of policy %s does not match the state: it has digest %s", policyflags.VersionName(v.Name, v.ID), m.Digest))
	default:
		extension := "wasm"
		if v.Kind == model.PolicyComposition {
			extension = "tar"
		}
		r.module, r.Use = m, fmt.Sprintf("./%s-%s.%s", r.Name, importer.CleanName(v.Name), extension)
	}
	return nil
}

// moduleBeside returns the path of the module next to the scenario, or "" if none is
// written.
func (r *recording) moduleBeside(file string) string {
	if r.module == nil {
		return ""
	}
	return filepath.Join(filepath.Dir(file), r.Use)
}

func (r *recording) writeModule(file string) error {
	if r.module == nil {
		return nil
	}
	return r.env.WriteModule(r.moduleBeside(file), r.module)
}

// afterFunc returns a channel that is closed after a duration.
func afterFunc(env *cmdutil.Env, d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	env.Clock.AfterFunc(d, func() { close(over) })
	return over
}

// state returns the complete state of the server.
func (r *recording) state(ctx context.Context) (*state.Snapshot, error) {
	var text bytes.Buffer
	if err := r.api.Operator().SnapshotSave(ctx, &text); err != nil {
		return nil, err
	}
	return (&raftnode.Replay{Snapshot: &text, From: 1}).Run(ctx)
}

// follow sends the events since the beginning to the channel.
func (r *recording) follow(ctx context.Context, batches chan<- *client.Events) error {
	o := &client.StreamOptions{Namespace: "*", Topics: []string{string(events.Job), string(events.Node)}, Index: r.Begin.Index()}
	err := r.api.Events().Stream(ctx, o, func(batch *client.Events) error {
		select {
		case batches <- batch:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (r *recording) take(batch *client.Events) {
	if l := batch.Lost; l != nil {
		r.env.Warn(fmt.Sprintf("events of indexes %d to %d are no longer retained and are not recorded", l.From, l.To))
	}
	for i := range batch.Events {
		e := &batch.Events[i]
		own := record.Event{Kind: e.Type, Namespace: e.Namespace, ID: e.Key, Time: e.Time}
		var payload struct {
			Version         uint64
			Drain, Eligible bool
		}
		if json.Unmarshal(e.Payload, &payload) == nil {
			own.Version = payload.Version
			own.On = e.Type == "NodeDrain" && payload.Drain || e.Type == "NodeEligibility" && payload.Eligible
		}
		r.Events = append(r.Events, own)
	}
}

func recorded(file string, f *scenario.File, notes record.Notes) *recordView {
	v := &recordView{
		File: file, Nodes: len(f.Nodes), Jobs: len(f.Jobs), Running: len(f.Running), Events: len(f.Events),
		Decisions: len(*f.Expect.Placements), Notes: notes,
	}
	for _, p := range *f.Expect.Placements {
		v.Evicted += len(*p.Preempted)
		for _, ids := range p.PreemptedElsewhere {
			v.Evicted += len(ids)
		}
	}
	return v
}

func (v *recordView) page(p cmdutil.Page) {
	p.Printf("%s: %s, %s, %s running already, %s, %s that evicted %s\n", v.File,
		cmdutil.Count(v.Nodes, "node", "nodes"), cmdutil.Count(v.Jobs, "job", "jobs"), cmdutil.Count(v.Running, "instance", "instances"),
		cmdutil.Count(v.Events, "event", "events"), cmdutil.Count(v.Decisions, "placement", "placements"), cmdutil.Thousands(v.Evicted))
	if v.Module != "" {
		p.Printf("%s: module of the active policy\n", v.Module)
	}
	for _, what := range slices.Sorted(maps.Keys(v.Notes)) {
		p.Printf("  %s (%s)\n", what, cmdutil.Times(v.Notes[what]))
	}
}
