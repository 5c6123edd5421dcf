package scenario

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sameFile compares files. An empty list or map equals an absent one, except if a
// pointer of Expect distinguishes them.
var sameFile = cmpopts.EquateEmpty()

// FuzzDecode checks that Decode never panics and that each error has a line. If Decode
// accepts an input, the file must resolve and survive a round trip.
func FuzzDecode(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Decode("f", bytes.NewReader(text))
		if err != nil {
			checkError(t, err)
			return
		}
		nodes := 0
		for i := range file.Nodes {
			nodes += file.Nodes[i].instances()
		}
		if nodes < 10_000 {
			if _, err := Resolve(file); err != nil {
				t.Fatalf("decoded, but: %v", err)
			}
		}
		for _, format := range []Format{JSON, YAML} {
			var b bytes.Buffer
			if err := Encode(&b, file, format); err != nil {
				t.Fatal(err)
			}
			again, err := Decode("again", bytes.NewReader(b.Bytes()))
			if err != nil {
				t.Fatalf("cannot decode the encoded file: %v\n%s", err, b.Bytes())
			}
			if diff := cmp.Diff(file, again, sameFile); diff != "" {
				t.Fatalf("the round trip through %s changed the file:\n%s\n%s", format, diff, b.Bytes())
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("error %T has no problems: %v", err, err)
	}
	for i, p := range e.Problems {
		if p.Line < 1 || p.Message == "" || p.Remedy == "" {
			t.Fatalf("problem %d has no line, message or remedy: %+v", i, p)
		}
		if i > 0 && p.Line < e.Problems[i-1].Line {
			t.Fatalf("problem %d is out of order", i)
		}
	}
	_ = e.Error()
}

// seeds returns the scenarios of the contract and every input of the transcripts.
func seeds(f *testing.F) [][]byte {
	var all [][]byte
	files, _ := filepath.Glob("testdata/contract/*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, text)
	}
	for _, dir := range []string{"testdata/errors/*", "testdata/resolve/*"} {
		transcripts, _ := filepath.Glob(dir)
		for _, name := range transcripts {
			datadriven.RunTestAny(f, name, func(_ testing.TB, d *datadriven.TestData) string {
				input := d.Input
				if d.HasArg("head") {
					input = "version: 1\nname: x\n" + input
				}
				all = append(all, []byte(input))
				return d.Expected
			})
		}
	}
	return all
}
