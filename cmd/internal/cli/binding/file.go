package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Bindings and clusters have the format of scenarios and are checked by the same
// decoder, so that the same lines mean the same. Fields that only servers accept (the
// template of a binding) are removed first.

// readBindings reads a file of bindings. Unknown fields are errors.
func readBindings(file string, text []byte) ([]*client.Binding, error) {
	ps := &cmdutil.FileProblems{}
	nodes := ps.ParseEntries(text, cmdutil.FileKind{Singular: "a binding", Plural: "bindings", Example: "{id: web, replicas: 3, resources: {cpu: 500}}"})
	templates := make([]json.RawMessage, len(nodes))
	var clusters []string
	for i, n := range nodes {
		templates[i] = takeTemplate(ps, n)
		clusters = append(clusters, clustersNamed(n)...)
	}
	f := decodeEntries(ps, nodes, "bindings", clusters)
	var list []*client.Binding
	for i := range f.Bindings {
		list = append(list, bindingOf(&f.Bindings[i], cmdutil.FieldOf(nodes[i], "killTimeout") != nil, templates[i]))
	}
	return list, ps.Err(file, "`cede help bindings` describes the file")
}

// readClusters reads a file of member clusters. Unknown fields are errors.
func readClusters(file string, text []byte) ([]*client.Cluster, error) {
	ps := &cmdutil.FileProblems{}
	nodes := ps.ParseEntries(text, cmdutil.FileKind{Singular: "a cluster", Plural: "clusters", Example: "{id: eu, capacity: {cpu: 8000}}"})
	f := decodeEntries(ps, nodes, "clusters", nil)
	var list []*client.Cluster
	for i := range f.Clusters {
		c := &f.Clusters[i]
		list = append(list, &client.Cluster{ID: c.ID, Capacity: c.Capacity, Attributes: c.Attributes})
	}
	return list, ps.Err(file, "`cede help bindings` describes the file")
}

// decodeEntries decodes entries as those of a scenario's list, with the clusters that
// they reference. It reports problems with the lines of the file.
func decodeEntries(ps *cmdutil.FileProblems, nodes []*yaml.Node, list string, clusters []string) *scenario.File {
	if len(nodes) == 0 {
		return &scenario.File{}
	}
	document := map[string]any{"version": 1, "name": "file", list: nodes}
	slices.Sort(clusters)
	var known []map[string]string
	for _, id := range slices.Compact(clusters) {
		known = append(known, map[string]string{"id": id})
	}
	if known != nil {
		document["clusters"] = known
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		ps.Add(1, "invalid binding: %v", err)
		return &scenario.File{}
	}
	f, err := scenario.Decode("file", bytes.NewReader(text))
	if err == nil {
		return f
	}
	wrong, ok := errors.AsType[*scenario.Error](err)
	if !ok {
		ps.Add(1, "invalid binding: %v", err)
		return &scenario.File{}
	}
	for _, p := range wrong.Problems {
		message := p.Message
		if p.Path != "" {
			message = p.Path + ": " + message
		}
		ps.Add(lineOf(nodes, p.Path), "%s; %s", message, remedyOf(list, p))
	}
	return &scenario.File{}
}

// remedyOf returns the remedy for a problem of an entry. Bindings have the field template,
// which scenarios do not have.
func remedyOf(list string, p scenario.Problem) string {
	if list == "bindings" && len(step.FindAllString(p.Path, -1)) == 3 && strings.HasPrefix(p.Message, "unknown field") {
		return suggest.AddField(p.Remedy, "template")
	}
	return p.Remedy
}

// step matches one element of a path such as bindings[2].resources.cpu.
var step = regexp.MustCompile(`[^.\[\]]+`)

// lineOf returns the line of the value at a path of a scenario, or of the closest
// enclosing value.
func lineOf(nodes []*yaml.Node, path string) int {
	steps := step.FindAllString(path, -1)
	if len(steps) < 2 {
		return 1
	}
	i, err := strconv.Atoi(steps[1])
	if err != nil || i >= len(nodes) {
		return 1
	}
	n, line := nodes[i], nodes[i].Line
	for _, s := range steps[2:] {
		next := cmdutil.FieldOf(n, s)
		if at, err := strconv.Atoi(s); err == nil && n.Kind == yaml.SequenceNode && at < len(n.Content) {
			next = n.Content[at]
		}
		if next == nil {
			break
		}
		n, line = next, next.Line
	}
	return line
}

// takeTemplate removes the template from a binding and returns it as JSON.
func takeTemplate(ps *cmdutil.FileProblems, n *yaml.Node) json.RawMessage {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "template" {
			continue
		}
		value := n.Content[i+1]
		n.Content = slices.Delete(n.Content, i, i+2)
		var written map[string]any
		if err := value.Decode(&written); err != nil || len(written) == 0 {
			ps.Add(value.Line, "template: expected a job with one group; write {groups: [{name: app, tasks: [...]}]}")
			return nil
		}
		text, err := json.Marshal(written)
		if err != nil {
			ps.Add(value.Line, "template: cannot be encoded as JSON: %v", err)
		}
		return text
	}
	return nil
}

// clustersNamed returns the clusters that a binding names. They need not exist on the
// server yet.
func clustersNamed(n *yaml.Node) (ids []string) {
	var named struct {
		Clusters []string       `yaml:"clusters"`
		Weights  map[string]any `yaml:"weights"`
	}
	_ = n.Decode(&named) // decodeEntries reports its errors
	ids = named.Clusters
	for id := range named.Weights {
		ids = append(ids, id)
	}
	return ids
}

// bindingOf converts a binding of a scenario to that of the API.
func bindingOf(b *scenario.Binding, stops bool, template json.RawMessage) *client.Binding {
	out := &client.Binding{
		ID: b.ID, Namespace: b.Namespace, Scope: b.Scope, PriorityClass: b.PriorityClass, PriorityClassSource: b.ClassSource,
		PreemptionPolicy: b.PreemptionPolicy, Replicas: b.Replicas, Resources: b.Resources, Clusters: b.Clusters, Weights: b.Weights,
		ReplicaScheduling: b.ReplicaScheduling, Duration: time.Duration(b.Duration), Checkpoint: time.Duration(b.Checkpoint),
		MinReplicas: b.MinReplicas, Template: template,
	}
	if b.Priority != nil {
		out.Priority = new(int(*b.Priority))
	}
	if stops {
		out.KillTimeout = new(time.Duration(b.KillTimeout))
	}
	if n := b.Spread.MinClusters; n != nil {
		out.MinClusters = *n
	}
	if n := b.Spread.MaxClusters; n != nil {
		out.MaxClusters = *n
	}
	if n := b.Spread.MinGroups; n != nil {
		out.MinGroups = *n
	}
	if n := b.Spread.MaxGroups; n != nil {
		out.MaxGroups = *n
	}
	out.SpreadBy = b.Spread.By
	for i := range b.Constraints {
		c := &b.Constraints[i]
		k := &client.Constraint{LTarget: c.Attribute, Operand: c.Operator, RTarget: c.Value}
		if len(c.Values) > 0 {
			k.RTarget = strings.Join(c.Values, ",")
		}
		out.Constraints = append(out.Constraints, k)
	}
	return out
}
