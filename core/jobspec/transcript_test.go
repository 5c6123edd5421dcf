package jobspec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts runs the files of testdata/jobs. `parse NAME` prints the job in the
// API's form, and `model NAME` the model's job; both print the problems if the file
// is invalid. Use -rewrite to update the expected output.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/jobs", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			opts := Options{}
			for _, arg := range d.CmdArgs[1:] {
				if opts.Vars == nil {
					opts.Vars = map[string]string{}
				}
				opts.Vars[arg.Key] = strings.Join(arg.Vals, ",")
			}
			f, err := Load(d.CmdArgs[0].Key, []byte(d.Input), opts)
			if err != nil {
				return err.Error() + "\n"
			}
			var shown any = f.Job
			if d.Cmd == "model" {
				m, err := f.Model()
				if err != nil {
					return err.Error() + "\n"
				}
				shown = FromModel(m)
			}
			text, err := json.MarshalIndent(shown, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text) + "\n"
		})
	})
}
