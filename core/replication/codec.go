package replication

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// format is how entries and snapshots are written down. A server reads its own
// and the one before.
const format = 1

// FormatError says that an entry cannot be read, or not be understood, by this
// server. It must not be skipped: whoever skips it no longer has the state that
// the others have.
type FormatError struct{ What string }

func (e *FormatError) Error() string { return e.What }

func notUnderstood(text string, args ...any) error {
	return &FormatError{fmt.Sprintf(text, args...)}
}

// Encode writes an entry down. Versions of jobs that a batch places are written
// as references to the state, so a plan must not name versions that are not in
// it. The entry stays as it is.
func Encode(e *Entry) []byte {
	var w writer
	return mustMarshal(proto.MarshalOptions{}, w.entry(e))
}

func (w *writer) entry(e *Entry) *pb.Entry {
	m := &pb.Entry{Format: format, Time: e.Time, Key: text(e.Key), Hash: hashBytes(&e.Hash), Kind: uint32(e.Command.command())}
	switch c := e.Command.(type) {
	case *Bootstrap:
		m.Command = &pb.Entry_Bootstrap{Bootstrap: &pb.Bootstrap{ClusterId: text(c.ClusterID), Version: c.Version, Key: hashBytes(&c.Key)}}
	case *SetVersion:
		m.Command = &pb.Entry_SetVersion{SetVersion: &pb.SetVersion{Version: c.Version}}
	case *RegisterJob:
		var key *model.JobKey
		if c.Job != nil {
			key = new(c.Job.Key())
		}
		m.Command = &pb.Entry_RegisterJob{RegisterJob: &pb.RegisterJob{
			Job: jobToPB(c.Job), Eval: w.eval(c.Eval), Check: c.Check, Batch: w.batch(c.Batch, key), Rules: c.Rules,
		}}
	case *StopJob:
		m.Command = &pb.Entry_StopJob{StopJob: &pb.StopJob{
			Key: keyToPB(c.Key), Purge: c.Purge, Eval: w.eval(c.Eval), Check: c.Check,
		}}
	case *StopAllocs:
		m.Command = &pb.Entry_StopAllocs{StopAllocs: &pb.StopAllocs{Ids: w.ids(c.IDs), Reason: text(c.Reason)}}
	case *WriteEvals:
		evals := each(c.Evals, func(ev **model.Evaluation) *pb.Evaluation { return w.eval(*ev) })
		m.Command = &pb.Entry_WriteEvals{WriteEvals: &pb.WriteEvals{Evals: evals}}
	case *ApplyPlans:
		m.Command = &pb.Entry_ApplyPlans{ApplyPlans: w.batch(c.Batch, nil)}
	case *RegisterNodes:
		nodes := each(c.Nodes, func(n **model.Node) *pb.Node { return w.node(*n) })
		m.Command = &pb.Entry_RegisterNodes{RegisterNodes: &pb.RegisterNodes{Nodes: nodes}}
	case *ChangeNodes:
		m.Command = &pb.Entry_ChangeNodes{ChangeNodes: w.changeNodes(c)}
	case *DeleteNodes:
		m.Command = &pb.Entry_DeleteNodes{DeleteNodes: &pb.DeleteNodes{Ids: w.ids(c.IDs)}}
	case *UpdateAllocs:
		m.Command = &pb.Entry_UpdateAllocs{UpdateAllocs: &pb.UpdateAllocs{Updates: each(c.Updates, w.clientUpdate)}}
	default:
		w.operatorCommand(m, e.Command)
	}
	return m
}

