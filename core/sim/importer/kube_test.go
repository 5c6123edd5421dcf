package importer

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Of a folder's files those are named that cannot be read, and no others.
func TestKube_TheWrongFileIsNamed(t *testing.T) {
	files := fstest.MapFS{
		"a.json": {Data: []byte(`{"kind":"Node","metadata":{"name":"n1"}}`)},
		"b.json": {Data: []byte(`{"wrong":1}`)},
		"c.json": {Data: []byte(`{"wrong":2}`)},
	}
	_, _, err := Kube(Options{}, Source{FS: files})
	if err == nil {
		t.Fatal("taken")
	}
	if want := "b.json: line 1: object 1: it has no kind, as every object of Kubernetes has, and no items, as a list has"; !strings.HasPrefix(err.Error(), want+"\nc.json: ") {
		t.Errorf("%v; want %s", err, want)
	}
}
