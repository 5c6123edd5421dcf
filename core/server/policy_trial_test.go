package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/trial"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A lostWorkHost holds versions that evict the victims with the least lost work, or with
// the most.
type lostWorkHost struct{ builtinHost }

// A lostWorkPolicy scores victims by their lost work times a sign.
type lostWorkPolicy struct{ sign float64 }

func (lostWorkPolicy) Info() sdk.Info {
	return sdk.Info{Name: "p", Delta: 10, Columns: sdk.LostWorkColumn}
}

func (p lostWorkPolicy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for i := range out.Score {
		out.Tier[i] = int64(in.Rows.Priority[i])
		out.Score[i] = p.sign * float64(in.Rows.LostWork[i])
	}
	return nil
}

// Describe returns a version with the name of the request's builtin policy as its digest.
func (lostWorkHost) Describe(_ context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	v, err := openLostWork("sha256:" + r.Builtin)
	if err != nil {
		return nil, err
	}
	return &model.PolicyVersion{ID: v.ID, Name: "p", Digest: v.Digest, Kind: model.PolicyBuiltin, Config: v.Config()}, nil
}

func (lostWorkHost) Open(_ context.Context, v *model.PolicyVersion, _ []byte) (*policy.Version, error) {
	return openLostWork(v.Digest)
}

func openLostWork(digest string) (*policy.Version, error) {
	sign := 1.0
	if strings.Contains(digest, "wasteful") {
		sign = -1
	}
	return policy.NewVersion(policy.Source{Name: "p", Module: policy.Native(digest, func() sdk.Policy { return lostWorkPolicy{sign} })})
}

// verdicts holds the conditions worse and better, on the lost work.
type verdicts struct{}

func (verdicts) Check(string) ([]string, error) { return []string{"wastedWork.cpu"}, nil }

func (verdicts) Holds(condition string, s *trial.Summary) (bool, string, error) {
	d := s.Measure("wastedWork.cpu").Difference
	return condition == "worse" && d.Low > 0 || condition == "better" && d.High < 0, fmt.Sprintf("%s after %d pairs", condition, s.Pairs), nil
}

// runTrial runs a trial of one version against another, with arrivals that evict, until it
// has ended. disturb is called after every arrival.
func runTrial(t *testing.T, servers int, seed uint64, baseline, candidate string, disturb func(w *harness, arrival int)) (got *model.PolicyTrial, roles model.PolicyState, events []string) {
	t.Helper()
	const block = time.Minute
	change := func(c *Config) { c.Policies, c.Conditions = lostWorkHost{}, verdicts{} }
	runServers(t, servers, change, func(w *harness) {
		w.addNodes(1)
		versions := map[string]string{}
		for _, name := range []string{baseline, candidate} {
			w.mustCall(func(s *Server) error {
				v, err := s.LoadPolicy(w.ctx, policy.LoadRequest{Name: "p", Builtin: name})
				if err == nil {
					versions[name] = v.ID
				}
				return err
			})
		}
		w.mustCall(func(s *Server) error {
			_, err := s.ActivatePolicy(w.ctx, "p", versions[baseline])
			return err
		})
		config := coretest.AllPreempt()
		config.Policy = "p"
		w.mustCall(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		w.registerJob(coretest.Job("low").Priority(20).Count(3).Ask(300, 300, 0))
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StartTrial(audit.WithOrigin(w.ctx, model.AuditOrigin{Actor: "alice"}), "p", versions[candidate], policymgr.TrialRequest{
				For: 40 * block, Block: block, Seed: seed, StopIf: "worse", PromoteIf: "better",
			})
			return err
		})
		for arrival := 0; w.snap().PolicyTrial("p").Running(); arrival++ {
			w.registerJob(coretest.Job("high").Priority(80).Ask(300, 300, 0))
			w.waitIdle()
			w.mustCall(func(s *Server) error {
				_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "high"}, endpoint.StopOptions{})
				return err
			})
			w.waitIdle()
			disturb(w, arrival)
			time.Sleep(7 * time.Second)
		}
		snap := w.snap()
		got, roles = snap.PolicyTrial("p"), *snap.PolicyState("p")
		if roles.Active != versions[baseline] && roles.Active != versions[candidate] {
			t.Errorf("%+v", roles)
		}
		events = w.eventTypes("Policy")
		if r := snap.AuditRecords(); len(r) > 0 {
			begun, ended := slices.IndexFunc(r, func(r *model.AuditRecord) bool { return r.Action == "policy.trial" }), r[len(r)-1]
			if begun < 0 || r[begun].Actor != "alice" || ended.Actor != model.TrialActor || ended.Action != "policy.rollback" && ended.Action != "policy.activate" {
				t.Errorf("the audit records end with %+v", ended)
			}
		} else {
			t.Error("there are no audit records")
		}
		for _, id := range versions {
			if sums := snap.PolicyVersion(id).Shadow; sums.Compared == 0 || sums.Active.Victims == 0 || sums.Shadow.Victims == 0 {
				t.Errorf("the shadow run of %s has the sums %+v", id, sums)
			}
		}
	})
	return got, roles, events
}

