package scenario

import (
	"strings"
	"testing"
)

// A resource that no node has is probably misspelt if its name is similar to a standard one.
func TestDecode_SuggestsStandardResource(t *testing.T) {
	t.Parallel()
	_, err := Decode("f.yaml", strings.NewReader(`version: 1
name: s
nodes: [{id: n1, capacity: {cpu: 4000, memory: 8Gi}}]
jobs: [{id: a, groups: [{name: g, count: 1, resources: {mem: 8}}]}]
running: [{id: a1, job: a, group: g, node: n1}]
`))
	if err == nil || !strings.Contains(err.Error(), "requires 8 units of mem: node n1 has 0 free; did you mean memory?") {
		t.Errorf("error %v", err)
	}
}

// The list of the valid fields is long: it occurs once.
func TestError_ListsValidFieldsOnce(t *testing.T) {
	t.Parallel()
	_, err := Decode("f.yaml", strings.NewReader("version: 1\nname: s\nxxxxx: 1\nyyyyy: 2\nnodes: []\njobs: []\n"))
	if err == nil || strings.Count(err.Error(), "valid fields: ") != 1 || !strings.Contains(err.Error(), `unknown field "yyyyy"`) {
		t.Errorf("error %v", err)
	}
}
