package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

var write = flag.Bool("write", false, "write openapi.json anew")

// The committed document equals the one generated from routes and types.
func TestDocument_MatchesRoutes(t *testing.T) {
	made, err := json.MarshalIndent(newDocument(t).build(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, '\n')
	if *write {
		if err := os.WriteFile("openapi.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
		document = made
	}
	if !bytes.Equal(made, document) {
		t.Error("openapi.json differs from the routes and types: run go generate ./core/api")
	}
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	for _, r := range table() {
		item := doc.Paths.Find(r.pattern)
		if item == nil || item.GetOperation(r.methods[0]) == nil {
			t.Errorf("%s %s is missing in the document", r.methods[0], r.pattern)
		}
		if r.doc == "" || r.name == "" || r.tag == "" || !strings.HasSuffix(r.doc, ".") && !strings.HasSuffix(r.doc, ";") {
			t.Errorf("%s %s: name %q, tag %q, doc %q", r.methods[0], r.pattern, r.name, r.tag, r.doc)
		}
	}
}

// Two routes with the same name would share their metrics.
func TestRoutes_HaveUniqueNames(t *testing.T) {
	names := map[string]string{}
	for _, r := range table() {
		if other := names[r.name]; other != "" {
			t.Errorf("name %s is used by %s and %s", r.name, other, r.pattern)
		}
		names[r.name] = r.pattern
	}
}

// Every type in requests and responses has a description.
func TestDocument_TypesHaveDescriptions(t *testing.T) {
	d := newDocument(t)
	d.build()
	for name, s := range d.schemas {
		if s.(object)["description"] == nil {
			t.Errorf("type %s has no comment", name)
		}
	}
}

type object = map[string]any

// documentBuilder builds the document. It reads comments, so it runs in tests, where
// the sources are available.
type documentBuilder struct {
	docs    map[string]string // key: Type or Type.Field
	sent    map[reflect.Type]bool
	schemas object
}

func newDocument(t *testing.T) *documentBuilder {
	d := &documentBuilder{docs: map[string]string{}, sent: map[reflect.Type]bool{}, schemas: object{}}
	files, err := filepath.Glob("../../sdk/client/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("failed to read the sources of sdk/client", err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, d.read)
	}
	for _, r := range table() {
		if r.request != nil {
			d.addType(reflect.TypeOf(r.request))
		}
	}
	return d
}

// read collects the comments of types and their fields.
func (d *documentBuilder) read(n ast.Node) bool {
	decl, ok := n.(*ast.GenDecl)
	if !ok || decl.Tok != token.TYPE {
		return true
	}
	for _, spec := range decl.Specs {
		typ := spec.(*ast.TypeSpec)
		d.docs[typ.Name.Name] = commentText(decl.Doc.Text())
		fields, ok := typ.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range fields.Fields.List {
			text := f.Comment.Text()
			if text == "" {
				text = f.Doc.Text()
			}
			for _, name := range f.Names {
				d.docs[typ.Name.Name+"."+name.Name] = commentText(text)
			}
		}
	}
	return false
}

func commentText(text string) string {
	text, _, _ = strings.Cut(text, "nolint")
	text = strings.Join(strings.Fields(text), " ")
	if text == "Set by the server." {
		return ""
	}
	return text
}

// addType records the types of requests. Their missing fields have defaults.
func (d *documentBuilder) addType(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		d.addType(t.Elem())
	case reflect.Struct:
		if d.sent[t] || t == reflect.TypeFor[time.Time]() {
			return
		}
		d.sent[t] = true
		for f := range t.Fields() {
			d.addType(f.Type)
		}
	}
}

func (d *documentBuilder) build() object {
	paths := object{}
	for _, r := range table() {
		item, ok := paths[r.pattern].(object)
		if !ok {
			item = object{}
			paths[r.pattern] = item
		}
		for i, m := range r.methods {
			op := d.operation(&r)
			if i > 0 {
				op["operationId"] = r.name + "_" + strings.ToLower(m)
			}
			item[strings.ToLower(m)] = op
		}
	}
	d.schema(reflect.TypeFor[client.Error]())
	return object{
		"openapi": "3.0.3",
		"info": object{
			"title": "cede", "version": "1",
			"description": "A cluster scheduler with hot-loadable preemption policies. Field names are those of Nomad if Nomad has an equivalent.",
			"license":     object{"name": "Apache-2.0"},
		},
		"servers":  []object{{"url": client.DefaultAddress}},
		"security": []object{{"bearer": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

func (d *documentBuilder) operation(r *route) object {
	op := object{
		"operationId": r.name, "summary": r.doc, "tags": []string{r.tag},
		"parameters": parameters(r), "responses": d.responses(r),
	}
	if r.roles == nil {
		op["security"] = []object{}
	} else {
		op["x-cede-roles"] = rolesThatMay(r)
	}
	if r.request != nil {
		content := object{"application/json": object{"schema": d.schema(reflect.TypeOf(r.request))}}
		if r.name == "policy_load" {
			content["multipart/form-data"] = object{"schema": object{"type": "object", "properties": object{
				"request": d.schema(reflect.TypeOf(r.request)), "module": bytesSchema(), "manifest": bytesSchema(), "signature": bytesSchema(),
			}}}
		}
		op["requestBody"] = object{"content": content, "required": !strings.HasPrefix(r.name, "policy_") || r.name == "policy_load"}
	}
	if r.name == "snapshot_restore" {
		op["requestBody"] = object{"required": true, "content": object{"application/octet-stream": object{"schema": bytesSchema()}}}
	}
	return op
}

func bytesSchema() object { return object{"type": "string", "format": "binary"} }

func rolesThatMay(r *route) []string {
	var list []string
	for _, role := range acl.Roles {
		if acl.Allows([]string{string(role)}, r.roles...) {
			list = append(list, string(role))
		}
	}
	return list
}

func parameters(r *route) []object {
	list := []object{}
	add := func(in, name, kind, doc string) {
		list = append(list, object{"in": in, "name": name, "required": in == "path", "description": doc, "schema": object{"type": kind}})
	}
	for _, name := range r.wildcards() {
		add("path", name, "string", "")
	}
	for _, p := range r.params {
		add("query", p.name, p.kind, p.doc)
	}
	if r.scope == scopeNamespace && !slices.ContainsFunc(r.params, func(p param) bool { return p.name == "namespace" }) {
		add("query", "namespace", "string", "default: default; in lists, * selects all namespaces")
	}
	if r.isQuery {
		add("query", "index", "integer", "respond once the requested objects are newer than this index, as returned in the header X-Nomad-Index")
		add("query", "wait", "string", "maximum time to wait for index, such as 30s; default: 5m")
		add("query", "stale", "boolean", "respond from the local state of any server, even if it has not caught up")
		add("query", "consistent", "boolean", "the leader responds once a majority has confirmed its leadership")
	}
	if r.isPaged {
		add("query", "prefix", "string", "only objects with this ID prefix")
		add("query", "per_page", "integer", "maximum number of entries; the header X-Nomad-NextToken returns the next_token of the next page")
		add("query", "next_token", "string", "start of the page, as returned by the previous page")
	}
	if r.leaderOnly && r.methods[0] != http.MethodGet {
		add("header", headerIdempotency, "string", "requests with the same key are applied once; used when jobs are registered, updated or stopped")
	}
	return list
}

func (d *documentBuilder) responses(r *route) object {
	problem := object{"description": "error, with a hint how to correct it", "content": object{"application/json": object{"schema": d.schema(reflect.TypeFor[client.Error]())}}}
	out := object{"default": problem}
	switch {
	case r.name == "openapi":
		out["200"] = object{"description": "the OpenAPI document", "content": object{"application/json": object{"schema": object{"type": "object"}}}}
	case r.name == "snapshot_save":
		out["200"] = object{"description": "the snapshot", "content": object{"application/octet-stream": object{"schema": bytesSchema()}}}
	case r.name == "policy_module":
		out["200"] = object{"description": "the module", "content": object{"application/wasm": object{"schema": bytesSchema()}}}
	case r.name == "allocation_certificate":
		out["200"] = object{"description": "the certificate", "content": object{"application/octet-stream": object{"schema": bytesSchema()}}}
	case r.name == "event_stream":
		schema := d.schema(reflect.TypeOf(r.response))
		out["200"] = object{"description": "events", "content": object{"application/json": object{"schema": schema}, "text/event-stream": object{"schema": object{"type": "string"}}}}
	case r.name == "agent_health":
		schema := d.schema(reflect.TypeOf(r.response))
		for status, doc := range map[string]string{"200": "success", "503": "a part is not healthy"} {
			out[status] = object{"description": doc, "content": object{"application/json": object{"schema": schema}}}
		}
	case r.name == "job_deployment":
		out["200"] = object{"description": "null", "content": object{"application/json": object{"schema": object{"type": "object", "nullable": true}}}}
	case r.response == nil:
		out["204"] = object{"description": "success"}
	default:
		out["200"] = object{"description": "success", "content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(r.response))}}}
	}
	return out
}

// schema returns the schema of a type; structs are shared by reference.
func (d *documentBuilder) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint16:
		return object{"type": "integer", "minimum": 0, "maximum": 65535}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return d.structure(t)
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

func (d *documentBuilder) structure(t reflect.Type) object {
	ref := object{"$ref": "#/components/schemas/" + t.Name()}
	if d.schemas[t.Name()] != nil {
		return ref
	}
	s := object{"type": "object", "description": d.docs[t.Name()]}
	d.schemas[t.Name()] = s
	properties, required := object{}, []string{}
	d.fields(t, properties, &required)
	s["properties"] = properties
	if !d.sent[t] {
		// Types that occur only in responses have exactly these fields.
		s["additionalProperties"] = false
		if len(required) > 0 {
			slices.Sort(required)
			s["required"] = required
		}
	}
	return ref
}

func (d *documentBuilder) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous {
			d.fields(f.Type, properties, required)
			continue
		}
		if name == "" {
			name = f.Name
		}
		s := d.schema(f.Type)
		if text := d.docs[t.Name()+"."+f.Name]; text != "" || d.nullable(t, f.Type, option) {
			if s["$ref"] != nil {
				s = object{"allOf": []object{s}}
			} else {
				s = maps.Clone(s)
			}
			if text != "" {
				s["description"] = text
			}
			if d.nullable(t, f.Type, option) {
				s["nullable"] = true
			}
		}
		properties[name] = s
		if option != "omitempty" {
			*required = append(*required, name)
		}
	}
}

// nullable reports whether a field may be null. Go clients send null for unset
// fields; servers omit them.
func (d *documentBuilder) nullable(owner, t reflect.Type, option string) bool {
	kind := t.Kind()
	return d.sent[owner] && option != "omitempty" && (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map)
}

// wildcards returns the names of the path parameters, in order.
func (r *route) wildcards() []string {
	var names []string
	for part := range strings.SplitSeq(r.pattern, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}
