package server

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// decisionOf returns the only decision in which a job was placed.
func (w *harness) decisionOf(job string) *eventsink.Decision {
	w.t.Helper()
	list, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: job})
	if err != nil || len(list) != 1 {
		w.t.Fatalf("decisions of %s: %+v, %v", job, list, err)
	}
	return list[0]
}

// lowAndHigh evicts an instance of the job low, of priority 20, for the job high, of priority
// 80.
func (w *harness) lowAndHigh() *eventsink.Decision {
	w.t.Helper()
	w.allowAnyPriorityGap()
	w.addNodes(3)
	w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
	w.registerJob(coretest.Job("middle").Priority(40).Count(5).Ask(400, 400, 0))
	w.waitIdle()
	w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0))
	w.waitIdle()
	return w.decisionOf("high")
}

// Every server makes the decision again with the same result, whichever made it, also after
// it took a snapshot and the state has moved on. The policies in use are not called.
func TestServer_WhatIfIsTheSameOnEveryServer(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		d := w.lowAndHigh()
		victim := d.Victims[0].AllocID
		if d.PlannedOn == 0 || d.PlannedOn >= d.Index || d.PlannedAt == 0 {
			t.Fatalf("planned on %d at %d, committed at %d", d.PlannedOn, d.PlannedAt, d.Index)
		}
		w.registerJob(coretest.Job("later").Priority(1).Ask(10, 10, 0))
		w.waitIdle()
		set := w.leader().server.Pin()
		defer set.Unpin()
		before, _ := set.Default().Stats()
		var text string
		for i, m := range w.members {
			if i == 1 {
				if err := m.node.TakeSnapshot(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := m.server.WhatIf(w.ctx, d, victim)
			if err != nil {
				t.Fatalf("server %s: %v", m.id, err)
			}
			got := strings.Join(answer.Text(), " ")
			if !strings.Contains(got, "would have stayed with priority +") || text != "" && got != text {
				t.Errorf("server %s answers %q, others %q", m.id, got, text)
			}
			text = got
		}
		if after, _ := set.Default().Stats(); after != before {
			t.Errorf("the policy in use was called %d times", after-before)
		}
		if _, err := w.leader().server.WhatIf(w.ctx, d, "unknown"); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("not a victim: %v", err)
		}
		old := *d
		old.PlannedOn = 0
		if _, err := w.leader().server.WhatIf(w.ctx, &old, victim); apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "older release") {
			t.Errorf("record of an older release: %v", err)
		}
		other := *d
		other.PolicyVersion = "sha256:00"
		if _, err := w.leader().server.WhatIf(w.ctx, &other, victim); apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "version sha256:00 of the policy that decided is not loaded here") {
			t.Errorf("another policy: %v", err)
		}
	})
}

// A plan that a user confirmed was made before its job was registered. It is made again with
// the job of then, also if the log moved on between.
func TestServer_WhatIfOfConfirmedPlans(t *testing.T) {
	for _, between := range []int{0, 2} {
		runServers(t, 1, nil, func(w *harness) {
			w.allowAnyPriorityGap()
			w.addNodes(1)
			w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
			w.waitIdle()
			high := func(cpu int64) *model.Job {
				job, err := copyJob(coretest.Job("high").Priority(80).Ask(cpu, 400, 0).Obj())
				if err != nil {
					t.Fatal(err)
				}
				return job
			}
			s := w.leader().server
			proposal, err := s.PlanJob(w.ctx, high(300), endpoint.PlanOptions{ExplicitPriority: true})
			if err != nil || len(proposal.Evict) != 1 {
				t.Fatalf("%+v, %v", proposal, err)
			}
			for i := range between {
				w.putCluster(fmt.Sprintf("m%d", i), 10) // entries that do not concern the plan
			}
			if _, err := s.RegisterJob(w.ctx, high(300), endpoint.RegisterOptions{Token: proposal.Token, ExplicitPriority: true}); err != nil {
				t.Fatal(err)
			}
			w.waitIdle()
			d := w.decisionOf("high")
			answer, err := s.WhatIf(w.ctx, d, d.Victims[0].AllocID)
			if err != nil || len(answer.Changes) == 0 || answer.By.JobID != "high" {
				t.Errorf("%d entries between: %+v, %v", between, answer, err)
			}
		})
	}
}

