package view

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// PriorityClass returns a priority class.
func PriorityClass(p *model.PriorityClass) *client.PriorityClass {
	return &client.PriorityClass{
		Name: p.Name, Value: int(p.Value), GlobalDefault: p.GlobalDefault, PreemptionPolicy: PreemptionPolicy(p.NeverPreempts), Description: p.Description,
	}
}

// The names of preemption policies, as in Kubernetes.
const (
	PreemptLower = "PreemptLowerPriority"
	PreemptNever = "Never"
)

// PreemptionPolicy returns the name of a preemption policy.
func PreemptionPolicy(never bool) string {
	if never {
		return PreemptNever
	}
	return PreemptLower
}

// AuditRecord returns a change by an operator.
func AuditRecord(r *model.AuditRecord) *client.AuditRecord {
	return &client.AuditRecord{
		Index: r.Index, Time: r.Time, Action: r.Action, Object: r.Object, Detail: r.Detail,
		Actor: r.Actor, ActorName: r.ActorName, Address: r.Address, Via: r.Via, RequestID: r.RequestID,
	}
}

// Token returns a token without its secret.
func Token(t *model.Token) *client.Token {
	return &client.Token{
		AccessorID: t.Accessor, Name: t.Name, Roles: t.Roles, Namespace: t.Namespace,
		CreateTime: t.CreateTime, ExpiresAt: t.ExpiresAt, CreateIndex: t.CreateIndex,
	}
}
