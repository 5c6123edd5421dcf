package app

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// promised lists the metrics, with their labels, that must not change, because users'
// dashboards depend on them.
const promised = `
cede_build_info
cede_broker_evals{state}
cede_broker_wait_seconds{type}
cede_broker_redeliveries_total
cede_worker_process_seconds{type}
cede_sched_placements_total{result}
cede_sched_nodes_evaluated
cede_preempt_decisions_total{policy,outcome}
cede_preempt_victims_total{policy}
cede_policy_call_seconds{policy,point}
cede_policy_faults_total{policy,fault}
cede_policy_fallbacks_total{policy}
cede_policy_active_info{policy,digest}
cede_policy_instances{policy,state}
cede_plan_queue_depth
cede_plan_verify_seconds
cede_plan_commit_seconds
cede_plan_node_rejections_total{reason}
cede_raft_is_leader
cede_raft_applied_index
cede_raft_fsm_apply_seconds
cede_storage_size_bytes{part}
cede_storage_gc_seconds
cede_gossip_members{status}
cede_node_allocs{status}
cede_http_request_duration_seconds{route,code}
cede_config_last_reload_successful
cede_config_last_reload_success_timestamp_seconds
`

// measured is a metric as documented or as registered.
type measured struct {
	kind   string
	labels []string            // in order
	values map[string][]string // by label: the documented values
}

// documented parses the tables of METRICS.md.
func documented(t *testing.T) map[string]measured {
	t.Helper()
	page, err := os.ReadFile("../../../core/server/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]measured{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(cede_[a-z_]+)` \\| ([a-z]+)[a-z, 1]* \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		m := measured{kind: row[2], values: map[string][]string{}}
		for _, l := range regexp.MustCompile("`([a-z]+)`(?:: ([a-z]+(?:, [a-z]+)+))?").FindAllStringSubmatch(row[3], -1) {
			m.labels = append(m.labels, l[1])
			if l[2] != "" {
				m.values[l[1]] = strings.Split(l[2], ", ")
			}
		}
		slices.Sort(m.labels)
		if _, duplicate := all[row[1]]; duplicate {
			t.Errorf("%s is documented twice", row[1])
		}
		all[row[1]] = m
	}
	return all
}

// registered returns the metrics of the process without those of the Go runtime.
func (s *started) registered() map[string]measured {
	s.t.Helper()
	families, err := s.metrics.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]measured{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		m := measured{kind: strings.ToLower(f.GetType().String()), values: map[string][]string{}}
		for i, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetName())
				if !slices.Contains(m.values[l.GetName()], l.GetValue()) {
					m.values[l.GetName()] = append(m.values[l.GetName()], l.GetValue())
				}
			}
			slices.Sort(labels)
			if i > 0 && !slices.Equal(labels, m.labels) {
				s.t.Errorf("%s has labels %v and %v", f.GetName(), m.labels, labels)
			}
			m.labels = labels
		}
		all[f.GetName()] = m
	}
	return all
}

// A server and a node that have run a job, and a controller, register exactly the documented metrics,
// with every documented label value.
func TestMetrics_MatchDocumentation(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.resources.memory": "1000"})}))
	counters := s.registered()
	s.register(job("low", 20, 1, 900, "sim", nil))
	s.await("low", "running")
	s.register(job("high", 80, 1, 900, "sim", nil))
	s.await("high", "running")                            // runs the policy at least once
	s.metrics.observeCluster(func() bool { return true }) // as a controller does
	have, docs := s.registered(), documented(t)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		is, documentedAs := have[name], docs[name]
		switch {
		case documentedAs.kind == "":
			t.Errorf("%s is not documented", name)
		case documentedAs.kind != is.kind || !slices.Equal(documentedAs.labels, is.labels):
			t.Errorf("%s is a %s with labels %v, and documented as a %s with %v", name, is.kind, is.labels, documentedAs.kind, documentedAs.labels)
		}
		for label, values := range documentedAs.values {
			for _, v := range values {
				if !slices.Contains(is.values[label], v) {
					t.Errorf("%s has no %s=%q, only %q", name, label, v, is.values[label])
				}
			}
			for _, v := range is.values[label] {
				if len(values) > 0 && !slices.Contains(values, v) {
					t.Errorf("%s has %s=%q, documented are only %q", name, label, v, values)
				}
			}
		}
	}
	for name := range docs {
		if _, ok := have[name]; !ok {
			t.Errorf("%s is documented but not registered", name)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(promised)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "{")
		var labels []string
		if rest != "" {
			labels = slices.Sorted(strings.SplitSeq(strings.TrimSuffix(rest, "}"), ","))
		}
		if is, ok := have[name]; !ok || len(labels) > 0 && !slices.Equal(is.labels, labels) || len(labels) == 0 && len(is.labels) > 0 && name != "cede_build_info" {
			t.Errorf("%s must have labels %v, and has %v", name, labels, is.labels)
		}
	}
	// Counters are exported with 0 before their first event.
	for name, m := range have {
		if _, there := counters[name]; !there && m.kind == "counter" {
			t.Errorf("counter %s is not exported with 0 before its first event", name)
		}
	}
	for _, name := range []string{"cede_raft_fsm_apply_seconds_count", `cede_preempt_victims_total{policy="default"}`} {
		if s.metric(name) == 0 {
			t.Errorf("counter %s is 0", name)
		}
	}
}
