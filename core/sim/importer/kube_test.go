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

// TestKube_InvalidQuantities checks that invalid quantities are errors, and that invalid
// times are reported, or in strict mode errors as well.
func TestKube_InvalidQuantities(t *testing.T) {
	t.Parallel()
	dump := `
{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"four","memory":"8Gb"}}}
{"kind":"Pod","metadata":{"name":"p","namespace":"a"},"status":{"startTime":"noon"},"spec":{"nodeName":"n","containers":[{"resources":{"requests":{"cpu":"-1","memory":"1 GB"}}}]}}`
	_, _, err := Kube(Options{}, Source{FS: fstest.MapFS{"d": {Data: []byte(dump)}}, File: "d"})
	if err == nil {
		t.Fatal("invalid quantities are accepted")
	}
	for _, want := range []string{
		`line 2: node n: cpu: invalid quantity "four"; write a quantity such as 500m, 2 or 1Gi`, `line 2: node n: memory: invalid quantity "8Gb"; did you mean 8Gi?`,
		`line 3: pod a/p: cpu: invalid quantity "-1"`, `line 3: pod a/p: memory: invalid quantity "1 GB"; did you mean 1Gi?`, `pod a/p: invalid startTime "noon"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nis missing %s", err, want)
		}
	}
	dump = strings.NewReplacer("four", "4", "8Gb", "8Gi", "-1", "1", "1 GB", "1Gi").Replace(dump)
	src := Source{FS: fstest.MapFS{"d": {Data: []byte(dump)}}, File: "d"}
	_, r, err := Kube(Options{}, src)
	if want := "1  pods with an invalid startTime or creationTimestamp: timestamp ignored; the first: a/p"; err != nil || !strings.Contains(r.String(), want) {
		t.Errorf("error %v; report\n%s\nis missing %s", err, r, want)
	}
	if _, _, err = Kube(Options{Strict: true}, src); err == nil || !strings.Contains(err.Error(), `pod a/p: invalid startTime "noon"`) {
		t.Errorf("error %v in strict mode", err)
	}
}
