package importer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// A file whose end is missing is reported with its last line: as an error if that line is not
// valid, and otherwise as a note, because it may also be complete.
func TestImports_ReportFileThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, folder, file string }{
		{"slurm", "slurm", "sacct.txt"},
		{"slurm", "slurm", "nodes.txt"},
		{"helios", "helios/Venus", "cluster_log.csv"},
		{"helios", "helios/Venus", "cluster_gpu_number.csv"},
		{"gfs", "gfs", "job_info_df.csv"},
		{"philly", "philly", "cluster_machine_list"},
		{"philly", "philly", "cluster_job_log"},
		{"kwok", "kwok", "recording.yaml"},
	} {
		t.Run(c.format+"/"+c.file, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("..", "..", "..", "examples", "traces", filepath.FromSlash(c.folder))
			files := fstest.MapFS{}
			if err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					text, err := os.ReadFile(filepath.Join(folder, path))
					files[path] = &fstest.MapFile{Data: text}
					return err
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			complete := string(files[c.file].Data)
			if report := importCut(t, c.format, files); strings.Contains(report, "without a line end") {
				t.Fatalf("complete file:\n%s", report)
			}
			for cut := 1; cut <= len(complete)/3; cut++ {
				text := complete[:len(complete)-cut]
				if strings.HasSuffix(text, "\n") || text == strings.TrimSpace(complete) && strings.HasSuffix(text, "]") {
					continue // the end of a line, or of a list in JSON, which may be that of the file
				}
				files[c.file].Data = []byte(text)
				report := importCut(t, c.format, files)
				at := fmt.Sprintf("%s:%d", c.file, strings.Count(text, "\n")+1)
				isError := strings.HasPrefix(report, "error: ") && strings.Contains(report, c.file+":")
				if !isError && !strings.Contains(report, at) {
					t.Fatalf("%d bytes are missing, and %s is not reported:\n%s", cut, at, report)
				}
			}
		})
	}
}

func importCut(t *testing.T, format string, files fs.FS) string {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == format {
			_, report, err := f.Import(Options{}, Source{FS: files})
			if err != nil {
				return "error: " + err.Error()
			}
			return report.String()
		}
	}
	t.Fatalf("unknown format %s", format)
	return ""
}
