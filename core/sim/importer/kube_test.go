package importer

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestKube_NamesUnreadableFiles checks that the error names exactly the unreadable files.
func TestKube_NamesUnreadableFiles(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a.json": {Data: []byte(`{"kind":"Node","metadata":{"name":"n1"}}`)},
		"b.json": {Data: []byte(`{"wrong":1}`)},
		"c.json": {Data: []byte(`{"wrong":2}`)},
	}
	_, _, err := Kube(Options{}, Source{FS: files})
	if err == nil {
		t.Fatal("unexpected success")
	}
	if want := "b.json: line 1: object 1: missing kind (of an object) or items (of a list)"; !strings.HasPrefix(err.Error(), want+"\nc.json: ") {
		t.Errorf("err = %v, want %s", err, want)
	}
}

// TestKube_InvalidQuantities checks that invalid quantities and times are ignored and
// reported. In strict mode they are errors, and all of them are reported.
func TestKube_InvalidQuantities(t *testing.T) {
	t.Parallel()
	src := Source{FS: fstest.MapFS{"d": {Data: []byte(`
{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"four","memory":"1Gi"}}}
{"kind":"Pod","metadata":{"name":"p","namespace":"a"},"status":{"startTime":"noon"},"spec":{"nodeName":"n","containers":[{"resources":{"requests":{"cpu":"-1","memory":"1 Gi"}}}]}}`)}}, File: "d"}
	f, r, err := Kube(Options{}, src)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Running) != 1 || len(f.Jobs[0].Groups[0].Resources) != 0 {
		t.Errorf("jobs = %+v, want one running allocation without requests", f.Jobs)
	}
	for _, want := range []string{
		`3  invalid quantities: read as 0; the first: node n: cpu: invalid quantity "four"`,
		"1  pods with an invalid startTime or creationTimestamp: timestamp ignored; the first: a/p",
	} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("%s\nis missing %s", r, want)
		}
	}
	_, _, err = Kube(Options{Strict: true}, src)
	if err == nil {
		t.Fatal("unexpected success in strict mode")
	}
	for _, want := range []string{`node n: cpu: invalid quantity "four"`, `pod a/p: cpu: invalid quantity "-1"`, `pod a/p: memory: invalid quantity "1 Gi"`, `pod a/p: invalid startTime "noon"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nis missing %s", err, want)
		}
	}
}
