package rpc

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// refusals limits how many refused callers are logged. Every program that reaches the port can
// cause a refusal with each connection, so most of them are only counted.
type refusals struct {
	count atomic.Int64
	some  rate.Sometimes
}

func newRefusals() *refusals {
	return &refusals{some: rate.Sometimes{First: 10, Interval: 10 * time.Second}}
}

// record counts a refusal. It calls log for the first ones, and at most once per interval
// after them, with the number of all refusals since the start.
func (r *refusals) record(log func(count int64)) {
	count := r.count.Add(1)
	r.some.Do(func() { log(count) })
}
