package replication

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

func versionToPB(v *model.PolicyVersion) *pb.PolicyVersion {
	m := &pb.PolicyVersion{
		Id: text(v.ID), Name: text(v.Name), Digest: text(v.Digest), Kind: text(v.Kind), Size: v.Size, Config: v.Config,
		Grants: texts(v.Grants), OnFault: text(v.OnFault), Signer: text(v.Signer), Time: v.Time,
		CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex,
		Limits: &pb.PolicyLimits{
			Fuel: v.Limits.Fuel, FuelPerRow: v.Limits.FuelPerRow, Memory: v.Limits.Memory, Time: v.Limits.Time,
		},
	}
	if len(v.Checks) > 0 {
		m.Checks = make(map[string]*pb.PolicyCheck, len(v.Checks))
		for server, c := range v.Checks {
			m.Checks[text(server)] = checkToPB(&c)
		}
	}
	return m
}

func versionOf(m *pb.PolicyVersion) *model.PolicyVersion {
	v := &model.PolicyVersion{
		ID: m.Id, Name: m.Name, Digest: m.Digest, Kind: m.Kind, Size: m.Size, Config: m.Config,
		Grants: m.Grants, OnFault: m.OnFault, Signer: m.Signer, Time: m.Time,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
		Limits: model.PolicyLimits{
			Fuel: m.GetLimits().GetFuel(), FuelPerRow: m.GetLimits().GetFuelPerRow(),
			Memory: m.GetLimits().GetMemory(), Time: m.GetLimits().GetTime(),
		},
	}
	if len(m.Checks) > 0 {
		v.Checks = make(map[string]model.PolicyCheck, len(m.Checks))
		for server, c := range m.Checks {
			v.Checks[server] = checkOf(c)
		}
	}
	return v
}

func checkToPB(c *model.PolicyCheck) *pb.PolicyCheck {
	return &pb.PolicyCheck{Ok: c.OK, Error: text(c.Error), Time: c.Time}
}

func checkOf(m *pb.PolicyCheck) model.PolicyCheck {
	return model.PolicyCheck{OK: m.GetOk(), Error: m.GetError(), Time: m.GetTime()}
}

func policyStateToPB(s *model.PolicyState) *pb.PolicyState {
	m := &pb.PolicyState{
		Name: text(s.Name), Active: text(s.Active), Previous: text(s.Previous), Shadow: text(s.Shadow),
		Tripped: stringMap(s.Tripped), Until: s.Until, ModifyIndex: s.ModifyIndex,
	}
	if t := s.LastTrial; t != (model.Trial{}) {
		m.LastTrial = &pb.Trial{Version: text(t.Version), Ended: text(string(t.Ended)), Time: t.Time}
	}
	return m
}

func policyStateOf(m *pb.PolicyState) *model.PolicyState {
	return &model.PolicyState{
		Name: m.Name, Active: m.Active, Previous: m.Previous, Shadow: m.Shadow,
		Tripped: emptyNil(m.Tripped), Until: m.Until, ModifyIndex: m.ModifyIndex,
		LastTrial: model.Trial{Version: m.GetLastTrial().GetVersion(), Ended: model.TrialEnd(m.GetLastTrial().GetEnded()), Time: m.GetLastTrial().GetTime()},
	}
}

func tokenToPB(t *model.Token) *pb.Token {
	return &pb.Token{
		Accessor: text(t.Accessor), Name: text(t.Name), Hash: hashBytes(&t.Hash), Roles: texts(t.Roles),
		Namespace: text(t.Namespace), CreateTime: t.CreateTime, ExpiresAt: t.ExpiresAt, CreateIndex: t.CreateIndex,
	}
}

func (r *reader) token(m *pb.Token) *model.Token {
	return &model.Token{
		Accessor: m.Accessor, Name: m.Name, Hash: r.hash(m.Hash), Roles: m.Roles,
		Namespace: m.Namespace, CreateTime: m.CreateTime, ExpiresAt: m.ExpiresAt, CreateIndex: m.CreateIndex,
	}
}

