package server

import (
	"context"

	"github.com/cede-scheduler/cede/core/events"
)

// Events reads what happens, from an index on; 0: from now on. No topics means
// all; of a topic that there is not nothing comes. Events that are not kept any
// more are told of as lost.
func (s *Server) Events(_ context.Context, from uint64, topics []string) (*events.Subscription, error) {
	var filter events.Filter
	for _, name := range topics {
		if name == "*" {
			return s.stream.Subscribe(from, nil), nil
		}
		filter = append(filter, events.Topic(name))
	}
	return s.stream.Subscribe(from, filter), nil
}