// operatorCommand is the half of the commands that operators and policies need.
func (w *writer) operatorCommand(m *pb.Entry, command Command) {
	switch c := command.(type) {
	case *SetConfig:
		m.Command = &pb.Entry_SetConfig{SetConfig: &pb.SetConfig{Config: configToPB(c.Config), Check: c.Check}}
	case *UpsertPriorityClass:
		m.Command = &pb.Entry_UpsertPriorityClass{UpsertPriorityClass: classToPB(c.Class)}
	case *DeletePriorityClass:
		m.Command = &pb.Entry_DeletePriorityClass{DeletePriorityClass: &pb.DeletePriorityClass{Name: text(c.Name)}}
	case *UpsertBudget:
		m.Command = &pb.Entry_UpsertBudget{UpsertBudget: budgetToPB(c.Budget)}
	case *DeleteBudget:
		m.Command = &pb.Entry_DeleteBudget{DeleteBudget: &pb.DeleteBudget{
			Namespace: text(c.Key.Namespace), Name: text(c.Key.Name),
		}}
	case *UpsertClusters, *ChangeClusters, *DeleteCluster, *UpsertBinding, *StopBinding, *DeleteBinding,
		*EndAssignments, *UpdateAssignments, *StopAssignments:
		w.bindingCommand(m, c)
	case *Collect:
		m.Command = &pb.Entry_Collect{Collect: &pb.Collect{
			Evals: w.ids(c.Evals), Allocs: w.ids(c.Allocs), Nodes: w.ids(c.Nodes), Policies: texts(c.Policies),
			Jobs: each(c.Jobs, func(k *model.JobKey) *pb.JobKey { return keyToPB(*k) }),
		}}
	case *PutChunk:
		m.Command = &pb.Entry_PutChunk{PutChunk: &pb.PutChunk{Digest: text(c.Digest), Offset: c.Offset, Data: c.Data}}
	case *LoadPolicy:
		m.Command = &pb.Entry_LoadPolicy{LoadPolicy: versionToPB(c.Version)}
	case *CheckPolicy:
		m.Command = &pb.Entry_CheckPolicy{CheckPolicy: &pb.CheckPolicy{
			Version: text(c.Version), Server: text(c.Server), Check: checkToPB(&c.Check),
		}}
	case *ChangePolicy:
		m.Command = &pb.Entry_ChangePolicy{ChangePolicy: &pb.ChangePolicy{
			Name: text(c.Name), Op: uint32(c.Op), Version: text(c.Version), Reason: text(c.Reason),
			Until: c.Until, Force: c.Force,
		}}
	case *PutToken:
		m.Command = &pb.Entry_PutToken{PutToken: &pb.PutToken{Token: tokenToPB(c.Token), Bootstrap: c.Bootstrap}}
	case *DeleteToken:
		m.Command = &pb.Entry_DeleteToken{DeleteToken: &pb.DeleteToken{Accessor: text(c.Accessor)}}
	default:
		panic(fmt.Sprintf("replication: %T cannot be written down", command))
	}
}

// Decode reads what Encode wrote. It fails with a *FormatError for what a newer
// server wrote, and for what is damaged.
func Decode(b []byte) (*Entry, error) {
	var m pb.Entry
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, notUnderstood("log entry is damaged: %v", err)
	}
	if m.Format != format {
		return nil, notUnderstood("log entry is of format %d and this server reads format %d: upgrade it", m.Format, format)
	}
	if m.Command == nil {
		return nil, notUnderstood("log entry holds command %d, which this server does not know: upgrade it", m.Kind)
	}
	var r reader
	e := &Entry{Time: m.Time, Key: m.Key, Hash: r.hash(m.Hash), Command: r.command(&m)}
	switch {
	case r.err != nil:
		return nil, notUnderstood("log entry of kind %d: %v", m.Kind, r.err)
	case uint32(e.Command.command()) != m.Kind:
		return nil, notUnderstood("log entry is of kind %d and holds kind %d", m.Kind, e.Command.command())
	}
	return e, nil
}

