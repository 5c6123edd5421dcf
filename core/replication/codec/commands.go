package codec

import (
	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A commandCodec is a row of the table of commands: how a kind of command is encoded,
// decoded, and split if its entry is too large. Every kind has a row: NewTable panics
// at startup if one is missing.
type commandCodec struct {
	encode func(*Encoder, replication.Command) proto.Message
	decode func(*Decoder, proto.Message) replication.Command
	split  splitFunc
}

// codecOf returns a row from typed functions. The type assertions cannot fail, because
// a row is only used for its own kind.
func codecOf[C, M any, PC interface {
	*C
	replication.Command
}, PM interface {
	*M
	proto.Message
}](encode func(*Encoder, *C) *M, decode func(*Decoder, *M) *C, split splitFunc) commandCodec {
	return commandCodec{
		encode: func(e *Encoder, c replication.Command) proto.Message {
			m := encode(e, (*C)(c.(PC)))
			if m == nil { // the command holds nothing, which fsm refuses
				m = new(M)
			}
			return PM(m)
		},
		decode: func(d *Decoder, m proto.Message) replication.Command { return PC(decode(d, (*M)(m.(PM)))) },
		split:  split,
	}
}

var commands = replication.NewTable("codec", map[replication.Kind]commandCodec{
	replication.KindBootstrap:           codecOf((*Encoder).Bootstrap, (*Decoder).Bootstrap, indivisible),
	replication.KindSetVersion:          codecOf((*Encoder).SetVersion, (*Decoder).SetVersion, indivisible),
	replication.KindRegisterJob:         codecOf((*Encoder).RegisterJob, (*Decoder).RegisterJob, indivisible),
	replication.KindStopJob:             codecOf((*Encoder).StopJob, (*Decoder).StopJob, indivisible),
	replication.KindStopAllocs:          codecOf((*Encoder).StopAllocs, (*Decoder).StopAllocs, indivisible),
	replication.KindWriteEvals:          codecOf((*Encoder).WriteEvals, (*Decoder).WriteEvals, splitEvals),
	replication.KindApplyPlans:          codecOf((*Encoder).applyPlans, (*Decoder).applyPlans, splitPlans),
	replication.KindRegisterNodes:       codecOf((*Encoder).RegisterNodes, (*Decoder).RegisterNodes, indivisible),
	replication.KindChangeNodes:         codecOf((*Encoder).ChangeNodes, (*Decoder).ChangeNodes, indivisible),
	replication.KindDeleteNodes:         codecOf((*Encoder).DeleteNodes, (*Decoder).DeleteNodes, indivisible),
	replication.KindUpdateAllocs:        codecOf((*Encoder).UpdateAllocs, (*Decoder).UpdateAllocs, splitUpdates),
	replication.KindSetConfig:           codecOf((*Encoder).SetConfig, (*Decoder).SetConfig, indivisible),
	replication.KindUpsertPriorityClass: codecOf((*Encoder).upsertPriorityClass, (*Decoder).upsertPriorityClass, indivisible),
	replication.KindDeletePriorityClass: codecOf((*Encoder).DeletePriorityClass, (*Decoder).DeletePriorityClass, indivisible),
	replication.KindUpsertNamespace:     codecOf((*Encoder).UpsertNamespace, (*Decoder).UpsertNamespace, indivisible),
	replication.KindDeleteNamespace:     codecOf((*Encoder).DeleteNamespace, (*Decoder).DeleteNamespace, indivisible),
	replication.KindUpsertBudget:        codecOf((*Encoder).upsertBudget, (*Decoder).upsertBudget, indivisible),
	replication.KindDeleteBudget:        codecOf((*Encoder).DeleteBudget, (*Decoder).DeleteBudget, indivisible),
	replication.KindUpsertClusters:      codecOf((*Encoder).UpsertClusters, (*Decoder).UpsertClusters, indivisible),
	replication.KindChangeClusters:      codecOf((*Encoder).ChangeClusters, (*Decoder).ChangeClusters, indivisible),
	replication.KindDeleteCluster:       codecOf((*Encoder).DeleteCluster, (*Decoder).DeleteCluster, indivisible),
	replication.KindUpsertBinding:       codecOf((*Encoder).UpsertBinding, (*Decoder).UpsertBinding, indivisible),
	replication.KindStopBinding:         codecOf((*Encoder).StopBinding, (*Decoder).StopBinding, indivisible),
	replication.KindDeleteBinding:       codecOf((*Encoder).DeleteBinding, (*Decoder).DeleteBinding, indivisible),
	replication.KindEndAssignments:      codecOf((*Encoder).EndAssignments, (*Decoder).EndAssignments, indivisible),
	replication.KindUpdateAssignments:   codecOf((*Encoder).UpdateAssignments, (*Decoder).UpdateAssignments, indivisible),
	replication.KindStopAssignments:     codecOf((*Encoder).StopAssignments, (*Decoder).StopAssignments, indivisible),
	replication.KindCollect:             codecOf((*Encoder).Collect, (*Decoder).Collect, indivisible),
	replication.KindPutChunk:            codecOf((*Encoder).PutChunk, (*Decoder).PutChunk, indivisible),
	replication.KindRestoreState:        codecOf((*Encoder).RestoreState, (*Decoder).RestoreState, indivisible),
	replication.KindLoadPolicy:          codecOf((*Encoder).loadPolicy, (*Decoder).loadPolicy, indivisible),
	replication.KindCheckPolicy:         codecOf((*Encoder).CheckPolicy, (*Decoder).CheckPolicy, indivisible),
	replication.KindReportShadow:        codecOf((*Encoder).ReportShadow, (*Decoder).ReportShadow, indivisible),
	replication.KindChangePolicy:        codecOf((*Encoder).ChangePolicy, (*Decoder).ChangePolicy, indivisible),
	replication.KindPutToken:            codecOf((*Encoder).PutToken, (*Decoder).PutToken, indivisible),
	replication.KindDeleteToken:         codecOf((*Encoder).DeleteToken, (*Decoder).DeleteToken, indivisible),
	replication.KindPutSigner:           codecOf((*Encoder).PutSigner, (*Decoder).PutSigner, indivisible),
})

// Some commands are encoded as the message of their only field.

func (e *Encoder) applyPlans(c *replication.ApplyPlans) *pb.Batch { return e.batch(c.Batch, nil) }

func (d *Decoder) applyPlans(m *pb.Batch) *replication.ApplyPlans {
	return &replication.ApplyPlans{Batch: d.batch(m)}
}

func (e *Encoder) upsertPriorityClass(c *replication.UpsertPriorityClass) *pb.PriorityClass {
	return e.PriorityClass(c.Class)
}

func (d *Decoder) upsertPriorityClass(m *pb.PriorityClass) *replication.UpsertPriorityClass {
	return &replication.UpsertPriorityClass{Class: d.PriorityClass(m)}
}

func (e *Encoder) upsertBudget(c *replication.UpsertBudget) *pb.Budget { return e.Budget(c.Budget) }

func (d *Decoder) upsertBudget(m *pb.Budget) *replication.UpsertBudget {
	return &replication.UpsertBudget{Budget: d.Budget(m)}
}

func (e *Encoder) loadPolicy(c *replication.LoadPolicy) *pb.PolicyVersion {
	return e.PolicyVersion(c.Version)
}

func (d *Decoder) loadPolicy(m *pb.PolicyVersion) *replication.LoadPolicy {
	return &replication.LoadPolicy{Version: d.PolicyVersion(m)}
}

// EncodeEvals encodes evaluations for another server. It uses the format of the log, so
// that servers of two releases understand each other as far as they understand each
// other's entries.
func EncodeEvals(evals []*model.Evaluation) []byte {
	return Encode(&replication.Entry{Command: &replication.WriteEvals{Evals: evals}})
}

// DecodeEvals decodes the result of EncodeEvals. It returns the errors of Decode.
func DecodeEvals(b []byte) ([]*model.Evaluation, error) {
	e, err := Decode(b)
	if err != nil {
		return nil, err
	}
	c, ok := e.Command.(*replication.WriteEvals)
	if !ok {
		return nil, replication.FormatErrorf("want evaluations, got an entry of kind %d", replication.KindOf(e.Command))
	}
	return c.Evals, nil
}

// EncodePlan encodes a plan with all of its groups for another server. All groups count
// as committed: the receiver decides which hold.
func EncodePlan(p *model.Plan) []byte {
	groups := make([]int, len(p.Groups))
	for i := range groups {
		groups[i] = i
	}
	return Encode(&replication.Entry{Command: &replication.ApplyPlans{
		Batch: &apply.Batch{Now: p.Now, Plans: []apply.BatchPlan{{Plan: p, Groups: groups}}},
	}})
}

// DecodePlan decodes the result of EncodePlan. Job versions are references until
// BindPlan resolves them. It returns the errors of Decode. The caller owns the plan.
func DecodePlan(b []byte) (*model.Plan, error) {
	e, err := Decode(b)
	if err != nil {
		return nil, err
	}
	c, ok := e.Command.(*replication.ApplyPlans)
	if !ok || c.Batch == nil || len(c.Batch.Plans) != 1 {
		return nil, replication.FormatErrorf("want one plan, got an entry of kind %d", replication.KindOf(e.Command))
	}
	return c.Batch.Plans[0].Plan, nil
}
