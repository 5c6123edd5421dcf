package docstest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pythonClientHead is the part of the client that does not depend on the document.
//
//go:embed testdata/client_head.py
var pythonClientHead string

// apiDocument is the part of the OpenAPI document that the client is generated from.
type apiDocument struct {
	Paths      map[string]map[string]*apiOperation `json:"paths"`
	Components struct {
		Schemas map[string]*apiType `json:"schemas"`
	} `json:"components"`
}

type apiOperation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name        string   `json:"name"`
		In          string   `json:"in"`
		Description string   `json:"description"`
		Schema      *apiType `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Content map[string]struct {
			Schema *apiType `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct {
			Schema *apiType `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

// apiType is a schema. AdditionalProperties is a schema, true or false.
type apiType struct {
	Ref                  string              `json:"$ref"`
	Type                 string              `json:"type"`
	Description          string              `json:"description"`
	Items                *apiType            `json:"items"`
	Properties           map[string]*apiType `json:"properties"`
	AllOf                []*apiType          `json:"allOf"`
	AdditionalProperties json.RawMessage     `json:"additionalProperties"`
}

// TestPythonClient_MatchesTheDocument compares the Python client with the output of the
// generator. With -update it writes it.
func TestPythonClient_MatchesTheDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "core/api/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d apiDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	compareReference(t, "../../sdk/python/cede_client.py", d.pythonClient())
}

func (d *apiDocument) pythonClient() string {
	var b strings.Builder
	b.WriteString(pythonClientHead)
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			if o := d.Paths[path][method]; !d.isAlias(path, o.ID) {
				o.python(&b, method, path)
			}
		}
	}
	b.WriteString("\n\n# The objects of the API. A field that is absent has its zero value.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		d.Components.Schemas[name].pythonObject(&b, name)
	}
	return b.String()
}

// isAlias reports whether the operation is the same as another of its path: most changes
// are served by POST and by PUT.
func (d *apiDocument) isAlias(path, id string) bool {
	for _, suffix := range []string{"_post", "_put"} {
		if base, ok := strings.CutSuffix(id, suffix); ok {
			for _, other := range d.Paths[path] {
				if other.ID == base {
					return true
				}
			}
		}
	}
	return false
}

// python writes the method of an operation. Parameters of the path come first, then the
// body; all others are keywords.
func (o *apiOperation) python(b *strings.Builder, method, path string) {
	args, keywords := []string{"self"}, []string{}
	var queries, headers []string
	for _, p := range o.Parameters {
		name := pythonName(p.Name)
		switch p.In {
		case "path":
			args = append(args, name+": str")
		case "query":
			keywords = append(keywords, fmt.Sprintf("%s: %s | None = None", name, p.Schema.python()))
			queries = append(queries, fmt.Sprintf("%q: %s", p.Name, name))
		case "header":
			keywords = append(keywords, name+": str | None = None")
			headers = append(headers, fmt.Sprintf("%q: %s", p.Name, name))
		}
	}
	result, kind := o.result()
	url := fmt.Sprintf("%q", path)
	if pythonPath.MatchString(path) {
		url = "f" + pythonPath.ReplaceAllString(url, "{_quote($1)}")
	}
	call := []string{fmt.Sprintf("%q", strings.ToUpper(method)), url}
	if queries != nil {
		call = append(call, "query={"+strings.Join(queries, ", ")+"}")
	}
	if headers != nil {
		call = append(call, "headers={"+strings.Join(headers, ", ")+"}")
	}
	if o.Body != nil {
		if c, ok := o.Body.Content["application/json"]; ok {
			args = append(args, "body: "+c.Schema.python())
		} else {
			args = append(args, "body: bytes")
		}
		call = append(call, "body=body")
	}
	if len(keywords) > 0 {
		args = append(append(args, "*"), keywords...)
	}
	fmt.Fprintf(b, "\n    def %s(%s) -> %s:\n        %s\n        return self._%s(%s)\n", o.ID, strings.Join(args, ", "), result, pythonDoc(o.Summary), kind, strings.Join(call, ", "))
}

var pythonPath = regexp.MustCompile(`\{(\w+)\}`)

// result returns the type of the result, and the function of the client that returns it.
func (o *apiOperation) result() (result, kind string) {
	content := o.Responses["200"].Content
	if _, ok := content["text/event-stream"]; ok {
		return "Iterator[" + content["application/json"].Schema.python() + "]", "stream"
	}
	if c, ok := content["application/json"]; ok {
		return c.Schema.python(), "json"
	}
	if len(content) == 0 {
		return "None", "json"
	}
	return "bytes", "bytes"
}

// python returns the type as an annotation.
func (s *apiType) python() string {
	switch {
	case s == nil:
		return "Any"
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case len(s.AllOf) == 1:
		return s.AllOf[0].python()
	}
	switch s.Type {
	case "string":
		return "str"
	case "boolean":
		return "bool"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "array":
		return "list[" + s.Items.python() + "]"
	case "object":
		var values apiType
		if json.Unmarshal(s.AdditionalProperties, &values) == nil && (values.Type != "" || values.Ref != "") {
			return "dict[str, " + values.python() + "]"
		}
		return "dict[str, Any]"
	}
	return "Any"
}

// pythonObject writes the type of an object. The functional form accepts any name of a
// field; its types are texts, because they may refer to later ones.
func (s *apiType) pythonObject(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\n%s = TypedDict(\n    %q,\n    {\n", name, name)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		fmt.Fprintf(b, "        %q: %q,\n", field, s.Properties[field].python())
	}
	b.WriteString("    },\n    total=False,\n)\n")
	if s.Description != "" {
		fmt.Fprintf(b, "%s.__doc__ = %q\n", name, s.Description)
	}
}

var camelCase = regexp.MustCompile(`([a-z])([A-Z])`)

// pythonName returns the name of a parameter in snake case.
func pythonName(name string) string {
	name = strings.ToLower(strings.ReplaceAll(camelCase.ReplaceAllString(name, "${1}_$2"), "-", "_"))
	if slices.Contains([]string{"from", "global", "in", "is", "class", "pass", "lambda"}, name) {
		name += "_"
	}
	return name
}

// pythonDoc returns a documentation string.
func pythonDoc(text string) string {
	return `"""` + strings.NewReplacer(`\`, `\\`, `"""`, `'''`).Replace(text) + `"""`
}