func (r *reader) command(m *pb.Entry) Command {
	switch c := m.Command.(type) {
	case *pb.Entry_Bootstrap:
		return &Bootstrap{ClusterID: c.Bootstrap.GetClusterId(), Version: c.Bootstrap.GetVersion(), Key: r.hash(c.Bootstrap.GetKey())}
	case *pb.Entry_SetVersion:
		return &SetVersion{c.SetVersion.GetVersion()}
	case *pb.Entry_RegisterJob:
		j := c.RegisterJob
		return &RegisterJob{Job: r.job(j.GetJob()), Eval: r.eval(j.GetEval()), Check: j.Check, Batch: r.batch(j.GetBatch()), Rules: j.GetRules()}
	case *pb.Entry_StopJob:
		s := c.StopJob
		return &StopJob{Key: keyOf(s.GetKey()), Purge: s.GetPurge(), Eval: r.eval(s.GetEval()), Check: s.Check}
	case *pb.Entry_StopAllocs:
		return &StopAllocs{IDs: r.ids(c.StopAllocs.GetIds()), Reason: c.StopAllocs.GetReason()}
	case *pb.Entry_WriteEvals:
		return &WriteEvals{each(c.WriteEvals.GetEvals(), func(e **pb.Evaluation) *model.Evaluation { return r.eval(*e) })}
	case *pb.Entry_ApplyPlans:
		return &ApplyPlans{r.batch(c.ApplyPlans)}
	case *pb.Entry_RegisterNodes:
		return &RegisterNodes{each(c.RegisterNodes.GetNodes(), func(n **pb.Node) *model.Node { return r.node(*n) })}
	case *pb.Entry_ChangeNodes:
		return r.changeNodes(c.ChangeNodes)
	case *pb.Entry_DeleteNodes:
		return &DeleteNodes{r.ids(c.DeleteNodes.GetIds())}
	case *pb.Entry_UpdateAllocs:
		return &UpdateAllocs{each(c.UpdateAllocs.GetUpdates(), r.clientUpdate)}
	}
	return r.operatorCommand(m)
}

func (r *reader) operatorCommand(m *pb.Entry) Command {
	switch c := m.Command.(type) {
	case *pb.Entry_SetConfig:
		return &SetConfig{Config: r.config(c.SetConfig.GetConfig()), Check: c.SetConfig.Check}
	case *pb.Entry_UpsertPriorityClass:
		return &UpsertPriorityClass{classOf(c.UpsertPriorityClass)}
	case *pb.Entry_DeletePriorityClass:
		return &DeletePriorityClass{c.DeletePriorityClass.GetName()}
	case *pb.Entry_UpsertBudget:
		return &UpsertBudget{budgetOf(c.UpsertBudget)}
	case *pb.Entry_DeleteBudget:
		return &DeleteBudget{model.BudgetKey{Namespace: c.DeleteBudget.GetNamespace(), Name: c.DeleteBudget.GetName()}}
	case *pb.Entry_UpsertClusters, *pb.Entry_ChangeClusters, *pb.Entry_DeleteCluster, *pb.Entry_UpsertBinding,
		*pb.Entry_StopBinding, *pb.Entry_DeleteBinding, *pb.Entry_EndAssignments, *pb.Entry_UpdateAssignments,
		*pb.Entry_StopAssignments:
		return r.bindingCommand(m)
	case *pb.Entry_Collect:
		l := c.Collect
		return &Collect{
			Evals: r.ids(l.GetEvals()), Allocs: r.ids(l.GetAllocs()), Nodes: r.ids(l.GetNodes()), Policies: l.GetPolicies(),
			Jobs: each(l.GetJobs(), func(k **pb.JobKey) model.JobKey { return keyOf(*k) }),
		}
	case *pb.Entry_PutChunk:
		return &PutChunk{Digest: c.PutChunk.GetDigest(), Offset: c.PutChunk.GetOffset(), Data: c.PutChunk.GetData()}
	case *pb.Entry_LoadPolicy:
		return &LoadPolicy{versionOf(c.LoadPolicy)}
	case *pb.Entry_CheckPolicy:
		k := c.CheckPolicy
		return &CheckPolicy{Version: k.GetVersion(), Server: k.GetServer(), Check: checkOf(k.GetCheck())}
	case *pb.Entry_ChangePolicy:
		p := c.ChangePolicy
		return &ChangePolicy{
			Name: p.GetName(), Op: PolicyOp(r.enum("policy operation", p.GetOp(), uint32(OpReset))), Version: p.GetVersion(),
			Reason: p.GetReason(), Until: p.GetUntil(), Force: p.GetForce(),
		}
	case *pb.Entry_PutToken:
		return &PutToken{Token: r.token(c.PutToken.GetToken()), Bootstrap: c.PutToken.GetBootstrap()}
	case *pb.Entry_DeleteToken:
		return &DeleteToken{c.DeleteToken.GetAccessor()}
	}
	panic(fmt.Sprintf("replication: %T is not read", m.Command))
}
