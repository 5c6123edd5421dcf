package importer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// TestRecordings imports the records in examples/traces. Each transcript names the format and
// the folder, and may replace text in a file of it: `import slurm file old=… new=…`.
func TestRecordings(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/recordings.txt", func(t *testing.T, d *datadriven.TestData) string {
		folder := os.DirFS(filepath.Join("..", "..", "..", "examples", "traces", d.Cmd))
		if d.Cmd == "helios" {
			folder, _ = fs.Sub(folder, "Venus")
		}
		files := edited{FS: folder}
		for line := range strings.Lines(d.Input) {
			words := strings.Split(strings.TrimSuffix(line, "\n"), " -> ")
			if len(words) != 3 {
				d.Fatalf(t, "expected FILE -> OLD -> NEW")
			}
			files.edits = append(files.edits, [3]string(words))
		}
		src := Source{FS: files}
		opts, quiet := Options{}, false
		if len(d.CmdArgs) > 0 {
			// The first argument takes the place of the format.
			whole := *d
			whole.CmdArgs = append([]datadriven.CmdArg{{Key: d.Cmd}}, d.CmdArgs...)
			opts, quiet = parseOptions(t, &whole, &src)
		}
		for _, f := range Formats() {
			if f.Name != d.Cmd {
				continue
			}
			file, report, err := f.Import(opts, src)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			checkImport(t, file, report)
			var b strings.Builder
			b.WriteString(report.String())
			if !quiet {
				if err := scenario.Encode(&b, file, scenario.JSON); err != nil {
					t.Fatal(err)
				}
			}
			return b.String()
		}
		d.Fatalf(t, "unknown format")
		return ""
	})
}

// edited is a folder with replacements in its files. A file whose replacement is "absent" does
// not exist.
type edited struct {
	fs.FS
	edits [][3]string
}

func (e edited) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if err != nil || name == "." {
		return f, err
	}
	text, err := fs.ReadFile(e.FS, name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	unquote := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\ufeff`, "\ufeff")
	for _, edit := range e.edits {
		switch {
		case edit[0] != name:
		case edit[2] == "absent":
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		default:
			text = []byte(strings.Replace(string(text), unquote.Replace(edit[1]), unquote.Replace(edit[2]), 1))
		}
	}
	return &openFile{strings.NewReader(string(text)), info, f}, nil
}

type openFile struct {
	*strings.Reader
	info fs.FileInfo
	fs.File
}

func (f *openFile) Read(p []byte) (int, error) { return f.Reader.Read(p) }
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// FuzzSlurm looks for panics, and for scenarios that fail validation.
func FuzzSlurm(f *testing.F) {
	dump, err := os.ReadFile("../../../examples/traces/slurm/sacct.txt")
	if err != nil {
		f.Fatal(err)
	}
	nodes, err := os.ReadFile("../../../examples/traces/slurm/nodes.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(dump), string(nodes))
	f.Add(string(dump), "")
	f.Fuzz(func(t *testing.T, dump, nodes string) {
		files := fstest.MapFS{"sacct.txt": {Data: []byte(dump)}}
		if nodes != "" {
			files["nodes.txt"] = &fstest.MapFile{Data: []byte(nodes)}
		}
		for _, format := range Formats() {
			if format.Name != "slurm" {
				continue
			}
			if s, r, err := format.Import(Options{}, Source{FS: files}); err == nil {
				checkImport(t, s, r)
			}
		}
	})
}
