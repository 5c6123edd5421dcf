package server

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cede-scheduler/cede/core/model"
)

func aboutJob(j *model.Job, r *Registered) []attribute.KeyValue {
	return aboutRegistration(j.Namespace, "cede.job_id", j.ID, r)
}

func aboutBinding(b *model.Binding, r *Registered) []attribute.KeyValue {
	return aboutRegistration(cmp.Or(b.Namespace, model.DefaultNamespace), "cede.binding_id", b.ID, r)
}

func aboutRegistration(namespace, key, id string, r *Registered) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("cede.namespace", namespace), attribute.String(key, id)}
	if r != nil {
		list = append(list, attribute.String("cede.eval_id", r.EvalID), attribute.Int64("cede.index", int64(r.Index)))
	}
	return list
}