// A server whose log is truncated reports so.
func TestServer_WhatIfReportsTruncatedLog(t *testing.T) {
	runServers(t, 1, func(c *Config) { c.Log = forgetful{c.Log} }, func(w *harness) {
		d := w.lowAndHigh()
		_, err := w.leader().server.WhatIf(w.ctx, d, d.Victims[0].AllocID)
		if apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "no longer reaches back to index") {
			t.Errorf("error %v", err)
		}
	})
}

// A decision of a version that was unloaded cannot be made again until it is loaded again.
func TestServer_WhatIfNamesUnloadedVersion(t *testing.T) {
	runServers(t, 1, func(c *Config) { c.Policies = lostWorkHost{} }, func(w *harness) {
		s := w.leader().server
		var versions []string
		load := func(builtin string) {
			v, err := s.LoadPolicy(w.ctx, policy.LoadRequest{Name: "p", Builtin: builtin})
			if err == nil {
				versions = append(versions, v.ID)
				_, err = s.ActivatePolicy(w.ctx, "p", v.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		load("thrifty")
		config := coretest.AllPreempt()
		config.Policy = "p"
		if _, err := s.SetConfig(w.ctx, config, nil); err != nil {
			t.Fatal(err)
		}
		w.addNodes(1)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("urgent").Priority(80).Ask(300, 300, 0))
		w.waitIdle()
		d := w.decisionOf("urgent")
		load("wasteful")
		load("large")
		if _, err := s.UnloadPolicy(w.ctx, "p", versions[0]); err != nil {
			t.Fatal(err)
		}
		w.waitIdle() // until the server has closed the version
		want := "version " + model.ShortVersion(versions[0]) + " of policy p, which made it, was unloaded"
		if _, err := s.WhatIf(w.ctx, d, d.Victims[0].AllocID); apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		load("thrifty")
		if _, err := s.WhatIf(w.ctx, d, d.Victims[0].AllocID); err != nil {
			t.Errorf("after it was loaded again: %v", err)
		}
	})
}

// A certificate of every server holds the record and the calls, and is verified from the file
// alone. A server without a key writes none.
func TestServer_CertifiesDecisions(t *testing.T) {
	runServers(t, 3, func(c *Config) {
		if c.ID != "s3" {
			c.Decision = ed25519.NewKeyFromSeed([]byte(strings.Repeat(c.ID, 16)))
		}
	}, func(w *harness) {
		d := w.lowAndHigh()
		for i, m := range w.members {
			file, err := m.server.Certify(w.ctx, d)
			if i == 2 {
				if apierror.CodeOf(err) != apierror.CodeConflict || m.server.DecisionKey() != nil {
					t.Errorf("without a key: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("server %s: %v", m.id, err)
			}
			doc, key, err := certificate.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if !key.Equal(m.server.DecisionKey()) || doc.ServerID != m.id || doc.StateIndex != d.PlannedOn || doc.Now != d.PlannedAt || len(doc.Calls) == 0 {
				t.Errorf("server %s wrote %+v", m.id, doc)
			}
			var recorded eventsink.Decision
			if err := json.Unmarshal(doc.Decision, &recorded); err != nil || !reflect.DeepEqual(&recorded, d) {
				t.Errorf("record %+v, %v, want %+v", recorded, err, d)
			}
			if err := certificate.Verify(w.ctx, doc, builtinVersions{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// A farsightedHost also holds a policy that reads where victims could run, and what follows
// from their eviction.
type farsightedHost struct{ builtinHost }

type farsighted struct{ *rules.Default }

func (f farsighted) Info() sdk.Info {
	info := f.Default.Info()
	info.Name, info.Columns = "farsighted", info.Columns|sdk.LookAheadColumns|sdk.RelocationColumns
	return info
}

func (f farsighted) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	if err := f.Default.ScoreOptions(in, out); err != nil {
		return err
	}
	copy(out.Tiers[1], in.ExpectedDelay)
	for i := range in.Len() {
		out.Tiers[2][i] = int64(in.Stranded[i])
	}
	return nil
}

func (h farsightedHost) Builtins() []*policy.Version {
	return append(h.builtinHost.Builtins(), coretest.Version(func() sdk.Policy { return farsighted{rules.New()} }))
}

// Open opens a version of the same release.
func (h farsightedHost) Open(_ context.Context, v *model.PolicyVersion, _ []byte) (*policy.Version, error) {
	for _, b := range h.Builtins() {
		if b.ID == v.ID {
			return b, nil
		}
	}
	return nil, fmt.Errorf("unknown policy %s", v.Digest)
}

// A certificate holds the columns that the host computes by searches and plays, while moves are
// allowed. It is verified without the server, and no byte of it can be changed.
func TestServer_CertifiesLookAheadAndRelocation(t *testing.T) {
	runServers(t, 1, func(c *Config) {
		c.Policies, c.Decision = farsightedHost{}, ed25519.NewKeyFromSeed([]byte(strings.Repeat(c.ID, 16)))
	}, func(w *harness) {
		w.mustCall(func(s *Server) error {
			config := coretest.AllPreempt()
			config.Policy, config.Moves = "farsighted", &model.Rate{Number: 2, Window: time.Hour}
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		w.addNodes(3)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
		w.registerJob(coretest.Job("middle").Priority(40).Count(5).Ask(400, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0))
		w.waitIdle()
		d := w.decisionOf("high")
		if len(d.Why.Ranked) == 0 || d.Why.Ranked[0].Outlook == nil {
			t.Fatalf("no outlook in the record: %+v", d.Why)
		}
		file, err := w.leader().server.Certify(w.ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		doc, _, err := certificate.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := certificate.Verify(context.Background(), doc, farsightedHost{}); err != nil {
			t.Error(err)
		}
		for at := 0; at < len(file); at += 101 {
			file[at] ^= 1
			if _, _, err := certificate.Read(file); err == nil {
				t.Fatalf("byte %d of %d can be changed", at, len(file))
			}
			file[at] ^= 1
		}
		changed := 0
		for i := range doc.Calls {
			if call := &doc.Calls[i]; len(call.Answer) > 0 {
				call.Answer[len(call.Answer)/2] ^= 1
				changed++
				if err := certificate.Verify(context.Background(), doc, farsightedHost{}); err == nil {
					t.Errorf("another answer of call %d is accepted", i)
				}
				call.Answer[len(call.Answer)/2] ^= 1
			}
		}
		if changed == 0 {
			t.Error("no call was changed")
		}
	})
}

// builtinVersions opens the built-in default policy.
type builtinVersions struct{}

func (builtinVersions) Open(_ context.Context, v *model.PolicyVersion, _ []byte) (*policy.Version, error) {
	for _, b := range (builtinHost{}).Builtins() {
		if b.ID == v.ID {
			return b, nil
		}
	}
	return nil, fmt.Errorf("unknown policy %s", v.Digest)
}

// forgetful is a log without the past.
type forgetful struct{ Log }

func (forgetful) StateAt(context.Context, uint64) (*state.Snapshot, error) {
	return nil, raftnode.ErrPastGone
}

// Gangs, system jobs and bindings are made again like other jobs.
func TestServer_WhatIfOfOtherKinds(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.addNodes(2)
		w.putCluster("m", 10)
		w.registerBinding("x", 1, 8, nil)
		w.registerJob(coretest.Job("low").Priority(20).Count(4).Ask(450, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("gang").Priority(60).Count(2).Ask(450, 300, 0).Change(func(j *model.Job) { j.AllAtOnce = true }))
		w.waitIdle()
		w.registerJob(coretest.Job("system").Type(model.JobSystem).Priority(90).Ask(300, 300, 0))
		w.waitIdle()
		w.registerBinding("high", 10, 8, withPreemption)
		w.waitIdle()
		for _, job := range []string{"gang", "system", "high"} {
			list, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: job})
			if err != nil || len(list) == 0 {
				t.Fatalf("decisions of %s: %+v, %v", job, list, err)
			}
			for _, d := range list {
				for _, v := range d.Victims {
					answer, err := w.leader().server.WhatIf(w.ctx, d, v.AllocID)
					if err != nil {
						t.Errorf("%s: %v", job, err)
						continue
					}
					if len(answer.Changes) == 0 || answer.Victim.JobID != v.JobID {
						t.Errorf("%s: %+v", job, answer)
					}
				}
			}
		}
	})
}
