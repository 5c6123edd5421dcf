package api

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// racingServer runs a callback immediately before a watch is created.
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

// A deletion while a query sets up its watch ends the query.
func TestBlockingQuery_SeesChangeDuringSetup(t *testing.T) {
	r := &racingServer{}
	w := start(t, func(c *Config) { r.Server = c.Server; c.Server = r })
	ctx := t.Context()
	w.check(first(w.client.PriorityClasses().Put(ctx, &client.PriorityClass{Name: "a", Value: 1})))
	_, meta, err := w.client.PriorityClasses().List(ctx, nil)
	w.check(err)
	// From here on the table's last change is tracked.
	_, meta, err = w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: time.Millisecond})
	w.check(err)

	remove := func() { w.check(first(w.server.DeletePriorityClass(ctx, "a"))) }
	r.first.Store(&remove)
	const wait = 2 * time.Minute
	began := time.Now()
	list, _, err := w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: wait})
	w.check(err)
	if len(list) != len(model.SystemClasses()) || time.Since(began) >= wait {
		t.Errorf("got %d classes after %v", len(list), time.Since(began))
	}
}
