package docstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A metric is a row of METRICS.md.
type metric struct {
	name, kind, meaning string
	labels              []string
}

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(cede_\\w+)` \\| ([^|]+) \\|([^|]*)\\| ([^|]+) \\|$")
	labelName  = regexp.MustCompile("`(\\w+)`")
	metricName = regexp.MustCompile(`\bcede_\w+`)
)

func readMetrics(t *testing.T) (list []metric) {
	t.Helper()
	tables, err := os.ReadFile(filepath.Join(root, "core/server/METRICS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range metricRow.FindAllStringSubmatch(string(tables), -1) {
		m := metric{name: row[1], kind: row[2], meaning: row[4]}
		for _, label := range labelName.FindAllStringSubmatch(row[3], -1) {
			m.labels = append(m.labels, label[1])
		}
		list = append(list, m)
	}
	if n := strings.Count(string(tables), "\n| `cede_"); n != len(list) || n == 0 {
		t.Fatalf("%d of %d rows of METRICS.md are understood", len(list), n)
	}
	return list
}

type object = map[string]any

// query returns the expression of the panel of a metric, and its legend.
func (m *metric) query() (expr, legend string) {
	by, selector := m.labels, m.name+`{instance=~"$instance"}`
	switch m.kind {
	case "counter":
		expr = "rate(" + selector + "[$__rate_interval])"
	case "histogram":
		expr = "rate(" + m.name + `_bucket{instance=~"$instance"}[$__rate_interval])`
		expr, legend = fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (%s))", strings.Join(append([]string{"le"}, by...), ", "), expr), "p99"
		return expr, legendOf(by, legend)
	case "summary":
		return "max by (" + strings.Join(append([]string{"quantile"}, by...), ", ") + ") (" + selector + ")", legendOf(append([]string{"quantile"}, by...), "")
	default: // a gauge describes one process
		by, expr = append([]string{"instance"}, by...), selector
		if m.unit() == "dateTimeFromNow" {
			expr += " * 1000" // Grafana reads milliseconds
		}
	}
	if len(by) == 0 {
		return "sum(" + expr + ")", "total"
	}
	return "sum by (" + strings.Join(by, ", ") + ") (" + expr + ")", legendOf(by, "")
}

func legendOf(labels []string, prefix string) string {
	text := prefix
	for _, label := range labels {
		text += " {{" + label + "}}"
	}
	return strings.TrimSpace(text)
}

func (m *metric) unit() string {
	switch {
	case strings.HasSuffix(m.name, "_timestamp_seconds"):
		return "dateTimeFromNow"
	case strings.HasSuffix(m.name, "_seconds"):
		return "s"
	case strings.HasSuffix(m.name, "_bytes"):
		return "bytes"
	case m.kind == "counter":
		return "cps"
	}
	return "short"
}

// sections maps the prefix of metrics to the title of their row. Kubernetes comes first and is
// open, because cede kubernetes has no other metrics of its own.
var sections = []struct{ prefix, title string }{
	{"kube", "cede kubernetes and the scheduler extender"},
	{"policy", "Policies"},
	{"preempt", "Preemption"},
	{"sched", "Scheduling"},
	{"broker", "Evaluations"},
	{"plan", "Plans"},
	{"raft", "Raft"},
	{"", "Process, API and storage"},
}

func sectionOf(name string) int {
	return slices.IndexFunc(sections, func(s struct{ prefix, title string }) bool {
		return strings.HasPrefix(strings.TrimPrefix(name, "cede_"), s.prefix)
	})
}

// dashboard returns a Grafana dashboard with a panel for each metric.
func dashboard(metrics []metric) object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	panels := make([][]object, len(sections))
	id := len(sections)
	for i := range metrics {
		m := &metrics[i]
		at := sectionOf(m.name)
		id++
		expr, legend := m.query()
		kind, n := "timeseries", len(panels[at])
		if strings.Contains(m.kind, "always 1") {
			kind = "table"
		}
		panels[at] = append(panels[at], object{
			"id": id, "type": kind, "title": m.name, "description": m.meaning, "datasource": source,
			"gridPos":     object{"h": 8, "w": 8, "x": n % 3 * 8, "y": n / 3 * 8},
			"fieldConfig": object{"defaults": object{"unit": m.unit(), "min": 0}, "overrides": []any{}},
			"targets":     []object{{"refId": "A", "datasource": source, "expr": expr, "legendFormat": legend, "instant": kind == "table"}},
		})
	}
	var rows []object
	y := 0
	for i, s := range sections {
		row := object{"id": i + 1, "type": "row", "title": s.title, "collapsed": i > 0, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}, "panels": []object{}}
		y++
		for _, p := range panels[i] {
			p["gridPos"].(object)["y"] = p["gridPos"].(object)["y"].(int) + y
		}
		rows = append(rows, row)
		if i > 0 {
			row["panels"] = panels[i]
			continue
		}
		rows = append(rows, panels[i]...)
		y += (len(panels[i]) + 2) / 3 * 8
	}
	return object{
		"title": "cede", "uid": "cede", "description": "Generated from core/server/METRICS.md by `go generate ./cmd/internal/docstest`.",
		"tags": []string{"cede"}, "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s", "timezone": "",
		"time": object{"from": "now-3h", "to": "now"}, "panels": rows,
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
			{
				"name": "instance", "type": "query", "label": "Instance", "datasource": source, "query": "label_values(cede_build_info, instance)",
				"refresh": 2, "multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
			},
		}},
	}
}

// TestDashboard_MatchesTheMetrics compares the dashboard with the output of the
// generator. With -update it writes it.
func TestDashboard_MatchesTheMetrics(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(dashboard(readMetrics(t))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "deploy/grafana/cede.json")
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want.String() {
		t.Errorf("deploy/grafana/cede.json is out of date; run go generate ./cmd/internal/docstest\n%s", firstDifference(string(have), want.String()))
	}
}

// A panel that queries an unknown metric or label is always empty, and a metric without
// a panel is not seen.
func TestDashboard_QueriesEachMetric(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/cede.json"))
	if err != nil {
		t.Fatal(err)
	}
	type panel struct {
		ID      int
		Targets []struct{ Expr string }
		Panels  []panel
	}
	var file panel
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ids, queried := map[int]bool{}, map[string]string{}
	var visit func(list []panel)
	visit = func(list []panel) {
		for i := range list {
			p := &list[i]
			if ids[p.ID] {
				t.Errorf("two panels have the ID %d", p.ID)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				for _, name := range metricName.FindAllString(target.Expr, -1) {
					queried[name] = target.Expr
				}
			}
			visit(p.Panels)
		}
	}
	visit(file.Panels)
	for _, m := range readMetrics(t) {
		name := m.name
		if m.kind == "histogram" {
			name += "_bucket"
		}
		expr, ok := queried[name]
		if !ok {
			t.Errorf("no panel queries %s", name)
		}
		for _, label := range m.labels {
			if !strings.Contains(expr, label) {
				t.Errorf("%s: %s ignores the label %s", name, expr, label)
			}
		}
		delete(queried, name)
	}
	for name := range queried {
		t.Errorf("a panel queries %s, which METRICS.md does not contain", name)
	}
}
