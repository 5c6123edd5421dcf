// Package manifest checks the fields of Kubernetes manifests that affect scheduling.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/suggest"
)

// maxProblems bounds the number of problems that are listed.
const maxProblems = 20

// A Problem is an unknown field of a manifest, or a value of the wrong type.
type Problem struct {
	Line    int
	Path    string // such as spec.containers[0].resources
	Message string
	Remedy  string // "" if there is none
}

func (p Problem) String() string {
	text := p.Path + ": " + p.Message
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// Check returns the problems with the fields of manifests, in JSON or YAML, that
// affect scheduling. kube.Read ignores unknown fields, because a dump has many. In a manifest, a
// misspelt field must not pass unnoticed: the pod would have no requests, for example.
// It returns nil for text with a syntax error, which kube.Read reports.
func Check(text []byte) []Problem {
	c := &checker{checked: map[checkedNode]bool{}}
	for _, document := range documentsOf(text) {
		c.object(&document.root, "", document.line)
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return a.Line - b.Line })
	return c.problems
}

// A document is one parsed document and the number of lines before it.
type document struct {
	root yaml.Node
	line int
}

func documentsOf(text []byte) (list []document) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if first := bytes.TrimLeft(text, " \t\r\n\x1e"); len(first) == 0 || first[0] != '{' {
		for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var d document
			if err := dec.Decode(&d.root); err != nil {
				return endOf(list, err)
			}
			list = append(list, d)
		}
	}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return endOf(list, err)
		}
		d := document{line: bytes.Count(text[:int(dec.InputOffset())-len(raw)], []byte("\n"))}
		// YAML includes JSON, except that tabs cannot indent.
		if err := yaml.Unmarshal(bytes.ReplaceAll(raw, []byte("\t"), []byte(" ")), &d.root); err != nil {
			return nil
		}
		list = append(list, d)
	}
}

// endOf returns the documents if all were read, otherwise nil.
func endOf(list []document, err error) []document {
	if errors.Is(err, io.EOF) {
		return list
	}
	return nil
}

// checkedTypes are the types of the kinds that become jobs, and of those that such a
// manifest contains beside them.
var checkedTypes = map[string]reflect.Type{
	"Pod": reflect.TypeFor[kube.Pod](), "PriorityClass": reflect.TypeFor[kube.PriorityClass](),
	"Deployment": reflect.TypeFor[kube.Workload](), "StatefulSet": reflect.TypeFor[kube.Workload](), "ReplicaSet": reflect.TypeFor[kube.Workload](),
	"ReplicationController": reflect.TypeFor[kube.Workload](), "DaemonSet": reflect.TypeFor[kube.Workload](), "Job": reflect.TypeFor[kube.Workload](),
}

// completeTypes are the types that contain all fields of Kubernetes, so that every other
// field is an error. So are the types within them.
var completeTypes = map[reflect.Type]bool{
	reflect.TypeFor[kube.ResourceRequirements](): true, reflect.TypeFor[kube.Affinity](): true, reflect.TypeFor[kube.Toleration](): true,
	reflect.TypeFor[kube.SpreadConstraint](): true, reflect.TypeFor[kube.LabelSelector](): true,
}

// otherFields are the fields of Kubernetes that do not affect scheduling. A field that is
// similar to a decoded one is an error, unless it is one of these.
var otherFields = wordsOf(`apiVersion kind name claims generateName generation resourceVersion selfLink managedFields finalizers
	deletionGracePeriodSeconds clusterName status hostname subdomain setHostnameAsFQDN hostnameOverride hostPID hostIPC hostUsers
	shareProcessNamespace securityContext imagePullSecrets serviceAccountName serviceAccount automountServiceAccountToken
	ephemeralContainers dnsPolicy dnsConfig enableServiceLinks hostAliases readinessGates image command args workingDir env envFrom
	resizePolicy restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle
	terminationMessagePath terminationMessagePolicy imagePullPolicy stdin stdinOnce tty selector minReadySeconds strategy updateStrategy
	revisionHistoryLimit paused progressDeadlineSeconds serviceName podManagementPolicy volumeClaimTemplates ordinals
	persistentVolumeClaimRetentionPolicy backoffLimit backoffLimitPerIndex activeDeadlineSeconds ttlSecondsAfterFinished
	completionMode manualSelector podFailurePolicy podReplacementPolicy successPolicy maxFailedIndexes managedBy`)

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		words[word] = true
	}
	return words
}

// parentOf maps each decoded field of a pod to the first field that contains it.
var parentOf = parents(map[string]string{}, reflect.TypeFor[kube.Pod](), "")

func parents(to map[string]string, t reflect.Type, parent string) map[string]string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return to
	}
	for f := range t.Fields() {
		name := jsonName(&f)
		if name == "status" {
			continue
		}
		if _, have := to[name]; !have {
			to[name] = parent
		}
		parents(to, f.Type, name)
	}
	return to
}

func jsonName(f *reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return f.Name
}

// A checkedNode identifies a check, so that repeated aliases of a node cost nothing.
type checkedNode struct {
	node *yaml.Node
	as   reflect.Type
}

// A checker compares nodes with the types that they are decoded to.
type checker struct {
	problems []Problem
	checked  map[checkedNode]bool
	before   int // lines before the current document
}

func (c *checker) add(n *yaml.Node, path, remedy, format string, args ...any) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, Problem{Line: c.before + n.Line, Path: path, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
}