// checkBlocks checks that the blocks of a trial are those of its seed, and are measured.
func checkBlocks(t *testing.T, got *model.PolicyTrial) {
	t.Helper()
	victims, arrived := int64(0), int64(0)
	for i, b := range got.Blocks {
		if b.Candidate != got.Plan.CandidateDecides(i) {
			t.Errorf("block %d: the candidate decides: %t", i, b.Candidate)
		}
		victims += b.Sums.Victims
		arrived += b.Sums.Arrived
	}
	if blocks := int64(len(got.Blocks)); victims < blocks || arrived < 300*blocks {
		t.Errorf("%d victims in %d blocks, %d millicores arrived", victims, blocks, arrived)
	}
}

// A version that loses more work is stopped, although leaders stop in between. The blocks,
// the verdict and its actor are those of a trial on one server.
func TestPolicies_TrialStopsWorseVersionAcrossLeaders(t *testing.T) {
	down, killed := -1, 0
	disturb := func(w *harness, arrival int) {
		switch {
		case arrival%15 == 7 && down < 0:
			down = slices.Index(w.members, w.leader())
			w.members[down].halt()
			killed++
			w.leader()
		case arrival%15 == 10 && down >= 0:
			w.members[down].start()
			down = -1
		}
	}
	got, roles, events := runTrial(t, 3, 11, "careful", "wasteful", disturb)
	checkBlocks(t, got)
	end := got.End
	if end.Ended != model.TrialStopped || end.Actor != model.TrialActor || !strings.HasPrefix(end.Reason, "worse after") || roles.Active != got.Baseline || roles.LastTrial != end {
		t.Errorf("%+v, %+v", end, roles)
	}
	if killed < 2 || got.Actor != "alice" {
		t.Errorf("%d leaders were stopped, in a trial of %q", killed, got.Actor)
	}
	if !slices.Contains(events, "PolicyRolledBack p") {
		t.Errorf("events %v", events)
	}
}

func TestPolicies_TrialPromotesBetterVersion(t *testing.T) {
	got, roles, _ := runTrial(t, 1, 11, "wasteful", "careful", func(*harness, int) {})
	checkBlocks(t, got)
	if got.End.Ended != model.TrialPromoted || roles.Active != got.Candidate || roles.Previous != got.Baseline || roles.Shadow != "" || len(got.Blocks) > 30 {
		t.Errorf("%+v, %+v after %d blocks", got.End, roles, len(got.Blocks))
	}
}

// Two versions that decide alike get no verdict, and the baseline remains.
func TestPolicies_TrialOfEqualVersionsExpires(t *testing.T) {
	got, roles, _ := runTrial(t, 1, 11, "careful", "careful too", func(*harness, int) {})
	checkBlocks(t, got)
	if got.End.Ended != model.TrialExpired || roles.Active != got.Baseline || len(got.Blocks) < 35 {
		t.Errorf("%+v, %+v after %d blocks", got.End, roles, len(got.Blocks))
	}
}

// Versions that decide alike rarely get a verdict, although the conditions are evaluated
// after every pair of blocks of a random load.
func TestPolicies_TrialsOfEqualVersionsRarelyDecide(t *testing.T) {
	runs, wrong := soak.Count(8, 1000), 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		got, _, _ := runTrial(t, 1, seed+1, "careful", "careful too", func(*harness, int) { time.Sleep(time.Duration(r.ExpFloat64() * float64(10*time.Second))) })
		if got.End.Ended != model.TrialExpired {
			wrong++
		}
	}
	if wrong > max(1, runs*5/100) {
		t.Errorf("%d of %d trials of equal versions decided", wrong, runs)
	}
}
