package conflict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// The workload is drawn from the first 5,611 s of the Google trace of 2011: the jobs that
// arrive after 600 s, on the 12,477 machines of that cluster. Priorities 9 to 11 are service
// jobs, others batch jobs.
const (
	traceNodes   = 12_477
	traceBatch   = 6081 * time.Millisecond   // mean time between batch jobs
	traceService = 55_678 * time.Millisecond // and between service jobs
)

// A quantile is a value of a distribution. Values between two quantiles are interpolated in
// equal ratios.
type quantile struct{ share, value float64 }

// A shape holds the distributions of a class of jobs. Amounts are in thousandths of the
// largest machine.
type shape struct {
	kind                    model.JobType
	priority                int32
	tasks, cpu, memory, run []quantile
}

func batchShape() shape {
	return shape{
		kind: model.JobBatch, priority: 20,
		tasks:  []quantile{{0.75, 1}, {0.9, 31}, {0.99, 1050}, {1, 2100}},
		cpu:    []quantile{{0.75, 25}, {0.9, 31}, {0.99, 100}, {1, 181}},
		memory: []quantile{{0.1, 7.8}, {0.25, 25.5}, {0.5, 33.4}, {0.9, 33.4}, {0.99, 79.6}, {1, 95.5}},
		run:    []quantile{{0, 60}, {0.1, 142}, {0.25, 201}, {0.5, 397}, {0.75, 660}, {0.9, 1643}, {0.99, 3380}, {1, 4501}},
	}
}

// serviceShape has no run times: service tasks run until the end.
func serviceShape() shape {
	return shape{
		kind: model.JobService, priority: 80,
		tasks:  []quantile{{0.9, 1}, {0.99, 40}, {1, 128}},
		cpu:    []quantile{{0.1, 1}, {0.25, 6}, {0.5, 81}, {0.75, 81}, {0.9, 241}, {1, 241}},
		memory: []quantile{{0.1, 1}, {0.25, 10}, {0.5, 82}, {0.9, 89}, {1, 134}},
	}
}

// draw returns a value of a distribution.
func draw(r *rand.Rand, table []quantile) float64 {
	u := r.Float64()
	last := table[0]
	for _, q := range table {
		if u <= q.share {
			if q.share == last.share {
				return q.value
			}
			return last.value * math.Pow(q.value/last.value, (u-last.share)/(q.share-last.share))
		}
		last = q
	}
	return last.value
}

func drawInt(r *rand.Rand, table []quantile) int64 { return int64(math.Round(draw(r, table))) }

// bucketAttribute is the attribute by which scattered jobs prefer nodes.
const bucketAttribute = "bucket"

// job draws a job. With buckets, it avoids all nodes but those of one bucket, which a
// hash of its name selects.
func (s *shape) job(r *rand.Rand, id string, buckets int, gang bool) *model.Job {
	g := &model.Group{
		Name: "g", Count: int(drawInt(r, s.tasks)), MaxParallelEvictions: 1,
		Resources: model.Resources{"cpu": drawInt(r, s.cpu), "memory": drawInt(r, s.memory)},
	}
	if buckets > 0 {
		g.Affinities = []model.Affinity{{Weight: -100, Constraint: model.Constraint{
			Attribute: bucketAttribute, Operator: model.OpNotEqual, Value: fmt.Sprint(hash(id) / 7 % uint32(buckets)),
		}}}
	}
	return &model.Job{
		Namespace: model.DefaultNamespace, ID: id, Type: s.kind, Priority: s.priority, Groups: []*model.Group{g},
		AllAtOnce: gang,
	}
}

// nodes returns machines in the sizes of the trace.
func nodes(r *rand.Rand, count, buckets int) []*model.Node {
	list := make([]*model.Node, count)
	for i := range list {
		cpu, memory := int64(500), int64(500)
		switch u := r.Float64(); {
		case u < 0.01:
			cpu, memory = 250, 250
		case u < 0.07:
			cpu, memory = 1000, 1000
		case u < 0.37:
			memory = 250
		}
		list[i] = &model.Node{
			ID: fmt.Sprintf("n%05d", i), Datacenter: "dc1",
			Capacity:   model.Resources{"cpu": cpu, "memory": memory},
			Attributes: map[string]string{bucketAttribute: fmt.Sprint(i % max(buckets, 1))},
		}
	}
	return list
}
