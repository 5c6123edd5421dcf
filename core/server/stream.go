package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/events"
)

// Events reads what happens, from an index on; 0: from now on. No topics means
// all. Events that are not kept any more are told of as lost.
func (s *Server) Events(_ context.Context, from uint64, topics []string) (*events.Subscription, error) {
	var filter events.Filter
	var problems []string
	for _, name := range topics {
		if name == "*" {
			return s.stream.Subscribe(from, nil), nil
		}
		i := slices.IndexFunc(events.Topics, func(t events.Topic) bool { return strings.EqualFold(string(t), name) })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("%q", name))
			continue
		}
		filter = append(filter, events.Topics[i])
	}
	if len(problems) > 0 {
		return nil, fail(CodeInvalid, "there is no topic %s", strings.Join(problems, ", ")).
			hint("the topics are %v", events.Topics)
	}
	return s.stream.Subscribe(from, filter), nil
}
