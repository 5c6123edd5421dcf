package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// read reads a file of any kind and returns its decision. It returns nil after --list.
func (c *command) read(ctx context.Context, name string) (*decision, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if name, err = onlyCase(name); err != nil {
			return nil, err
		}
	}
	text, err := c.env.ReadFile(name, certificate.MaxContent)
	if err != nil {
		return nil, err
	}
	selects := c.number > 0 || c.alloc != "" || c.list || c.all
	switch {
	case certificate.Is(text):
		if c.policy != "" {
			return nil, cmdutil.Usagef("remove --policy: a certificate contains its policies", "--policy cannot be used with a certificate")
		}
		if selects {
			return nil, oneDecision("a certificate")
		}
		return c.certificate(ctx, name, text)
	case filepath.Ext(name) == ".txt":
		if selects {
			return nil, oneDecision("a golden case")
		}
		return c.golden(ctx, name, string(text))
	}
	return c.recording(ctx, name, text)
}

func oneDecision(kind string) error {
	return cmdutil.Usagef("remove them: the file has one decision", "--decision, --alloc, --list and --all cannot be used with %s", kind)
}

// onlyCase returns the only golden case of a policy folder.
func onlyCase(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.txt"))
	switch {
	case err != nil:
		return "", err
	case len(files) == 0:
		return "", cmdutil.Usagef("name a golden case, a recording or a certificate", "folder %s has no golden cases", dir)
	case len(files) > 1:
		var names []string
		for _, f := range files {
			names = append(names, filepath.ToSlash(f))
		}
		return "", cmdutil.Usagef("use one of "+strings.Join(names, ", "), "folder %s has %d golden cases", dir, len(files))
	}
	return files[0], nil
}

// invalid returns the error of a file that cannot be read.
func invalid(name string, err error, hint string) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("%s: %s", name, text), Hint: hint, Err: err}
}

// golden decides a golden case.
func (c *command) golden(ctx context.Context, name, text string) (*decision, error) {
	g, err := policytest.ParseGolden(text)
	if err != nil {
		return nil, invalid(name, err, "`cede help cases` describes the format")
	}
	use := c.policy
	if use == "" {
		use = filepath.Dir(filepath.Dir(filepath.Clean(name)))
		if _, err := os.Stat(filepath.Join(use, "policy.yaml")); errors.Is(err, fs.ErrNotExist) {
			return nil, cmdutil.Usagef("add --policy P", "%s is not in the cases of a policy folder", name)
		}
	}
	log, names := &certificate.Log{}, map[string]string{}
	subject, release, err := c.subject(ctx, use, log, names)
	if err != nil {
		return nil, err
	}
	defer release()
	verdict, failed := subject.Decide(g.Case)
	versions, calls, _ := log.Take()
	d := &decision{Source: name, Kind: "golden case", fault: failed}
	for i := range calls {
		if err := d.add(&calls[i], names[versions[calls[i].Policy]], g.Case, failed != nil && i == len(calls)-1); err != nil {
			return nil, err
		}
	}
	if failed != nil {
		return d, nil
	}
	d.Result = verdict.Lines(g.Case)
	if d.Differences, err = g.Check(subject); err != nil {
		return nil, err
	}
	return d, nil
}

// subject returns a policy whose calls are logged. Hooks that it lacks are those of default,
// as in the host. names receives the names of policies by version.
func (c *command) subject(ctx context.Context, use string, log *certificate.Log, names map[string]string) (*policytest.Subject, func(), error) {
	granted, err := policyflags.ParseGrants(*c.grants)
	if err != nil {
		return nil, nil, err
	}
	var subjects [2]*policytest.Subject
	var closers []func()
	release := func() {
		for _, f := range closers {
			f()
		}
	}
	for i, name := range []string{use, policy.DefaultName} {
		spec := sim.PolicySpec{Name: name, Use: name}
		spec.Grants = granted.For(spec)
		opened, err := c.loader.Open(ctx, policies.Request{PolicySpec: spec})
		if err != nil {
			release()
			return nil, nil, policyflags.WrapError(name, err)
		}
		opened.AddRef()
		closers = append(closers, opened.ReleaseRef)
		v, err := opened.Copy(log.RecordDescribed)
		if err != nil {
			release()
			return nil, nil, policyflags.WrapError(name, err)
		}
		names[v.ID] = v.Name
		trial := policies.NewTrial(&policies.Policy{Version: v, Bundle: opened.Bundle, Limits: opened.Limits})
		closers = append(closers, trial.Close)
		if subjects[i], err = trial.Subject(); err != nil {
			release()
			return nil, nil, policyflags.WrapError(name, err)
		}
	}
	s, fallback := subjects[0], subjects[1]
	if s.Selector == nil && s.Scorer == nil {
		s.Selector = fallback.Selector
	}
	if s.Options == nil {
		s.Options = fallback.Options
	}
	return s, release, nil
}

// certificate shows the calls of a certificate, and makes them again.
func (c *command) certificate(ctx context.Context, name string, text []byte) (*decision, error) {
	const hint = "export the decision again: cede decision export ALLOC -w FILE"
	doc, _, err := certificate.Read(text)
	if err != nil {
		return nil, invalid(name, err, hint)
	}
	d := &decision{Source: name, Kind: "certificate"}
	for i := range doc.Calls {
		call := &doc.Calls[i]
		if call.Policy < 0 || call.Policy >= len(doc.Policies) {
			return nil, invalid(name, fmt.Errorf("call %d is of policy %d of %d", i+1, call.Policy, len(doc.Policies)), hint)
		}
		if err := d.add(call, doc.Policies[call.Policy].Name, nil, false); err != nil {
			return nil, invalid(name, fmt.Errorf("call %d: %w", i+1, err), hint)
		}
	}
	var record struct {
		Why *struct{ Text []string }
	}
	if json.Unmarshal(doc.Decision, &record) == nil && record.Why != nil {
		d.Result = record.Why.Text
	}
	host, err := c.loader.ForServer(policies.ServerOptions{})
	if err != nil {
		return nil, err
	}
	if err := certificate.Verify(ctx, doc, host); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		d.Differences = append(d.Differences, "made again: "+err.Error())
	}
	return d, nil
}

// recording plays a scenario and returns an evaluation that evicts.
func (c *command) recording(ctx context.Context, name string, text []byte) (*decision, error) {
	f, err := readScenario(name, text)
	if err != nil {
		return nil, err
	}
	return c.play(ctx, f)
}

// readScenario reads a scenario that may also be meant as another kind of file.
func readScenario(name string, text []byte) (*simrun.ScenarioFile, error) {
	f, lines, err := scenario.DecodeLines(name, bytes.NewReader(text))
	if err == nil {
		return &simrun.ScenarioFile{File: f, Path: name, Lines: lines}, nil
	}
	if !bytes.Contains(text, []byte("nodes:")) && !bytes.Contains(text, []byte(`"nodes"`)) {
		return nil, invalid(name, errors.New("not a golden case, a recording or a certificate"),
			"golden cases end with .txt; `cede sim record` writes recordings, `cede decision export` certificates")
	}
	return nil, err
}