func configToPB(c *model.SchedulerConfig) *pb.SchedulerConfig {
	return &pb.SchedulerConfig{
		Algorithm: text(string(c.Algorithm)), Preemption: preemptionToPB(&c.Preemption), PriorityDelta: c.PriorityDelta,
		Policy: text(c.Policy), OnFault: text(c.OnFault), BrokerPaused: c.BrokerPaused,
		Coalescing: c.Coalescing, Shedding: c.Shedding, ModifyIndex: c.ModifyIndex,
		PriorityBasedScheduling:           c.Gates.PriorityBasedScheduling,
		PriorityBasedPreemptiveScheduling: c.Gates.PriorityBasedPreemptiveScheduling,
		StrictPriorityClasses:             c.Gates.StrictPriorityClasses,
	}
}

// preemptionToPB leaves bindings out as long as it is off for them: servers that
// know of none read the rest.
func preemptionToPB(on *[model.EvalTypes]bool) []bool {
	if on[model.JobBinding] {
		return on[:]
	}
	return on[:model.JobTypes]
}

func (r *reader) config(m *pb.SchedulerConfig) *model.SchedulerConfig {
	c := &model.SchedulerConfig{
		Algorithm: model.Algorithm(m.Algorithm), PriorityDelta: m.PriorityDelta,
		Policy: m.Policy, OnFault: m.OnFault, BrokerPaused: m.BrokerPaused,
		Coalescing: m.Coalescing, Shedding: m.Shedding, ModifyIndex: m.ModifyIndex,
		Gates: model.FeatureGates{
			PriorityBasedScheduling:           m.PriorityBasedScheduling,
			PriorityBasedPreemptiveScheduling: m.PriorityBasedPreemptiveScheduling,
			StrictPriorityClasses:             m.StrictPriorityClasses,
		},
	}
	if len(m.Preemption) > len(c.Preemption) {
		r.fail("preemption of %d job types: this server knows %d", len(m.Preemption), len(c.Preemption))
	}
	copy(c.Preemption[:], m.Preemption)
	return c
}

func budgetToPB(b *model.Budget) *pb.Budget {
	return &pb.Budget{
		Namespace: text(b.Namespace), Name: text(b.Name), Labels: stringMap(b.Labels), Strict: b.Strict,
		MinAvailable: boundToPB(b.MinAvailable), MaxUnavailable: boundToPB(b.MaxUnavailable),
		MaxEvictions: rateToPB(b.MaxEvictions), CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
}

// recentToPB is a budget as snapshots keep it: with the evictions that it remembers.
func recentToPB(b *model.Budget, recent []model.EvictionCount) *pb.Budget {
	m := budgetToPB(b)
	for _, e := range recent {
		m.Recent = append(m.Recent, &pb.EvictionsAt{At: e.At, N: e.N})
	}
	return m
}

func recentOf(m *pb.Budget) (list []model.EvictionCount) {
	for _, e := range m.Recent {
		list = append(list, model.EvictionCount{At: e.GetAt(), N: e.GetN()})
	}
	return list
}

func budgetOf(m *pb.Budget) *model.Budget {
	return &model.Budget{
		Namespace: m.Namespace, Name: m.Name, Labels: emptyNil(m.Labels), Strict: m.Strict,
		MinAvailable: boundOf(m.MinAvailable), MaxUnavailable: boundOf(m.MaxUnavailable),
		MaxEvictions: rateOf(m.MaxEvictions), CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
}

func rateToPB(r *model.Rate) *pb.Rate {
	if r == nil {
		return nil
	}
	return &pb.Rate{Number: r.Number, Window: int64(r.Window)}
}

func rateOf(m *pb.Rate) *model.Rate {
	if m == nil {
		return nil
	}
	return &model.Rate{Number: m.Number, Window: time.Duration(m.Window)}
}

func boundToPB(b *model.Bound) *pb.Bound {
	if b == nil {
		return nil
	}
	return &pb.Bound{Number: b.Number, Percent: b.Percent}
}

func boundOf(m *pb.Bound) *model.Bound {
	if m == nil {
		return nil
	}
	return &model.Bound{Number: m.Number, Percent: m.Percent}
}

func classToPB(c *model.PriorityClass) *pb.PriorityClass {
	return &pb.PriorityClass{
		Name: text(c.Name), Value: c.Value, GlobalDefault: c.GlobalDefault, NeverPreempts: c.NeverPreempts,
		Description: text(c.Description),
	}
}

func classOf(m *pb.PriorityClass) *model.PriorityClass {
	return &model.PriorityClass{
		Name: m.Name, Value: m.Value, GlobalDefault: m.GlobalDefault, NeverPreempts: m.NeverPreempts,
		Description: m.Description,
	}
}
