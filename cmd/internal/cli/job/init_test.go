package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/sdk/client"
)

// TestJobTemplates_AreValidJobs checks that the templates of `job init` validate and
// describe the same job in every format.
func TestJobTemplates_AreValidJobs(t *testing.T) {
	var first *client.Job
	for _, name := range []string{"x.hcl", "x.yaml", "x.json"} {
		text, err := jobTemplate(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := jobspec.Load(name, []byte(text), jobspec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Model()
		if err != nil {
			t.Fatal(err)
		}
		j := jobspec.FromModel(m)
		if first == nil {
			first = j
		}
		if diff := cmp.Diff(first, j); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
