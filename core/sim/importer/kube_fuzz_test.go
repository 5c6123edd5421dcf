package importer

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// FuzzKube looks for panics, for dumps that are rejected although some objects can be read,
// and for scenarios that fail a round trip.
func FuzzKube(f *testing.F) {
	for _, seed := range []string{
		`{"Pods":[null]}`,
		`{"items":[null,7,"x",{"kind":"Node","metadata":{"name":"n"}},{"kind":"Pod","metadata":[]}]}`,
		`{"items":[{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4"}}},{"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"resources":{"requests":{"cpu":"two"}}}]}}`,
		"items:\n- kind: Node\n  metadata: {name: n}\n- null\n---\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n}\n---\n- kind: PodDisruptionBudget\n- 7\n",
		`{"kind":"PriorityClass","metadata":{"name":"system-x"},"value":2000000000}{"kind":"Node","metadata":{"name":"n"},"spec":{"taints":[null]}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dump string) {
		src := Source{FS: fstest.MapFS{"d": {Data: []byte(dump)}}, File: "d"}
		file, report, err := Kube(Options{}, src)
		_, _, strict := Kube(Options{Strict: true}, src)
		switch {
		case err != nil:
			if _, ok := errors.AsType[*FileError](err); !ok {
				t.Fatalf("error without a file: %v", err)
			}
			if strict == nil {
				t.Fatalf("rejected (%v), but not in strict mode", err)
			}
			return
		case (report.Lost == 0 && !wrong(report)) != (strict == nil):
			t.Fatalf("%d objects lost, in strict mode: %v", report.Lost, strict)
		}
		var text bytes.Buffer
		if err := scenario.Encode(&text, file, scenario.YAML); err != nil {
			t.Fatal(err)
		}
		if _, err := scenario.Decode("d.yaml", &text); err != nil {
			t.Fatalf("cannot read the encoded scenario: %v", err)
		}
	})
}

// wrong reports whether the import replaced a value that strict mode rejects.
func wrong(r *Report) bool {
	return slices.ContainsFunc(r.Notes, func(n Note) bool {
		return strings.Contains(n.Subject, "invalid startTime")
	})
}
