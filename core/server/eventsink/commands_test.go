package eventsink

import (
	"testing"

	"github.com/cede-scheduler/cede/core/replication"
)

func TestBuilders_HaveARowForEveryCommand(t *testing.T) {
	for _, k := range replication.Kinds() {
		if build, ok := builders.Lookup(k); !ok || build == nil {
			t.Errorf("%s has no builder", k)
		}
	}
}
