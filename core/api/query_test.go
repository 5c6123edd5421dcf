package api

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// racingServer has something happen just before a watch is set.
type racingServer struct {
	Server
	first atomic.Pointer[func()]
}

func (r *racingServer) Watch(keys ...state.Key) *state.Watch {
	if f := r.first.Swap(nil); f != nil {
		(*f)()
	}
	return r.Server.Watch(keys...)
}

// What is deleted while a query begins to wait ends the wait.
func TestBlockingQuery_SeesChangeDuringSetup(t *testing.T) {
	r := &racingServer{}
	w := start(t, func(c *Config) { r.Server = c.Server; c.Server = r })
	ctx := t.Context()
	w.check(first(w.client.PriorityClasses().Put(ctx, &client.PriorityClass{Name: "a", Value: 1})))
	_, meta, err := w.client.PriorityClasses().List(ctx, nil)
	w.check(err)
	// From here on the table's last change is known.
	_, meta, err = w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: time.Millisecond})
	w.check(err)

	remove := func() { w.check(first(w.server.DeletePriorityClass(ctx, "a"))) }
	r.first.Store(&remove)
	const wait = 2 * time.Minute
	began := time.Now()
	list, _, err := w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: wait})
	w.check(err)
	if len(list) != len(model.SystemClasses()) || time.Since(began) >= wait {
		t.Errorf("answered with %d classes after %v", len(list), time.Since(began))
	}
}