// object checks an object, or the items of a list.
func (c *checker) object(n *yaml.Node, path string, before int) {
	if n = resolved(n); n == nil || n.Kind != yaml.MappingNode || c.checked[checkedNode{node: n}] {
		return
	}
	c.checked[checkedNode{node: n}] = true // an alias may refer to a list that contains it
	c.before = before
	kind := ""
	for key, value := range pairs(n) {
		switch key.Value {
		case "kind":
			kind = value.Value
		case "items":
			for i, item := range value.Content {
				c.object(item, fmt.Sprintf("items[%d]", i), before)
			}
		}
	}
	if t := checkedTypes[kind]; t != nil {
		c.value(n, t, path, false)
	}
}

// resolved follows documents and aliases to the value.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pairs iterates over the keys and values of a mapping.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], resolved(n.Content[i+1])) {
				return
			}
		}
	}
}

// value checks a value. If complete is true, the type has all fields of Kubernetes.
func (c *checker) value(n *yaml.Node, t reflect.Type, path string, complete bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Tag == "!!null" || t != reflect.TypeFor[kube.Annotations]() && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	if c.checked[checkedNode{n, t}] {
		return
	}
	c.checked[checkedNode{n, t}] = true
	switch t.Kind() {
	case reflect.Struct:
		if c.has(n, yaml.MappingNode, path, "an object", "write indented lines such as `name: value`") {
			c.fields(n, t, path, complete || completeTypes[t])
		}
	case reflect.Map:
		if c.has(n, yaml.MappingNode, path, "an object", "write indented lines such as `name: value`") {
			for key, value := range pairs(n) {
				if key.Tag != "!!merge" {
					c.value(value, t.Elem(), joinPath(path, key.Value), complete)
				}
			}
		}
	case reflect.Slice:
		if c.has(n, yaml.SequenceNode, path, "a list", "start each element with `- `") {
			for i, element := range n.Content {
				c.value(resolved(element), t.Elem(), fmt.Sprintf("%s[%d]", path, i), complete)
			}
		}
	case reflect.String:
		if c.has(n, yaml.ScalarNode, path, "a string", "write one value") && slices.Contains([]string{"!!int", "!!float", "!!bool"}, n.Tag) {
			c.add(n, path, fmt.Sprintf("write %q", n.Value), "must be a string, not %s", shown(n))
		}
	case reflect.Bool:
		if c.has(n, yaml.ScalarNode, path, "true or false", "write true or false") && n.Tag != "!!bool" {
			c.add(n, path, "write true or false without quotes", "must be true or false, not %s", shown(n))
		}
	case reflect.Int32, reflect.Int64:
		if c.has(n, yaml.ScalarNode, path, "an integer", "write an integer") {
			c.integer(n, t, path)
		}
	}
}

func (c *checker) integer(n *yaml.Node, t reflect.Type, path string) {
	var number float64
	text := strings.TrimSpace(n.Value)
	switch _, err := strconv.ParseInt(text, 10, t.Bits()); {
	case n.Tag == "!!str" && err == nil:
		c.add(n, path, "write "+text+" without quotes", "must be an integer, not %s", shown(n))
	case n.Tag != "!!int" && n.Tag != "!!float" || n.Decode(&number) != nil || number != math.Trunc(number):
		c.add(n, path, "write an integer such as 1000", "must be an integer, not %s", shown(n))
	case number < -math.Ldexp(1, t.Bits()-1) || number >= math.Ldexp(1, t.Bits()-1):
		c.add(n, path, "use a smaller number", "%s does not fit into %d bits", shown(n), t.Bits())
	}
}

// has reports whether a node is of a kind, and adds a problem if it is not.
func (c *checker) has(n *yaml.Node, kind yaml.Kind, path, noun, remedy string) bool {
	if n.Kind != kind {
		c.add(n, path, remedy, "must be %s, not %s", noun, shown(n))
		return false
	}
	return true
}

// shown returns a value as a message shows it.
func shown(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!str":
		return fmt.Sprintf("the string %.40q", n.Value)
	}
	return fmt.Sprintf("%.40s", n.Value)
}

func joinPath(path, name string) string {
	return strings.TrimPrefix(path+"."+name, ".")
}

// fields checks the fields of an object.
func (c *checker) fields(n *yaml.Node, t reflect.Type, path string, complete bool) {
	types := map[string]reflect.Type{}
	var names []string
	for f := range t.Fields() {
		name := jsonName(&f)
		types[strings.ToLower(name)] = f.Type
		names = append(names, name)
	}
	for key, value := range pairs(n) {
		below, known := types[strings.ToLower(key.Value)]
		switch {
		case key.Tag == "!!merge":
			c.value(value, t, path, complete)
		case known && key.Value != "status":
			c.value(value, below, joinPath(path, key.Value), complete)
		case !known && !otherFields[key.Value]:
			if remedy := unknownRemedy(key.Value, names, complete); remedy != "" {
				c.add(key, strings.TrimPrefix(path, "."), remedy, "unknown field %.60q", key.Value)
			}
		}
	}
}

// unknownRemedy returns the remedy for an unknown field, or "" if the field may be one of
// Kubernetes that does not affect scheduling.
func unknownRemedy(name string, known []string, complete bool) string {
	if near := suggest.Nearest(name, known); near != "" {
		return suggest.Question(near)
	}
	if parent := parentOf[name]; parent != "" {
		return "write it below " + parent
	}
	if complete {
		return "use one of " + strings.Join(known, ", ")
	}
	return ""
}
