package kuberec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	"github.com/cede-scheduler/cede/core/plainyaml"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// maxObject bounds the text of one object.
const maxObject = 16 << 20

// resourcePatch is one change of a KWOK recording.
type resourcePatch struct {
	Kind     string `json:"kind"`
	Resource struct {
		Resource string `json:"resource"`
	} `json:"resource"`
	Target struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"target"`
	Duration json.Number     `json:"durationNanosecond"`
	Method   string          `json:"method"`
	Template json.RawMessage `json:"template"`
	Items    []json.RawMessage
}

// kinds maps resources to kinds.
var kinds = map[string]string{
	"nodes": "Node", "pods": "Pod", "priorityclasses": "PriorityClass", "deployments": "Deployment",
	"statefulsets": "StatefulSet", "replicasets": "ReplicaSet", "daemonsets": "DaemonSet", "jobs": "Job",
}

// KWOK imports a recording of `kwokctl snapshot record`. See the package documentation.
func KWOK(opts build.Options, src build.Source) (*scenario.File, *build.Report, error) {
	file, err := src.Only("recording", "*.yaml", "*.yml", "*.json")
	if err != nil {
		return nil, nil, err
	}
	stem := build.Stem(build.Stem(build.Stem(file, ".yaml"), ".yml"), ".json")
	r, err := newRecording("kwok", "KWOK recording "+stem, stem, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := r.readKWOK(src, file); err != nil {
		return nil, r.Report, err
	}
	return r.finish("the recording contains no nodes: record them too (`kwokctl snapshot record --filter node,pod,…`)")
}

// readKWOK reads the documents of a recording one by one.
func (r *recording) readKWOK(src build.Source, file string) error {
	l, err := r.OpenLines(src, file)
	if err != nil {
		return err
	}
	defer l.Close()
	var text bytes.Buffer
	first := 0
	end := func() {
		if bytes.TrimSpace(text.Bytes()) != nil && len(bytes.TrimSpace(text.Bytes())) > 0 {
			if err := r.document(text.Bytes()); err != nil {
				l.FailAt(first, "%w", err)
			}
		}
		text.Reset()
		first = 0
	}
	for l.Next() {
		if l.Text == "---" || strings.HasPrefix(l.Text, "--- ") {
			end()
			continue
		}
		if first == 0 && strings.TrimSpace(l.Text) != "" {
			first = l.Line()
		}
		if text.Len()+len(l.Text) > maxObject {
			l.Fail("a document of more than %d bytes; documents are separated by ---", maxObject)
			return l.Err()
		}
		text.WriteString(l.Text)
		text.WriteByte('\n')
	}
	if l.Err() == nil || text.Len() > 0 {
		end()
	}
	return l.Err()
}

// document processes an object of the initial state, a list of them, or a change.
func (r *recording) document(text []byte) error {
	object, err := toJSON(text)
	if err != nil {
		return err
	}
	var p resourcePatch
	if err := plainjson.Unmarshal(object, &p); err != nil {
		return fmt.Errorf("not an object: %w", err)
	}
	switch {
	case p.Kind == "ResourcePatch":
		return r.change(&p)
	case strings.HasSuffix(p.Kind, "List") && p.Items != nil:
		for _, item := range p.Items {
			if err := r.apply(0, item); err != nil {
				return err
			}
		}
		return nil
	}
	return r.apply(0, object)
}

func (r *recording) change(p *resourcePatch) error {
	ns, err := p.Duration.Int64()
	at := time.Duration(ns)
	if err != nil || at < 0 || at > maxTime {
		return fmt.Errorf("durationNanosecond is %.40q; expected an integer, 0 to %d", p.Duration.String(), int64(maxTime))
	}
	kind := kinds[p.Resource.Resource]
	if kind == "" {
		r.other[p.Resource.Resource]++
		return nil
	}
	o := &object{Kind: kind}
	o.Metadata.Name, o.Metadata.Namespace = p.Target.Name, p.Target.Namespace
	switch p.Method {
	case "create":
		return r.apply(at, withIdentity(p.Template, o))
	case "patch": //nolint:usestdlibvars // a method of KWOK
		return r.patch(at, o, p.Template)
	case "delete": //nolint:usestdlibvars // a method of KWOK
		r.remove(at, o)
		return nil
	}
	return fmt.Errorf("method is %.40q; expected create, patch or delete", p.Method)
}

// withIdentity returns a template with the kind, which recordings may omit, and the name of
// its target.
func withIdentity(template json.RawMessage, o *object) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(template, &fields) != nil || fields == nil {
		return template // apply returns the error
	}
	fields["kind"], _ = json.Marshal(o.Kind)
	var metadata map[string]json.RawMessage
	_ = json.Unmarshal(fields["metadata"], &metadata)
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	metadata["name"], _ = json.Marshal(o.Metadata.Name)
	metadata["namespace"], _ = json.Marshal(o.Metadata.Namespace)
	fields["metadata"], _ = json.Marshal(metadata)
	text, err := json.Marshal(fields)
	if err != nil {
		return template
	}
	return text
}

// toJSON converts a YAML document, which JSON is as well.
func toJSON(text []byte) ([]byte, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed, nil
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("not valid YAML: %s", plainyaml.Syntax(err, text))
	}
	object, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
	}
	return object, nil
}
